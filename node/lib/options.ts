import type { Setting } from '../native/index.js';
import { InvalidArgumentError } from './errors.js';
import type { LockMode } from './lock.js';

/**
 * Options of `connect`. The first five may also stand in the URL, in snake case and with a unit; what
 * is given here wins. Spans are milliseconds.
 */
export interface ConnectOptions {
  /** The lease of holds without an explicit one. They are renewed at a third of it. */
  lease?: number | undefined;
  /** How long a lock that was handed over waits to hear from its new holder. */
  claim?: number | undefined;
  /** How long a request to the store may take. */
  requestTimeout?: number | undefined;
  /** How long `connect` waits for the store's first answer. */
  connectTimeout?: number | undefined;
  /** A name for people, shown by `inspect` and `fencelock show`. */
  label?: string | undefined;
  /** What the store's keys begin with, instead of `fl:`. */
  keyPrefix?: string | undefined;
  /** How often a lock may pass on within this client while another client waits. */
  localRunGrants?: number | undefined;
  /** For how long it may do so. */
  localRunTime?: number | undefined;
  /** How many acquires may wait in this client. */
  maxWaiters?: number | undefined;
}

/** What acquires of locks and of permits have in common. Spans are milliseconds. */
export interface WaitOptions {
  /** Gives the wait up when it is aborted; the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** How long to wait: 0 not at all (`ContendedError`); `Infinity`, as without it, for ever. */
  wait?: number | undefined;
  /** An explicit lease, 100 ms to 7 days: the hold is not renewed and ends on time. */
  lease?: number | undefined;
  /** A ceiling: the hold ends so long after its grant, although its holder lives. */
  maxHold?: number | undefined;
}

/** Options of `acquire`, and beyond the standard's those of `request`. Spans are milliseconds. */
export interface AcquireOptions extends WaitOptions {
  /**
   * `exclusive`, as without it, or `shared`: beside others who hold it shared. All wait in one queue:
   * a shared request stands behind an exclusive one that came before it.
   */
  mode?: LockMode | undefined;
  /**
   * An owner that may hold the lock several times at once, also in other processes and languages.
   * Without it every acquisition excludes every other.
   */
  owner?: string | undefined;
}

const SETTINGS: Record<keyof ConnectOptions, [name: string, kind: 'span' | 'count' | 'text']> = {
  lease: ['lease', 'span'],
  claim: ['claim', 'span'],
  requestTimeout: ['request_timeout', 'span'],
  connectTimeout: ['connect_timeout', 'span'],
  label: ['label', 'text'],
  keyPrefix: ['key_prefix', 'text'],
  localRunGrants: ['local_run_grants', 'count'],
  localRunTime: ['local_run_time', 'span'],
  maxWaiters: ['max_waiters', 'count'],
};

/** The options as the native half wants them. */
export function settings(options: ConnectOptions): Setting[] {
  if (options === null || typeof options !== 'object') {
    throw new TypeError('the options of connect must be an object');
  }
  const list: Setting[] = [];
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const known = SETTINGS[key as keyof ConnectOptions];
    if (known === undefined || !Object.hasOwn(SETTINGS, key)) {
      throw new InvalidArgumentError(
        `unknown option ${JSON.stringify(key)}; there are ${Object.keys(SETTINGS).join(', ')}`,
      );
    }
    const [name, kind] = known;
    if (kind === 'text') list.push({ name, text: text(key, value) });
    else if (kind === 'count') list.push({ name, count: count(key, value) });
    else list.push({ name, milliseconds: milliseconds(key, value) });
  }
  return list;
}

/** A text that the other side can have: without half a character. */
export function text(what: string, value: unknown): string {
  if (typeof value !== 'string') throw new TypeError(`${what} must be a string`);
  // A lone surrogate would become another character, and two names one lock.
  if (LONE.test(value)) {
    throw new InvalidArgumentError(`${what} is not well-formed Unicode: it has a lone surrogate`);
  }
  return value;
}

const LONE = /\p{Surrogate}/u;

/** A span of time: a number of milliseconds, finite and not negative. */
export function milliseconds(what: string, value: unknown): number {
  if (typeof value !== 'number') {
    throw new TypeError(`${what} must be a number of milliseconds`);
  }
  if (!Number.isFinite(value) || value < 0) {
    throw new InvalidArgumentError(
      `${what} must be a number of milliseconds from 0 on, not ${value}`,
    );
  }
  return value;
}

/** The same, where it may be without end. */
export function span(what: string, value: unknown): number {
  return value === Number.POSITIVE_INFINITY ? value : milliseconds(what, value);
}

/** How long to wait; undefined for ever. */
export function patience(value: unknown): number | undefined {
  const wait = value === undefined ? Number.POSITIVE_INFINITY : span('wait', value);
  return wait === Number.POSITIVE_INFINITY ? undefined : wait;
}

/** How many permits. */
export function permits(value: unknown): number {
  if (typeof value !== 'number') throw new TypeError('a number of permits must be a number');
  if (!Number.isInteger(value) || value < 1 || value > 0xffff_ffff) {
    throw new InvalidArgumentError(
      `a number of permits must be a whole number from 1 on, not ${value}`,
    );
  }
  return value;
}

function count(what: string, value: unknown): number {
  if (typeof value !== 'number') throw new TypeError(`${what} must be a number`);
  if (!Number.isSafeInteger(value) || value < 0 || value > 0xffff_ffff) {
    throw new InvalidArgumentError(`${what} must be a whole number from 0 on, not ${value}`);
  }
  return value;
}
