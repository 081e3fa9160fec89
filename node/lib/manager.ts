import type { Ended, NativeClient, Outcome } from '../native/index.js';
import { onAbort } from './aborts.js';
import { during } from './during.js';
import { ContendedError, InvalidArgumentError, type LostError } from './errors.js';
import type { Broken, Capabilities, LockDetails, Metrics } from './info.js';
import { Hold, Lock } from './lock.js';
import { failure, loop, outcomeOf } from './loop.js';
import {
  type AcquireOptions,
  milliseconds,
  patience,
  permits,
  span,
  text,
  type WaitOptions,
} from './options.js';
import { type Ask, convert, type LockOptions, mode, refuse, signal } from './request.js';
import { Semaphore, type SemaphoreOptions } from './semaphore.js';
import { type CloseOptions, closeOn, type Unhook } from './signals.js';
import { type LockManagerSnapshot, snapshot } from './snapshot.js';
import { HoldState } from './state.js';
import { type Entry, Tally } from './tally.js';

/** Native clients that are about to be wrapped. */
const made = new WeakSet<NativeClient>();

/** How many locks `list` and `query` look at unless told otherwise. */
const LIMIT = 1000;

/** Which locks `list` and `query` look at. */
export interface ListOptions {
  /** Only names that begin so. */
  prefix?: string | undefined;
  /** At most so many locks; 1000 unless said. */
  limit?: number | undefined;
}

/**
 * A client of a store, from `connect`. `request` and `query` are those of the Web Locks standard;
 * the rest is our own.
 *
 * An idle client does not keep the process alive; a live hold and a wait do.
 */
export class LockManager {
  readonly #native: NativeClient;
  readonly #held = new Tally();
  readonly #pending = new Tally();

  private constructor(native: NativeClient) {
    // TypeScript's `private` does not hold in JavaScript.
    if (!made.delete(native)) throw new TypeError('Illegal constructor: use connect(url)');
    this.#native = native;
    loop().opened(this);
  }

  /** @internal */
  static wrap(native: NativeClient): LockManager {
    made.add(native);
    return new LockManager(native);
  }

  /** The id under which the store, `query` and `fencelock show` know this client. */
  get clientId(): string {
    return this.#native.id;
  }

  /** Whether the client is closed. */
  get closed(): boolean {
    return this.#native.isClosed;
  }

  /**
   * Acquires the lock, calls `callback` with it, and releases it when the promise that `callback`
   * gives settles. The promise of this call then settles the same way.
   *
   * As in the Web Locks standard, a request never re-enters: a nested request of the same name
   * waits for the outer one, for ever; a shared one within a shared one, too, when an exclusive
   * request came in between. A lock that is stolen or broken meanwhile rejects with an
   * `AbortError`. What the standard does not have: one that is lost otherwise rejects with a
   * `LostError`; both abort `lock.signal`, and the `LostError` is the `AbortError`'s cause.
   */
  request<T>(name: string, callback: (lock: Lock) => T): Promise<Awaited<T>>;
  request<T>(
    name: string,
    options: LockOptions & { ifAvailable: true },
    callback: (lock: Lock | null) => T,
  ): Promise<Awaited<T>>;
  request<T>(
    name: string,
    options: LockOptions & { ifAvailable?: false | undefined },
    callback: (lock: Lock) => T,
  ): Promise<Awaited<T>>;
  request<T>(
    name: string,
    options: LockOptions,
    callback: (lock: Lock | null) => T,
  ): Promise<Awaited<T>>;
  // Two parameters, because the standard's function says that it has two.
  async request(_name: string, _callback: unknown): Promise<unknown> {
    // Refuses a `this` that is none of ours, before all else.
    this.#native;
    // biome-ignore lint/complexity/noArguments: how many were given is part of the standard
    const { name, ask, callback } = convert(arguments);
    refuse(name, ask);
    const shown = text('name', name);
    if (ask.steal) await this.#dispossess(shown);
    const state = await this.#acquire(shown, ask, ask.ifAvailable);
    if (state === null) return await callback(null);
    if (ask.signal?.aborted) {
      state.discard();
      throw ask.signal.reason;
    }
    return await during(state, () => callback(Lock.wrap(state)), stolen);
  }

