export { connect } from './connect.js';
export {
  CancelledError,
  ClosedError,
  ContendedError,
  type ErrorCode,
  FencelockError,
  InvalidArgumentError,
  type LossReason,
  LostError,
  MisconfiguredError,
  NotHeldError,
  TimedOutError,
  UnavailableError,
  UnsupportedError,
  WouldDeadlockError,
} from './errors.js';
export type {
  Broken,
  Capabilities,
  HoldDetails,
  HoldMode,
  LockDetails,
  Metrics,
  WaiterDetails,
} from './info.js';
export { Held, Hold, Lock, type LockMode, Permit } from './lock.js';
export { type ListOptions, LockManager } from './manager.js';
export type { AcquireOptions, ConnectOptions, WaitOptions } from './options.js';
export type { LockOptions } from './request.js';
export { Semaphore, type SemaphoreOptions } from './semaphore.js';
export type { CloseOptions, Unhook } from './signals.js';
export type { LockInfo, LockManagerSnapshot } from './snapshot.js';
export type { Abandoned } from './state.js';
