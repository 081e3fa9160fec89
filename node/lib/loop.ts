import { setInterval } from 'node:timers';
import type { Environment, NativeClient, Outcome } from '../native/index.js';
import { errorOf, type FencelockError, type LossReason, UnsupportedError } from './errors.js';

/** What hears of a hold's fate. */
export interface HoldEvents {
  lost(reason: LossReason): void;
  wanted(): void;
}

type Settle = (outcome: Outcome) => void;

/** The longest span a timer can have. */
const FOR_EVER = 2 ** 31 - 1;

/**
 * This thread's event loop, as the native half sees it: calls that have not ended, and holds that
 * may be lost. While there is either, the loop is kept alive.
 */
class Loop {
  readonly #environment: Environment;
  readonly #calls = new Map<number, Settle>();
  readonly #holds = new Map<number, HoldEvents>();
  readonly #alive: NodeJS.Timeout;
  #busy = 0;
  #last = 0;

  constructor(native: typeof import('../native/index.js')) {
    // Of the module, since tests of a service may have put a false one in the place of the global.
    this.#alive = setInterval(() => {}, FOR_EVER).unref();
    this.#environment = new native.Environment((outcomes) => this.#dispatch(outcomes));
    // Node does not run the environment's cleanup when `process.exit` is called in the main thread.
    process.on('exit', () => this.#environment.shutdown());
  }

  /**
   * Begins a call. `settle` gets its outcome: before this returns when it ended at once, otherwise
   * from the event loop. Gives the call's number.
   */
  run(begin: (call: number) => Outcome | null, settle: Settle): number {
    const call = ++this.#last;
    this.enter();
    let outcome: Outcome | null;
    try {
      outcome = begin(call);
    } catch (error) {
      this.leave();
      throw error;
    }
    if (outcome === null) {
      this.#calls.set(call, settle);
    } else {
      this.leave();
      settle(outcome);
    }
    return call;
  }

  /** As `run`, as a promise of the outcome. */
  ask(begin: (call: number) => Outcome | null): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.run(begin, (outcome) => {
        const error = failure(outcome);
        if (error) reject(error);
        else resolve(outcome);
      });
    });
  }

  connect(url: string, settings: Parameters<Environment['connect']>[2]): Promise<NativeClient> {
    let connecting = 0;
    return this.ask((call) => {
      connecting = call;
      return this.#environment.connect(call, url, settings);
    }).then(() => this.#environment.connected(connecting));
  }

  /** A hold is live: it keeps the loop alive, and hears what happens to it. */
  hold(call: number, events: HoldEvents): void {
    this.#holds.set(call, events);
    this.enter();
  }

  /** A hold is over. */
  drop(call: number): void {
    if (this.#holds.delete(call)) this.leave();
  }

  enter(): void {
    if (this.#busy++ === 0) this.#alive.ref();
  }

  leave(): void {
    if (--this.#busy === 0) this.#alive.unref();
  }

  #dispatch(outcomes: Outcome[]): void {
    for (const outcome of outcomes) {
      if (outcome.lost !== undefined) {
        this.#holds.get(outcome.call)?.lost(outcome.lost as LossReason);
      } else if (outcome.wanted !== undefined) {
        this.#holds.get(outcome.call)?.wanted();
      } else {
        const settle = this.#calls.get(outcome.call);
        if (settle === undefined) continue;
        this.#calls.delete(outcome.call);
        this.leave();
        settle(outcome);
      }
    }
  }
}

/** The error of an outcome that has one. */
export function failure(outcome: Outcome): FencelockError | undefined {
  if (outcome.code === 0) return undefined;
  return errorOf(outcome.code, outcome.message ?? '', outcome.reason as LossReason | undefined);
}

let current: Loop | undefined;

/** This thread's loop. The native half is loaded when it is first needed. */
export function loop(): Loop {
  if (current === undefined) {
    let native: typeof import('../native/index.js');
    try {
      native = require('../native/index.js');
    } catch (cause) {
      throw new UnsupportedError(
        `there is no native library of fencelock for ${process.platform} ${process.arch}, or it ` +
          'was not installed: install again without leaving out optional dependencies',
        { cause },
      );
    }
    current = new Loop(native);
  }
  return current;
}

export type { Loop };
