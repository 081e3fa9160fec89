import type { LockMode } from './lock.js';
import { type AcquireOptions, milliseconds, patience, text } from './options.js';

/** Options of `request`: those of the Web Locks standard, and some of our own. */
export interface LockOptions extends AcquireOptions {
  /** Do not wait: if the lock is not free, the callback gets null. */
  ifAvailable?: boolean | undefined;
  /**
   * Ends the holds that others have at this moment, readers' too, and then acquires. Unlike the standard, which knows
   * one agent, it does not overtake who waits: whoever queued before is served before.
   */
  steal?: boolean | undefined;
}

/** What a request asks for, after its arguments were converted. */
export interface Ask {
  ifAvailable: boolean;
  lease: number | undefined;
  maxHold: number | undefined;
  mode: LockMode;
  owner: string | undefined;
  signal: AbortSignal | undefined;
  steal: boolean;
  wait: number | undefined;
}

type Callback = (lock: unknown) => unknown;

/**
 * Converts the arguments of `request` as Web IDL has it: from left to right, a dictionary's members
 * in the order of their names.
 */
export function convert(args: ArrayLike<unknown>): {
  name: string;
  ask: Ask;
  callback: Callback;
} {
  if (args.length < 2) {
    throw new TypeError(`request needs a name and a callback, but got ${args.length} argument(s)`);
  }
  // A template calls ToString, which refuses a symbol; String() would not.
  const name = `${args[0]}`;
  const [options, callback] = args.length === 2 ? [undefined, args[1]] : [args[1], args[2]];
  const ask = dictionary(options);
  if (typeof callback !== 'function') {
    throw new TypeError("request's last argument, the callback, must be a function");
  }
  return { name, ask, callback: callback as Callback };
}

function dictionary(value: unknown): Ask {
  if (
    value !== undefined &&
    value !== null &&
    typeof value !== 'object' &&
    typeof value !== 'function'
  ) {
    throw new TypeError("request's options must be an object");
  }
  const options = (value ?? {}) as Record<string, unknown>;
  // Each member is read once, in this order; the initialisers run from the first to the last.
  return {
    ifAvailable: Boolean(options.ifAvailable),
    lease: optional(options.lease, (lease) => milliseconds('lease', lease)),
    maxHold: optional(options.maxHold, (ceiling) => milliseconds('maxHold', ceiling)),
    mode: mode(options.mode),
    owner: optional(options.owner, (owner) => text('owner', owner)),
    signal: signal(options.signal),
    steal: Boolean(options.steal),
    wait: patience(options.wait),
  };
}

function optional<T>(value: unknown, convert: (value: unknown) => T): T | undefined {
  return value === undefined ? undefined : convert(value);
}

/** How to hold a lock. */
export function mode(value: unknown): LockMode {
  if (value === undefined) return 'exclusive';
  const named = `${value}`;
  if (named !== 'exclusive' && named !== 'shared') {
    throw new TypeError(`mode must be 'exclusive' or 'shared', not ${JSON.stringify(named)}`);
  }
  return named;
}

/** The signal, if there is one. */
export function signal(value: unknown): AbortSignal | undefined {
  if (value === undefined) return undefined;
  if (!(value instanceof AbortSignal)) throw new TypeError('signal must be an AbortSignal');
  return value;
}

/** The standard's refusals, in its order. */
export function refuse(name: string, ask: Ask): void {
  if (name.startsWith('-')) throw unsupported("names that begin with '-' are reserved");
  if (ask.steal && ask.ifAvailable) throw unsupported('steal and ifAvailable exclude each other');
  if (ask.steal && ask.mode !== 'exclusive') throw unsupported('only an exclusive lock can steal');
  if (ask.signal && (ask.steal || ask.ifAvailable)) {
    throw unsupported('a signal cannot be combined with steal or ifAvailable');
  }
  if (ask.signal?.aborted) throw ask.signal.reason;
}

function unsupported(message: string): DOMException {
  return new DOMException(message, 'NotSupportedError');
}
