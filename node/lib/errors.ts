/** The fixed name of a kind of error; the same in every language. */
export type ErrorCode =
  | 'contended'
  | 'timed_out'
  | 'cancelled'
  | 'unavailable'
  | 'lost'
  | 'not_held'
  | 'misconfigured'
  | 'invalid_argument'
  | 'unsupported'
  | 'closed'
  | 'would_deadlock';

/**
 * Why a hold ended before its release: `ended`, its lease or `maxHold` ran out; `not_renewed`, it
 * could not be renewed in time; `gone`, the store no longer knows it; `broken`, an operator broke
 * it; `closed`, the client was closed.
 */
export type LossReason = 'ended' | 'not_renewed' | 'gone' | 'broken' | 'closed';

/** What every error of this library is. */
export class FencelockError extends Error {
  /** The fixed name of its kind. */
  readonly code: ErrorCode;
  /** The fixed number of its kind. */
  readonly number: number;
  /** Whether the same call may succeed later without anybody changing anything. */
  readonly retryable: boolean;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    const kind = KINDS[code];
    this.code = code;
    this.number = kind.number;
    this.retryable = kind.retryable;
  }
}

/** Another holder has the lock, or waits for it, and the caller did not want to wait. */
export class ContendedError extends FencelockError {
  constructor(message: string, options?: ErrorOptions) {
    super('contended', message, options);
  }
}

/** The wait's bound passed while others held the lock. */
export class TimedOutError extends FencelockError {
  constructor(message: string, options?: ErrorOptions) {
    super('timed_out', message, options);
  }
}

/** The wait was cancelled. An `AbortSignal` rejects with its own reason instead. */
export class CancelledError extends FencelockError {
  constructor(message: string, options?: ErrorOptions) {
    super('cancelled', message, options);
  }
}

/** The store could not be reached, or did not answer, within the call's bound. */
export class UnavailableError extends FencelockError {
  constructor(message: string, options?: ErrorOptions) {
    super('unavailable', message, options);
  }
}

/** The hold ended before its holder released it: stop, and acquire the lock again. */
export class LostError extends FencelockError {
  /** Why it ended, as far as is known. */
  readonly reason: LossReason | undefined;

  constructor(message: string, options?: ErrorOptions & { reason?: LossReason | undefined }) {
    super('lost', message, options);
    this.reason = options?.reason;
  }
}

/** The hold was released already, or the owner of a ticket no longer holds the lock. */
export class NotHeldError extends FencelockError {
  constructor(message: string, options?: ErrorOptions) {
    super('not_held', message, options);
  }
}

/** The store refuses for a reason that only an operator can mend. */
export class MisconfiguredError extends FencelockError {
  constructor(message: string, options?: ErrorOptions) {
    super('misconfigured', message, options);
  }
}

/** An argument is out of its range. One of the wrong type is a `TypeError`. */
export class InvalidArgumentError extends FencelockError {
  constructor(message: string, options?: ErrorOptions) {
    super('invalid_argument', message, options);
  }
}

/** The store, or this version, cannot do what was asked. */
export class UnsupportedError extends FencelockError {
  constructor(message: string, options?: ErrorOptions) {
    super('unsupported', message, options);
  }
}

/** The client was closed. */
export class ClosedError extends FencelockError {
  constructor(message: string, options?: ErrorOptions) {
    super('closed', message, options);
  }
}

/** The owner has the lock shared already and wants it for itself: it would wait for its own hold. */
export class WouldDeadlockError extends FencelockError {
  constructor(message: string, options?: ErrorOptions) {
    super('would_deadlock', message, options);
  }
}

interface Kind {
  readonly number: number;
  readonly retryable: boolean;
  readonly name: string;
  readonly make: new (message: string, options?: ErrorOptions) => FencelockError;
}

function kind(number: number, retryable: boolean, name: string, make: Kind['make']): Kind {
  // Not `constructor.name`, which a minifier would change.
  Object.defineProperty(make.prototype, 'name', {
    value: name,
    configurable: true,
    writable: true,
  });
  return { number, retryable, name, make };
}

/** Every kind of error, by its code. */
export const KINDS: Readonly<Record<ErrorCode, Kind>> = {
  contended: kind(1, true, 'ContendedError', ContendedError),
  timed_out: kind(2, true, 'TimedOutError', TimedOutError),
  cancelled: kind(3, false, 'CancelledError', CancelledError),
  unavailable: kind(4, true, 'UnavailableError', UnavailableError),
  lost: kind(5, false, 'LostError', LostError),
  not_held: kind(6, false, 'NotHeldError', NotHeldError),
  misconfigured: kind(7, false, 'MisconfiguredError', MisconfiguredError),
  invalid_argument: kind(8, false, 'InvalidArgumentError', InvalidArgumentError),
  unsupported: kind(9, false, 'UnsupportedError', UnsupportedError),
  closed: kind(10, false, 'ClosedError', ClosedError),
  would_deadlock: kind(11, false, 'WouldDeadlockError', WouldDeadlockError),
};
Object.defineProperty(FencelockError.prototype, 'name', {
  value: 'FencelockError',
  configurable: true,
  writable: true,
});

const BY_NUMBER: readonly (Kind | undefined)[] = Object.values(KINDS).reduce<(Kind | undefined)[]>(
  (table, entry) => {
    table[entry.number] = entry;
    return table;
  },
  [],
);

/** The error that the native half means; `reason` of a loss, if it is known. */
export function errorOf(number: number, message: string, reason?: LossReason): FencelockError {
  const make = BY_NUMBER[number]?.make;
  // The table is compared with the native half's in a test.
  if (make === undefined) return new UnsupportedError(`unknown error ${number}: ${message}`);
  return make === LostError ? new LostError(message, { reason }) : new make(message);
}
