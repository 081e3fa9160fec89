import { clearInterval, setImmediate, setInterval } from 'node:timers';
import type { Ended, Environment, NativeClient, Outcome } from '../native/index.js';
import { errorOf, type FencelockError, type LossReason, UnsupportedError } from './errors.js';

/** What hears of a hold's fate. */
export interface HoldEvents {
  lost(reason: LossReason): void;
  wanted(): void;
}

type Begin = (call: number) => Ended | null;
type Settle = (outcome: Outcome) => void;

// The real one, since tests of a service may put a false one in its place later.
const { nextTick } = process;

/** How many numbers tell an outcome, and what they are: see the native half's `News::pack`. */
const PACKED = 3;
const TOLD = 0;
const DONE = 1;
const ABANDONED = ['no', 'yes', 'unknown'];

/**
 * How many outcomes are settled before timers and I/O have their turn. Calls that lead to calls that
 * end without waiting, as on a store in memory or by a hand-off of a lock within the process, would
 * keep them waiting.
 */
const BUDGET = 64;

/** The longest span a timer can have. */
const FOR_EVER = 2 ** 31 - 1;

/**
 * This thread's event loop, as the native half sees it: calls that have not ended, and holds that
 * may be lost. While there is either, the loop is kept alive.
 *
 * It rests while there is neither and every client is closed: then it has no descriptor, no timer and
 * no listener, so that a module that is evaluated again, as test runners do, leaves nothing.
 */
class Loop {
  readonly #environment: Environment;
  readonly #calls = new Map<number, Settle>();
  readonly #holds = new Map<number, HoldEvents>();
  /** Clients that nobody closed, until they are collected. */
  readonly #managers = new FinalizationRegistry<void>(() => this.#closed());
  /** Keeps the event loop alive while it is referenced; none while this rests. */
  #alive: NodeJS.Timeout | undefined;
  #clients = 0;
  #busy = 0;
  #last = 0;
  #ticking = false;
  /** Outcomes settled since the event loop was waited for, other than those that came with I/O. */
  #settled = 0;
  #waiting = false;
  /** Of calls that ended at once, when too many had. */
  #ended: Outcome[] = [];

  constructor(native: typeof import('../native/index.js')) {
    this.#environment = new native.Environment(drives());
  }

  /** A client is connected. */
  opened(manager: object): void {
    this.#clients++;
    this.#managers.register(manager, undefined, manager);
  }

  /** A client is closed; harmless when said twice. */
  closed(manager: object): void {
    if (this.#managers.unregister(manager)) this.#closed();
  }

  #closed(): void {
    this.#clients--;
    this.#tire();
  }

  #wake(): void {
    // Of the module, since tests of a service may have put a false one in the place of the global.
    this.#alive = setInterval(() => {}, FOR_EVER).unref();
    this.#environment.open((batch) => this.#dispatch(batch));
    process.on('exit', this.#exit);
  }

  /** Comes to rest when the event loop has turned and there is still nothing to do. */
  #tire(): void {
    if (this.#clients > 0 || this.#busy > 0) return;
    setImmediate(() => {
      if (this.#clients > 0 || this.#busy > 0 || this.#alive === undefined) return;
      if (!this.#environment.rest()) return;
      clearInterval(this.#alive);
      this.#alive = undefined;
      process.off('exit', this.#exit);
    });
  }

  // Node does not run the environment's cleanup when `process.exit` is called in the main thread.
  readonly #exit = (): void => this.#environment.shutdown();

  /**
   * Begins a call. `settle` gets its outcome: before this returns, or later. Gives the call's number.
   * What all calls of a tick send leaves together at its end.
   */
  run(begin: Begin, settle: Settle): number {
    const call = ++this.#last;
    if (this.#alive === undefined) this.#wake();
    this.enter();
    if (!this.#ticking) {
      this.#ticking = true;
      nextTick(this.#endTick);
    }
    let ended: Ended | null;
    try {
      ended = begin(call);
    } catch (error) {
      this.leave();
      throw error;
    }
    if (ended !== null && this.#settled < BUDGET) {
      this.#settled++;
      this.leave();
      settle(outcomeOf(call, ended));
      return call;
    }
    this.#calls.set(call, settle);
    if (ended !== null) {
      this.#ended.push(outcomeOf(call, ended));
      this.#turn();
    }
    return call;
  }

  /** As `run`, as a promise of the outcome. */
  ask(begin: Begin): Promise<Outcome> {
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
    if (this.#busy++ === 0) this.#alive?.ref();
  }

  leave(): void {
    if (--this.#busy > 0) return;
    this.#alive?.unref();
    this.#tire();
  }

  readonly #endTick = (): void => {
    this.#ticking = false;
    if (this.#settled < BUDGET) {
      this.#take();
      return;
    }
    this.#environment.endTick(false);
    this.#turn();
  };

  /** Lets the event loop turn, and goes on. */
  #turn(): void {
    if (this.#waiting) return;
    this.#waiting = true;
    setImmediate(() => {
      this.#waiting = false;
      this.#settled = 0;
      const ended = this.#ended;
      this.#ended = [];
      for (const outcome of ended) this.#settle(outcome);
      this.#take();
    });
  }

  #take(): void {
    const batch = this.#environment.endTick(true);
    if (batch === null) return;
    this.#settled += batch.length / PACKED;
    this.#dispatch(batch);
  }

  #dispatch(batch: number[]): void {
    let told: Outcome[] | undefined;
    let next = 0;
    for (let at = 0; at < batch.length; at += PACKED) {
      const call = batch[at] as number;
      const what = batch[at + 1] as number;
      if (what === TOLD) {
        told ??= this.#environment.told();
        this.#tell(told[next++] as Outcome);
      } else if (what === DONE) {
        this.#settle({ call, code: 0 });
      } else {
        this.#settle({
          call,
          code: 0,
          token: BigInt(batch[at + 2] as number),
          reentry: (what & 1) === 1,
          abandoned: ABANDONED[(what >> 1) & 3] as string,
        });
      }
    }
  }

  #tell(outcome: Outcome): void {
    if (outcome.lost !== undefined) {
      this.#holds.get(outcome.call)?.lost(outcome.lost as LossReason);
    } else if (outcome.wanted !== undefined) {
      this.#holds.get(outcome.call)?.wanted();
    } else {
      this.#settle(outcome);
    }
  }

  #settle(outcome: Outcome): void {
    const settle = this.#calls.get(outcome.call);
    if (settle === undefined) return;
    this.#calls.delete(outcome.call);
    this.leave();
    settle(outcome);
  }
}

/** The outcome of a call that ended at once. */
export function outcomeOf(call: number, ended: Ended): Outcome {
  switch (typeof ended) {
    case 'boolean':
      return { call, code: 0 };
    case 'number':
      return { call, code: 0, token: BigInt(ended), reentry: false, abandoned: 'no' };
    default:
      return ended;
  }
}

/**
 * Whether the event loop is libuv's own: Bun exports libuv's functions as well, but they end the
 * process, and Deno has another loop.
 */
function drives(): boolean {
  return process.versions.bun === undefined && process.versions.deno === undefined;
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
