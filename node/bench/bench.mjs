// Measures fencelock beside redlock, redis-semaphore and bare ioredis against one Redis server of
// its own, in rounds in which each has its turn, so that what disturbs the machine disturbs all.
// Prints tables as docs/benchmarks/figures/node.md has them.
//
//   node bench.mjs [ROUNDS [MILLISECONDS A TURN [CASE]]]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'fencelock';
import { Redis } from 'ioredis';
import { startRedis } from '../scripts/redis.mjs';
import { sides } from './sides.mjs';

const [rounds = 15, span = 300] = process.argv.slice(2, 4).map(Number);
const only = process.argv[4];
const TASKS = 64;

const CASES = {
  'one after the other': { tasks: 1, key: () => 'sequential' },
  '64 keys in parallel': { tasks: TASKS, key: (index) => `parallel-${index}` },
  '64 tasks on one key': { tasks: TASKS, key: () => 'contended', contended: true },
};

/** Runs tasks that repeat `pair` until the time is over; gives how many pairs, and in how long. */
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
  return { pairs, took: performance.now() - began };
}

/** How often the server has executed these commands since it was last asked, and in how many µs. */
async function executed(admin, commands) {
  const text = await admin.info('commandstats');
  await admin.config('RESETSTAT');
  const sum = { calls: 0, time: 0 };
  for (const [, name, calls, time] of text.matchAll(/^cmdstat_(\w+):calls=(\d+),usec=(\d+)/gm)) {
    if (!commands.includes(name)) continue;
    sum.calls += Number(calls);
    sum.time += Number(time);
  }
  return sum;
}

/** Least, median, greatest. */
function spread(numbers, digits = 2) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const shown = [sorted[0], sorted[sorted.length >> 1], sorted.at(-1)];
  const [least, middle, greatest] = shown.map((number) => number.toFixed(digits));
  return `${least} – **${middle}** – ${greatest}`;
}

const folder = mkdtempSync(join(tmpdir(), 'fencelock-bench-'));
const redis = await startRedis(folder);
const locks = await connect(redis.url);
const admin = new Redis(redis.port);
const peers = await sides(locks, redis.port);
try {
  for (const [what, { tasks, key, contended }] of Object.entries(CASES)) {
    if (only !== undefined && !what.includes(only)) continue;
    const taking = peers.list.filter(({ waits }) => waits || !contended);
    const results = taking.map(({ name, pair, sends = [] }) => ({
      name,
      pair,
      sends,
      rates: [],
      ratios: [],
      calls: [],
      times: [],
    }));
    for (let round = -1; round < rounds; round++) {
      const now = new Map();
      // Each begins in its turn, so that none always follows the same.
      for (let i = 0; i < results.length; i++) {
        const one = results[(i + Math.max(round, 0)) % results.length];
        await executed(admin, []);
        const { pairs, took } = await measure(tasks, (index) =>
          one.pair(`${one.name}/${key(index)}`),
        );
        const { calls, time } = await executed(admin, one.sends);
        now.set(one, (pairs * 1000) / took);
        if (round < 0) continue; // The first warms up.
        one.calls.push(calls / pairs);
        one.times.push(time / pairs);
      }
      if (round < 0) continue;
      for (const one of results) {
        one.rates.push(now.get(one));
        one.ratios.push(now.get(results[0]) / now.get(one));
      }
    }
    console.log(`\n#### ${what[0].toUpperCase()}${what.slice(1)}\n`);
    console.log('| | pairs a second | ours / this | commands a pair | server, µs a pair |');
    console.log('|---|---|---|---|---|');
    for (const { name, sends, rates, ratios, calls, times } of results) {
      const ratio = name === results[0].name ? '' : spread(ratios);
      const middle = (numbers) => (sends.length ? spread(numbers, 1).split('**')[1] : '');
      console.log(
        `| ${name} | ${spread(rates, 0)} | ${ratio} | ${middle(calls)} | ${middle(times)} |`,
      );
    }
  }
} finally {
  await locks.close();
  peers.close();
  admin.disconnect();
  await redis.stop();
  rmSync(folder, { recursive: true, force: true });
}
