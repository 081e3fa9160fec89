// An abort at every point of an acquire leaves neither a hold nor a place in the queue.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Hold } from 'fencelock';
import { eventually, onEachStore, rejection, turn, unique } from './support.js';

onEachStore('aborts', (store) => {
  const free = (name: string) =>
    eventually(`${name} is free and nobody waits`, async () => {
      const hold = await store.locks.acquire(name, { ifAvailable: true });
      await hold?.release();
      return hold !== null;
    });

  test('before the call', async () => {
    const reason = { my: 'reason' };
    const signal = AbortSignal.abort(reason);
    assert.equal(await rejection(store.locks.acquire(unique(), { signal })), reason);
    assert.equal(await rejection(store.locks.attach('x', { signal })), reason);
  });

  test('in the same turn', async () => {
    const name = unique();
    for (let i = 0; i < 50; i++) {
      const controller = new AbortController();
      const acquired = store.locks.acquire(name, { signal: controller.signal });
      controller.abort(i);
      // On a store that answers at once it may have been granted before.
      await acquired.then(
        (hold) => hold.release(),
        (error) => assert.equal(error, i),
      );
    }
    await free(name);
  });

  test('some turns or milliseconds later, while it is free, held or handed over', async () => {
    const name = unique();
    const other = await store.connect();
    let [granted, aborted] = [0, 0];
    const settled: Promise<unknown>[] = [];
    for (let i = 0; i < 150; i++) {
      const client = i % 3 ? store.locks : other;
      const controller = new AbortController();
      settled.push(
        client.acquire(name, { signal: controller.signal }).then(
          async (hold: Hold) => {
            granted++;
            if (i % 4 === 0) await turn();
            await hold.release();
          },
          (error) => {
            aborted++;
            assert.equal(error, i);
          },
        ),
      );
      if (i % 2) {
        const point = i % 7;
        void (point < 3 ? turn() : delay(point - 2)).then(() => controller.abort(i));
      }
      if (i % 5 === 0) await turn();
    }
    await Promise.all(settled);
    assert.equal(granted + aborted, 150);
    await free(name);
    const seen = await store.locks.query({ prefix: name });
    assert.deepEqual(seen, { held: [], pending: [] });
  });

  test('of an attach, at any time', async (context) => {
    if (!store.locks.capabilities.owners) return context.skip("the store does not have 'owners'");
    const name = unique();
    const other = await store.connect();
    const first = await store.locks.acquire(name, { owner: unique('owner') });
    const ticket = first.ticket();
    for (let i = 0; i < 40; i++) {
      const controller = new AbortController();
      const attached = other.attach(ticket, { signal: controller.signal });
      if (i % 4 === 1) await turn();
      if (i % 4 === 2) await delay(1);
      if (i % 4 !== 3) controller.abort(i);
      // One that came first counts.
      await attached.then(
        (hold) => hold.release(),
        (error) => assert.equal(error, i),
      );
    }
    assert.ok(first.isValid);
    await first.release();
    await free(name);
  });

  test('after the grant it changes nothing', async () => {
    const controller = new AbortController();
    const hold = await store.locks.acquire(unique(), { signal: controller.signal });
    controller.abort();
    await turn();
    assert.ok(hold.isValid);
    await hold.release();
  });

  test('AbortSignal.timeout and AbortSignal.any', async () => {
    const name = unique();
    await using _hold = await store.locks.acquire(name);
    const error = await rejection(store.locks.acquire(name, { signal: AbortSignal.timeout(20) }));
    assert.equal((error as Error).name, 'TimeoutError');
    const controller = new AbortController();
    const signal = AbortSignal.any([controller.signal, new AbortController().signal]);
    const waiting = store.locks.acquire(name, { signal });
    controller.abort('any');
    assert.equal(await rejection(waiting), 'any');
  });

  test('one signal for many waits: all end, without a warning, and no listener is left', async () => {
    const name = unique();
    const hold = await store.locks.acquire(name);
    const warnings: Error[] = [];
    const warned = (warning: Error) => warnings.push(warning);
    process.on('warning', warned);
    const controller = new AbortController();
    const { signal } = controller;
    let listening = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = ((...args: Parameters<typeof add>) => {
      listening++;
      add(...args);
    }) as typeof add;
    signal.removeEventListener = ((...args: Parameters<typeof remove>) => {
      listening--;
      remove(...args);
    }) as typeof remove;
    const waits = Array.from({ length: 200 }, () => store.locks.acquire(name, { signal }));
    const first = rejection(Promise.all(waits));
    await turn();
    controller.abort('all');
    const ends = await Promise.allSettled(waits);
    assert.ok(ends.every((end) => end.status === 'rejected' && end.reason === 'all'));
    assert.equal(await first, 'all');
    await hold.release();
    assert.equal(listening, 1);
    const unused = new AbortController().signal;
    await (await store.locks.acquire(name, { signal: unused })).release();
    assert.equal(getEventListeners(unused, 'abort').length, 0);
    await turn();
    process.off('warning', warned);
    assert.deepEqual(warnings, []);
    await free(name);
  });
});
