import type { LossReason } from './errors.js';
import type { Abandoned } from './state.js';

/** All that a store knows of a lock, for people. Spans are milliseconds. */
export interface LockDetails {
  name: string;
  /** The explicit owner of the present exclusive holds. */
  owner?: string;
  /** The present holds: several when an explicit owner re-entered, of readers, and of a semaphore. */
  holds: HoldDetails[];
  /** The token of the present holds, the highest one where each has its own; or 0. */
  token: bigint;
  /** The highest token reserved so far. */
  lastToken: bigint;
  /** What the next holder will be told of its predecessor. */
  abandoned: Abandoned;
  /** Who waits, first come first; one entry for all waiters of a client, and 256 at the most. */
  waiters: WaiterDetails[];
  /**
   * How many wait in all: the whole queue, and who waits within the clients of the holds and waiters
   * that are shown, as far as that is known.
   */
  waiting: number;
}

/** What became of a break. */
export interface Broken {
  /** How many holds were ended; 0 when what was named holds nothing. */
  ended: number;
  /** The later token under which somebody else holds the lock; nothing was ended then. */
  changedHands: bigint | null;
}

/** How a hold shares a lock; `permits` is that of a semaphore. */
export type HoldMode = 'exclusive' | 'shared' | 'permits';

/** A hold, for people. */
export interface HoldDetails {
  id: string;
  clientId: string;
  /** The client's label. */
  label: string;
  /** What is left of the lease. */
  expiresIn: number;
  /** The lease that counts. */
  lease: number;
  /** How it shares the lock. */
  mode: HoldMode;
  /** How many permits it takes, of a semaphore. */
  permits?: number;
  token: bigint;
  /** The explicit owner, if it has one. */
  owner?: string;
  /** Handed over, and its holder not heard from yet. */
  claim: boolean;
  /**
   * How many wait within its client, which hands the lock on among them, as that said with its latest
   * acquire or renewal: up to a third of a lease old, and 65,535 at the most; exact for the client that
   * asks. Absent where it is unknown (ZooKeeper).
   */
  localWaiters?: number;
}

/** A waiter, for people. */
export interface WaiterDetails {
  id: string;
  clientId: string;
  /** The client's label. */
  label: string;
  /** The explicit owner, if it has one. */
  owner?: string;
  /** How long ago it was heard from. */
  heardAgo: number;
  /** Whether it would be passed over now. */
  silent: boolean;
  /** How it wants to share the lock. */
  mode: HoldMode;
  /** How many permits it wants, of a semaphore. */
  permits?: number;
  /** How many more wait within its client, behind this entry; as in `HoldDetails`. */
  localWaiters?: number;
}

/** What a client has counted since it was made. */
export interface Metrics {
  /** Holds granted. */
  grants: number;
  /** Of these, re-entries. */
  reentries: number;
  /** Of these, passed on within the client without asking the store. */
  local: number;
  /** Holds that ended before their release. */
  losses: number;
  /** The same, by reason. */
  lossesBy: Record<LossReason, number>;
  /** Renewals, each of each hold counted. */
  renewals: number;
  /** Renewals that failed and were tried again. */
  renewalFailures: number;
  /** Times the store said that it may not publish to this client. */
  publishFailures: number;
  /** Grants that arrived when their wait was over, and were given back. */
  strayGrants: number;
  /** Connections lost. */
  reconnects: number;
  /** Acquires that wait now. */
  waiting: number;
  /** All of it, with histograms, in Prometheus' text format. */
  prometheus: string;
}

/** What a store can and cannot do. */
export interface Capabilities {
  /** `memory`, `sqlite`, `redis`, … */
  store: string;
  /** Several processes may share it. */
  processes: boolean;
  /** Locks survive the end of every client. */
  durable: boolean;
  /** Explicit owners re-enter from another client. */
  owners: boolean;
  /** Explicit leases end at the store by themselves. */
  leases: boolean;
  /** `previousAbandoned` is known. */
  abandoned: boolean;
  /** Names are paths: slashes separate, no part is empty, and a lock does not lie below another. */
  paths: boolean;
  /** Locks can be shared: `mode: 'shared'`. */
  shared: boolean;
  /** It has semaphores. */
  permits: boolean;
}
