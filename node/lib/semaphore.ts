import { during } from './during.js';
import { Permit } from './lock.js';
import { permits, type WaitOptions } from './options.js';
import type { HoldState } from './state.js';

/** What a semaphore asks of its client. */
export interface Permits {
  /** Takes so many permits; null when it is not to wait and they are not free. */
  take(count: number, options: WaitOptions, ifAvailable: boolean): Promise<HoldState | null>;
  /** How many are free. */
  free(): Promise<number>;
  /** Gives it so many; false when nobody holds or waits. */
  resize(count: number): Promise<boolean>;
}

/** How a semaphore is had. */
export interface SemaphoreOptions {
  /**
   * Whether the number of those who hold or wait counts, where it is another than this one's: for who
   * cannot know of a `resize`. The number given counts when nobody does, and is the most that one
   * acquire takes.
   */
  adopt?: boolean | undefined;
}

/** The semaphore that is being made; only this file can make one. */
let making: Permits | undefined;

/**
 * A number of permits that all processes share, from `locks.semaphore(name, permits)`.
 *
 * Who waits is served in the order of arrival; a small request never passes a larger one. Permits have
 * no owner: acquiring again takes more of them. Those of a process that died are free when their
 * lease has ended.
 *
 * ```ts
 * const mailers = locks.semaphore('mailers', 5);
 * await mailers.run(() => send(mail));
 * ```
 */
export class Semaphore {
  /** The semaphore's name. */
  readonly name: string;
  /** How many permits it has, as `locks.semaphore` was told. */
  readonly permits: number;
  readonly #of: Permits;

  private constructor(name: string, permits: number) {
    if (making === undefined) {
      throw new TypeError('Illegal constructor: a semaphore comes from locks.semaphore');
    }
    this.#of = making;
    this.name = name;
    this.permits = permits;
  }

  /** @internal */
  static wrap(name: string, permits: number, of: Permits): Semaphore {
    making = of;
    try {
      return new Semaphore(name, permits);
    } finally {
      making = undefined;
    }
  }

  /**
   * Takes `count` permits, all of them at once, and gives a guard; release it, best with
   * `await using`.
   *
   * Rejects as `locks.acquire`; with `InvalidArgumentError` when `count` is not 1 to the number of
   * permits; with `MisconfiguredError` while others hold or wait who named another number of permits,
   * or while the name is a lock's.
   */
  async acquire(count = 1, options: WaitOptions = {}): Promise<Permit> {
    const wanted = permits(count);
    return Permit.guard((await this.#of.take(wanted, options, false)) as HoldState, wanted);
  }

  /** Takes `count` permits if so many are free and nobody waits; otherwise gives null. */
  async tryAcquire(count = 1, options: WaitOptions = {}): Promise<Permit | null> {
    const wanted = permits(count);
    const state = await this.#of.take(wanted, options, true);
    return state && Permit.guard(state, wanted);
  }

  /**
   * Takes `count` permits, calls `callback` with them, and gives them back when the promise that
   * `callback` gives settles. The promise of this call then settles the same way; when they are lost
   * meanwhile, it rejects with a `LostError` at once.
   */
  async run<T>(
    callback: (permit: Permit) => T,
    count = 1,
    options: WaitOptions = {},
  ): Promise<Awaited<T>> {
    if (typeof callback !== 'function') throw new TypeError('the callback must be a function');
    const wanted = permits(count);
    const state = (await this.#of.take(wanted, options, false)) as HoldState;
    return await during(state, () => callback(Permit.wrap(state, wanted)));
  }

  /**
   * How many permits are free, by the store's word. For display, never for a decision: it may have
   * changed when the answer arrives, and who waits comes first.
   */
  async availablePermits(): Promise<number> {
    return await this.#of.free();
  }

  /**
   * Gives the semaphore another number of permits, 1 to 1,000,000, while some are out or waited for. Of
   * more, whoever fits enters at once. Of fewer, nobody loses any, and nobody enters until enough have
   * come back; who waits for more than there are gets an `InvalidArgumentError`. It is set and not added,
   * and lasts until nobody holds or waits: false when nobody does, and the next to come says how many
   * there are. This object keeps its number: who comes from now on says the new one, or has `adopt`.
   *
   * Rejects with `MisconfiguredError` while the name is a lock's, `UnsupportedError` when the store
   * cannot, `UnavailableError`.
   */
  async resize(count: number): Promise<boolean> {
    return await this.#of.resize(permits(count));
  }

  get [Symbol.toStringTag](): string {
    return 'Semaphore';
  }
}
