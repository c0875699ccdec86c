// chosen: what a person has picked to be told about: a node or a step. Parts of one cockpit share it; the kernel never knows.

/** Return the place of the choice: `get()` is {kind, id} or null; who asked by `on` is told of each new one. */
export function chosen() {
  let now = null;
  const listeners = [];
  return {
    get: () => now,
    set(kind, id) {
      now = kind === null ? null : { kind, id };
      for (const listener of listeners) listener(now);
    },
    on: (listener) => listeners.push(listener),
  };
}
