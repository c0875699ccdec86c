// Commands sent to the kernel, and those not answered yet.
const wirePart = (() => {
  const BACKGROUND = new Set(["timeline", "forks", "drawing", "flows", "objects", "events", "node", "step", "second", "history", "slice", "find", "usage", "clauses"]); // automatic queries that nobody waits for
  const WAITING = 3; // maximum number of repeats
  const PATIENCE = 3000; // milliseconds without a kernel message until the page reports it
  const QUIET = "The kernel has not answered yet. It is busy with a cell, or gone; if it was restarted, run this cell again.";

  /** The slider sends one position at a time; a Step pressed during another one runs after it. */
  function makeConnection(model, { state, quiet, before }) {
    const commands = new Map(model.get("commands").map((command) => [command.name, command]));
    const view = Math.random().toString(36).slice(2);
    const open = new Map(); // number -> [verb, callback for the kernel's result]
    let number = 0;
    let later = null; // the latest position of the slider
    let again = ["", 0]; // the command to repeat, and how often
    let timer = 0;
    const isAllowed = (verb) => (state().can || []).includes(commands.get(verb).needs);
    const isRunning = () => state().status === "running";

    function send(verb, value, target, then) {
      number += 1;
      open.set(number, [verb, then, verb === "query" && BACKGROUND.has(value)]);
      wait();
      model.send({ do: verb, value, target, view, number });
    }
    function wait() {
      clearTimeout(timer);
      if ([...open.values()].every(([, , background]) => background)) return;
      timer = setTimeout(() => {
        if (isRunning()) return; // a step is in flight and may take long
        open.clear();
        again = ["", 0];
        quiet(QUIET);
      }, PATIENCE);
    }
    const isBusy = (verb) => [...open.values()].some(([each]) => each === verb);
    /** Each press counts, up to a few; a held key requests one more at a time and stops when released. */
    function repeatLater(verb, isHeld) {
      const count = again[0] === verb ? again[1] : 0;
      again = [verb, isHeld ? Math.max(count, 1) : Math.min(count + 1, WAITING)];
    }
    function sendNext() {
      const [verb, count] = again;
      if (!count || isBusy(verb) || isRunning()) return;
      const { status, problems = [] } = state();
      const mayRepeat = isAllowed(verb) && status !== "failed" && !problems.length;
      again = mayRepeat ? [verb, count - 1] : ["", 0];
      if (mayRepeat) send(verb, null, null, () => {});
    }
    return {
      isBusy,
      /** `isHeld`: the key that sends it is held down. */
      ask(verb, value = null, target = null, then = () => {}, isHeld = false) {
        if (commands.get(verb).needs === null) return send(verb, value, target, then);
        if (commands.get(verb).repeats && isBusy(verb)) return repeatLater(verb, isHeld);
        again = ["", 0]; // another command cancels the repeats
        if (!isAllowed(verb)) return undefined;
        if (verb === "goto" && isBusy("goto")) later = value;
        else if (verb === "pause") send(verb, value, target, then);
        else if (!isBusy(verb) && before(verb)) send(verb, value, target, then);
        return undefined;
      },
      /** A kernel message has arrived; with a number, that command is done. */
      receive(message = {}) {
        if (message.view === view && open.has(message.answers)) {
          const [, then] = open.get(message.answers);
          open.delete(message.answers);
          then(message.result);
        }
        quiet("");
        wait();
        if (later !== null && !isBusy("goto")) {
          const place = later;
          later = null;
          send("goto", place, null, () => {});
        }
        sendNext();
      },
      end: () => clearTimeout(timer),
    };
  }

  return { makeConnection };
})();
