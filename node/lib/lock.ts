import { drops } from './drops.js';
import type { LossReason } from './errors.js';
import { milliseconds } from './options.js';
import type { Abandoned, HoldState } from './state.js';

/** How a lock is held. */
export type LockMode = 'exclusive' | 'shared';

/** The state of the lock that is being made; only this file can make one. */
let making: HoldState | undefined;

function make<T>(state: HoldState, construct: () => T): T {
  making = state;
  try {
    return construct();
  } finally {
    making = undefined;
  }
}

/** What a held lock and taken permits have in common. */
export class Held {
  readonly #state: HoldState;

  protected constructor() {
    // TypeScript's `protected` does not hold in JavaScript.
    if (making === undefined) {
      throw new TypeError(
        'Illegal constructor: a lock comes from request or acquire, permits from a semaphore',
      );
    }
    this.#state = making;
  }

  /** The name of the lock or semaphore. */
  get name(): string {
    return this.#state.name;
  }

  /**
   * The fencing token: greater than that of every earlier hold of this lock; of one that reads, than
   * that of every earlier one that wrote. Send it along with every write, and let the resource refuse
   * one below the highest that it has seen. That of permits names the grant, and fences nothing.
   */
  get token(): bigint {
    return this.#state.token;
  }

  /** Aborted when the hold is lost, with a `LostError` as its reason. Not by a release. */
  get signal(): AbortSignal {
    return this.#state.signal;
  }

  /**
   * Resolves with the reason when the hold is lost; never rejects. Stays pending when the hold is
   * released first.
   */
  get lost(): Promise<LossReason> {
    return this.#state.lostPromise;
  }

  /** Resolves when another client waits for this lock; never rejects. */
  get wanted(): Promise<void> {
    return this.#state.wantedPromise;
  }

  /** Whether another client waits for this lock, as far as is known. */
  get isWanted(): boolean {
    return this.#state.isWanted;
  }

  /** Whether the hold can be trusted at this moment. Asks the clock, not the store. */
  get isValid(): boolean {
    return this.#state.remaining > 0;
  }

  /** How many milliseconds the hold can be trusted if it is not renewed; 0 when it has ended. */
  get remaining(): number {
    return this.#state.remaining;
  }

  /**
   * The token, if the hold can be trusted at this moment. Throws a `LostError` when it has ended.
   * It may end between this check and a write: send the token with the write.
   */
  check(): bigint {
    return this.#state.check();
  }

  /**
   * Sets the lease to so many milliseconds from now; never shortens it. A hold without an explicit
   * lease goes on being renewed. Rejects with `LostError`, `NotHeldError` after the release,
   * `InvalidArgumentError` for a lease outside 100 ms to 7 days, `UnavailableError`.
   */
  async extend(lease: number): Promise<void> {
    await this.#state.extend(milliseconds('lease', lease));
  }

  get [Symbol.toStringTag](): string {
    return 'Held';
  }
}

/**
 * A held lock, as the callback of `request` gets it. It is released when the callback's promise
 * settles.
 */
export class Lock extends Held {
  readonly #state: HoldState;

  protected constructor() {
    super();
    this.#state = making as HoldState;
  }

  /** @internal */
  static wrap(state: HoldState): Lock {
    return make(state, () => new Lock());
  }

  /** How it is held now. */
  get mode(): LockMode {
    return this.#state.mode;
  }

  /**
   * Shares the lock from now on instead of having it to itself, without letting another exclusive
   * request come between: others who share are let in at once, and the token becomes that of one who
   * shares. The holder must not write any more once it has called this, whatever comes of it. Nothing
   * changes when it is shared already.
   *
   * Rejects with `ContendedError` when its owner has the lock exclusively by another hold, too;
   * `LostError`, `NotHeldError`; `UnavailableError` when the store did not answer in time (it is told
   * in the background); `UnsupportedError` on ZooKeeper.
   */
  async downgrade(): Promise<void> {
    await this.#state.convert('shared');
  }

