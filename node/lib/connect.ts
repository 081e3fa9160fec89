import { loop } from './loop.js';
import { LockManager } from './manager.js';
import { type ConnectOptions, settings, text } from './options.js';

/**
 * Connects to a store, and waits until it has answered.
 *
 * ```ts
 * const locks = await connect('redis://localhost');
 * await locks.request('stock/coupon-7', async (lock) => {
 *   await ledger.write(lock.token, 'one sold');
 * });
 * ```
 *
 * `memory:` or `memory:name` is this process; `sqlite:path` the processes of one machine;
 * `redis://`, `rediss://` and `redis+unix://` a Redis server; `zk://host,host/chroot` a ZooKeeper
 * ensemble.
 *
 * Rejects with `InvalidArgumentError` for a URL or option that cannot be read, `UnsupportedError`
 * for a store that is not there, `MisconfiguredError` at once for a wrong password and the like,
 * `UnavailableError` when the store did not answer within the connect timeout.
 */
export async function connect(
  url: string | URL,
  options: ConnectOptions = {},
): Promise<LockManager> {
  if (typeof url !== 'string' && !(url instanceof URL)) {
    throw new TypeError('the URL of a store must be a string or a URL');
  }
  return LockManager.wrap(await loop().connect(text('the URL', `${url}`), settings(options)));
}
