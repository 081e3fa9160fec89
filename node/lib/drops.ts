import { setTimeout } from 'node:timers';
import type { HoldState } from './state.js';

/** How long a guard is young. */
const YOUTH = 100;

/**
 * Guards that were dropped without a release: the last resort.
 *
 * The collector's registry costs more than all else that an acquire does in JavaScript, so a guard is
 * entered only when it has not been released after a moment. Until then it is kept alive here.
 */
class Drops {
  readonly #young = new Map<object, HoldState>();
  readonly #registry = new FinalizationRegistry<HoldState>(release);
  #looking = false;

  /** Releases the state of a guard that is collected before `forget` is called. */
  watch(guard: object, state: HoldState): void {
    this.#young.set(guard, state);
    if (this.#looking) return;
    this.#looking = true;
    setTimeout(this.#look, YOUTH).unref();
  }

  forget(guard: object, state: HoldState): void {
    if (!this.#young.delete(guard)) this.#registry.unregister(state);
  }

  readonly #look = (): void => {
    this.#looking = false;
    for (const [guard, state] of this.#young) this.#registry.register(guard, state, state);
    this.#young.clear();
  };
}

function release(state: HoldState): void {
  if (state.isReleased) return;
  const { isLive, name } = state;
  state.discard();
  if (!isLive) return;
  process.emitWarning(
    `a hold of the lock ${JSON.stringify(name)} was garbage collected without being released, and ` +
      'is released now: use `await using`, or call release() in a finally block',
    { type: 'FencelockWarning', code: 'FENCELOCK_DROPPED' },
  );
}

/** Those of this thread. */
export const drops = new Drops();
