import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as commonjs from 'fencelock';

test('ESM and CommonJS have the same objects', async () => {
  // Compiled to a real import(), since the module setting is Node's own.
  const esm = await import('fencelock');
  const { default: _, 'module.exports': __, ...named } = esm as unknown as Record<string, unknown>;
  const other = commonjs as unknown as Record<string, unknown>;
  const names = Object.keys(other).filter((name) => name !== 'default');
  assert.deepEqual(Object.keys(named).sort(), names.sort());
  for (const name of names) assert.equal(named[name], other[name], name);
});

test('what is exported is on purpose', () => {
  assert.deepEqual(Object.keys(commonjs).sort(), [
    'CancelledError',
    'ClosedError',
    'ContendedError',
    'FencelockError',
    'Held',
    'Hold',
    'InvalidArgumentError',
    'Lock',
    'LockManager',
    'LostError',
    'MisconfiguredError',
    'NotHeldError',
    'Permit',
    'Semaphore',
    'TimedOutError',
    'UnavailableError',
    'UnsupportedError',
    'WouldDeadlockError',
    'connect',
  ]);
});
