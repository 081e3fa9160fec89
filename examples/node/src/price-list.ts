// A price list that many read and few change, with a service behind it that bears two calls at a time.
//
//   node price-list.js [URL OF THE STORE]
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'fencelock';

/** A price list that refuses who is late: it keeps the highest token that wrote, and that of anybody. */
export class PriceList {
  readonly #prices = new Map([['tea', 3]]);
  #written = 0n;
  #seen = 0n;

  read(token: bigint): [article: string, price: number][] {
    if (token < this.#written) throw new Error('a late read');
    if (token > this.#seen) this.#seen = token;
    return [...this.#prices];
  }

  write(token: bigint, article: string, price: number): void {
    if (token < this.#seen) throw new Error('a late write');
    this.#written = token;
    this.#seen = token;
    this.#prices.set(article, price);
  }
}

/** Reads and changes a list together; gives how many read at the same time, and what was refused. */
export async function run(url: string, name = 'prices'): Promise<{ most: number; late: string[] }> {
  const prices = new PriceList();
  await using locks = await connect(url, { label: 'price list' });
  const late: string[] = [];
  let [reading, most] = [0, 0];

  const read = () =>
    locks.request(name, { mode: 'shared' }, async ({ token }) => {
      most = Math.max(most, ++reading);
      prices.read(token);
      await sleep(20);
      reading--;
    });
  const write = (price: number) =>
    locks.request(name, ({ token }) => prices.write(token, 'tea', price));
  await Promise.all([read(), read(), read(), write(4), read()]);

  // Two that are paused for longer than their lease, and go on without looking.
  const reader = await locks.acquire(name, { mode: 'shared', lease: 100 });
  await reader.lost;
  const writer = await locks.acquire(name, { lease: 100 });
  await writer.lost;
  await write(5);
  await read();
  for (const tardy of [
    () => prices.read(reader.token),
    () => prices.write(writer.token, 'tea', 6),
  ]) {
    try {
      tardy();
    } catch (error) {
      late.push((error as Error).message);
    }
  }
  return { most, late };
}

/** Asks a service that bears two calls at a time, for many; gives how many asked at once. */
export async function ask(url: string, name = 'slow-service'): Promise<number> {
  await using locks = await connect(url);
  const service = locks.semaphore(name, 2);
  let [calls, most] = [0, 0];
  const call = () =>
    service.run(async () => {
      most = Math.max(most, ++calls);
      await sleep(5);
      calls--;
    });
  await Promise.all(Array.from({ length: 10 }, call));
  return most;
}

if (require.main === module) {
  const [url = 'memory:'] = process.argv.slice(2);
  void run(url).then(async ({ most, late }) => {
    console.log(`${most} read at the same time; refused: ${late.join(', ')}`);
    console.log(`${await ask(url)} asked the service at the same time`);
  });
}
