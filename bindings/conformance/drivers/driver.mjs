// The driver of Node: says what `fencelock` says. See ../README.md for the protocol.
// node driver.mjs PACKAGE, where PACKAGE is the module to load.
import { createInterface } from 'node:readline';
import { writeSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const { connect } = await import(pathToFileURL(process.argv[2]).href);
const clients = new Map();
const holds = new Map();
const waits = new Map();

const now = () => process.hrtime.bigint();
const words = (fields) =>
  Object.entries(fields)
    .map(([key, value]) => ` ${key}=${String(value).replaceAll(' ', '_')}`)
    .join('');
const say = (event, tag, fields = {}) =>
  writeSync(1, `${now()} ${Date.now()}000000 ${event} ${tag}${words(fields)}\n`);
const failed = (event, tag, error) => say(event, tag, { kind: error.code, why: error.message });

/** How far a hold is trusted, by a clock that was read before. */
function trust(hold) {
  const at = now();
  return { until: at + BigInt(Math.floor(hold.remaining * 1e6)), valid: hold.isValid };
}

function options(given) {
  const it = Object.fromEntries(given.map((word) => word.split('=')));
  const span = (text) => Number.parseInt(text, 10);
  const named = { try: 0, forever: undefined, endless: Number.POSITIVE_INFINITY, undefined: undefined };
  const wait = it.wait in named ? named[it.wait] : span(it.wait);
  return { wait, lease: it.lease && span(it.lease), owner: it.owner, mode: it.mode, adopt: it.adopt === 'yes' };
}

/** Begins an acquire as it was asked for, of a lock or of permits. */
function begun(client, lock, more, signal) {
  const { mode, adopt, ...how } = { ...options(more), signal };
  const [, count, of] = mode?.match(/^permits:(.+)\/(.+)$/) ?? [];
  if (of === undefined) return client.acquire(lock, { ...how, mode });
  return client.semaphore(lock, Number(of), { adopt }).acquire(Number(count), how);
}

async function acquire(tag, begin) {
  const wait = new AbortController();
  waits.set(tag, wait);
  try {
    const hold = await begin(wait.signal);
    holds.set(tag, hold);
    const { name: lock, token, previousAbandoned: abandoned = 'no', isReentry: reentry = false } = hold;
    say('granted', tag, { lock, token, abandoned, reentry, ...trust(hold) });
    hold.lost.then((reason) => say('lost', tag, { reason }));
  } catch (error) {
    if (error.name === 'AbortError') say('failed', tag, { kind: 'cancelled' });
    else failed('failed', tag, error);
  } finally {
    waits.delete(tag);
  }
}

async function converted(tag, hold, done) {
  try {
    await done;
    say('converted', tag, { token: hold.token, mode: hold.mode });
  } catch (error) {
    failed('unconverted', tag, error);
  }
}

const NAMES = { empty: '', nul: 'a\0b', long: 'x'.repeat(513), half: 'half \ud83d' };
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

const verbs = {
  async open(tag, [url]) {
    try {
      clients.set(tag, await connect(url));
      say('opened', tag, { id: clients.get(tag).clientId, knows: 'modes,conversions,resize' });
    } catch (error) {
      failed('refused', tag, error);
    }
  },
  acquire: (tag, [client, lock, ...more]) =>
    acquire(tag, async (signal) => begun(clients.get(client), lock, more, signal)),
  attach: (tag, [client, ticket]) =>
    acquire(tag, (signal) => clients.get(client).attach(ticket, { signal })),
  cancel: (tag) => waits.get(tag)?.abort(),
  look: (tag) => holds.has(tag) && say('seen', tag, trust(holds.get(tag))),
  ticket(tag) {
    try {
      say('ticket', tag, { text: holds.get(tag).ticket() });
    } catch (error) {
      failed('failed', tag, error);
    }
  },
  async downgrade(tag) {
    const hold = holds.get(tag);
    say('downgrade-asked', tag, trust(hold));
    await converted(tag, hold, hold.downgrade());
  },
  upgrade: (tag) => converted(tag, holds.get(tag), holds.get(tag).tryUpgrade()),
  async release(tag) {
    const hold = holds.get(tag);
    if (!holds.delete(tag)) return;
    say('release-asked', tag, trust(hold));
    try {
      await hold.release();
      say('released', tag);
    } catch (error) {
      failed('unreleased', tag, error);
    }
  },
  drop(tag) {
    say('drop-asked', tag, trust(holds.get(tag)));
    holds.delete(tag);
    say('dropped', tag);
    for (let at = 0; at < 100; at++) setTimeout(collect, at * 100).unref();
  },
  async resize(tag, [client, lock, of]) {
    say('resize-asked', tag, { lock, of });
    try {
      const used = await clients.get(client).semaphore(lock, Number(of)).resize(Number(of));
      say('resized', tag, { used: used ? 'yes' : 'no' });
    } catch (error) {
      failed('failed', tag, error);
    }
  },
  async list(tag, [client, limit]) {
    try {
      say('listed', tag, { count: (await clients.get(client).list({ limit: Number(limit) })).length });
    } catch (error) {
      failed('failed', tag, error);
    }
  },
  name: (tag, [client, which]) => acquire(tag, () => clients.get(client).acquire(NAMES[which])),
  leave: () => process.exit(0),
  async close(tag, [word]) {
    const limit = word?.slice('drain='.length);
    const drain = limit && (limit === 'endless' ? Number.POSITIVE_INFINITY : Number.parseInt(limit, 10));
    try {
      say('closed', tag, { all: (await clients.get(tag).close({ drain })) ? 'yes' : 'no' });
    } catch (error) {
      failed('failed', tag, error);
    }
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, tag, ...rest] = line.split(' ');
  if (verb === 'acquire' || verb === 'attach') {
    const given = Object.fromEntries(rest.slice(2).map((word) => word.split('=')));
    say('asked', tag, { client: rest[0], lock: rest[1], ...given });
  }
  verbs[verb]?.(tag, rest);
}
process.kill(process.pid, 'SIGKILL'); // Whoever tells us what to do has gone.
