// Lets one library work on one Redis server, as bench/drivers/README.md says.
//
//   node driver.mjs LIBRARY URL
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { fencelock, LEASE, redlock, semaphore, setAndDelete } from './peers.mjs';

const STOCK = 'bench:stock';
const TAKE_ONE = `
local left = tonumber(redis.call('GET', KEYS[1]))
if left > 0 then redis.call('DECR', KEYS[1]) end
return left
`;
const [name, url] = process.argv.slice(2);
// For redlock those of all servers of a quorum, with commas between.
const servers = (name === 'redlock' ? url.split(',') : [url]).map((each) => new Redis(each));
for (const server of servers) await server.ping();
const [redis] = servers;

const lasting = (lease) => ({ lease });
// How one gets a lock, with what its documentation recommends, and with a lease that is not renewed.
const LIBRARIES = {
  // The others are measured where ours is not built, too.
  fencelock: async () => {
    const { connect } = await import('fencelock');
    return { lock: fencelock(await connect(url)), lasting, reenters: true };
  },
  redlock: () => ({ lock: redlock(servers), lasting }),
  'redis-semaphore': () => ({
    lock: semaphore(redis),
    usual: { lockTimeout: LEASE },
    lasting: (lockTimeout) => ({ lockTimeout, refreshInterval: 0 }),
  }),
  ioredis: () => ({ lock: setAndDelete(redis), lasting, bare: true }),
};
const library = await LIBRARIES[name]();
const { version } = createRequire(import.meta.url)(`${name}/package.json`);

const now = () => process.hrtime.bigint();
const after = (ms) => now() + BigInt(ms) * 1_000_000n;
const say = (...words) => process.stdout.write(`${words.join(' ')}\n`);
const times = (count, make) => Array.from({ length: Number(count) }, (_, index) => make(index));
const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);
const usual = (key) => library.lock(key, library.usual);

/** Lets a caller for each lock work; gives what each had done, and how long all took. */
async function together(locks, work) {
  const began = now();
  return [await Promise.all(locks.map(work)), now() - began];
}

/** Acquires and releases until the time is over. */
const repeat = (ms) => async (lock) => {
  const end = after(ms);
  const spans = [];
  let longest = 0;
  for (let asked = now(), next; asked < end; asked = next) {
    const hold = await lock.acquire();
    longest = Math.max(longest, Number(now() - asked));
    await lock.release(hold);
    next = now();
    spans.push(Number(next - asked));
  }
  return { count: spans.length, spans, longest };
};

async function trade(lock) {
  for (let sold = 0; ; sold++) {
    const hold = await lock.acquire();
    const left = Number(await redis.get(STOCK));
    if (left > 0) await redis.set(STOCK, left - 1);
    await lock.release(hold);
    if (left <= 0) return sold;
  }
}

redis.defineCommand('takeOne', { numberOfKeys: 1, lua: TAKE_ONE });
async function take() {
  let sold = 0;
  while ((await redis.takeOne(STOCK)) > 0) sold++;
  return sold;
}

/** What ends the holds of `acquire`. */
const leaving = new Map();

/** Each gives its answer, where it has not given it itself. */
const ORDERS = {
  async pairs(key, ms) {
    const [[{ count, spans }], took] = await together([usual(key)], repeat(ms));
    return ['did', count, took, spans.sort((a, b) => a - b)[Math.floor(count / 2)]];
  },

  async keys(callers, key, ms) {
    const locks = times(callers, (index) => usual(`${key}-${index}`));
    const [done, took] = await together(locks, repeat(ms));
    return ['did', sum(done.map(({ count }) => count)), took];
  },

  async hot(callers, key, ms) {
    const [done, took] = await together(
      times(callers, () => usual(key)),
      repeat(ms),
    );
    const counts = done.map(({ count }) => count);
    const longest = Math.max(...done.map(({ longest }) => longest));
    return ['did', sum(counts), took, Math.min(...counts), Math.max(...counts), longest];
  },

  async reenter(key, held, ms) {
    if (!library.reenters) return ['cannot'];
    const locks = times(held, (index) =>
      library.lock(index === 0 ? key : `${key}-${index}`, { owner: `${process.pid}` }),
    );
    const holds = await Promise.all(locks.map(({ acquire }) => acquire()));
    const [[{ count }], took] = await together([locks[0]], repeat(ms));
    await Promise.all(holds.map((hold, index) => locks[index].release(hold)));
    return ['did', count, took];
  },

  async acquire(tag, key, lease) {
    const lock = library.lock(key, lease === 'default' ? {} : library.lasting(Number(lease)));
    const left = new Promise((leave) => leaving.set(tag, leave));
    say('asked', tag);
    const hold = await lock.acquire();
    say('granted', tag, now());
    await left;
    const at = now();
    await lock.release(hold);
    return ['released', tag, at];
  },

  release(tag) {
    leaving.get(tag)();
    leaving.delete(tag);
  },

  wait(count, key) {
    for (const lock of times(count, () => usual(key))) lock.acquire();
    return ['waiting', count];
  },

  async sell(callers, key) {
    const locks = times(callers, () => usual(key));
    const [sold, took] = await together(locks, library.bare ? take : trade);
    return ['sold', sum(sold), took];
  },
};

say('ready', version);
createInterface({ input: process.stdin })
  .on('line', async (line) => {
    const [order, ...words] = line.split(' ');
    const answer = await ORDERS[order](...words);
    if (answer) say(...answer);
  })
  // Whatever waits.
  .on('close', () => process.exit());
