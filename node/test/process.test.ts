// The end of a process: an idle one ends by itself, one that holds or waits does not, and whichever
// way it ends it gives back what it can.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually, isShared, onEachStore, unique } from './support.js';

const CHILD = join(__dirname, 'child.js');

function child(what: string, url: string, name: string) {
  const process_ = spawn(process.execPath, [CHILD, what, url, name]);
  let [out, err] = ['', ''];
  process_.stdout.on('data', (data) => {
    out += data;
  });
  process_.stderr.on('data', (data) => {
    err += data;
  });
  const ended = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    process_.on('close', (code, signal) => resolve({ code, signal }));
  });
  return {
    ended,
    kill: (signal: NodeJS.Signals) => process_.kill(signal),
    out: () => out,
    err: () => err,
  };
}

onEachStore('the end of a process', (store) => {
  for (const what of ['idle', 'used']) {
    test(`${what}: ends by itself`, async () => {
      const { ended, err } = child(what, store.url, unique());
      assert.deepEqual(await ended, { code: 0, signal: null }, err());
      assert.equal(err(), '');
    });
  }

  test('a wait keeps it alive until its end', async (context) => {
    // Somebody else must hold the lock, whom a process's own memory does not show.
    if (!isShared(store.scheme)) return context.skip('not shared by processes');
    const name = unique();
    await using _hold = await store.locks.acquire(name);
    const { ended, out } = child('waits', store.url, name);
    assert.equal((await ended).code, 0);
    assert.equal(out(), 'timed_out\n');
  });

  test('a hold keeps it alive until it is lost', async () => {
    const { ended, out } = child('lost', store.url, unique());
    assert.equal((await ended).code, 0);
    assert.equal(out(), 'ended\n');
  });

  test('a live hold keeps it alive', async () => {
    const name = unique();
    const { ended, kill, out } = child('holds', store.url, name);
    await eventually('it holds', () => out().includes('ready'));
    const first = await Promise.race([
      ended,
      new Promise((resolve) => setTimeout(resolve, 300, 'alive')),
    ]);
    assert.equal(first, 'alive');
    kill('SIGKILL');
    assert.equal((await ended).signal, 'SIGKILL');
  });

  test('a call in a tick that throws is made all the same', async () => {
    const { ended, out } = child('survives', store.url, unique());
    assert.equal((await ended).code, 0);
    assert.equal(out(), 'caught\nreleased\n');
  });

  for (const [what, code] of [
    ['leaves', 3],
    ['exit', 3],
    ['throws', 1],
    ['rejects', 1],
  ] as const) {
    test(`${what}: releases what it held, and leaves the queue`, async () => {
      const name = unique();
      const { ended, out } = child(what, store.url, name);
      assert.equal((await ended).code, code);
      assert.match(out(), /ready/);
      if (!isShared(store.scheme)) return;
      const held = what === 'leaves' ? [`${name}-0`, `${name}-39`] : [name];
      for (const each of held) {
        // Its lease would last longer than this waits.
        await using hold = await store.locks.acquire(each, { wait: 10_000 });
        assert.ok(hold.isValid);
        assert.equal((await store.locks.inspect(each))?.waiters.length, 0);
      }
    });
  }

  test('closeOn: drains on SIGTERM, then ends by it', async () => {
    const name = unique();
    const { ended, kill, out } = child('sigterm', store.url, name);
    await eventually('it holds', () => out().includes('ready'));
    kill('SIGTERM');
    assert.deepEqual(await ended, { code: null, signal: 'SIGTERM' });
    assert.match(out(), /told/);
    if (!isShared(store.scheme)) return;
    await using hold = await store.locks.acquire(name, { wait: 10_000 });
    assert.ok(hold.isValid);
  });
});
