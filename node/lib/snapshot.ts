import type { LockInfo as NativeLockInfo } from '../native/index.js';
import type { LockMode } from './lock.js';

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
  readonly held: ReadonlyMap<string, number>;
  readonly pending: ReadonlyMap<string, number>;
}

/** So many waits of another client are listed at the most. */
const SHOWN = 1000;

/**
 * The snapshot of one lock. At the store a client has one entry for all of its waiters. Those of this
 * client are put in its place, and behind the others' when it has none; so are those of another client, as
 * many as it said with its latest renewal. Behind a hold they have none: it hands the lock on among them for
 * a moment, and then queues with the rest of them.
 */
export function snapshot(
  name: string,
  info: NativeLockInfo | undefined,
  own: Own,
): LockManagerSnapshot {
  const entry = (clientId: string): LockInfo => ({ name, mode: 'exclusive', clientId });
  const times = (count: number, clientId = own.clientId): LockInfo[] =>
    Array.from({ length: count }, () => entry(clientId));
  const within = (count = 0, clientId: string) => times(Math.min(count, SHOWN), clientId);

  const others = (info?.holds ?? []).filter((hold) => hold.clientId !== own.clientId);
  const held = times(own.held.get(name) ?? 0);
  held.push(...others.map((hold) => entry(hold.clientId)));

  const pending: LockInfo[] = [];
  let mine = times(own.pending.get(name) ?? 0);
  for (const waiter of info?.waiters ?? []) {
    if (waiter.clientId !== own.clientId) {
      pending.push(entry(waiter.clientId), ...within(waiter.localWaiters, waiter.clientId));
    } else {
      pending.push(...mine);
      mine = [];
    }
  }
  pending.push(...mine);
  for (const hold of others) pending.push(...within(hold.localWaiters, hold.clientId));
  return { held, pending };
}
