import type { NativeClient, Outcome } from '../native/index.js';
import {
  FencelockError,
  type LossReason,
  LostError,
  NotHeldError,
  UnavailableError,
} from './errors.js';
import type { LockMode } from './lock.js';
import { failure, type HoldEvents, loop, outcomeOf } from './loop.js';
import type { Entry } from './tally.js';

/** Whether a lock's previous holder was lost instead of releasing it. */
export type Abandoned = 'no' | 'yes' | 'unknown';

const WHY: Record<LossReason, string> = {
  ended: 'its lease or maxHold ended',
  not_renewed: 'it could not be renewed in time',
  gone: 'the store no longer knows it',
  broken: 'an operator broke it',
  closed: 'the client was closed',
};

const RELEASED = 'this hold was released already: acquire again';

/**
 * A hold, apart from the object that users have: that one may be collected while this one waits for
 * its end.
 */
export class HoldState implements HoldEvents {
  readonly name: string;
  token: bigint;
  readonly isReentry: boolean;
  readonly previousAbandoned: Abandoned;
  readonly #native: NativeClient;
  readonly #call: number;
  readonly #entry: Entry | undefined;
  readonly #ended: (state: HoldState) => void;
  #reason: LossReason | undefined;
  #released = false;
  #controller: AbortController | undefined;
  #lost: PromiseWithResolvers<LossReason> | undefined;
  #wanted: PromiseWithResolvers<void> | undefined;
  #onLost: ((error: LostError) => void) | undefined;

  /** `entry` is how the client counts it; `ended` is told when it no longer counts as held. */
  constructor(
    native: NativeClient,
    name: string,
    entry: Entry | undefined,
    outcome: Outcome,
    ended: (state: HoldState) => void,
  ) {
    this.#native = native;
    this.#call = outcome.call;
    this.#ended = ended;
    this.name = name;
    this.#entry = entry;
    this.token = outcome.token ?? 0n;
    this.isReentry = outcome.reentry ?? false;
    this.previousAbandoned = (outcome.abandoned ?? 'unknown') as Abandoned;
    loop().hold(this.#call, this);
  }

  /** Neither released nor lost, as far as was told. */
  get isLive(): boolean {
    return !this.#released && this.#reason === undefined;
  }

  get isReleased(): boolean {
    return this.#released;
  }

  get remaining(): number {
    return this.#released ? 0 : this.#native.remaining(this.#call);
  }

  get isWanted(): boolean {
    return !this.#released && this.#native.isWanted(this.#call);
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#reason !== undefined && !this.#controller.signal.aborted) {
      this.#controller.abort(this.#error(this.#reason));
    }
    return this.#controller.signal;
  }

  get lostPromise(): Promise<LossReason> {
    this.#lost ??= withResolvers();
    if (this.#reason !== undefined) this.#lost.resolve(this.#reason);
    return this.#lost.promise;
  }

  get wantedPromise(): Promise<void> {
    if (this.#wanted === undefined) {
      this.#wanted = withResolvers();
      if (this.isLive) this.#native.watch(this.#call);
    }
    return this.#wanted.promise;
  }

  /** Calls once when the hold is lost; at once when it is. */
  onLost(callback: (error: LostError) => void): void {
    if (this.#reason !== undefined) callback(this.#error(this.#reason));
    else this.#onLost = callback;
  }

  check(): bigint {
    if (this.remaining > 0) return this.token;
    if (this.#released && this.#reason === undefined) throw new NotHeldError(RELEASED);
    throw this.#error(this.#reason);
  }

  async extend(milliseconds: number): Promise<void> {
    await loop().ask((call) => this.#native.extend(call, this.#call, milliseconds));
  }

  get mode(): LockMode {
    return this.#entry?.mode ?? 'exclusive';
  }

  /** Has it in another mode from now on. */
  async convert(mode: LockMode): Promise<void> {
    const shared = mode === 'shared';
    try {
      const asked = loop().ask((call) => this.#native.convert(call, this.#call, shared));
      this.token = (await asked).token ?? this.token;
    } catch (error) {
      // It shares, all the same, and the store is told in the background.
      if (shared && error instanceof UnavailableError) this.#share(mode);
      throw error;
    }
    this.#share(mode);
  }

  #share(mode: LockMode): void {
    if (this.#entry) this.#entry.mode = mode;
  }

  ticket(): string {
    const outcome = outcomeOf(this.#call, this.#native.ticket(this.#call));
    const error = failure(outcome);
    if (error) throw error;
    return outcome.text ?? '';
  }

  release(): Promise<void> {
    const asked = loop().ask((call) => this.#native.release(call, this.#call));
    this.#over();
    return asked.then(nothing, (error) => {
      if (error instanceof LostError && error.reason !== undefined) this.#tell(error.reason, error);
      throw error;
    });
  }

  /** Gives the hold up without waiting. */
  discard(): void {
    if (this.#released) return;
    this.#native.discard(this.#call);
    this.#over();
  }

  lost(reason: LossReason): void {
    if (!this.isLive) return;
    loop().drop(this.#call);
    this.#ended(this);
    this.#tell(reason, this.#error(reason));
  }

  wanted(): void {
    this.#wanted?.resolve();
  }

  #over(): void {
    if (this.#released) return;
    if (this.#reason === undefined) {
      loop().drop(this.#call);
      this.#ended(this);
    }
    this.#released = true;
  }

  #tell(reason: LossReason, error: LostError): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    this.#lost?.resolve(reason);
    this.#controller?.abort(error);
    this.#onLost?.(error);
  }

  #error(reason: LossReason | undefined): LostError {
    const why = reason === undefined ? 'its validity ended' : WHY[reason];
    const name = JSON.stringify(this.name);
    // Only locks are counted.
    const what = this.#entry ? `the lock ${name} is` : `permits of the semaphore ${name} are`;
    return new LostError(`${what} lost: ${why}; stop, and acquire again`, { reason });
  }
}

/** `Promise.withResolvers`, which Node 20 does not have. */
interface PromiseWithResolvers<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
}

function withResolvers<T>(): PromiseWithResolvers<T> {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((fulfil) => {
    resolve = fulfil;
  });
  return { promise, resolve };
}

function nothing(): void {}

export function isLost(error: unknown): error is LostError {
  return error instanceof FencelockError && error.code === 'lost';
}
