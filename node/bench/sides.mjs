// Ours and its peers, each with a connection of its own as its users have.
import { Redis } from 'ioredis';
import RedisSemaphore from 'redis-semaphore';
import Redlock from 'redlock';
import { sameCommands } from './same.mjs';

const LEASE = 30_000;
const SCRIPTS = ['evalsha'];
const BARE = ['set', 'del'];
const { Mutex } = RedisSemaphore;

/**
 * The sides, ours first: `pair(key)` takes a lock and gives it back; `waits` for one that is taken;
 * `sends` these commands.
 */
export async function sides(locks, port) {
  const connections = [];
  const connection = (options) => {
    const made = new Redis(port, options);
    connections.push(made);
    return made;
  };

  const batching = { enableAutoPipelining: true };
  const [batched, plain, setBatched, setPlain] = [batching, {}, batching, {}].map(connection);
  const [forRedlock, forSemaphore, watching] = [{}, {}, {}].map(connection);
  const same = await sameCommands(locks, watching);
  const redlock = new Redlock([forRedlock], { retryCount: -1, retryDelay: 5, retryJitter: 5 });
  redlock.on('clientError', () => {});

  // No fencing, no renewal, no queue: asks again each millisecond.
  const setAndDelete = (redis) => async (key) => {
    const value = `${Math.random()}`;
    while ((await redis.set(key, value, 'PX', LEASE, 'NX')) === null) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await redis.del(key);
  };

  const list = [
    {
      name: 'fencelock',
      waits: true,
      sends: SCRIPTS,
      pair: async (key) => {
        const hold = await locks.acquire(key);
        await hold.release();
      },
    },
    {
      name: 'ioredis, the same scripts, batched',
      sends: SCRIPTS,
      pair: (key) => same(batched, key),
    },
    { name: 'ioredis, the same scripts', sends: SCRIPTS, pair: (key) => same(plain, key) },
    {
      name: 'ioredis, SET and DEL, batched',
      waits: true,
      sends: BARE,
      pair: setAndDelete(setBatched),
    },
    { name: 'ioredis, SET and DEL', waits: true, sends: BARE, pair: setAndDelete(setPlain) },
    {
      name: 'redlock',
      waits: true,
      pair: async (key) => {
        const lock = await redlock.lock(key, LEASE);
        await lock.unlock();
      },
    },
    {
      name: 'redis-semaphore',
      waits: true,
      pair: async (key) => {
        const mutex = new Mutex(forSemaphore, key, {
          lockTimeout: LEASE,
          acquireTimeout: 600_000,
          // 10 ms is its default.
          retryInterval: 5,
        });
        await mutex.acquire();
        await mutex.release();
      },
    },
  ];
  return {
    list,
    close() {
      for (const one of connections) one.disconnect();
    },
  };
}
