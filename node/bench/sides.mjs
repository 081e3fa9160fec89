// Ours and its peers, each with a connection of its own as its users have.
import { Redis } from 'ioredis';
import { fencelock, LEASE, redlock, semaphore, setAndDelete } from './peers.mjs';
import { sameCommands } from './same.mjs';

const SCRIPTS = ['evalsha'];
const BARE = ['set', 'del'];

/** Takes a lock and gives it back. */
const pair = (lock, options) => async (key) => {
  const { acquire, release } = lock(key, options);
  await release(await acquire());
};

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

  const list = [
    { name: 'fencelock', waits: true, sends: SCRIPTS, pair: pair(fencelock(locks)) },
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
      pair: pair(setAndDelete(setBatched)),
    },
    { name: 'ioredis, SET and DEL', waits: true, sends: BARE, pair: pair(setAndDelete(setPlain)) },
    {
      name: 'redlock',
      waits: true,
      pair: pair(redlock(forRedlock, { retryDelay: 5, retryJitter: 5 })),
    },
    {
      name: 'redis-semaphore',
      waits: true,
      // 10 ms is its default.
      pair: pair(semaphore(forSemaphore), { lockTimeout: LEASE, retryInterval: 5 }),
    },
  ];
  return {
    list,
    close() {
      for (const one of connections) one.disconnect();
    },
  };
}