  /**
   * What is held and who waits, in the standard's form. Each lock is asked for by itself, so
   * this is no picture of one moment, and it costs a round trip for each lock. Another client that holds and
   * also waits, or waits more than once, has as many pending entries as it said with its latest renewal (a
   * third of the lease), 1000 for one entry at the store at the most, and on ZooKeeper those that the
   * store knows.
   */
  async query(options: ListOptions = {}): Promise<LockManagerSnapshot> {
    const own = { clientId: this.clientId, held: this.#held, pending: this.#pending };
    const listed = await this.list(options);
    const prefix = options.prefix ?? '';
    const mine = [...this.#held.names(), ...this.#pending.names()];
    const names = new Set([...listed, ...mine.filter((name) => name.startsWith(prefix))]);
    const infos = await Promise.all(
      [...names].map((name) => loop().ask((call) => this.#native.inspect(call, name))),
    );
    const whole: LockManagerSnapshot = { held: [], pending: [] };
    for (const [index, name] of [...names].entries()) {
      const { held, pending } = snapshot(name, infos[index]?.lock, own);
      whole.held.push(...held);
      whole.pending.push(...pending);
    }
    return whole;
  }

  /**
   * Acquires the lock and gives a guard; release it, best with `await using`. Clients are served
   * first come, first served. An outage of the store is waited out.
   *
   * With `ifAvailable` it does not wait, and gives null when the lock is not free.
   *
   * Rejects with the signal's reason when that is aborted, `TimedOutError` or `ContendedError` when
   * `wait` has passed, `UnavailableError` when the store could not be asked within it,
   * `MisconfiguredError`, `InvalidArgumentError`, `ClosedError`.
   */
  acquire(name: string, options: AcquireOptions & { ifAvailable: true }): Promise<Hold | null>;
  acquire(
    name: string,
    options?: AcquireOptions & { ifAvailable?: false | undefined },
  ): Promise<Hold>;
  acquire(
    name: string,
    options: AcquireOptions & { ifAvailable?: boolean | undefined },
  ): Promise<Hold | null>;
  async acquire(
    name: string,
    options: AcquireOptions & { ifAvailable?: boolean | undefined } = {},
  ): Promise<Hold | null> {
    if (options === null || typeof options !== 'object') {
      throw new TypeError('the options of acquire must be an object');
    }
    const { owner } = options;
    const ask = {
      ...waiting(options),
      mode: mode(options.mode),
      owner: owner === undefined ? undefined : text('owner', owner),
    };
    if (ask.signal?.aborted) throw ask.signal.reason;
    const state = await this.#acquire(text('name', name), ask, options.ifAvailable === true);
    return state && Hold.wrap(state);
  }

  /**
   * The semaphore of this name, with so many permits (1 to 1,000,000). Asks the store nothing. All
   * who use it name the same number: another is refused while anybody holds or waits, unless `adopt`
   * is set.
   *
   * Throws `InvalidArgumentError` for a name or number that cannot be, `UnsupportedError` when the
   * store has no semaphores (`capabilities.permits`).
   */
  semaphore(name: string, count: number, options: SemaphoreOptions = {}): Semaphore {
    const shown = text('name', name);
    const of = permits(count);
    if (options === null || typeof options !== 'object') {
      throw new TypeError('the options of a semaphore must be an object');
    }
    const adopt = options.adopt ?? false;
    if (typeof adopt !== 'boolean') throw new TypeError('adopt must be true or false');
    const error = failure(outcomeOf(0, this.#native.semaphore(shown, of)));
    if (error) throw error;
    return Semaphore.wrap(shown, of, {
      take: async (wanted, options, ifAvailable) => {
        if (options === null || typeof options !== 'object') {
          throw new TypeError('the options of an acquire must be an object');
        }
        const { lease, maxHold, signal, wait } = waiting(options);
        if (signal?.aborted) throw signal.reason;
        const limit = ifAvailable ? 0 : wait;
        const taken = this.#wait(shown, undefined, signal, (call) =>
          this.#native.acquirePermits(call, shown, limit, lease, maxHold, wanted, of, adopt),
        );
        return ifAvailable ? taken.catch(nullIfContended) : taken;
      },
      free: async () => {
        const { number } = await loop().ask((call) =>
          this.#native.availablePermits(call, shown, of, adopt),
        );
        return number ?? 0;
      },
      resize: async (to) => {
        const { flag } = await loop().ask((call) => this.#native.resize(call, shown, to));
        return flag ?? false;
      },
    });
  }

  /**
   * Goes on with a hold of an explicit owner elsewhere, under the same token. The hold is this
   * client's own, with its own lease; the lock is free when all of the owner's holds are released.
   *
   * Rejects with `NotHeldError` when the owner's hold is over, `InvalidArgumentError` for a ticket
   * that cannot be read.
   */
  async attach(ticket: string, options: { signal?: AbortSignal | undefined } = {}): Promise<Hold> {
    const shown = text('ticket', ticket);
    const stop = signal(options.signal);
    if (stop?.aborted) throw stop.reason;
    // Only the native half can read the lock's name from the ticket.
    const begin = (call: number) => this.#native.attach(call, shown);
    const state = await this.#wait(undefined, { mode: 'exclusive' }, stop, begin);
    return Hold.wrap(state);
  }

  /** All that the store knows of a lock; null when it knows nothing. */
  async inspect(name: string): Promise<LockDetails | null> {
    const shown = text('name', name);
    const { lock } = await loop().ask((call) => this.#native.inspect(call, shown));
    return (lock as LockDetails | undefined) ?? null;
  }

  /** The names of locks that the store knows; one that was used lately may be free. */
  async list(options: ListOptions = {}): Promise<string[]> {
    const prefix = text('prefix', options.prefix ?? '');
    const limit = options.limit ?? LIMIT;
    if (typeof limit !== 'number') throw new TypeError('limit must be a number');
    if (!Number.isInteger(limit) || limit < 1 || limit > 0xffff_ffff) {
      throw new InvalidArgumentError(`limit must be a whole number from 1 on, not ${limit}`);
    }
    const { names } = await loop().ask((call) => this.#native.list(call, prefix, limit));
    return names ?? [];
  }

  /** Whether anybody holds the lock. For display, never for a decision. */
  async isLocked(name: string): Promise<boolean> {
    const shown = text('name', name);
    const { flag } = await loop().ask((call) => this.#native.isLocked(call, shown));
    return flag ?? false;
  }

  /**
   * Ends the holds on a lock that were seen under `token` (that of `inspect`, or of a hold), whoever has
   * them. Who got the lock after it keeps it, so a break may be repeated. The holders are told, but one
   * that does not listen goes on: only fencing keeps its writes out.
   */
  async breakLock(name: string, token: bigint): Promise<Broken> {
    const shown = text('name', name);
    const seen = seenToken(token);
    const broken = await loop().ask((call) => this.#native.breakLock(call, shown, seen));
    return { ended: broken.number ?? 0, changedHands: broken.token ?? null };
  }

  /**
   * Ends one hold, such as a reader's, or that of some permits: `token` and `id` are those of one of
   * `inspect`'s holds. The others stay. In all else as `breakLock`.
   *
   * Rejects with `InvalidArgumentError` for what is no hold's id, `UnsupportedError` when the store
   * cannot end one of several.
   */
  async breakHold(name: string, token: bigint, id: string): Promise<Broken> {
    const [shown, hold] = [text('name', name), text('id', id)];
    const seen = seenToken(token);
    const broken = await loop().ask((call) => this.#native.breakHold(call, shown, seen, hold));
    return { ended: broken.number ?? 0, changedHands: broken.token ?? null };
  }

  /** Asks the store for its time. */
  async ping(): Promise<Date> {
    const { number } = await loop().ask((call) => this.#native.ping(call));
    return new Date(number ?? 0);
  }

  /** What the client has counted. */
  metrics(): Metrics {
    const { lossesBy, ...counts } = this.#native.metrics();
    const byReason = Object.fromEntries(lossesBy.map(({ reason, count }) => [reason, count]));
    return { ...counts, lossesBy: byReason } as Metrics;
  }

  /** What the store can and cannot do. */
  get capabilities(): Capabilities {
    return this.#native.capabilities();
  }

  /**
   * Closes the client: rejects what waits with `ClosedError`, tells every hold that it is lost and
   * releases it. Resolves when the store has confirmed that, at the latest after the request
   * timeout. With `drain`, first waits so many milliseconds (or `Infinity`) for the holds to be
   * released, and takes no new acquires meanwhile.
   *
   * Gives whether all was released: nothing was held or waited for when it closed, and the store has
   * confirmed it. False is no failure to close. Rejects with `InvalidArgumentError` for a negative
   * drain; the client is open then.
   */
  async close(options: CloseOptions = {}): Promise<boolean> {
    const limit = options.drain === undefined ? undefined : span('drain', options.drain);
    try {
      const { flag } = await loop().ask((call) =>
        limit === undefined ? this.#native.close(call) : this.#native.drain(call, limit),
      );
      return flag ?? false;
    } finally {
      loop().closed(this);
    }
  }

  /**
   * Closes the client when the process is told to end, and then lets the signal end it: if nobody
   * else listens to the signal, the process ends by it. Gives a function that calls this off.
   * For the main thread: workers get no signals.
   */
  closeOn(name: NodeJS.Signals = 'SIGTERM', options: CloseOptions = {}): Unhook {
    return closeOn(name, () => this.close(options));
  }

  /** Closes the client. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get [Symbol.toStringTag](): string {
    return 'LockManager';
  }

  /** Ends the holds that are there now, and none that come after them. */
  async #dispossess(name: string): Promise<void> {
    const seen = await this.inspect(name);
    // Permits are no lock: the request is refused, and they stay.
    if (seen?.holds.some(({ mode }) => mode !== 'permits')) await this.breakLock(name, seen.token);
  }

  /** Null when it is not to wait and the lock is not free. */
  #acquire(
    name: string,
    ask: Pick<Ask, 'lease' | 'maxHold' | 'mode' | 'owner' | 'signal' | 'wait'>,
    ifAvailable: boolean,
  ): Promise<HoldState | null> {
    const { lease, maxHold, mode, owner } = ask;
    const wait = ifAvailable ? 0 : ask.wait;
    const waiting = this.#wait(name, { mode }, ask.signal, (call) =>
      this.#native.acquire(call, name, wait, owner, lease, maxHold, mode === 'shared'),
    );
    return ifAvailable ? waiting.catch(nullIfContended) : waiting;
  }

  /**
   * Waits for a hold; `entry` is how `query` shows it, if it does. After an abort nothing is held,
   * however late it came.
   */
  #wait(
    wanted: string | undefined,
    entry: Entry | undefined,
    signal: AbortSignal | undefined,
    begin: (call: number) => Ended | null,
  ): Promise<HoldState> {
    return new Promise((resolve, reject) => {
      let aborted = false;
      let call = 0;
      let counted = false;
      // Before it begins, so that the outcome finds all in place.
      const unhook =
        signal &&
        onAbort(signal, () => {
          aborted = true;
          leave();
          reject(signal.reason);
          this.#native.cancel(call);
        });
      let waits = true;
      const leave = () => {
        if (!waits) return;
        waits = false;
        if (counted) this.#pending.remove(wanted as string, entry as Entry);
        unhook?.();
      };
      const settle = (outcome: Outcome) => {
        leave();
        const error = failure(outcome);
        if (error) {
          reject(error);
        } else if (aborted) {
          this.#native.discard(outcome.call);
        } else {
          const name = wanted ?? outcome.text ?? '';
          if (entry) this.#held.add(name, entry);
          resolve(
            new HoldState(this.#native, name, entry, outcome, () => {
              if (entry) this.#held.remove(name, entry);
            }),
          );
        }
      };
      try {
        call = loop().run(begin, settle);
        if (waits && wanted !== undefined && entry !== undefined) {
          counted = true;
          this.#pending.add(wanted, entry);
        }
      } catch (error) {
        leave();
        reject(error);
      }
    });
  }
}

/** How long to wait and to hold, as was asked. */
function waiting(options: WaitOptions): Pick<Ask, 'lease' | 'maxHold' | 'signal' | 'wait'> {
  const { lease, maxHold } = options;
  return {
    lease: lease === undefined ? undefined : milliseconds('lease', lease),
    maxHold: maxHold === undefined ? undefined : milliseconds('maxHold', maxHold),
    signal: signal(options.signal),
    wait: patience(options.wait),
  };
}

function seenToken(token: unknown): bigint {
  if (typeof token !== 'bigint') throw new TypeError('token must be a bigint');
  if (BigInt.asUintN(64, token) !== token) {
    throw new InvalidArgumentError(`token must be from 0n to 2n ** 64n - 1n, not ${token}`);
  }
  return token;
}

function nullIfContended(error: unknown): null {
  if (error instanceof ContendedError) return null;
  throw error;
}

/** What a request rejects with: the standard's error, when somebody else took the lock. */
function stolen(error: LostError): unknown {
  if (error.reason !== 'broken') return error;
  return new DOMException('the lock was stolen or broken', { name: 'AbortError', cause: error });
}
