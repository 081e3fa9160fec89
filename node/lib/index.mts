// The classes are the same objects for both kinds of module, so that `instanceof` holds. By name,
// since `*` would pass on what only CommonJS has.

export type * from './index.js';
export {
  CancelledError,
  ClosedError,
  ContendedError,
  connect,
  FencelockError,
  Held,
  Hold,
  InvalidArgumentError,
  Lock,
  LockManager,
  LostError,
  MisconfiguredError,
  NotHeldError,
  Permit,
  Semaphore,
  TimedOutError,
  UnavailableError,
  UnsupportedError,
  WouldDeadlockError,
} from './index.js';
