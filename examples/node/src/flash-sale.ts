// A flash sale: several workers sell the same few coupons, first without a lock, then with one.
//
//   node flash-sale.js [URL]
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { connect } from 'fencelock';
import { Ledger } from './ledger.js';

const COUPONS = 40;
const WORKERS = 4;
const BUYERS = 20;

interface Shift {
  url: string;
  folder: string;
  name: string;
  lock: boolean;
}

/** What one worker does: its customers come all at once. Gives how many were told that they bought. */
async function shift({ url, folder, name, lock }: Shift): Promise<number> {
  await using locks = await connect(url);
  const ledger = new Ledger(folder);
  const customers = Array.from({ length: BUYERS }, (_, i) => {
    const buyer = `${locks.clientId}/${i}`;
    return lock
      ? locks.request(name, (held) => ledger.sell(buyer, held.token))
      : ledger.sell(buyer);
  });
  return (await Promise.all(customers)).filter((left) => left !== undefined).length;
}

/** Sells all coupons with several workers; gives how many customers think that they have one. */
export async function sale(url: string, lock: boolean): Promise<{ told: number; left: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'flash-sale-'));
  try {
    const ledger = await Ledger.create(folder, COUPONS);
    const name = `coupons/${basename(folder)}`;
    const shifts = Array.from({ length: WORKERS }, () => {
      const worker = new Worker(__filename, { workerData: { url, folder, name, lock } });
      return new Promise<number>((resolve, reject) => {
        worker.once('message', resolve);
        worker.once('error', reject);
      });
    });
    const told = (await Promise.all(shifts)).reduce((sum, count) => sum + count, 0);
    return { told, left: (await ledger.read()).left };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** A holder that is paused beyond its lease, and writes all the same: gives why it may not. */
export async function paused(url: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'flash-sale-'));
  try {
    await using locks = await connect(url);
    const ledger = await Ledger.create(folder, COUPONS);
    const name = `coupons/${basename(folder)}`;
    const slow = await locks.acquire(name, { lease: 200 });
    const stale = await ledger.read();
    const reason = await slow.lost;
    await locks.request(name, (held) => ledger.sell('another', held.token));
    try {
      await ledger.write(stale, 'slow', slow.token);
    } catch (error) {
      return `lost (${reason}): ${(error as Error).message}`;
    }
    throw new Error('the ledger took an old token');
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function main(url: string): Promise<void> {
  for (const lock of [false, true]) {
    const { told, left } = await sale(url, lock);
    const how = lock ? 'with a lock:   ' : 'without a lock:';
    console.log(`${how} ${told} customers were sold one of ${COUPONS} coupons, ${left} are left`);
  }
  console.log(`a paused holder: ${await paused(url)}`);
}

if (!isMainThread) {
  void shift(workerData as Shift).then((told) => parentPort?.postMessage(told));
} else if (require.main === module) {
  void main(process.argv[2] ?? 'memory:flash-sale');
}
