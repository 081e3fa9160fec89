/** Who listens to a signal. One listener of ours serves all: Node warns of more than ten. */
const watched = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls back once when the signal is aborted; gives a function that calls this off. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let callbacks = watched.get(signal);
  if (callbacks === undefined) {
    callbacks = new Set();
    watched.set(signal, callbacks);
    signal.addEventListener('abort', told, { once: true });
  }
  const mine = callbacks;
  mine.add(callback);
  return () => {
    if (mine.delete(callback) && mine.size === 0 && watched.get(signal) === mine) {
      watched.delete(signal);
      signal.removeEventListener('abort', told);
    }
  };
}

function told(event: Event): void {
  const signal = event.currentTarget as AbortSignal;
  const callbacks = watched.get(signal);
  watched.delete(signal);
  for (const callback of callbacks ?? []) callback();
}
