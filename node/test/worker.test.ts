import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { onEachStore, unique } from './support.js';

function start(what: string, url: string, name: string, rounds = 0) {
  const worker = new Worker(join(__dirname, 'worker.js'), {
    workerData: { what, url, name, rounds },
  });
  const tokens: bigint[] = [];
  const ready = new Promise<void>((resolve) => {
    worker.on('message', (token: bigint) => {
      tokens.push(token);
      resolve();
    });
  });
  let failed: Error | undefined;
  worker.on('error', (error) => {
    failed = error;
  });
  const ended = new Promise<number>((resolve) => worker.on('exit', resolve));
  return { worker, tokens, ready, ended, failed: () => failed };
}

onEachStore('worker threads', (store) => {
  test('workers exclude each other and the main thread', async () => {
    const name = unique();
    const workers = Array.from({ length: 4 }, () => start('count', store.url, name, 25));
    const mine: bigint[] = [];
    for (let i = 0; i < 25; i++) {
      await store.locks.request(name, ({ token }) => void mine.push(token));
    }
    assert.deepEqual(await Promise.all(workers.map(({ ended }) => ended)), [0, 0, 0, 0]);
    const all = [...workers.flatMap(({ tokens }) => tokens), ...mine];
    assert.equal(all.length, 125);
    assert.equal(new Set(all).size, 125);
    for (const { tokens } of workers) {
      assert.deepEqual(
        tokens,
        [...tokens].sort((a, b) => (a < b ? -1 : 1)),
      );
    }
  });

  test('one that is terminated with a hold and waits gives them back', async () => {
    for (let i = 0; i < 5; i++) {
      const name = unique();
      const { worker, ready, ended } = start('holds', store.url, name);
      await ready;
      await worker.terminate();
      await ended;
      await using hold = await store.locks.acquire(name, { wait: 10_000 });
      assert.ok(hold.isValid);
    }
  });

  test('one that is terminated while it connects', async () => {
    for (let i = 0; i < 5; i++) {
      const { worker, ended } = start('holds', store.url, unique());
      await new Promise((resolve) => worker.once('online', resolve));
      if (i) await new Promise((resolve) => setTimeout(resolve, i * 4));
      await worker.terminate();
      await ended;
    }
  });

  for (const [what, code] of [
    ['exit', 4],
    ['throws', 1],
  ] as const) {
    test(`${what}: gives back what it held`, async () => {
      const name = unique();
      const { ready, ended, failed } = start(what, store.url, name);
      await ready;
      assert.equal(await ended, code);
      assert.equal(failed() !== undefined, what === 'throws');
      await using hold = await store.locks.acquire(name, { wait: 10_000 });
      assert.ok(hold.isValid);
    });
  }
});
