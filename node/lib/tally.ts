/** Counts by name; a name whose count is 0 takes no room. */
export class Tally extends Map<string, number> {
  add(name: string): void {
    this.set(name, (this.get(name) ?? 0) + 1);
  }

  remove(name: string): void {
    const count = this.get(name) ?? 0;
    if (count > 1) this.set(name, count - 1);
    else this.delete(name);
  }
}
