import { readFile, rename, writeFile } from 'node:fs/promises';

/** What a ledger holds. */
export interface Stock {
  left: number;
  sold: string[];
  /** The highest token that ever wrote. */
  token: string;
}

/**
 * A file that is read, thought about, and written: exactly what needs a lock. It refuses a write
 * under a token below the highest that it has seen, so that a holder who was paused beyond its
 * lease cannot undo what others did meanwhile.
 */
export class Ledger {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  static async create(path: string, left: number): Promise<Ledger> {
    const ledger = new Ledger(path);
    await ledger.#save({ left, sold: [], token: '0' });
    return ledger;
  }

  async read(): Promise<Stock> {
    return JSON.parse(await readFile(this.#path, 'utf8')) as Stock;
  }

  /** Writes what was made of an earlier read. Without a token nothing is checked. */
  async write(stock: Stock, token?: bigint): Promise<void> {
    const highest = BigInt((await this.read()).token);
    if (token !== undefined && token < highest) {
      throw new Error(`token ${token} is refused: ${highest} wrote already`);
    }
    await this.#save({ ...stock, token: `${token ?? highest}` });
  }

  async #save(stock: Stock): Promise<void> {
    // In one step, so that nobody reads half of it.
    const next = `${this.#path}.${Math.random().toString(36).slice(2)}`;
    await writeFile(next, JSON.stringify(stock));
    await rename(next, this.#path);
  }
}
