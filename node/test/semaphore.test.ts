import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ClosedError,
  ContendedError,
  Held,
  InvalidArgumentError,
  Lock,
  LostError,
  MisconfiguredError,
  NotHeldError,
  Permit,
  Semaphore,
  TimedOutError,
} from 'fencelock';
import { deferred, eventually, onEachStore, rejection, shares, turn, unique } from './support.js';

onEachStore('semaphores', (store) => {
  test('permits are taken and given back', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const other = await store.connect();
    const [mine, theirs] = [store.locks.semaphore(name, 3), other.semaphore(name, 3)];
    assert.ok(mine instanceof Semaphore);
    assert.deepEqual([mine.name, mine.permits, `${mine}`], [name, 3, '[object Semaphore]']);
    {
      await using one = await mine.acquire();
      await using two = await theirs.acquire(2);
      assert.ok(one instanceof Permit && one instanceof Held && !(one instanceof Lock));
      assert.deepEqual([one.name, one.permits, two.permits], [name, 1, 2]);
      assert.ok(one.isValid && one.check() === one.token && two.token > one.token);
      assert.equal(await mine.availablePermits(), 0);
      assert.equal(await mine.tryAcquire(), null);
      assert.ok((await rejection(mine.acquire(1, { wait: 0 }))) instanceof ContendedError);
      assert.ok((await rejection(mine.acquire(1, { wait: 20 }))) instanceof TimedOutError);
      const holds = (await store.locks.inspect(name))?.holds;
      assert.deepEqual(new Set(holds?.map(({ mode }) => mode)), new Set(['permits']));
      assert.deepEqual(new Set(holds?.map(({ permits }) => permits)), new Set([1, 2]));
      // The standard knows no semaphores.
      assert.deepEqual(await store.locks.query({ prefix: name }), { held: [], pending: [] });
      await two.release();
      assert.ok((await rejection(two.release())) instanceof NotHeldError);
      assert.equal(await mine.availablePermits(), 2);
    }
    assert.equal(await mine.availablePermits(), 3);
    await using all = await mine.tryAcquire(3);
    assert.equal(all?.permits, 3);
  });

  test('never more than there are', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const clients = [store.locks, await store.connect()];
    let [inside, most] = [0, 0];
    const work = async (at: number) => {
      const semaphore = clients[at % 2]?.semaphore(name, 4);
      const count = 1 + (at % 3);
      await semaphore?.run(async () => {
        inside += count;
        most = Math.max(most, inside);
        await turn();
        inside -= count;
      }, count);
    };
    await Promise.all(Array.from({ length: 60 }, (_, at) => work(at)));
    assert.ok(most <= 4 && most > 1, `${most}`);
    assert.equal(await store.locks.semaphore(name, 4).availablePermits(), 4);
  });

  test('a small request does not pass a larger one; an abort lets it', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const other = await store.connect();
    const [mine, theirs] = [store.locks.semaphore(name, 3), other.semaphore(name, 3)];
    await using _two = await mine.acquire(2);
    const controller = new AbortController();
    const large = rejection(theirs.acquire(3, { signal: controller.signal }));
    await eventually('it waits', async () => {
      return (await store.locks.inspect(name))?.waiters[0]?.permits === 3;
    });
    assert.equal(await mine.tryAcquire(), null);
    const small = mine.acquire();
    controller.abort('enough');
    assert.equal(await large, 'enough');
    await using one = await small;
    assert.ok(one.isValid);
    const aborted = mine.acquire(1, { signal: AbortSignal.abort('before') });
    assert.equal(await rejection(aborted), 'before');
  });

  test('run passes the result through, gives back, and tells a loss', async (context) => {
    if (!shares(store, context)) return;
    const semaphore = store.locks.semaphore(unique(), 2);
    assert.equal(await semaphore.run(() => 'plain'), 'plain');
    assert.equal(await semaphore.run(async (permit) => permit.permits, 2), 2);
    const boom = new Error('boom');
    assert.equal(await rejection(semaphore.run(() => Promise.reject(boom))), boom);
    const thrower = () => {
      throw boom;
    };
    assert.equal(await rejection(semaphore.run(thrower)), boom);
    const lost = rejection(semaphore.run(() => deferred().promise, 1, { lease: 300 }));
    assert.ok((await lost) instanceof LostError);
    const never = undefined as unknown as () => void;
    assert.ok((await rejection(semaphore.run(never))) instanceof TypeError);
    await eventually('all are free', async () => (await semaphore.availablePermits()) === 2);
  });

  test('a loss is told to whom it concerns, and gives nothing back twice', async (context) => {
    if (!shares(store, context)) return;
    const semaphore = store.locks.semaphore(unique(), 2);
    await using kept = await semaphore.acquire();
    const brief = await semaphore.acquire(1, { lease: 300 });
    assert.equal(await brief.lost, 'ended');
    assert.ok(brief.signal.aborted && kept.isValid && !kept.signal.aborted);
    await eventually('it is free', async () => (await semaphore.availablePermits()) === 1);
    assert.ok((await rejection(brief.release())) instanceof LostError);
    assert.equal(await semaphore.availablePermits(), 1);
  });

  test('numbers that cannot be, and those that disagree', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const { locks } = store;
    for (const number of [0, -1, 1.5, 1_000_001, Number.NaN, 2 ** 40]) {
      assert.throws(() => locks.semaphore(name, number), InvalidArgumentError);
    }
    assert.throws(() => locks.semaphore(name, '3' as unknown as number), TypeError);
    assert.throws(() => locks.semaphore('', 3), InvalidArgumentError);
    assert.throws(() => new (Semaphore as unknown as new () => unknown)(), TypeError);
    assert.throws(() => new (Permit as unknown as new () => unknown)(), TypeError);
    const semaphore = locks.semaphore(name, 3);
    for (const count of [0, -1, 1.5, 4]) {
      assert.ok((await rejection(semaphore.acquire(count))) instanceof InvalidArgumentError);
    }
    const odd = rejection(semaphore.acquire('1' as unknown as number));
    assert.ok((await odd) instanceof TypeError);
    {
      await using _one = await semaphore.acquire();
      const differs = await rejection(locks.semaphore(name, 2).acquire());
      assert.ok(differs instanceof MisconfiguredError && differs.message.includes('3'));
      assert.ok((await rejection(locks.acquire(name))) instanceof MisconfiguredError);
      // A request takes no permits away from anybody.
      const stolen = rejection(locks.request(name, { steal: true }, () => {}));
      assert.ok((await stolen) instanceof MisconfiguredError);
      assert.equal(await semaphore.availablePermits(), 2);
    }
    await using _lock = await locks.acquire(name);
    assert.ok((await rejection(semaphore.acquire())) instanceof MisconfiguredError);
  });

  test('it is resized while it is used', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const other = await store.connect();
    const [mine, theirs] = [store.locks.semaphore(name, 2), other.semaphore(name, 2)];
    const queued = async () => (await other.inspect(name))?.waiters.length === 1;
    assert.equal(await mine.resize(3), false);
    await using _two = await mine.acquire(2);
    const one = theirs.acquire(1, { wait: 30_000 });
    await eventually('it waits', queued);
    assert.equal(await mine.resize(3), true);
    const permit = await one;
    const differs = await rejection(theirs.acquire());
    assert.ok(differs instanceof MisconfiguredError);
    assert.match(differs.message, /has 3 permits .* says 2/);
    const doomed = rejection(store.locks.semaphore(name, 3).acquire(3));
    await eventually('it waits', queued);
    assert.equal(await mine.resize(1), true);
    const told = await doomed;
    assert.ok(told instanceof InvalidArgumentError);
    assert.match(told.message, /3 permits were asked for.* has 1 /);
    // Nobody loses any.
    assert.ok(permit.isValid);
    await permit.release();
    assert.equal(await store.locks.semaphore(name, 1).availablePermits(), 0);
    for (const number of [0, 1.5, 1_000_001]) {
      assert.ok((await rejection(mine.resize(number))) instanceof InvalidArgumentError);
    }
    assert.ok((await rejection(mine.resize('3' as unknown as number))) instanceof TypeError);
    await using _lock = await store.locks.acquire(`${name}/lock`);
    const lock = rejection(store.locks.semaphore(`${name}/lock`, 2).resize(3));
    assert.ok((await lock) instanceof MisconfiguredError);
  });

  test('one that adopts follows the number of the others', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const other = await store.connect();
    const mine = store.locks.semaphore(name, 4);
    const theirs = other.semaphore(name, 2, { adopt: true });
    assert.equal(await theirs.availablePermits(), 2);
    {
      await using _one = await mine.acquire();
      await using _two = await theirs.acquire(2);
      assert.equal(await theirs.availablePermits(), 1);
      assert.equal(await mine.tryAcquire(2), null);
      assert.equal(await mine.resize(3), true);
      assert.equal(await theirs.availablePermits(), 0);
      assert.equal(await theirs.tryAcquire(), null);
    }
    assert.equal(await theirs.run(() => theirs.availablePermits()), 1);
    assert.ok((await rejection(theirs.acquire(3))) instanceof InvalidArgumentError);
    const odd = { adopt: 'yes' as unknown as boolean };
    assert.throws(() => other.semaphore(name, 2, odd), TypeError);
    assert.throws(() => other.semaphore(name, 2, null as unknown as object), TypeError);
  });

  test('one of several holds is broken', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const other = await store.connect();
    const semaphore = store.locks.semaphore(name, 3);
    await using one = await semaphore.acquire();
    const two = await semaphore.acquire(2);
    const seen = (await other.inspect(name))?.holds.find(({ permits }) => permits === 2);
    assert.ok(seen);
    const broken = { ended: 1, changedHands: null };
    assert.deepEqual(await other.breakHold(name, seen.token, seen.id), broken);
    assert.equal(await two.lost, 'broken');
    assert.throws(() => two.check(), /permits of the semaphore/);
    assert.ok(one.isValid);
    assert.equal(await semaphore.availablePermits(), 2);
    assert.equal((await other.breakHold(name, seen.token, seen.id)).ended, 0);
    assert.ok((await rejection(other.breakHold(name, 1n, 'x'))) instanceof InvalidArgumentError);
    const odd = other.breakHold(name, 1 as unknown as bigint, seen.id);
    assert.ok((await rejection(odd)) instanceof TypeError);
  });

  test('a close gives all back', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const client = await store.connect();
    const semaphore = client.semaphore(name, 2);
    const both = await semaphore.acquire(2);
    const waits = rejection(semaphore.acquire());
    await eventually('it waits', () => client.metrics().waiting === 1);
    await client.close();
    assert.ok((await waits) instanceof ClosedError);
    assert.equal(await both.lost, 'closed');
    assert.ok((await rejection(semaphore.acquire())) instanceof ClosedError);
    await using next = await store.locks.semaphore(name, 2).acquire(2, { wait: 30_000 });
    assert.ok(next.isValid);
  });
});
