import { randomUUID } from 'node:crypto';
import { after, before, describe, type TestContext } from 'node:test';
import { type ConnectOptions, connect, type LockManager } from 'fencelock';

/** The URLs of the stores to test on; scripts/test starts their servers. */
const URLS = (process.env.FENCELOCK_TEST_STORES ?? 'memory:').split(' ').filter(Boolean);

export interface Store {
  readonly url: string;
  readonly scheme: string;
  /** Another client of the store; closed after the tests. */
  connect(options?: ConnectOptions): Promise<LockManager>;
  /** The client that the tests of the suite share. */
  readonly locks: LockManager;
}

/** Describes the same tests for every store, or for those that `wanted` likes. */
export function onEachStore(
  what: string,
  tests: (store: Store) => void,
  wanted: (scheme: string) => boolean = () => true,
): void {
  for (const url of URLS) {
    const scheme = url.slice(0, url.indexOf(':'));
    if (!wanted(scheme)) continue;
    describe(`${what} (${scheme})`, () => {
      const clients: LockManager[] = [];
      let locks: LockManager | undefined;
      const another = async (options: ConnectOptions = {}) => {
        const client = await connect(url, options);
        clients.push(client);
        return client;
      };
      before(async () => {
        locks = await another();
      });
      after(() => Promise.all(clients.map((client) => client.close())));
      tests({
        url,
        scheme,
        connect: another,
        get locks() {
          if (locks === undefined) throw new Error('not connected yet');
          return locks;
        },
      });
    });
  }
}

/** Skips a test where the store has no shared locks and semaphores. */
export function shares(store: Store, context: TestContext): boolean {
  const { shared, permits, store: kind } = store.locks.capabilities;
  if (!(shared && permits)) context.skip(`${kind} has no shared locks and semaphores`);
  return shared && permits;
}

/** Whether other processes see what this one holds. */
export const isShared = (scheme: string) => scheme !== 'memory';

export const unique = (what = 'test') => `${what}/${randomUUID()}`;

/** Lets the event loop turn. */
export const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

const BOUND = 30_000;

/** Waits until a condition holds. */
export async function eventually(what: string, holds: () => boolean | Promise<boolean>) {
  const deadline = Date.now() + BOUND;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`not within ${BOUND} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A promise with its ends. */
export function deferred<T = void>() {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** What a promise rejects with; fails when it does not. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`did not reject, but gave ${String(value)}`);
}
