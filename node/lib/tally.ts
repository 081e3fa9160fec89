import type { LockMode } from './lock.js';

/** What a client holds, or waits for, of one lock. */
export interface Entry {
  mode: LockMode;
}

/** Entries by name, in the order in which they were added; a name without any takes no room. */
export class Tally {
  readonly #entries = new Map<string, Entry | Set<Entry>>();

  /** Adds an entry, which is an object of its own. */
  add(name: string, entry: Entry): void {
    const known = this.#entries.get(name);
    if (known === undefined) this.#entries.set(name, entry);
    else if (known instanceof Set) known.add(entry);
    else this.#entries.set(name, new Set([known, entry]));
  }

  remove(name: string, entry: Entry): void {
    const known = this.#entries.get(name);
    if (known === entry) this.#entries.delete(name);
    else if (known instanceof Set && known.delete(entry) && known.size === 0) {
      this.#entries.delete(name);
    }
  }

  names(): Iterable<string> {
    return this.#entries.keys();
  }

  modes(name: string): LockMode[] {
    const known = this.#entries.get(name);
    if (known === undefined) return [];
    return known instanceof Set ? Array.from(known, ({ mode }) => mode) : [known.mode];
  }
}
