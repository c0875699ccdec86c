// The selection: a node or a step. Shared by the parts of one cockpit; the kernel does not know it.

/** Return the selection: `get()` is {kind, id} or null; listeners added by `on` are called on each change. */
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
