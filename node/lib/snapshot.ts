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

/**
 * The snapshot of one lock. At the store a client has one entry for all of its waiters, so those of
 * this client are put in its place, and behind the others' when it has none.
 */
export function snapshot(
  name: string,
  info: NativeLockInfo | undefined,
  own: Own,
): LockManagerSnapshot {
  const entry = (clientId: string): LockInfo => ({ name, mode: 'exclusive', clientId });
  const times = (count: number): LockInfo[] =>
    Array.from({ length: count }, () => entry(own.clientId));

  const others = (info?.holds ?? []).filter((hold) => hold.clientId !== own.clientId);
  const held = times(own.held.get(name) ?? 0);
  held.push(...others.map((hold) => entry(hold.clientId)));

  const pending: LockInfo[] = [];
  let mine = times(own.pending.get(name) ?? 0);
  for (const waiter of info?.waiters ?? []) {
    if (waiter.clientId !== own.clientId) {
      pending.push(entry(waiter.clientId));
    } else {
      pending.push(...mine);
      mine = [];
    }
  }
  pending.push(...mine);
  return { held, pending };
}
