// What the tests of worker threads run in a worker.
import { parentPort, workerData } from 'node:worker_threads';
import { connect } from 'fencelock';

const { what, url, name, rounds } = workerData as {
  what: string;
  url: string;
  name: string;
  rounds: number;
};

async function main(): Promise<void> {
  const locks = await connect(url);
  if (what === 'count') {
    for (let i = 0; i < rounds; i++) {
      await locks.request(name, async (lock) => {
        parentPort?.postMessage(lock.token);
        await new Promise((resolve) => setImmediate(resolve));
      });
    }
    return;
  }
  const hold = await locks.acquire(name);
  for (let i = 0; i < 100; i++) locks.acquire(name).catch(() => {});
  // What it waits for elsewhere must not disturb its end either.
  void locks.ping();
  parentPort?.postMessage(hold.token);
  if (what === 'exit') process.exit(4);
  if (what === 'throws') throw new Error('uncaught in a worker');
}

void main();
