// What the tests of a process's end run: `node child.js WHAT URL NAME`. Prints `ready` when the
// lock is held.
import { connect } from 'fencelock';

const [what, url = '', name = ''] = process.argv.slice(2);

async function main(): Promise<void> {
  const locks = await connect(url, { lease: 20_000 });
  if (what === 'idle') return;
  if (what === 'used') {
    await (await locks.acquire(name)).release();
    await locks.request(name, () => {});
    return;
  }
  if (what === 'waits') {
    void locks.acquire(name, { wait: 300 }).catch((error) => console.log(error.code));
    return;
  }
  if (what === 'lost') {
    const lost = await locks.acquire(name, { lease: 200 });
    // Nobody has it any more after the end of its lease, so nothing keeps the process.
    void lost.lost.then((reason) => console.log(reason));
    return;
  }
  if (what === 'survives') {
    // The tick in which a call is made ends in an exception.
    process.once('uncaughtException', (error) => console.log(error.message));
    setImmediate(() => {
      void locks.acquire(name).then(
        (held) => held.release().then(() => console.log('released')),
        (error) => console.log(error),
      );
      throw new Error('caught');
    });
    return;
  }
  if (what === 'leaves') {
    // More than a store gets through before the process ends, if it does not wait for them.
    const names = Array.from({ length: 40 }, (_, at) => `${name}-${at}`);
    const holds = await Promise.all(names.map((each) => locks.acquire(each)));
    console.log('ready');
    for (const each of holds) void each.release();
    process.exit(3);
  }
  if (what === 'shares') {
    // It is killed; nobody else will renew these.
    const brief = await connect(url, { lease: 1_000 });
    await brief.acquire(name, { mode: 'shared' });
    await brief.semaphore(`${name}-permits`, 3).acquire(2);
    console.log('ready');
    return;
  }
  const hold = await locks.acquire(name);
  // Waiters, so that the end has something to leave, too.
  for (let i = 0; i < 3; i++) {
    locks.acquire(name).then(
      (next) => next.release(),
      () => {},
    );
  }
  switch (what) {
    case 'holds':
      break;
    case 'exit':
      console.log('ready');
      process.exit(3);
      break;
    case 'throws':
      setImmediate(() => {
        throw new Error('uncaught');
      });
      break;
    case 'rejects':
      void Promise.reject(new Error('unhandled'));
      break;
    case 'sigterm':
      locks.closeOn('SIGTERM', { drain: 30_000 });
      process.once('SIGTERM', () => {
        console.log('told');
        void hold.release();
      });
      break;
    default:
      throw new Error(`what is ${what}?`);
  }
  // Now that a signal finds its listeners.
  console.log('ready');
}

void main();
