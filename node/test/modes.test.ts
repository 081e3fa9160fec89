// Shared locks: those of the standard's algorithms that speak of modes, and what `acquire` has of them.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  ClosedError,
  ContendedError,
  Hold,
  type Lock,
  type LockMode,
  LostError,
  NotHeldError,
  UnsupportedError,
  WouldDeadlockError,
} from 'fencelock';
import {
  deferred,
  eventually,
  isShared,
  onEachStore,
  rejection,
  shares,
  unique,
} from './support.js';

const shared = { mode: 'shared' } as const;
const exclusive = { mode: 'exclusive' } as const;

onEachStore('modes', (store) => {
  test('a store without them refuses', async (context) => {
    const can = store.locks.capabilities;
    if (can.shared && can.permits) return context.skip('it has both');
    if (!can.shared) {
      const refused = rejection(store.locks.request(unique(), shared, () => assert.fail()));
      assert.ok((await refused) instanceof UnsupportedError);
    }
    if (!can.permits) {
      assert.throws(() => store.locks.semaphore(unique(), 1), UnsupportedError);
    }
  });

  test('the callback gets a Lock with its mode', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const modes: LockMode[] = [];
    await store.locks.request(name, shared, (lock) => modes.push(lock.mode));
    await store.locks.request(name, exclusive, (lock) => modes.push(lock.mode));
    await store.locks.request(name, (lock) => modes.push(lock.mode));
    assert.deepEqual(modes, ['shared', 'exclusive', 'exclusive']);
  });

  test('shared locks are held together, an exclusive one alone', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const other = await store.connect();
    const end = deferred();
    const granted: string[] = [];
    const reads = [store.locks, store.locks, other].map((locks) =>
      locks.request(name, shared, () => {
        granted.push('shared');
        return end.promise;
      }),
    );
    await eventually('all three are in', () => granted.length === 3);
    const write = store.locks.request(name, () => granted.push('exclusive'));
    // Another name is not held up.
    await store.locks.request(`${name}-other`, exclusive, () => granted.push('other'));
    assert.equal(await other.request(name, { ifAvailable: true }, (lock) => lock), null);
    assert.deepEqual(granted, ['shared', 'shared', 'shared', 'other']);
    end.resolve();
    await Promise.all([...reads, write]);
    assert.equal(granted.at(-1), 'exclusive');
  });

  test('an exclusive lock keeps shared requests out, which then enter together', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const end = deferred();
    const [held, both] = [deferred(), deferred()];
    let inside = 0;
    const write = store.locks.request(name, () => {
      held.resolve();
      return end.promise;
    });
    await held.promise;
    const read = () => {
      if (++inside === 2) both.resolve();
      return both.promise;
    };
    const reads = [1, 2].map(() => store.locks.request(name, shared, read));
    assert.equal(
      await store.locks.request(name, { ...shared, ifAvailable: true }, (lock) => lock),
      null,
    );
    assert.equal(inside, 0);
    end.resolve();
    await Promise.all([write, ...reads]);
    assert.equal(inside, 2);
  });

  test('ifAvailable: beside others who share, but not past one who waits', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const tries = () =>
      store.locks.request(name, { ...shared, ifAvailable: true }, (lock) => lock?.mode);
    const [held, end] = [deferred(), deferred()];
    const read = store.locks.request(name, shared, () => {
      held.resolve();
      return end.promise;
    });
    await held.promise;
    assert.equal(await tries(), 'shared');
    const other = await store.connect();
    const write = other.request(name, () => {});
    await eventually('it waits', async () => {
      return (await store.locks.inspect(name))?.waiters[0]?.mode === 'exclusive';
    });
    // ZooKeeper tells who shares nothing of it before the next heartbeat.
    await eventually('who shares knows of it', async () => (await tries()) === undefined);
    end.resolve();
    await Promise.all([read, write]);
  });

  test('requests of several clients are granted in their order', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const order: string[] = [];
    const [held, end] = [deferred(), deferred()];
    const requests = [
      store.locks.request(name, shared, () => {
        held.resolve();
        return end.promise;
      }),
    ];
    await held.promise;
    for (const [at, mode] of (['exclusive', 'shared', 'exclusive', 'shared'] as const).entries()) {
      const locks = await store.connect();
      requests.push(locks.request(name, { mode }, () => void order.push(`${mode} ${at}`)));
      await eventually('it waits', async () => {
        return (await store.locks.inspect(name))?.waiters.length === at + 1;
      });
    }
    end.resolve();
    await Promise.all(requests);
    assert.deepEqual(order, ['exclusive 0', 'shared 1', 'exclusive 2', 'shared 3']);
  });

  test('nested: shared beside shared, but not past an exclusive one that waits', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const other = await store.connect();
    const controller = new AbortController();
    let write: Promise<void> | undefined;
    await store.locks.request(name, shared, async () => {
      assert.equal(await store.locks.request(name, shared, (lock) => lock.mode), 'shared');
      write = other.request(name, () => {});
      await eventually('it waits', async () => {
        return (await store.locks.inspect(name))?.waiters.length === 1;
      });
      const tried = { ...shared, ifAvailable: true } as const;
      await eventually('who shares knows of it', () =>
        store.locks.request(name, tried, (lock) => lock === null),
      );
      const nested = store.locks.request(name, { ...shared, signal: controller.signal }, () =>
        assert.fail('it passed who waited'),
      );
      await eventually('both wait', async () => {
        return (await store.locks.inspect(name))?.waiters.length === 2;
      });
      controller.abort('enough');
      assert.equal(await rejection(nested), 'enough');
    });
    await write;
  });

  test('an exclusive request that is aborted lets the shared one behind it in', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const other = await store.connect();
    const [held, end] = [deferred(), deferred()];
    const read = store.locks.request(name, shared, () => {
      held.resolve();
      return end.promise;
    });
    await held.promise;
    const controller = new AbortController();
    const write = rejection(
      other.request(name, { signal: controller.signal }, () => assert.fail('aborted')),
    );
    await eventually('it waits', async () => {
      return (await store.locks.inspect(name))?.waiters.length === 1;
    });
    const behind = store.locks.request(name, shared, (lock) => lock.mode);
    controller.abort('enough');
    assert.equal(await write, 'enough');
    assert.equal(await behind, 'shared');
    end.resolve();
    await read;
  });

  test('query shows modes, and pending requests in the order they were made', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const other = await store.connect();
    const end = deferred();
    const reads = [store.locks, store.locks, other].map((locks) =>
      locks.request(name, shared, () => end.promise),
    );
    await eventually('they are in', async () => {
      return (await store.locks.query({ prefix: name })).held.length === 3;
    });
    const modes = ['exclusive', 'shared', 'exclusive', 'shared', 'shared'] as const;
    const requests: Promise<void>[] = [];
    for (const mode of modes) {
      requests.push(store.locks.request(name, { mode }, () => {}));
      await eventually('the first of them waits at the store', async () => {
        return ((await store.locks.inspect(name))?.waiters.length ?? 0) > 0;
      });
    }
    const info = (mode: LockMode, locks = store.locks) => ({
      name,
      mode,
      clientId: locks.clientId,
    });
    assert.deepEqual(await store.locks.query({ prefix: name }), {
      held: [info('shared'), info('shared'), info('shared', other)],
      pending: modes.map((mode) => info(mode)),
    });
    await eventually('the other sees one that waits for itself, and some who share', async () => {
      const { pending } = await other.query({ prefix: name });
      return new Set(pending.map(({ mode }) => mode)).size === 2;
    });
    end.resolve();
    await Promise.all([...reads, ...requests]);
    assert.deepEqual(await store.locks.query({ prefix: name }), { held: [], pending: [] });
  });

  test('steal ends all who share', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const other = await store.connect();
    let inside = 0;
    const robbed = [store.locks, other].map((locks) =>
      rejection(
        locks.request(name, shared, () => {
          inside++;
          return deferred().promise;
        }),
      ),
    );
    await eventually('both are in', () => inside === 2);
    assert.equal(
      await store.locks.request(name, { steal: true }, (lock) => lock.mode),
      'exclusive',
    );
    for (const error of await Promise.all(robbed)) {
      assert.ok(error instanceof DOMException && error.name === 'AbortError', String(error));
      assert.ok(error.cause instanceof LostError);
    }
  });

  test('acquire shares, too; a loss is told to the one whom it concerns', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    await using kept = await store.locks.acquire(name, shared);
    assert.ok(kept instanceof Hold);
    assert.equal(kept.mode, 'shared');
    const brief = await store.locks.acquire(name, { ...shared, lease: 300 });
    assert.equal(brief.token, kept.token); // readers of one client have one hold
    assert.equal(await store.locks.acquire(name, { ifAvailable: true }), null);
    assert.equal(await brief.lost, 'ended');
    assert.ok(kept.isValid && !kept.signal.aborted);
    assert.ok((await rejection(brief.release())) instanceof LostError);
    const wrong = { mode: 'both' as LockMode };
    assert.ok((await rejection(store.locks.acquire(name, wrong))) instanceof TypeError);
  });

  test('an owner that shares and wants the lock for itself is told at once', async (context) => {
    if (!shares(store, context)) return;
    const [name, owner] = [unique(), unique('owner')];
    {
      await using _read = await store.locks.acquire(name, { ...shared, owner });
      await using again = await store.locks.acquire(name, { ...shared, owner });
      assert.ok(again.isValid);
      const refused = await rejection(store.locks.acquire(name, { owner }));
      assert.ok(refused instanceof WouldDeadlockError);
      assert.deepEqual((await store.locks.inspect(name))?.waiters, []);
    }
    await using write = await store.locks.acquire(name, { owner });
    await using within = await store.locks.acquire(name, { ...shared, owner });
    assert.equal(within.token, write.token);
  });

  test('a writer shares on, and who shares alone writes', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const other = await store.connect();
    await using hold = await store.locks.acquire(name);
    if (store.scheme === 'zk') {
      // There the nodes of a lock are those of Curator's mutex, which does not look at readers.
      assert.ok((await rejection(hold.downgrade())) instanceof UnsupportedError);
      assert.equal(hold.mode, 'exclusive');
      await hold.release();
      await using read = await store.locks.acquire(name, shared);
      assert.ok((await rejection(read.tryUpgrade())) instanceof UnsupportedError);
      assert.ok(read.mode === 'shared' && read.isValid);
      return;
    }
    const written = hold.token;
    const reading = other.acquire(name, shared);
    await eventually('it waits', async () => {
      return (await store.locks.inspect(name))?.waiters.length === 1;
    });
    await hold.downgrade();
    assert.equal(hold.mode, 'shared');
    assert.ok(hold.token > written && hold.check() === hold.token);
    const beside = await reading;
    assert.ok(beside.token > written);
    const { held } = await store.locks.query({ prefix: name });
    assert.deepEqual(new Set(held.map(({ mode }) => mode)), new Set(['shared']));
    assert.ok((await rejection(hold.tryUpgrade())) instanceof ContendedError);
    assert.equal(hold.mode, 'shared');
    const read = hold.token;
    await beside.release();
    await hold.tryUpgrade();
    await hold.tryUpgrade();
    assert.equal(hold.mode, 'exclusive');
    assert.ok(hold.token > read && hold.token > beside.token);
    assert.equal(await other.acquire(name, { ...shared, ifAvailable: true }), null);
    await hold.release();
    assert.ok((await rejection(hold.downgrade())) instanceof NotHeldError);
    const mode = await store.locks.request(name, async (lock) => {
      await lock.downgrade();
      return lock.mode;
    });
    assert.equal(mode, 'shared');
  });

  test('a close ends what the client shares and what waits in it', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const client = await store.connect();
    await using kept = await store.locks.acquire(name, shared);
    const mine = await client.acquire(name, shared);
    const waits = rejection(client.request(name, () => {}));
    await eventually('it waits', () => client.metrics().waiting === 1);
    await client.close();
    assert.ok((await waits) instanceof ClosedError);
    assert.equal(await mine.lost, 'closed');
    assert.ok(kept.isValid);
    await kept.release();
    await using write = await store.locks.acquire(name, { wait: 30_000 });
    assert.notEqual(write.previousAbandoned, 'yes');
  });

  test('tokens: a write is above all before it, a read above every earlier write', async (context) => {
    if (!shares(store, context)) return;
    const name = unique();
    const other = await store.connect();
    let [written, seen] = [0n, 0n];
    const work = async (at: number) => {
      const mode = at % 3 === 0 ? 'exclusive' : 'shared';
      await (at % 2 ? store.locks : other).request(name, { mode }, ({ token }: Lock) => {
        assert.ok(token > (mode === 'exclusive' ? seen : written));
        if (mode === 'exclusive') written = token;
        if (token > seen) seen = token;
      });
    };
    await Promise.all(Array.from({ length: 30 }, (_, at) => work(at)));
  });

  test('a killed process: its lease keeps a writer out, and its permits away', async (context) => {
    if (!shares(store, context)) return;
    if (!isShared(store.scheme)) return context.skip('not shared by processes');
    const name = unique();
    const child = spawn(process.execPath, [join(__dirname, 'child.js'), 'shares', store.url, name]);
    let out = '';
    child.stdout.on('data', (data) => {
      out += data;
    });
    await eventually('it shares', () => out.includes('ready'));
    const ended = new Promise((resolve) => child.on('close', resolve));
    child.kill('SIGKILL');
    await ended;
    await using read = await store.locks.acquire(name, { ...shared, ifAvailable: true });
    assert.ok(read?.isValid);
    await read.release();
    await using write = await store.locks.acquire(name, { wait: 30_000 });
    // Who shared leaves nothing half done.
    assert.notEqual(write.previousAbandoned, 'yes');
    await using permits = await store.locks.semaphore(`${name}-permits`, 3).acquire(3);
    assert.ok(permits.isValid);
  });
});
