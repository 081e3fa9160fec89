import { appendFile, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What is in stock. */
export interface Stock {
  left: number;
  /** The highest token that ever wrote. */
  token: bigint;
  /** When it was read, in microseconds. */
  at: bigint;
}

const micros = () => process.hrtime.bigint() / 1000n;

/**
 * Files that are read, thought about, and written: exactly what needs a lock. A write under a token
 * below the highest so far is refused, so that a holder who was paused beyond its lease cannot undo
 * what others did meanwhile.
 *
 * In its folder, `stock` says LEFT NEWEST: how many are left, and the highest token that has written.
 * `sales` has a line for each sale, BUYER TOKEN FROM TO, with times in microseconds.
 */
export class Ledger {
  readonly #stock: string;
  readonly #sales: string;

  constructor(folder: string) {
    this.#stock = join(folder, 'stock');
    this.#sales = join(folder, 'sales');
  }

  static async create(folder: string, left: number): Promise<Ledger> {
    await mkdir(folder, { recursive: true });
    const ledger = new Ledger(folder);
    await writeFile(ledger.#sales, '');
    await ledger.#save(left, 0n);
    return ledger;
  }

  async read(): Promise<Stock> {
    const at = micros();
    const [left, token] = (await readFile(this.#stock, 'utf8')).trimEnd().split(' ');
    return { left: Number(left), token: BigInt(token ?? ''), at };
  }

  /** Who bought, in this order. */
  async buyers(): Promise<string[]> {
    const lines = (await readFile(this.#sales, 'utf8')).split('\n').filter(Boolean);
    return lines.map((line) => line.split(' ', 1).join());
  }

  /** Writes that one was sold of what was read earlier. Without a token nothing is checked. */
  async write(seen: Stock, buyer: string, token?: bigint): Promise<void> {
    const highest = (await this.read()).token;
    if (token !== undefined && token < highest) {
      throw new Error(`token ${token} is refused: ${highest} wrote already`);
    }
    await appendFile(this.#sales, `${buyer} ${token ?? 0n} ${seen.at} ${micros()}\n`);
    await this.#save(seen.left - 1, token ?? highest);
  }

  /** Sells one, and gives how many are left now; `undefined` when there was none. */
  async sell(buyer: string, token?: bigint): Promise<number | undefined> {
    const seen = await this.read();
    if (seen.left === 0) return undefined;
    await this.write(seen, buyer, token);
    return seen.left - 1;
  }

  async #save(left: number, token: bigint): Promise<void> {
    // In one step, so that nobody reads half of it.
    const next = `${this.#stock}.${Math.random().toString(36).slice(2)}`;
    await writeFile(next, `${left} ${token}\n`);
    await rename(next, this.#stock);
  }
}
