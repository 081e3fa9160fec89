import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import {
  ContendedError,
  Hold,
  InvalidArgumentError,
  Lock,
  LostError,
  NotHeldError,
  TimedOutError,
} from 'fencelock';
import { eventually, onEachStore, rejection, turn, unique } from './support.js';

onEachStore('holds', (store) => {
  test('await using releases at the end of the block, also when it throws', async () => {
    const name = unique();
    let escaped: Hold | undefined;
    {
      await using hold = await store.locks.acquire(name);
      assert.ok(hold instanceof Hold && hold instanceof Lock);
      assert.equal(hold.name, name);
      assert.ok(hold.isValid && hold.remaining > 0);
      assert.equal(await store.locks.acquire(name, { ifAvailable: true }), null);
      escaped = hold;
    }
    assert.equal(escaped.isValid, false);
    const boom = new Error('boom');
    const thrower = async () => {
      await using _hold = await store.locks.acquire(name);
      throw boom;
    };
    assert.equal(await rejection(thrower()), boom);
    await using again = await store.locks.acquire(name, { ifAvailable: true });
    assert.ok(again);
  });

  test('ifAvailable: null, which `await using` takes', async () => {
    const name = unique();
    await using _hold = await store.locks.acquire(name);
    await using none = await store.locks.acquire(name, { ifAvailable: true });
    assert.equal(none, null);
  });

  test('released once; a second release says so, a disposal does not', async () => {
    const hold = await store.locks.acquire(unique());
    await hold.release();
    assert.ok((await rejection(hold.release())) instanceof NotHeldError);
    assert.ok((await rejection(hold.extend(1000))) instanceof NotHeldError);
    assert.throws(() => hold.check(), NotHeldError);
    assert.throws(() => hold.ticket(), NotHeldError);
    assert.equal(hold.remaining, 0);
    assert.equal(hold.isWanted, false);
    assert.equal(hold.signal.aborted, false);
    await hold[Symbol.asyncDispose]();
  });

  test('the wait is bounded', async () => {
    const name = unique();
    await using _hold = await store.locks.acquire(name);
    assert.ok((await rejection(store.locks.acquire(name, { wait: 0 }))) instanceof ContendedError);
    assert.ok((await rejection(store.locks.acquire(name, { wait: 20 }))) instanceof TimedOutError);
  });

  test('every acquisition excludes every other, branches of Promise.all too', async () => {
    const name = unique();
    let inside = 0;
    const branch = async () => {
      await using _hold = await store.locks.acquire(name);
      assert.equal(++inside, 1);
      await turn();
      inside--;
    };
    await Promise.all(Array.from({ length: 16 }, branch));
  });

  /** Skips what a store says that it cannot do. */
  const can = (what: 'owners' | 'abandoned', context: TestContext) => {
    const able = store.locks.capabilities[what];
    if (!able) context.skip(`the store does not have '${what}'`);
    return able;
  };

  test('an explicit owner re-enters, and elsewhere too', async (context) => {
    if (!can('owners', context)) return;
    const name = unique();
    const owner = unique('owner');
    const other = await store.connect();
    const first = await store.locks.acquire(name, { owner });
    assert.equal(first.isReentry, false);
    const second = await store.locks.acquire(name, { owner, wait: 0 });
    assert.ok(second.isReentry);
    const third = await other.acquire(name, { owner, wait: 0 });
    assert.deepEqual([second.token, third.token], [first.token, first.token]);
    assert.ok((await rejection(other.acquire(name, { wait: 0 }))) instanceof ContendedError);
    await first.release();
    await second.release();
    assert.ok(third.isValid);
    assert.ok((await rejection(store.locks.acquire(name, { wait: 0 }))) instanceof ContendedError);
    await third.release();
    await using free = await store.locks.acquire(name, { wait: 0 });
    assert.ok(free.token > first.token);
  });

  test('a ticket is attached to elsewhere', async (context) => {
    if (!can('owners', context)) return;
    const name = unique();
    const other = await store.connect();
    const first = await store.locks.acquire(name, { owner: unique('owner') });
    const joined = await other.attach(first.ticket());
    assert.equal(joined.name, name);
    assert.equal(joined.token, first.token);
    await first.release();
    assert.ok(joined.isValid);
    const ticket = joined.ticket();
    await joined.release();
    assert.ok((await rejection(other.attach(ticket))) instanceof NotHeldError);
    assert.ok((await rejection(other.attach('nonsense'))) instanceof InvalidArgumentError);
    await using plain = await store.locks.acquire(name);
    assert.throws(() => plain.ticket(), InvalidArgumentError);
  });

  test('extend makes the lease longer, never shorter', async () => {
    const hold = await store.locks.acquire(unique(), { lease: 5_000 });
    await hold.extend(60_000);
    // Never beyond the session, where that is the lease.
    const [long, still] = store.locks.capabilities.leases ? [50_000, 40_000] : [15_000, 10_000];
    assert.ok(hold.remaining > long);
    await hold.extend(1_000);
    assert.ok(hold.remaining > still);
    assert.ok((await rejection(hold.extend(1))) instanceof InvalidArgumentError);
    await hold.release();
  });

  test('an explicit lease ends, and the holder is told in every way', async () => {
    const name = unique();
    const hold = await store.locks.acquire(name, { lease: 200 });
    const { signal } = hold;
    const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
    assert.equal(await hold.lost, 'ended');
    await aborted;
    assert.ok(signal.reason instanceof LostError);
    assert.equal(signal.reason.reason, 'ended');
    assert.equal(hold.isValid, false);
    assert.throws(() => hold.check(), LostError);
    const error = await rejection(hold.release());
    assert.ok(error instanceof LostError);
    assert.equal(error.reason, 'ended');
    await using next = await store.locks.acquire(name);
    const known = store.locks.capabilities.abandoned;
    assert.equal(next.previousAbandoned, known ? 'yes' : 'unknown');
  });

  test('a disposal of a lost hold says so', async () => {
    const name = unique();
    const work = async () => {
      await using hold = await store.locks.acquire(name);
      await store.locks.breakLock(name, hold.token);
      await hold.lost;
    };
    assert.ok((await rejection(work())) instanceof LostError);
  });

  test('maxHold ends a hold that is renewed', async () => {
    const hold = await store.locks.acquire(unique(), { maxHold: 150 });
    assert.equal(await hold.lost, 'ended');
    assert.ok((await rejection(hold.release())) instanceof LostError);
  });

  test('wanted tells when another client waits', async () => {
    const name = unique();
    const other = await store.connect();
    const hold = await store.locks.acquire(name);
    assert.equal(hold.isWanted, false);
    const { wanted } = hold;
    const waiting = other.acquire(name);
    await wanted;
    assert.ok(hold.isWanted);
    await hold.release();
    await (await waiting).release();
  });

  test('previousAbandoned: no after a release', async (context) => {
    if (!can('abandoned', context)) return;
    const name = unique();
    await (await store.locks.acquire(name)).release();
    await using hold = await store.locks.acquire(name);
    assert.equal(hold.previousAbandoned, 'no');
  });

  test('inspect, list, isLocked, ping, metrics', async () => {
    const name = unique();
    const labelled = await store.connect({ label: 'billing' });
    assert.equal(await labelled.inspect(unique('never')), null);
    assert.equal(await labelled.isLocked(name), false);
    const hold = await labelled.acquire(name, { owner: 'trace-1' });
    const info = await store.locks.inspect(name);
    assert.equal(info?.token, hold.token);
    // Where owners are the client's own affair, the store does not know them.
    const { owners } = store.locks.capabilities;
    assert.equal(info?.owner, owners ? 'trace-1' : undefined);
    assert.equal(info?.holds[0]?.label, 'billing');
    assert.equal(info?.holds[0]?.clientId, labelled.clientId);
    assert.deepEqual(await store.locks.list({ prefix: name, limit: 5 }), [name]);
    assert.ok(await store.locks.isLocked(name));
    assert.ok(Math.abs((await labelled.ping()).getTime() - Date.now()) < 60_000);
    await hold.release();
    const metrics = labelled.metrics();
    assert.equal(metrics.grants, 1);
    assert.equal(metrics.lossesBy.ended, 0);
    assert.match(metrics.prometheus, /fencelock_hold_seconds_count 1/);
    const kinds: Record<string, string> = { rediss: 'redis', zk: 'zookeeper' };
    assert.equal(labelled.capabilities.store, kinds[store.scheme] ?? store.scheme);
    const noPath = labelled.isLocked('no//path');
    if (labelled.capabilities.paths) {
      assert.ok((await rejection(noPath)) instanceof InvalidArgumentError);
    } else {
      assert.equal(await noPath, false);
    }
    assert.equal(labelled.capabilities.paths, store.scheme === 'zk');
  });

  test('types and ranges of arguments', async () => {
    const acquire = store.locks.acquire as (...args: unknown[]) => Promise<unknown>;
    const wrong = (...args: unknown[]) => rejection(Reflect.apply(acquire, store.locks, args));
    for (const args of [[1], ['x', null], ['x', { wait: '1' }], ['x', { signal: {} }]]) {
      assert.ok((await wrong(...args)) instanceof TypeError);
    }
    for (const args of [[''], ['x', { wait: -1 }], ['x', { lease: 5 }], ['\udc00']]) {
      assert.ok((await wrong(...args)) instanceof InvalidArgumentError);
    }
    for (const limit of [0, -1, 1.5, Number.NaN]) {
      assert.ok((await rejection(store.locks.list({ limit }))) instanceof InvalidArgumentError);
    }
    const text = '1' as unknown as number;
    assert.ok((await rejection(store.locks.list({ limit: text }))) instanceof TypeError);
    // @ts-expect-error: not for users
    assert.throws(() => new Hold(), TypeError);
    // @ts-expect-error: not for users
    assert.throws(() => new Lock(), TypeError);
    await eventually('nothing is left', () => store.locks.metrics().waiting === 0);
  });
});
