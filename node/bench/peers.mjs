// The libraries, each as `lock(key, options)`, which gives how to acquire and to release.
import { setTimeout as sleep } from 'node:timers/promises';
import RedisSemaphore from 'redis-semaphore';
import Redlock from 'redlock';

export const LEASE = 30_000;
const { Mutex } = RedisSemaphore;

export const fencelock = (locks) => (key, options) => ({
  acquire: () => locks.acquire(key, options),
  release: (hold) => hold.release(),
});

/** No fencing, no renewal, no queue: asks again each millisecond. */
export const setAndDelete =
  (redis) =>
  (key, { lease = LEASE } = {}) => ({
    async acquire() {
      const value = `${Math.random()}`;
      while ((await redis.set(key, value, 'PX', lease, 'NX')) === null) await sleep(1);
    },
    release: () => redis.del(key),
  });

/** Of one server, or of all of a quorum. Nobody has a lease of redlock's without saying how long. */
export function redlock(redis, settings) {
  const all = new Redlock([redis].flat(), { retryCount: -1, ...settings });
  return (key, { lease = LEASE } = {}) => ({
    acquire: () => all.lock(key, lease),
    release: (lock) => lock.unlock(),
  });
}

export const semaphore = (redis) => (key, options) => {
  const mutex = new Mutex(redis, key, { acquireTimeout: Number.POSITIVE_INFINITY, ...options });
  return { acquire: () => mutex.acquire(), release: () => mutex.release() };
};
