// The standard's algorithms, each normative step that is there: requesting, releasing, aborting,
// processing the queue, the snapshot. See arguments.test.ts for the checks before them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InvalidArgumentError, Lock, LostError, TimedOutError } from 'fencelock';
import { deferred, eventually, onEachStore, rejection, turn, unique } from './support.js';

onEachStore('Web Locks', (store) => {
  test('the callback gets a Lock with name and mode', async () => {
    const name = unique();
    await store.locks.request(name, (lock) => {
      assert.ok(lock instanceof Lock);
      assert.equal(lock.name, name);
      assert.equal(lock.mode, 'exclusive');
      assert.equal(Object.prototype.toString.call(lock), '[object Lock]');
      assert.throws(() => {
        (lock as { name: string }).name = 'other';
      }, TypeError);
      assert.equal(typeof lock.token, 'bigint');
      assert.ok(lock.isValid);
      assert.equal(lock.check(), lock.token);
    });
  });

  test('the callback is never called before request returns', async () => {
    let returned = false;
    const requested = store.locks.request(unique(), () => assert.ok(returned));
    returned = true;
    await requested;
    const name = unique();
    await store.locks.request(name, async () => {
      returned = false;
      const nested = store.locks.request(name, { ifAvailable: true }, () => assert.ok(returned));
      returned = true;
      await nested;
    });
  });

  test('the result of the callback is passed through', async () => {
    assert.equal(await store.locks.request(unique(), () => 'plain'), 'plain');
    assert.equal(await store.locks.request(unique(), async () => 'promise'), 'promise');
    // biome-ignore lint/suspicious/noThenProperty: a thenable is what is tested
    const thenable = { then: (settle: (value: string) => void) => settle('thenable') };
    assert.equal(
      await store.locks.request(unique(), () => thenable as PromiseLike<string>),
      'thenable',
    );
    assert.equal(await store.locks.request(unique(), () => undefined), undefined);
  });

  test('what the callback throws is passed through, and the lock released', async () => {
    const name = unique();
    const boom = new Error('boom');
    const thrower = () => {
      throw boom;
    };
    assert.equal(await rejection(store.locks.request(name, thrower)), boom);
    assert.equal(await rejection(store.locks.request(name, () => Promise.reject(boom))), boom);
    const odd = () => Promise.reject(undefined);
    assert.equal(await rejection(store.locks.request(name, odd)), undefined);
    assert.equal(
      await store.locks.request(name, { ifAvailable: true }, (lock) => lock !== null),
      true,
    );
  });

  test('the lock is held until the promise of the callback settles', async () => {
    const name = unique();
    const [held, end] = [deferred(), deferred()];
    const first = store.locks.request(name, async () => {
      held.resolve();
      await end.promise;
    });
    await held.promise;
    const free = () => store.locks.request(name, { ifAvailable: true }, (lock) => lock !== null);
    assert.equal(await free(), false);
    end.resolve();
    await first;
    assert.equal(await free(), true);
  });

  test('request resolves after the lock was released', async () => {
    const name = unique();
    for (let i = 0; i < 20; i++) {
      await store.locks.request(name, () => {});
      assert.equal(await store.locks.request(name, { ifAvailable: true }, (l) => l !== null), true);
    }
  });

  test('requests of one name are granted in their order', async () => {
    const name = unique();
    const order: number[] = [];
    const requests = Array.from({ length: 20 }, (_, i) =>
      store.locks.request(name, async () => {
        order.push(i);
        await turn();
      }),
    );
    await Promise.all(requests);
    assert.deepEqual(
      order,
      [...order].sort((a, b) => a - b),
    );
  });

  test('requests of different names do not wait for each other', async () => {
    const end = deferred();
    const held = store.locks.request(unique(), () => end.promise);
    assert.equal(await store.locks.request(unique(), () => 'other'), 'other');
    end.resolve();
    await held;
  });

  test('a nested request never re-enters', async () => {
    const name = unique();
    const controller = new AbortController();
    await store.locks.request(name, async () => {
      assert.equal(await store.locks.request(name, { ifAvailable: true }, (l) => l), null);
      const nested = store.locks.request(name, { signal: controller.signal }, () => {});
      controller.abort('enough');
      assert.equal(await rejection(nested), 'enough');
    });
  });

  test('ifAvailable: null when held, and what the callback does with it passes through', async () => {
    const name = unique();
    await store.locks.request(name, async () => {
      const boom = new Error('boom');
      const refused = store.locks.request(name, { ifAvailable: true }, (lock) => {
        assert.equal(lock, null);
        throw boom;
      });
      assert.equal(await rejection(refused), boom);
      const given = store.locks.request(name, { ifAvailable: true }, async () => 'given');
      assert.equal(await given, 'given');
    });
  });

  test('ifAvailable: null behind a waiter of another client, a lock when free', async () => {
    const name = unique();
    assert.equal(await store.locks.request(name, { ifAvailable: true }, (l) => l?.name), name);
    const other = await store.connect();
    await store.locks.request(name, async () => {
      assert.equal(await other.request(name, { ifAvailable: true }, (lock) => lock), null);
    });
  });

  test('an abort while waiting rejects with the reason, and leaves the queue', async () => {
    const name = unique();
    const other = await store.connect();
    const end = deferred();
    const held = deferred();
    const holder = other.request(name, () => {
      held.resolve();
      return end.promise;
    });
    await held.promise;
    const controller = new AbortController();
    const waiting = store.locks.request(name, { signal: controller.signal }, () =>
      assert.fail('aborted'),
    );
    const last = store.locks.request(name, () => 'last');
    await eventually('both wait', async () => {
      const { pending } = await store.locks.query({ prefix: name });
      return pending.length === 2;
    });
    const reason = new Error('changed my mind');
    controller.abort(reason);
    assert.equal(await rejection(waiting), reason);
    assert.equal((await store.locks.query({ prefix: name })).pending.length, 1);
    end.resolve();
    await holder;
    assert.equal(await last, 'last');
  });

  test('an abort without a reason gives an AbortError', async () => {
    const name = unique();
    await store.locks.request(name, async () => {
      const controller = new AbortController();
      const waiting = store.locks.request(name, { signal: controller.signal }, () => {});
      controller.abort();
      const error = await rejection(waiting);
      assert.ok(error instanceof DOMException);
      assert.equal(error.name, 'AbortError');
    });
  });

  test('once granted, the signal is ignored', async () => {
    const controller = new AbortController();
    const result = await store.locks.request(
      unique(),
      { signal: controller.signal },
      async (lock) => {
        controller.abort('too late');
        await turn();
        assert.ok(lock.isValid);
        assert.equal(lock.signal.aborted, false);
        return 'done';
      },
    );
    assert.equal(result, 'done');
  });

  test('an abort between grant and callback releases the lock again', async () => {
    const name = unique();
    const controller = new AbortController();
    const requested = store.locks.request(name, { signal: controller.signal }, () =>
      assert.fail('aborted before the callback'),
    );
    controller.abort('now');
    assert.equal(await rejection(requested), 'now');
    await eventually('it is free', () =>
      store.locks.request(name, { ifAvailable: true }, (lock) => lock !== null),
    );
  });

  test('query shows what is held and who waits, with the clients', async () => {
    const name = unique();
    const other = await store.connect();
    assert.notEqual(other.clientId, store.locks.clientId);
    const [held, end] = [deferred(), deferred()];
    const holder = store.locks.request(name, () => {
      held.resolve();
      return end.promise;
    });
    await held.promise;
    const waiters = [other.request(name, () => {})];
    await eventually('the other waits', async () => {
      return (await store.locks.query({ prefix: name })).pending.length === 1;
    });
    waiters.push(
      store.locks.request(name, () => {}),
      store.locks.request(name, () => {}),
    );
    const mine = { name, mode: 'exclusive', clientId: store.locks.clientId };
    const theirs = { name, mode: 'exclusive', clientId: other.clientId };
    const seen = await store.locks.query({ prefix: name });
    assert.deepEqual(seen.held, [mine]);
    assert.equal(seen.pending.length, 3);
    assert.deepEqual(
      new Set(seen.pending.map((info) => info.clientId)),
      new Set([mine.clientId, theirs.clientId]),
    );
    assert.deepEqual(Object.keys(seen), ['held', 'pending']);
    const whole = await store.locks.query();
    assert.deepEqual(
      whole.held.filter((info) => info.name === name),
      [mine],
    );
    end.resolve();
    await Promise.all([holder, ...waiters]);
    const after = await store.locks.query({ prefix: name });
    assert.deepEqual(after, { held: [], pending: [] });
  });

  test('query shows another client that holds and also waits', async () => {
    const name = unique();
    // What it says is as old as its latest renewal, a third of the lease.
    const other = await store.connect({ lease: 900 });
    const [held, end] = [deferred(), deferred()];
    const requests = [
      other.request(name, () => {
        held.resolve();
        return end.promise;
      }),
    ];
    await held.promise;
    requests.push(
      other.request(name, () => {}),
      other.request(name, () => {}),
      store.locks.request(name, () => {}),
    );
    const mine = { name, mode: 'exclusive', clientId: store.locks.clientId };
    const theirs = { name, mode: 'exclusive', clientId: other.clientId };
    const within = store.locks.capabilities.store === 'zookeeper' ? [] : [theirs, theirs];
    await eventually('the renewal that tells', async () => {
      const { pending } = await store.locks.query({ prefix: name });
      return pending.length === 1 + within.length;
    });
    const seen = await store.locks.query({ prefix: name });
    assert.deepEqual(seen, { held: [theirs], pending: [mine, ...within] });
    const own = await other.inspect(name);
    assert.equal(own?.holds[0]?.localWaiters, 2);
    end.resolve();
    await Promise.all(requests);
  });

  test('beyond the standard: wait, lease and owner', async () => {
    const name = unique();
    await store.locks.request(name, async () => {
      const late = store.locks.request(name, { wait: 30 }, () => assert.fail('held'));
      assert.ok((await rejection(late)) instanceof TimedOutError);
    });
    await store.locks.request(name, { lease: 60_000 }, (lock) =>
      assert.ok(lock.remaining > (store.locks.capabilities.leases ? 50_000 : 15_000)),
    );
    await store.locks.request(name, { owner: unique('owner') }, (lock) => assert.ok(lock.ticket()));
  });

  test('beyond the standard: a lost lock rejects the request at once', async () => {
    const name = unique();
    const [held, end] = [deferred<Lock>(), deferred()];
    const requested = store.locks.request(name, async (lock) => {
      held.resolve(lock);
      await end.promise;
      throw new Error('nobody hears of this');
    });
    const rejected = rejection(requested);
    const lock = await held.promise;
    const { signal } = lock;
    const seen = (await store.locks.inspect(name))?.token ?? 0n;
    const kept = await store.locks.breakLock(name, seen - 1n);
    assert.deepEqual(kept, { ended: 0, changedHands: seen });
    await assert.rejects(store.locks.breakLock(name, -1n), InvalidArgumentError);
    await assert.rejects(store.locks.breakLock(name, 1 as unknown as bigint), TypeError);
    const broken = await store.locks.breakLock(name, seen);
    assert.deepEqual(broken, { ended: 1, changedHands: null });
    const aborted = await rejected;
    assert.ok(aborted instanceof DOMException);
    assert.equal(aborted.name, 'AbortError');
    const error = aborted.cause;
    assert.ok(error instanceof LostError);
    assert.equal(error.reason, 'broken');
    assert.ok(signal.aborted);
    assert.ok(signal.reason instanceof LostError);
    assert.equal(await lock.lost, 'broken');
    assert.throws(() => lock.check(), LostError);
    end.resolve();
    await turn();
  });

  test('steal ends the present holds, and is served after who waits already', async () => {
    const name = unique();
    const other = await store.connect();
    const entered: string[] = [];
    const held = deferred<Lock>();
    const robbed = rejection(
      store.locks.request(name, (lock) => {
        held.resolve(lock);
        return deferred().promise;
      }),
    );
    const first = await held.promise;
    const waiter = other.request(name, () => {
      entered.push('waited');
    });
    await eventually('it waits', async () => {
      return (await store.locks.inspect(name))?.waiters.length === 1;
    });
    const token = await store.locks.request(name, { steal: true }, (lock) => {
      entered.push('stole');
      return lock.token;
    });
    assert.ok(token > first.token);
    const error = await robbed;
    assert.ok(error instanceof DOMException && error.name === 'AbortError');
    await waiter;
    assert.deepEqual(entered, ['waited', 'stole']);
    // A free lock, and one of which the store knows nothing.
    for (const free of [name, unique()]) {
      assert.equal(await other.request(free, { steal: true }, () => 1), 1);
    }
  });

  test('tokens rise from grant to grant', async () => {
    const name = unique();
    const other = await store.connect();
    let last = 0n;
    for (let i = 0; i < 30; i++) {
      await (i % 3 ? store.locks : other).request(name, ({ token }) => {
        assert.ok(token > last);
        last = token;
      });
    }
  });
});
