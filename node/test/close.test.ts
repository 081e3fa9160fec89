import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClosedError, InvalidArgumentError, LostError } from 'fencelock';
import { eventually, onEachStore, rejection, unique } from './support.js';

onEachStore('closing', (store) => {
  test('ends what waits, loses and releases what is held', async () => {
    const name = unique();
    const client = await store.connect();
    const hold = await client.acquire(name);
    const waiting = rejection(client.acquire(name));
    const { lost, signal } = hold;
    assert.equal(await client.close(), false);
    assert.ok((await waiting) instanceof ClosedError);
    assert.equal(await lost, 'closed');
    assert.ok(signal.aborted);
    assert.ok((await rejection(hold.release())) instanceof LostError);
    assert.ok(client.closed);
    assert.ok((await rejection(client.acquire(name))) instanceof ClosedError);
    assert.ok((await rejection(client.request(name, () => {}))) instanceof ClosedError);
    assert.ok((await rejection(client.ping())) instanceof ClosedError);
    await using next = await store.locks.acquire(name);
    assert.ok(next.isValid);
  });

  test('closing again, and an idle client', async () => {
    const client = await store.connect();
    assert.equal(await client.close(), true);
    assert.equal(await client.close(), true);
    await client[Symbol.asyncDispose]();
  });

  test('drain waits for the holds, and takes no new ones', async () => {
    const name = unique();
    const client = await store.connect();
    const hold = await client.acquire(name);
    const closing = client.close({ drain: 30_000 });
    // It begins on a thread of its own.
    await eventually('new acquires are refused', async () => {
      const refused = await client.acquire(unique(), { wait: 0 }).catch((error) => error);
      if (refused instanceof ClosedError) return true;
      await refused.release();
      return false;
    });
    assert.ok(hold.isValid);
    await hold.release();
    assert.equal(await closing, true);
    assert.ok(client.closed);
  });

  test('drain gives up after its bound', async () => {
    const client = await store.connect();
    const hold = await client.acquire(unique());
    assert.equal(await client.close({ drain: 50 }), false);
    assert.equal(await hold.lost, 'closed');
  });

  test('a drain without end, and a negative one', async () => {
    const client = await store.connect();
    const hold = await client.acquire(unique(), { wait: Number.POSITIVE_INFINITY });
    const negative = await rejection(client.close({ drain: -1 }));
    assert.ok(negative instanceof InvalidArgumentError);
    assert.ok(!client.closed);
    const closing = client.close({ drain: Number.POSITIVE_INFINITY });
    await eventually('new acquires are refused', async () => {
      const refused = await client.acquire(unique(), { wait: 0 }).catch((error) => error);
      if (refused instanceof ClosedError) return true;
      await refused.release();
      return false;
    });
    await hold.release();
    assert.equal(await closing, true);
  });

  test('closing while somebody waits says so', async () => {
    const name = unique();
    await using held = await store.locks.acquire(name);
    const client = await store.connect();
    const waiting = rejection(client.acquire(name));
    await eventually('it waits', () => client.metrics().waiting === 1);
    assert.equal(await client.close(), false);
    assert.ok((await waiting) instanceof ClosedError);
    assert.ok(held.isValid);
  });

  test('several clients are independent', async () => {
    const [one, two] = [await store.connect(), await store.connect()];
    await using hold = await two.acquire(unique());
    await one.close();
    assert.ok(hold.isValid);
  });
});
