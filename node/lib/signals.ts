/** How to close. */
export interface CloseOptions {
  /** How many milliseconds to wait for holds to be released, or `Infinity`; without it, not at all. */
  drain?: number | undefined;
}

/** Calls something off; also as `using`. */
export interface Unhook {
  (): void;
  [Symbol.dispose](): void;
}

/** Closes on a signal, and then lets the signal do what it would have done. */
export function closeOn(name: NodeJS.Signals, close: () => Promise<unknown>): Unhook {
  let closing = false;
  const told = () => {
    // It goes on listening until the end, so that a second signal does not cut the closing short.
    if (closing) return;
    closing = true;
    close()
      .catch(() => {})
      .then(() => {
        unhook();
        if (process.listenerCount(name) === 0) process.kill(process.pid, name);
      });
  };
  const unhook = () => void process.removeListener(name, told);
  process.on(name, told);
  return Object.assign(unhook, { [Symbol.dispose]: unhook });
}
