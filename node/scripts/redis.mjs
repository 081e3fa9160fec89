// A Redis server of our own, on a free port, with its files in a folder of ours.
import { spawn } from 'node:child_process';
import { connect, createServer } from 'node:net';

/** Starts it; gives its URL and how to stop it. */
export async function startRedis(folder) {
  const port = await freePort();
  const program = process.env.REDIS_SERVER || 'redis-server';
  const server = spawn(
    program,
    [
      '--port',
      `${port}`,
      '--bind',
      '127.0.0.1',
      '--dir',
      folder,
      '--save',
      '',
      '--daemonize',
      'no',
    ],
    { stdio: 'ignore' },
  );
  const died = new Promise((_, reject) => {
    server.once('error', (error) =>
      reject(new Error(`${program} did not start`, { cause: error })),
    );
    server.once('exit', (code) => reject(new Error(`${program} ended with ${code}`)));
  });
  died.catch(() => {});
  const gone = new Promise((resolve) => server.once('close', resolve));
  // If this process ends in any way, so does the server.
  const kill = () => server.kill('SIGKILL');
  process.once('exit', kill);
  await Promise.race([died, answers(port)]);
  return {
    port,
    pid: server.pid,
    url: `redis://127.0.0.1:${port}`,
    async stop() {
      process.off('exit', kill);
      kill();
      await gone;
    },
  };
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function answers(port) {
  const deadline = Date.now() + 30_000;
  while (!(await ping(port))) {
    if (Date.now() > deadline) throw new Error('the Redis server does not answer');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function ping(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    const end = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('data', (data) => end(data.toString().startsWith('+PONG')));
    socket.once('error', () => end(false));
    socket.setTimeout(1000, () => end(false));
  });
}
