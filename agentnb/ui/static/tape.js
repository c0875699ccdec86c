// The steps of the run as this view knows them. Requested in windows as they are viewed, discarded when the run
// diverges from them, and requested at most a few times a second.

const PAUSE = 250; // milliseconds between two requests
const PATIENT = 10000; // milliseconds until a request counts as lost
const MOST = 400; // steps per request
const KEPT_STEPS = 4000; // steps cached besides the visible ones
const SIGNS = { error: "✕", other: "⊘", stop: "●", act: "◆", fork: "⋔" };
const WORDS = { error: ["error", "errors"], other: ["cancelled or skipped", "cancelled or skipped"], stop: ["breakpoint met", "breakpoints met"],
  act: ["act of a person", "acts of people"], fork: ["fork", "forks"] };

/** The last step that two lines share: a line is [number, where it begins] of each branch of history. */
function parting(one, other) {
  let shared = 0;
  while (shared < Math.min(one.length, other.length) && one[shared][0] === other[shared][0]) shared += 1;
  if (!shared) return 0;
  return Math.min(one[shared]?.[1] ?? Infinity, other[shared]?.[1] ?? Infinity);
}

/** The cached steps and marks, as far as they are valid for the run's line. */
function remembered() {
  const steps = new Map(); // number -> {node, phase, depth, branch, status, ms}
  const marks = new Map(); // position -> [[sort, words]]
  let run = null;
  let line = [];
  let length = 0;
  function forget(gone) {
    for (const known of [steps, marks]) for (const number of [...known.keys()]) if (gone(number)) known.delete(number);
  }
  return {
    steps,
    marks,
    /** Set the run's current line; discard what belongs to another one. */
    follow(now) {
      const told = `${now.run?.id} ${now.forks}`; // the marks depend on these
      const end = told === run ? Math.min(parting(line, now.line || []), now.length) : -1;
      if (end < length) forget((number) => number > end);
      [run, line, length] = [told, now.line || [], now.length];
    },
    /** Store a received window; return whether it is of this line. */
    take(found, from, to) {
      if (parting(found.line, line) < Math.min(to, length)) return false;
      for (let place = from - 1; place <= to; place += 1) marks.delete(place);
      if (steps.size > KEPT_STEPS) forget((number) => number < from - MOST || number > to + MOST);
      found.steps.forEach(([node, phase, depth, branch, status, ms], index) => {
        steps.set(found.first + index, { node: found.names[node], phase, depth, branch, status, ms });
      });
      for (const [place, sort, words] of found.marks) marks.set(place, [...(marks.get(place) || []), [sort, words]]);
      return true;
    },
    /** The first unknown steps of a window; null if all are known. */
    lacks([first, last]) {
      let from = Math.max(first, 1);
      while (from <= Math.min(last, length) && steps.has(from)) from += 1;
      return from <= Math.min(last, length) ? [from, Math.min(last, length, from + MOST - 1)] : null;
    },
    /** The key of a request, for comparison. */
    told: (said) => JSON.stringify([run, line, length, said]),
  };
}

/** The marks of all steps in few buckets: {at: from 0 to 1, sort: the most severe, sign, words, place}. */
function ticksOf(overview) {
  const first = (bucket) => Math.ceil((bucket * (overview.length + 1)) / overview.size);
  const found = new Map();
  for (const sort of Object.keys(SIGNS)) {
    for (const [bucket, times] of overview[sort] || []) {
      const words = times > 1 ? `${times} ${WORDS[sort][1]}` : WORDS[sort][0];
      if (found.has(bucket)) found.get(bucket).words += `, ${words}`;
      else found.set(bucket, { sort, sign: SIGNS[sort], words });
    }
  }
  return [...found].map(([bucket, tick]) => {
    const [from, to] = [first(bucket), first(bucket + 1) - 1];
    const where = to > from ? `steps ${from} to ${to}` : `step ${from}`;
    return { ...tick, at: overview.length ? from / overview.length : 0, place: from, words: `${where}: ${tick.words}` };
  });
}

export function tape(ask) {
  const known = remembered();
  const listeners = [];
  const wanted = []; // each returns [first, last] of the steps that it shows, or null
  let overview = { size: 1, length: 0 };
  let asked = ""; // the state at the last request
  let state = null;
  let timer = 0;
  let since = 0; // the time of the pending request

  const seen = () => known.told(state.said);
  const missing = () => wanted.map((want) => known.lacks(want() || [1, 0])).find(Boolean) || null;
  /** The next request: missing steps, otherwise the current position if something has happened. */
  function due() {
    const lacks = missing();
    if (lacks || seen() === asked) return lacks;
    const [first, last] = wanted.map((want) => want()).find(Boolean) || [1, 0];
    const near = Math.max(first, Math.min(state.position, last));
    return [near, Math.min(near, state.length)];
  }
  function pull() {
    clearTimeout(timer);
    timer = 0;
    if (!state || Date.now() - since < PATIENT) return;
    const [from, to] = due() || [0, -1];
    if (to < 0) return;
    asked = seen();
    since = Date.now();
    ask("look", "timeline", { from, to }, (found) => {
      since = 0;
      if (found && state && known.take(found, from, to)) {
        overview = { ...found.overview, length: found.length };
        for (const listener of listeners) listener();
      }
      timer ||= setTimeout(pull, PAUSE);
    });
  }
  return {
    steps: known.steps,
    marks: known.marks,
    ticks: () => ticksOf(overview),
    on: (listener) => listeners.push(listener),
    want: (from) => wanted.push(from),
    /** The view has moved: request what is missing there. */
    look: () => { timer ||= setTimeout(pull, 0); },
    show(now) {
      state = now;
      known.follow(now);
      if (!timer && (seen() !== asked || missing())) pull();
    },
    end: () => { clearTimeout(timer); state = null; },
  };
}
