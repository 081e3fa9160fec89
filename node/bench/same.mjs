// What our client sends for an uncontended pair, as ioredis would send it: the same scripts with the
// same keys and arguments, read off the server while our client sends them.

const CLAIM = 3_000_000;

/** The two commands of one pair of ours, each as a list of texts. */
async function watch(locks, redis) {
  const monitor = await redis.monitor();
  try {
    const key = 'watched';
    const seen = [];
    const done = new Promise((resolve) => {
      monitor.on('monitor', (_time, args, source) => {
        // What a script itself calls is shown as well.
        if (source === 'lua' || !args.some((word) => word.endsWith(`{${key}}`))) return;
        seen.push(args);
        if (seen.length === 6) resolve();
      });
    });
    // The first is different: the lock is not known yet.
    for (let i = 0; i < 3; i++) await (await locks.acquire(key)).release();
    await done;
    return { acquire: seen[4], release: seen[5], key };
  } finally {
    monitor.disconnect();
  }
}

/** Gives `pair(connection, key)`, which does for a key what our client does. */
export async function sameCommands(locks, redis) {
  const { acquire, release, key } = await watch(locks, redis);
  const [hold, client, lease, notAfter, floor, ...rest] = acquire.slice(5);
  const shown = `acquire ${acquire.join(' ')}\nrelease ${release.join(' ')}`;
  if (
    acquire[0].toLowerCase() !== 'evalsha' ||
    release[0].toLowerCase() !== 'evalsha' ||
    acquire[2] !== '2' ||
    release[2] !== '2' ||
    release[5] !== hold ||
    release.length !== 8 ||
    Math.abs(Number(notAfter) / 1000 - Date.now()) > 60_000 ||
    !(BigInt(release[6]) > BigInt(floor))
  ) {
    throw new Error(`our client sends other commands than this benchmark knows:\n${shown}`);
  }
  const [record, queue] = [acquire[3], acquire[4]];
  const named = (text, other) => text.replace(`{${key}}`, `{${other}}`);

  const keys = new Map();
  let holds = 0n;
  return async (connection, other) => {
    let known = keys.get(other);
    if (known === undefined) {
      known = { record: named(record, other), queue: named(queue, other), floor: 0 };
      keys.set(other, known);
    }
    const mine = (++holds).toString(16).padStart(hold.length, '0');
    const [, outcome, token] = await connection.evalsha(
      acquire[1],
      2,
      known.record,
      known.queue,
      mine,
      client,
      lease,
      Date.now() * 1000 + CLAIM,
      known.floor,
      ...rest,
    );
    if (outcome !== 0) throw new Error(`not granted: ${outcome}`);
    known.floor = token;
    await connection.evalsha(release[1], 2, known.record, known.queue, mine, token, release[7]);
  };
}
