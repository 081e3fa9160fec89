import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import type * as Fencelock from 'fencelock';
import { eventually, onEachStore, unique } from './support.js';

/** Evaluates the package anew, as a test runner's registry of modules does. */
function evaluate(): typeof Fencelock {
  for (const key of Object.keys(require.cache)) {
    if (/[\\/]node[\\/]dist[\\/]/.test(key)) delete require.cache[key];
  }
  return require('fencelock');
}

const descriptors = () => readdirSync('/proc/self/fd').length;
const listeners = () => process.listenerCount('exit');

onEachStore('modules', (store) => {
  test('a module that is evaluated again leaves nothing of the one before', async () => {
    await using _open = await store.locks.acquire(unique());
    const listening = listeners();
    const use = async () => {
      const fresh = evaluate();
      const locks = await fresh.connect(store.url);
      await locks.request(unique(), () => null);
      await locks.close();
      await eventually('its listener is gone', () => listeners() === listening);
    };
    // What is made once in a process is made now.
    await use();
    const few = descriptors();
    for (let i = 0; i < 12; i++) await use();
    await eventually('its descriptors are gone', () => descriptors() <= few + 2);
  });

  test('when the last client is closed it answers, and a new one works', async () => {
    const listening = listeners();
    const fresh = evaluate();
    for (let i = 0; i < 3; i++) {
      const locks = await fresh.connect(store.url);
      const name = unique();
      const hold = await locks.acquire(name);
      const waits = locks.acquire(name);
      await hold.release();
      await (await waits).release();
      const lost = await locks.acquire(name);
      await locks.close();
      assert.equal(await lost.lost, 'closed');
      await eventually('its listener is gone', () => listeners() === listening);
      await assert.rejects(locks.acquire(name), { name: 'ClosedError' });
      await assert.rejects(locks.ping(), { name: 'ClosedError' });
      await locks.close();
      await eventually('its listener is gone again', () => listeners() === listening);
    }
  });

  test('a client that nobody closed goes with the collector', async () => {
    const listening = listeners();
    const open = async () => {
      await (await evaluate().connect(store.url)).request(unique(), () => null);
    };
    await open();
    assert.equal(listeners(), listening + 1);
    await eventually('it was collected', () => {
      globalThis.gc?.();
      return listeners() === listening;
    });
  });
});
