import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import * as fencelock from 'fencelock';
import { connect, FencelockError, InvalidArgumentError, UnavailableError } from 'fencelock';
import { rejection } from './support.js';

const native: typeof import('../native/index.js') = require('../../native/index.js');

test('every kind of error has its class, with the fixed number and name', () => {
  type Make = new (message: string, options?: ErrorOptions) => FencelockError;
  const classes = Object.values(fencelock).filter(
    (value) => typeof value === 'function' && value.prototype instanceof FencelockError,
  ) as unknown as Make[];
  const cause = new Error('cause');
  const made = classes.map((make) => new make('what happened', { cause }));
  const table = native.errorTable();
  assert.equal(made.length, table.length);
  for (const { code, number, retryable, meaning } of table) {
    const error = made.find((one) => one.number === number);
    assert.ok(error, code);
    assert.equal(error.code, code);
    assert.equal(error.retryable, retryable, code);
    assert.equal(error.message, 'what happened');
    assert.equal(error.cause, cause);
    assert.ok(error instanceof FencelockError && error instanceof Error);
    const camel = code.replace(/(^|_)(.)/g, (_, __, letter: string) => letter.toUpperCase());
    assert.equal(error.name, `${camel}Error`);
    assert.ok(meaning.length > 10);
  }
});

test('URLs and options that cannot be read', async () => {
  for (const url of ['carrier-pigeon://roof', 'nothing', 'memory:?lease=soon']) {
    assert.ok((await rejection(connect(url))) instanceof InvalidArgumentError, url);
  }
  const wrong = (options: object) => rejection(connect('memory:', options));
  const unknown = (await wrong({ leese: 1 })) as Error;
  assert.ok(unknown instanceof InvalidArgumentError);
  assert.match(unknown.message, /requestTimeout/);
  assert.ok((await wrong({ toString: 1 })) instanceof InvalidArgumentError);
  assert.ok((await wrong({ lease: '10s' })) instanceof TypeError);
  assert.ok((await wrong({ lease: 1 })) instanceof InvalidArgumentError);
  assert.ok((await wrong({ maxWaiters: 1.5 })) instanceof InvalidArgumentError);
  assert.ok((await wrong({ label: 7 })) instanceof TypeError);
  assert.ok((await rejection(connect(7 as unknown as string))) instanceof TypeError);
  const client = await connect('memory:', { lease: undefined, label: 'x' });
  await client.close();
});

test('a URL object will do', async () => {
  const client = await connect(new URL('memory:'));
  assert.equal(client.capabilities.store, 'memory');
  await client.close();
});

test('a server that is not there, and one that says nothing', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  await new Promise((resolve) => silent.once('listening', resolve));
  const { port } = silent.address() as { port: number };
  const error = await rejection(connect(`redis://127.0.0.1:${port}`, { connectTimeout: 200 }));
  assert.ok(error instanceof UnavailableError);
  assert.equal(error.retryable, true);
  silent.close();
  const nobody = await rejection(connect('redis://127.0.0.1:1', { connectTimeout: 200 }));
  assert.ok(nobody instanceof UnavailableError);
});

test('maxWaiters bounds the waits', async () => {
  const client = await connect('memory:', { maxWaiters: 1 });
  const hold = await client.acquire('bounded');
  const waiting = client.acquire('bounded');
  assert.ok((await rejection(client.acquire('bounded'))) instanceof UnavailableError);
  await hold.release();
  await (await waiting).release();
  await client.close();
});

test("the manual's table of errors is the library's", () => {
  const manual = readFileSync(join(__dirname, '../../../docs/node.md'), 'utf8');
  const rows = manual.split('\n').filter((line) => /^\| `[a-z_]+` \| `\w+Error` \|/.test(line));
  const wanted = native.errorTable().map(({ code, number, retryable, meaning }) => {
    const camel = code.replace(/(^|_)(.)/g, (_, __, letter: string) => letter.toUpperCase());
    const again = retryable ? 'yes' : 'no';
    return `| \`${code}\` | \`${camel}Error\` | ${number} | ${again} | ${meaning} |`;
  });
  assert.deepEqual(rows, wanted);
});
