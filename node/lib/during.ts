import type { LostError } from './errors.js';
import { type HoldState, isLost } from './state.js';

/**
 * Calls back with what is held, and releases it when that is over. A loss rejects at once, as `told`
 * has it, as the standard does for a lock that was stolen: what settles later changes nothing.
 */
export function during<T>(
  state: HoldState,
  callback: () => T,
  told: (error: LostError) => unknown = (error) => error,
): Promise<Awaited<T>> {
  return new Promise((resolve, reject) => {
    state.onLost((error) => reject(told(error)));
    const waiting = new Promise<Awaited<T>>((settle) => settle(callback() as Awaited<T>));
    const release = async () => {
      try {
        await state.release();
      } catch (error) {
        // The store did not answer in time: the hold was valid until now, and its release goes on.
        if (isLost(error)) throw told(error);
      }
    };
    waiting.then(
      async (value) => {
        try {
          await release();
          resolve(value);
        } catch (error) {
          reject(error);
        }
      },
      async (error) => {
        await release().catch(() => {});
        reject(error);
      },
    );
  });
}
