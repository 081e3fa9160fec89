// Measures fencelock beside redlock, redis-semaphore and bare ioredis against one Redis server of
// its own, in rounds in which each has its turn, so that what disturbs the machine disturbs all.
//
//   node bench.mjs [ROUNDS [MILLISECONDS A TURN]]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'fencelock';
import { Redis } from 'ioredis';
import RedisSemaphore from 'redis-semaphore';
import Redlock from 'redlock';
import { startRedis } from '../scripts/redis.mjs';

const [rounds = 5, span = 1000] = process.argv.slice(2).map(Number);
const TASKS = 64;
const LEASE = 30_000;

/** Runs tasks that repeat `pair` until the time is over; gives pairs a second. */
async function measure(tasks, pair) {
  const began = performance.now();
  let pairs = 0;
  const task = async (index) => {
    while (performance.now() - began < span) {
      await pair(index);
      pairs++;
    }
  };
  await Promise.all(Array.from({ length: tasks }, (_, index) => task(index)));
  return (pairs * 1000) / (performance.now() - began);
}

const folder = mkdtempSync(join(tmpdir(), 'fencelock-bench-'));
const redis = await startRedis(folder);
const locks = await connect(redis.url);
const plain = new Redis(redis.port, { enableAutoPipelining: true });
// A connection each, as their users have.
const [forRedlock, forSemaphore] = [new Redis(redis.port), new Redis(redis.port)];
const redlock = new Redlock([forRedlock], { retryCount: -1, retryDelay: 5, retryJitter: 5 });
redlock.on('clientError', () => {});
const { Mutex } = RedisSemaphore;

/** The pairs of each side, on a key. */
const sides = {
  fencelock: async (key) => {
    const hold = await locks.acquire(key);
    await hold.release();
  },
  // Two commands that take a lock and give it back: no fencing, no renewal, no waiting.
  'bare ioredis': async (key) => {
    const value = `${Math.random()}`;
    while ((await plain.set(key, value, 'PX', LEASE, 'NX')) === null) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await plain.del(key);
  },
  redlock: async (key) => {
    const lock = await redlock.lock(key, LEASE);
    await lock.unlock();
  },
  // Asks again every 5 ms; 10 ms is its default.
  'redis-semaphore': async (key) => {
    const mutex = new Mutex(forSemaphore, key, {
      lockTimeout: LEASE,
      acquireTimeout: 600_000,
      retryInterval: 5,
    });
    await mutex.acquire();
    await mutex.release();
  },
};
const cases = {
  'one after the other': { tasks: 1, key: () => 'sequential' },
  '64 keys in parallel': { tasks: TASKS, key: (index) => `parallel-${index}` },
  '64 tasks on one key': { tasks: TASKS, key: () => 'contended' },
};

const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1] ?? 0;

try {
  const results = [];
  for (const [what, { tasks, key }] of Object.entries(cases)) {
    const rates = Object.fromEntries(Object.keys(sides).map((name) => [name, []]));
    const ratios = Object.fromEntries(Object.keys(sides).map((name) => [name, []]));
    for (let round = -1; round < rounds; round++) {
      const now = {};
      for (const [name, pair] of Object.entries(sides)) {
        now[name] = await measure(tasks, (index) => pair(`${name}/${key(index)}`));
      }
      if (round < 0) continue; // The first warms up.
      for (const name of Object.keys(sides)) {
        rates[name].push(now[name]);
        ratios[name].push(now.fencelock / now[name]);
      }
    }
    for (const name of Object.keys(sides)) {
      results.push({
        case: what,
        side: name,
        'pairs a second': Math.round(median(rates[name])),
        'fencelock is so many times as fast': Number(median(ratios[name]).toFixed(2)),
      });
    }
  }
  console.table(results);
} finally {
  await locks.close();
  for (const connection of [plain, forRedlock, forSemaphore]) connection.disconnect();
  await redis.stop();
  rmSync(folder, { recursive: true, force: true });
}
