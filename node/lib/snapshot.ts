import type { LockInfo as NativeLockInfo } from '../native/index.js';
import type { LockMode } from './lock.js';
import type { Tally } from './tally.js';

/** A hold or a request in a snapshot, as the standard has it. */
export interface LockInfo {
  name: string;
  mode: LockMode;
  /** The `clientId` of the client that holds or waits. */
  clientId: string;
}

/** What `query` gives. */
export interface LockManagerSnapshot {
  held: LockInfo[];
  pending: LockInfo[];
}

/** What this client has or waits for, which the store knows only in part. */
export interface Own {
  readonly clientId: string;
  readonly held: Tally;
  readonly pending: Tally;
}

/** So many waits of another client are listed at the most. */
const SHOWN = 1000;

/**
 * The snapshot of one lock; a semaphore has none. At the store a client has one entry for waiters that it
 * hands the lock on among. Those of this client are put in its first place, and behind the others' when it
 * has none; so are those of another client, as many as it said with its latest renewal, in the mode of
 * its entry. Behind a hold they have none: it hands the lock on among them for a moment, and then queues
 * with the rest of them.
 */
export function snapshot(
  name: string,
  info: NativeLockInfo | undefined,
  own: Own,
): LockManagerSnapshot {
  const entry = (mode: LockMode, clientId: string): LockInfo => ({ name, mode, clientId });
  const mine = (tally: Tally) => tally.modes(name).map((mode) => entry(mode, own.clientId));
  const within = (mode: LockMode, count = 0, clientId: string) =>
    Array.from({ length: Math.min(count, SHOWN) }, () => entry(mode, clientId));

  const others = (info?.holds ?? []).filter(
    ({ mode, clientId }) => isLocks(mode) && clientId !== own.clientId,
  );
  const held = mine(own.held);
  held.push(...others.map(({ mode, clientId }) => entry(mode as LockMode, clientId)));

  const pending: LockInfo[] = [];
  let waits = mine(own.pending);
  for (const { mode, clientId, localWaiters } of info?.waiters ?? []) {
    if (!isLocks(mode)) continue;
    if (clientId !== own.clientId) {
      pending.push(entry(mode, clientId), ...within(mode, localWaiters, clientId));
    } else {
      pending.push(...waits);
      waits = [];
    }
  }
  pending.push(...waits);
  for (const { mode, clientId, localWaiters } of others) {
    pending.push(...within(mode as LockMode, localWaiters, clientId));
  }
  return { held, pending };
}

function isLocks(mode: string): mode is LockMode {
  return mode === 'exclusive' || mode === 'shared';
}
