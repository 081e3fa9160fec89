// How `request` takes its arguments: Web IDL's conversions first, then the standard's own checks,
// each in its order. What is wrong is always a rejection, never thrown.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { connect, InvalidArgumentError, LockManager } from 'fencelock';
import { rejection, unique } from './support.js';

const never = () => assert.fail('the callback must not run');

describe('arguments of request', () => {
  let locks: LockManager;
  // As JavaScript calls it: without types.
  let request: (...args: unknown[]) => Promise<unknown>;

  before(async () => {
    locks = await connect('memory:');
    request = (...args) => Reflect.apply(locks.request, locks, args);
  });
  after(() => locks.close());

  const refuses = async (args: unknown[], wanted: string) => {
    const returned = request(...args);
    assert.ok(returned instanceof Promise, 'gives a promise');
    const error = (await rejection(returned)) as Error;
    assert.equal(error.name, wanted);
    if (wanted === 'NotSupportedError') assert.ok(error instanceof DOMException);
    if (wanted === 'TypeError') assert.ok(error instanceof TypeError);
  };

  test('two parameters, as the standard has it', () => {
    assert.equal(locks.request.length, 2);
    assert.equal(locks.request.name, 'request');
    assert.equal(locks.query.length, 0);
  });

  test('a `this` of another kind is refused', async () => {
    for (const self of [undefined, {}, LockManager.prototype]) {
      const error = await rejection(Reflect.apply(locks.request, self, ['x', never]));
      assert.ok(error instanceof TypeError);
    }
  });

  test('too few arguments', async () => {
    await refuses([], 'TypeError');
    await refuses([unique()], 'TypeError');
  });

  test('the name becomes a string', async () => {
    const name = { toString: () => `converted-${suffix}` };
    const suffix = unique();
    assert.equal(await request(name, (lock: { name: string }) => lock.name), `converted-${suffix}`);
    await refuses([Symbol('no'), never], 'TypeError');
    const boom = new Error('boom');
    const throws = {
      toString() {
        throw boom;
      },
    };
    assert.equal(await rejection(request(throws, never)), boom);
  });

  test('a missing or wrong callback', async () => {
    for (const wrong of [undefined, null, 1, 'text', {}, []]) {
      await refuses([unique(), wrong], 'TypeError');
      await refuses([unique(), {}, wrong], 'TypeError');
    }
    // With two arguments the second is the callback, whatever it looks like.
    await refuses([unique(), { mode: 'exclusive' }], 'TypeError');
  });

  test('any callable is a callback, and gets no `this`', async () => {
    const seen: unknown[] = [];
    await request(unique(), function (this: unknown, ...args: unknown[]) {
      seen.push(this, args.length);
    });
    assert.deepEqual(seen, [undefined, 1]);
    assert.equal(await request(unique(), new Proxy(() => 7, {})), 7);
  });

  test('null and undefined are no options', async () => {
    assert.equal(await request(unique(), undefined, () => 1), 1);
    assert.equal(await request(unique(), null, () => 2), 2);
    for (const wrong of [1, 'text', true, Symbol('no'), 1n]) {
      await refuses([unique(), wrong, never], 'TypeError');
    }
    assert.equal(
      await request(
        unique(),
        () => {},
        () => 3,
      ),
      3,
      'a function is an object',
    );
  });

  test('more arguments are ignored', async () => {
    assert.equal(await request(unique(), {}, () => 1, never, 'more'), 1);
  });

  test('members are read once each, in the order of their names', async () => {
    const read: string[] = [];
    const options = new Proxy(
      {},
      {
        get(_, key) {
          read.push(String(key));
          return undefined;
        },
      },
    );
    await request(unique(), options, () => {});
    const standard = read.filter((key) => ['ifAvailable', 'mode', 'signal', 'steal'].includes(key));
    assert.deepEqual(standard, ['ifAvailable', 'mode', 'signal', 'steal']);
    assert.deepEqual(read, [...read].sort());
    assert.equal(new Set(read).size, read.length);
  });

  test('an invalid mode', async () => {
    for (const mode of ['', 'Exclusive', 'readwrite', 1, null, {}]) {
      await refuses([unique(), { mode }, never], 'TypeError');
    }
    await refuses([unique(), { mode: Symbol('no') }, never], 'TypeError');
    assert.equal(await request(unique(), { mode: { toString: () => 'exclusive' } }, () => 1), 1);
  });

  test('a signal that is none', async () => {
    for (const signal of ['text', 12.34, false, null, {}, Symbol('no'), () => {}]) {
      await refuses([unique(), { signal }, never], 'TypeError');
    }
    assert.equal(await request(unique(), { signal: undefined }, () => 1), 1);
  });

  test('flags become booleans', async () => {
    const name = unique();
    const got = await request(name, () => request(name, { ifAvailable: 'yes' }, (l: unknown) => l));
    assert.equal(got, null);
    assert.equal(await request(name, { ifAvailable: 0, steal: '' }, () => 1), 1);
  });

  test('conversions come before checks', async () => {
    await refuses(['-x', { mode: 'bad' }, never], 'TypeError');
    await refuses(['-x', {}, 'no callback'], 'TypeError');
    await refuses(['-x', { signal: 1, steal: true, ifAvailable: true }, never], 'TypeError');
    // Options are converted before the callback.
    const boom = new Error('boom');
    const options = {
      get steal() {
        throw boom;
      },
    };
    assert.equal(await rejection(request('x', options, 'no callback')), boom);
  });

  test("a name that begins with '-'", async () => {
    await refuses(['-', never], 'NotSupportedError');
    await refuses(['-name', never], 'NotSupportedError');
    const signal = AbortSignal.abort('reason');
    await refuses(['-name', { signal }, never], 'NotSupportedError');
    assert.equal(await request(`a-${unique()}`, () => 1), 1);
  });

  test('steal excludes ifAvailable', async () => {
    await refuses([unique(), { steal: true, ifAvailable: true }, never], 'NotSupportedError');
    const signal = AbortSignal.abort('reason');
    const options = { steal: true, ifAvailable: true, signal };
    await refuses([unique(), options, never], 'NotSupportedError');
  });

  test('steal is for exclusive locks', async () => {
    await refuses([unique(), { steal: true, mode: 'shared' }, never], 'NotSupportedError');
  });

  test('a signal excludes steal and ifAvailable, even an aborted one', async () => {
    for (const signal of [new AbortController().signal, AbortSignal.abort('reason')]) {
      await refuses([unique(), { signal, steal: true }, never], 'NotSupportedError');
      await refuses([unique(), { signal, ifAvailable: true }, never], 'NotSupportedError');
    }
  });

  test('an aborted signal rejects with its reason', async () => {
    const mine = { my: 'reason' };
    for (const reason of [mine, 'dog', 0, null]) {
      const signal = AbortSignal.abort(reason);
      assert.equal(await rejection(request(unique(), { signal }, never)), reason);
    }
    const error = await rejection(request(unique(), { signal: AbortSignal.abort() }, never));
    assert.ok(error instanceof DOMException);
    assert.equal(error.name, 'AbortError');
    const signal = AbortSignal.abort(mine);
    assert.equal(await rejection(request(unique(), { signal, mode: 'shared' }, never)), mine);
  });

  test('beyond the standard: names and options of our own', async () => {
    for (const name of ['', 'x'.repeat(513), 'nul\0', '\ud800']) {
      const error = await rejection(request(name, never));
      assert.ok(error instanceof InvalidArgumentError, JSON.stringify(name.slice(0, 9)));
    }
    for (const options of [{ lease: '1' }, { wait: null }, { maxHold: {} }, { owner: 1 }]) {
      await refuses([unique(), options, never], 'TypeError');
    }
    for (const options of [{ lease: 1 }, { wait: -1 }, { lease: Number.NaN }, { owner: '' }]) {
      await refuses([unique(), options, never], 'InvalidArgumentError');
    }
  });
});
