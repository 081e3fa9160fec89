import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, type LockManager } from 'fencelock';
import { eventually, onEachStore, unique } from './support.js';

onEachStore('load', (store) => {
  test('10,000 pending waits, while timers and libuv go on; all are aborted', async () => {
    const name = unique();
    const { readFile } = await import('node:fs/promises');
    const hold = await store.locks.acquire(name);
    const controller = new AbortController();
    const waits = Array.from({ length: 10_000 }, () =>
      store.locks.acquire(name, { signal: controller.signal }),
    );
    const ends = Promise.allSettled(waits);
    await eventually('all wait', () => store.locks.metrics().waiting === 10_000);
    // The pool has four threads: four waits in it would block these.
    await Promise.all(Array.from({ length: 8 }, () => readFile(__filename)));
    controller.abort();
    assert.ok((await ends).every(({ status }) => status === 'rejected'));
    await hold.release();
    await eventually('none waits', () => store.locks.metrics().waiting === 0);
    await (await store.locks.acquire(name)).release();
  });

  test('1,000 waits are all served', async () => {
    const name = unique();
    let last = 0n;
    const waits = Array.from({ length: 1000 }, () =>
      store.locks.request(name, ({ token }) => {
        assert.ok(token > last);
        last = token;
      }),
    );
    await Promise.all(waits);
  });

  test('64 tasks on 64 locks each exclude each other', async () => {
    const slots = Array.from({ length: 64 }, () => ({ name: unique(), inside: 0, seen: 0 }));
    const clients: LockManager[] = [store.locks];
    for (let i = 0; i < 3; i++) clients.push(await connect(store.url));
    // On SQLite each hand-over between clients is found by polling: fewer rounds there.
    const step = store.scheme === 'sqlite' ? 16 : 1;
    const task = async (t: number) => {
      for (let i = 0; i < 64; i += step) {
        const slot = slots[(t * 7 + i) % 64];
        assert.ok(slot);
        await clients[t % clients.length]?.request(slot.name, async () => {
          assert.equal(++slot.inside, 1);
          await null;
          slot.seen++;
          slot.inside--;
        });
      }
    };
    await Promise.all(Array.from({ length: 64 }, (_, t) => task(t)));
    assert.equal(
      slots.reduce((sum, { seen }) => sum + seen, 0),
      (64 * 64) / step,
    );
    await Promise.all(clients.slice(1).map((client) => client.close()));
  });
});

onEachStore('fairness', (store) => {
  test('tasks that hand a lock on, and one that never waits, starve neither timers nor I/O', async () => {
    const shared = unique();
    const deadline = Date.now() + 30_000;
    let served = false;
    // A bound of their own, since a timer may be what they starve.
    const task = async (name: string) => {
      while (!served && Date.now() < deadline) {
        await (await store.locks.acquire(name)).release();
      }
    };
    const tasks = Array.from({ length: 64 }, () => task(shared));
    tasks.push(task(unique()));
    const { createServer, connect: dial } = await import('node:net');
    const server = createServer((socket) => socket.pipe(socket));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const socket = dial((server.address() as { port: number }).port, '127.0.0.1');
    for (let i = 0; i < 10; i++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      const echo = new Promise((resolve) => socket.once('data', resolve));
      socket.write('x');
      await echo;
    }
    const inTime = Date.now() < deadline;
    served = true;
    await Promise.all(tasks);
    socket.destroy();
    server.close();
    assert.ok(inTime);
  });

  test('a loop that is blocked loses no hold', async () => {
    const locks = await store.connect({ lease: 1000 });
    const hold = await locks.acquire(unique());
    // The loop expects an answer, and then does something else for several leases.
    const ping = locks.ping();
    await null;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2500);
    assert.ok(hold.isValid);
    await ping;
    await hold.release();
  });
});