  /**
   * Has the lock to itself from now on instead of sharing it, if nobody else holds it; past whoever
   * waits for it. The token becomes that of one who writes. It does not wait: two who did would wait
   * for each other. Nothing changes when it is exclusive already.
   *
   * Rejects with `ContendedError` when others share the lock; `LostError`, `NotHeldError`;
   * `UnavailableError` when the store did not answer in time (the hold stays shared);
   * `UnsupportedError` on ZooKeeper.
   */
  async tryUpgrade(): Promise<void> {
    await this.#state.convert('exclusive');
  }

  /** Whether the owner had the lock already, in this client, when this hold was granted. */
  get isReentry(): boolean {
    return this.#state.isReentry;
  }

  /** Whether the previous holder was lost: then what the lock protects may be half done. */
  get previousAbandoned(): Abandoned {
    return this.#state.previousAbandoned;
  }

  /**
   * A short text with which another process goes on with this hold: `locks.attach(ticket)`. Only
   * for a hold of an explicit owner; otherwise throws an `InvalidArgumentError`.
   */
  ticket(): string {
    return this.#state.ticket();
  }

  override get [Symbol.toStringTag](): string {
    return 'Lock';
  }
}

/**
 * A held lock, from `acquire` or `attach`. It is renewed until it is released:
 *
 * ```ts
 * await using hold = await locks.acquire('stock/coupon-7');
 * ```
 *
 * releases it at the end of the block. One that is garbage collected without having been released
 * is released then, with a process warning: do not rely on it.
 */
export class Hold extends Lock {
  readonly #state: HoldState;

  protected constructor() {
    super();
    this.#state = making as HoldState;
    drops.watch(this, this.#state);
  }

  /** @internal */
  static override wrap(state: HoldState): Hold {
    return make(state, () => new Hold());
  }

  /**
   * Releases the lock; resolves when the store, or the next holder in this client, has it. Rejects
   * with `LostError` when the hold had ended before, `NotHeldError` when it was released already,
   * `UnavailableError` when the store did not answer in time (the release goes on by itself).
   */
  async release(): Promise<void> {
    drops.forget(this, this.#state);
    await this.#state.release();
  }

  /** Releases the lock if that has not been done; so `await using` can be used. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#state.isReleased) await this.release();
  }

  override get [Symbol.toStringTag](): string {
    return 'Hold';
  }
}

/**
 * Permits of a semaphore, taken together, from `Semaphore.acquire`. They are renewed until they are
 * released:
 *
 * ```ts
 * await using permit = await semaphore.acquire();
 * ```
 *
 * gives them back at the end of the block. Those that are garbage collected without having been
 * released are released then, with a process warning: do not rely on it.
 */
export class Permit extends Held {
  readonly #state: HoldState;
  readonly #count: number;

  protected constructor(count: number) {
    super();
    this.#state = making as HoldState;
    this.#count = count;
  }

  /** @internal */
  static wrap(state: HoldState, count: number): Permit {
    return make(state, () => new Permit(count));
  }

  /** @internal */
  static guard(state: HoldState, count: number): Permit {
    const permit = Permit.wrap(state, count);
    drops.watch(permit, state);
    return permit;
  }

  /** How many permits it is. */
  get permits(): number {
    return this.#count;
  }

  /**
   * Gives the permits back; resolves when the store, or who takes them next in this client, has
   * them. Rejects with `LostError` when they had come back before, `NotHeldError` when they were
   * released already, `UnavailableError` when the store did not answer in time (the release goes on
   * by itself).
   */
  async release(): Promise<void> {
    drops.forget(this, this.#state);
    await this.#state.release();
  }

  /** Gives the permits back if that has not been done; so `await using` can be used. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#state.isReleased) await this.release();
  }

  override get [Symbol.toStringTag](): string {
    return 'Permit';
  }
}
