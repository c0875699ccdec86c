// The timeline: the steps of the run, requested in windows, and the marks on them.
const timelinePart = (() => {
  const { make, setText } = domPart;

  // The steps of the run as this view knows them. Requested in windows as they are viewed, discarded when the run
  // diverges from them, and requested at most a few times a second.

  const PAUSE = 250; // milliseconds between two requests
  const PATIENT = 10000; // milliseconds until a request counts as lost
  const MOST = 400; // steps per request
  const KEPT_STEPS = 4000; // steps cached besides the visible ones
  const SIGNS = { error: "✕", other: "⊘", stop: "●", intervention: "◆", fork: "⋔" };
  const WORDS = { error: ["error", "errors"], other: ["cancelled or skipped", "cancelled or skipped"], stop: ["breakpoint met", "breakpoints met"],
    intervention: ["intervention", "interventions"], fork: ["fork", "forks"] };

  /** The last step that two lines share: a line is [number, where it begins] of each branch of history. */
  function findDivergence(one, other) {
    let shared = 0;
    while (shared < Math.min(one.length, other.length) && one[shared][0] === other[shared][0]) shared += 1;
    if (!shared) return 0;
    return Math.min(one[shared]?.[1] ?? Infinity, other[shared]?.[1] ?? Infinity);
  }

  /** The cached steps and marks, as far as they are valid for the run's line. */
  function makeStore() {
    const steps = new Map(); // number -> {node, phase, depth, branch, status, ms}
    const marks = new Map(); // position -> [[kind, words]]
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
        const runKey = `${now.run?.id} ${now.forks}`; // the marks depend on these
        const end = runKey === run ? Math.min(findDivergence(line, now.line || []), now.length) : -1;
        if (end < length) forget((number) => number > end);
        [run, line, length] = [runKey, now.line || [], now.length];
      },
      /** Store a received window; return whether it is of this line. */
      take(result, from, to) {
        if (findDivergence(result.line, line) < Math.min(to, length)) return false;
        for (let place = from - 1; place <= to; place += 1) marks.delete(place);
        if (steps.size > KEPT_STEPS) forget((number) => number < from - MOST || number > to + MOST);
        result.steps.forEach(([node, phase, depth, branch, status, ms], index) => {
          steps.set(result.first + index, { node: result.names[node], phase, depth, branch, status, ms });
        });
        for (const [place, kind, words] of result.marks) marks.set(place, [...(marks.get(place) || []), [kind, words]]);
        return true;
      },
      /** The first unknown steps of a window; null if all are known. */
      findMissing([first, last]) {
        let from = Math.max(first, 1);
        while (from <= Math.min(last, length) && steps.has(from)) from += 1;
        return from <= Math.min(last, length) ? [from, Math.min(last, length, from + MOST - 1)] : null;
      },
      /** The key of a request, for comparison. */
      getKey: (sentence) => JSON.stringify([run, line, length, sentence]),
    };
  }

  /** The marks of all steps in few buckets: {at: from 0 to 1, kind: the most severe, sign, words, place}. */
  function listTicks(overview) {
    const first = (bucket) => Math.ceil((bucket * (overview.length + 1)) / overview.size);
    const found = new Map();
    for (const kind of Object.keys(SIGNS)) {
      for (const [bucket, times] of overview[kind] || []) {
        const words = times > 1 ? `${times} ${WORDS[kind][1]}` : WORDS[kind][0];
        if (found.has(bucket)) found.get(bucket).words += `, ${words}`;
        else found.set(bucket, { kind, sign: SIGNS[kind], words });
      }
    }
    return [...found].map(([bucket, tick]) => {
      const [from, to] = [first(bucket), first(bucket + 1) - 1];
      const where = to > from ? `steps ${from} to ${to}` : `step ${from}`;
      return { ...tick, at: overview.length ? from / overview.length : 0, place: from, words: `${where}: ${tick.words}` };
    });
  }

  function makeStepCache(ask) {
    const store = makeStore();
    const listeners = [];
    const ranges = []; // each returns [first, last] of the steps that it shows, or null
    let overview = { size: 1, length: 0 };
    let lastKey = ""; // the state at the last request
    let state = null;
    let timer = 0;
    let requestedAt = 0; // the time of the pending request

    const getKey = () => store.getKey(state.sentence);
    const findMissing = () => ranges.map((getRange) => store.findMissing(getRange() || [1, 0])).find(Boolean) || null;
    /** The next request: missing steps, otherwise the current position if something has happened. */
    function findNextRange() {
      const gap = findMissing();
      if (gap || getKey() === lastKey) return gap;
      const [first, last] = ranges.map((getRange) => getRange()).find(Boolean) || [1, state.length];
      const position = Math.max(first, Math.min(state.position, last));
      return [position, Math.min(position, state.length)];
    }
    function pull() {
      clearTimeout(timer);
      timer = 0;
      if (!state || Date.now() - requestedAt < PATIENT) return;
      const [from, to] = findNextRange() || [0, -1];
      if (to < 0) return;
      lastKey = getKey();
      requestedAt = Date.now();
      ask("query", "timeline", { from, to }, (result) => {
        requestedAt = 0;
        if (result && state && store.take(result, from, to)) {
          overview = { ...result.overview, length: result.length };
          for (const listener of listeners) listener();
        }
        timer ||= setTimeout(pull, PAUSE);
      });
    }
    return {
      steps: store.steps,
      marks: store.marks,
      ticks: () => listTicks(overview),
      on: (listener) => listeners.push(listener),
      want: (from) => ranges.push(from),
      /** The view has moved: request what is missing there. */
      look: () => { timer ||= setTimeout(pull, 0); },
      show(now) {
        state = now;
        store.follow(now);
        if (!timer && (getKey() !== lastKey || findMissing())) pull();
      },
      end: () => { clearTimeout(timer); state = null; },
    };
  }

  // The slider, with marks for past events below it; a click on a mark goes to its step.

  function makeRail(slider, stepCache, ask) {
    const marks = make("span", { class: "agentnb-marks", "aria-hidden": "true" }); // the timeline has the same as text
    stepCache.on(() => marks.replaceChildren(...stepCache.ticks().map(({ at, kind, sign, words, place }) => make("span", {
      class: "agentnb-tick", "data-kind": kind, title: words, text: sign, style: `--a-at:${at}`, click: () => ask("goto", place),
    }))));
    return make("span", { class: "agentnb-rail" }, slider, marks);
  }

  // The cells of the timeline, one per step, in lanes by depth and branch, with the marks above them.

  const NAMED = 34; // minimum pixels of a cell that shows its node's name
  const [LETTER, AROUND] = [6.3, 15]; // pixels of a letter, and of what surrounds a name
  const LANE = 26; // pixels per lane
  const ABOVE = 18; // pixels for the marks
  const STATUS_NAMES = ["", "failed", "cancelled", "skipped"];
  const STATUS_SIGNS = ["", "✕", "⊘", "»"];
  const PHASE_NAMES = ["", "entered", "once more", "left"];
  const PHASE_SIGNS = ["", "▾", "↻", "▴"];
  const MARK_SIGNS = { stop: "●", intervention: "◆", fork: "⋔" };

  /** The description of a step, for tooltips and screen readers. */
  function describeStep(number, step, marks = []) {
    const parts = [STATUS_NAMES[step.status] || "ok", PHASE_NAMES[step.phase], `${step.ms} ms`];
    if (step.depth) parts.push(`depth ${step.depth}`);
    if (step.branch >= 0) parts.push(`branch ${step.branch + 1}`);
    return [`step ${number}: ${step.node}, ${parts.filter(Boolean).join(", ")}`, ...marks.map(([, words]) => words)].join("; ");
  }

  const getLane = ({ depth, branch }) => `${depth}.${branch}`;

  /** The lane of each depth and branch among the known ones. */
  function listLanes(steps) {
    const keys = new Map();
    for (const step of steps.values()) keys.set(getLane(step), step);
    const sorted = [...keys].sort(([, one], [, other]) => one.depth - other.depth || one.branch - other.branch);
    return new Map(sorted.map(([key], index) => [key, index]));
  }

  const getSign = ({ status, phase }) => STATUS_SIGNS[status] || PHASE_SIGNS[phase];
  /** The node of a step; of one inside others its own name, where the whole path does not fit. */
  const getName = ({ node }, width) => (node.length * LETTER + AROUND > width ? node.slice(node.lastIndexOf("/") + 1) : node);
  const getText = (step, width) => `${getSign(step)} ${getName(step, width)}`.trim();
  const CHANGE_WORDS = { differs: "differs from the second run", only_a: "is not in the second run" };

  function fillStep(cell, step, { number, marks, width, state, picked, lit, longest }) {
    const beside = [CHANGE_WORDS[lit.second?.steps?.[number]], lit.slice?.steps?.has(number) && `led to ${lit.slice.key}`, lit.hits?.has(number) && "found"].filter(Boolean);
    const words = [describeStep(number, step, marks), ...beside].join("; ");
    cell.style.setProperty("--a-lasted", longest ? String(Math.max(step.ms / longest, 0.02)) : "0");
    setText(cell, width < NAMED ? getSign(step) : getText(step, width));
    const attributes = {
      title: words, "aria-label": words, "aria-selected": String(number === picked), "aria-setsize": String(state.length), "aria-posinset": String(number),
      "data-status": STATUS_NAMES[step.status] || "ok", "data-later": number > state.position ? "" : null,
      "data-change": lit.second?.steps?.[number] ?? null, "data-slice": lit.slice?.steps?.has(number) ? "" : null, "data-hit": lit.hits?.has(number) ? "" : null, "aria-current": number === state.position ? "step" : null,
    };
    for (const [key, value] of Object.entries(attributes)) {
      if (value === null) cell.removeAttribute(key);
      else if (cell.getAttribute(key) !== value) cell.setAttribute(key, value);
    }
  }

  function fillMark(mark, entries) {
    mark.dataset.kind = entries[0][0];
    setText(mark, MARK_SIGNS[entries[0][0]] + (entries.length > 1 ? entries.length : ""));
    mark.title = entries.map(([, words]) => words).join("\n");
  }

  /** Renders the visible steps' cells into `inner` and removes the others. `left` is where the first one begins. */
  function makeCells(inner, stepCache, left) {
    const name = `agentnb-${Math.random().toString(36).slice(2)}`;
    let cells = new Map(); // "step" or "@position" -> its element
    const getId = (number) => `${name}-${number}`;
    const findOrMake = (key, tag, attributes) => cells.get(key) || make(tag, attributes);

    function drawSteps(first, end, width, state, picked, lanes, lit, byTime) {
      const found = [];
      let longest = 0; // of the visible steps, if their durations are shown
      if (byTime) for (let number = first; number <= end; number += 1) longest = Math.max(longest, stepCache.steps.get(number)?.ms ?? 0);
      for (let number = first; number <= end; number += 1) {
        const step = stepCache.steps.get(number);
        if (!step) continue;
        const cell = findOrMake(String(number), "div", { class: "agentnb-step", role: "option", id: getId(number), "data-step": String(number) });
        fillStep(cell, step, { number, marks: stepCache.marks.get(number), width, state, picked, lit, longest });
        Object.assign(cell.style, { left: `${left + (number - 1) * width}px`, width: `${width - 3}px`, top: `${ABOVE + lanes.get(getLane(step)) * LANE}px` });
        found.push([String(number), cell]);
      }
      return found;
    }
    function drawMarks(first, end, width) {
      const found = [];
      for (let place = first - 1; place <= end; place += 1) {
        const entries = stepCache.marks.get(place);
        if (!entries) continue;
        const mark = findOrMake(`@${place}`, "span", { class: "agentnb-tick", "aria-hidden": "true" });
        fillMark(mark, entries);
        mark.style.left = `${left + place * width - 1}px`;
        found.push([`@${place}`, mark]);
      }
      return found;
    }
    return {
      draw([first, end], width, state, picked, lit, byTime) {
        const lanes = listLanes(stepCache.steps);
        inner.style.height = `${ABOVE + Math.max(lanes.size, 1) * LANE}px`;
        const now = new Map([...drawSteps(first, end, width, state, picked, lanes, lit, byTime), ...drawMarks(first, end, width)]);
        for (const [key, one] of cells) if (!now.has(key)) one.remove();
        let before = inner.firstChild; // in order, for screen readers
        for (const one of now.values()) {
          if (before.nextSibling !== one) before.after(one);
          before = one;
        }
        cells = now;
        const active = String(picked ?? state.position);
        if (cells.has(active)) inner.setAttribute("aria-activedescendant", getId(active));
        else inner.removeAttribute("aria-activedescendant");
      },
    };
  }

  // The steps in order. Only the visible ones are on the page, and all of them as marks of an overview.

  const FITTED = [56, 112]; // pixels per step until a person chooses: as wide as the longest name, wider for fewer steps
  const ZOOMED = [14, 168]; // pixels per step that a person may choose
  const LONGEST = 8e6; // maximum width of the strip in pixels, a limit of browsers
  const LEFT = 10; // pixels before the first step, for marks of interventions before it
  const BESIDE = 6; // steps rendered beyond the visible ones
  const PAGE = 20; // steps moved by PageUp and PageDown

  const clamp = (value, [least, most]) => Math.min(Math.max(value, least), most);

  /** The overview: all steps in few marks, and the visible part of them; a click scrolls there. */
  function makeOverview(stepCache, seek) {
    const visiblePart = make("div", { class: "agentnb-seen" });
    const position = make("div", { class: "agentnb-here" });
    const marks = make("div", {});
    const element = make("div", { class: "agentnb-overview", "aria-hidden": "true", title: "all steps; click to scroll there" }, marks, visiblePart, position);
    const seekTo = (event) => {
      const box = element.getBoundingClientRect();
      seek((event.clientX - box.left) / box.width);
    };
    element.addEventListener("pointerdown", (event) => { element.setPointerCapture(event.pointerId); seekTo(event); });
    element.addEventListener("pointermove", (event) => { if (element.hasPointerCapture(event.pointerId)) seekTo(event); });
    stepCache.on(() => marks.replaceChildren(...stepCache.ticks().map(({ at, kind, sign, words }) => (
      make("span", { class: "agentnb-tick", "data-kind": kind, style: `left:${at * 100}%`, title: words, text: sign })))));
    return {
      element,
      show(first, last, at) {
        Object.assign(visiblePart.style, { left: `${first * 100}%`, width: `${(last - first) * 100}%` });
        position.style.left = `${at * 100}%`;
      },
    };
  }

  /** The width of a step in the strip, and which steps are visible. */
  function makeSizes(strip) {
    let length = 0;
    let zoom = null;
    // Reading a size makes the browser lay the page out, so both are read when they change.
    let [broad, from] = [0, 0];
    const getRoom = () => broad || (broad = strip.clientWidth);
    new ResizeObserver(() => { broad = 0; }).observe(strip);
    strip.addEventListener("scroll", () => { from = strip.scrollLeft; });
    let longest = 0; // letters of the longest name
    const findFittingWidth = () => Math.max(clamp((getRoom() - 2 * LEFT) / Math.max(length, 1), FITTED), clamp(longest * LETTER + AROUND, FITTED));
    const getWidth = () => Math.min(zoom ?? findFittingWidth(), LONGEST / Math.max(length, 1));
    return {
      wide: getWidth,
      room: getRoom,
      from: () => from,
      of: (steps) => { length = steps; },
      /** Take the names of the known steps; return whether the width has changed. */
      setNames(steps) {
        const before = getWidth();
        longest = 0;
        for (const step of steps.values()) longest = Math.max(longest, getText(step).length);
        return getWidth() !== before;
      },
      zoom: (times) => { zoom = clamp(getWidth() * times, ZOOMED); },
      whole: () => 2 * LEFT + length * getWidth(),
      /** The offset of a position in pixels from the start of the strip. */
      at: (place) => LEFT + place * getWidth(),
      findVisible() {
        if (!length || !getRoom()) return null;
        const width = getWidth();
        const first = Math.floor((from - LEFT) / width) + 1 - BESIDE;
        return [Math.max(first, 1), Math.min(first + Math.ceil(getRoom() / width) + 2 * BESIDE, length)];
      },
    };
  }

  /** The strip with its overview: it renders the visible steps and reports the selected one. */
  function makeStrip(choice, stepCache) {
    const head = make("div", { class: "agentnb-head-of-run", "aria-hidden": "true" });
    const inner = make("div", { class: "agentnb-steps", role: "listbox", tabindex: "0", "aria-orientation": "horizontal", "aria-label": "steps of the run" }, head);
    const element = make("div", { class: "agentnb-strip" }, inner);
    const cells = makeCells(inner, stepCache, LEFT);
    const sizes = makeSizes(element);
    const view = makeOverview(stepCache, (share) => { element.scrollLeft = share * element.scrollWidth - element.clientWidth / 2; });
    let last = { position: 0, length: 0 };
    let frame = 0;
    let byTime = false;

    const getPicked = () => (choice.get()?.kind === "step" ? Number(choice.get().id) : null);
    function draw() {
      frame = 0;
      const range = sizes.findVisible();
      if (!range) return;
      const whole = sizes.whole();
      inner.style.width = `${whole}px`;
      head.style.left = `${sizes.at(last.position) - 2}px`;
      cells.draw(range, sizes.wide(), last, getPicked(), choice.lit(), byTime);
      view.element.hidden = whole <= sizes.room() + 1;
      view.show(sizes.from() / whole, Math.min((sizes.from() + sizes.room()) / whole, 1), last.position / last.length);
      stepCache.look();
    }
    const scheduleDraw = () => { frame ||= requestAnimationFrame(draw); };
    function reveal(step) {
      const left = sizes.at(step);
      const margin = Math.min(60, sizes.room() / 4);
      const hidden = left < sizes.from() + margin || left > sizes.from() + sizes.room() - margin;
      if (hidden) element.scrollLeft = left - sizes.room() / 2;
    }
    element.addEventListener("scroll", scheduleDraw);
    let broad = 0;
    new ResizeObserver(() => {
      scheduleDraw();
      if (sizes.room() !== broad) reveal(last.position); // steps have another width, so the current one may be out of view
      broad = sizes.room();
    }).observe(element);
    choice.on(scheduleDraw);
    choice.onLight(scheduleDraw);
    stepCache.on(() => {
      if (sizes.setNames(stepCache.steps)) {
        draw();
        reveal(last.position);
      } else scheduleDraw();
    });
    stepCache.want(sizes.findVisible);
    return {
      element,
      inner,
      overview: view.element,
      picked: getPicked,
      pick(number) {
        choice.set("step", number);
        reveal(number);
      },
      /** Whether each step has a bar for its duration. */
      durations(on) {
        byTime = on;
        inner.classList.toggle("agentnb-by-time", on);
        draw();
      },
      zoom(times) {
        sizes.zoom(times);
        draw();
        reveal(last.position);
      },
      show(state) {
        const moved = state.position !== last.position || state.length !== last.length;
        last = state;
        sizes.of(state.length);
        draw();
        if (moved) reveal(state.position);
      },
    };
  }

  const FIND_PAUSE = 350; // milliseconds after the last key until the kernel searches

  /** A search through the history: where a condition holds, with previous and next; `go(step)` is called with a step. */
  function makeFinder(ask, choice, go) {
    const input = make("input", { type: "search", class: "agentnb-input agentnb-code agentnb-find", placeholder: "find n > 3", "aria-label": "find steps where this holds", spellcheck: "false" });
    const summary = make("small", { role: "status" });
    const faultLabel = make("p", { class: "agentnb-wrong", role: "alert" });
    const tool = (text, label, direction) => make("button", { type: "button", class: "agentnb-small", text, title: label, "aria-label": label, "aria-disabled": "true", click: () => move(direction) });
    const [previousButton, nextButton] = [tool("‹", "previous step found", "before"), tool("›", "next step found", "after")];
    const form = make("form", { class: "agentnb-finder", role: "search" }, input, previousButton, nextButton, summary);
    let [found, lastKey, timer, last] = [null, "", 0, null];
    function show(now) {
      found = now;
      setText(faultLabel, now?.wrong || "");
      if (now?.wrong) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
      setText(summary, !now || now.wrong ? "" : now.total ? `${now.hits.includes(last.position) ? now.rank : "–"} of ${now.total}` : "never");
      for (const [button, step] of [[previousButton, now?.before], [nextButton, now?.after]]) button.setAttribute("aria-disabled", String(step === null || step === undefined));
      choice.light({ hits: now?.hits.length ? new Set(now.hits) : null });
    }
    function pull(then = () => {}) {
      const text = input.value.trim();
      const key = JSON.stringify([text, last?.position, last?.length, last?.line]);
      if (!text) {
        lastKey = "";
        show(null);
        return;
      }
      if (key === lastKey) {
        then();
        return;
      }
      lastKey = key;
      ask("query", "find", text, (now) => {
        if (!now || lastKey !== key) return;
        show(now);
        then();
      });
    }
    function move(direction) {
      if (found && found[direction] !== null && !found.wrong) go(found[direction]);
    }
    input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(pull, FIND_PAUSE); });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(timer);
      pull(() => move(found?.after === null ? "before" : "after"));
    });
    return {
      form,
      wrong: faultLabel,
      show(state) {
        last = state;
        if (input.value.trim() && !["running", "pausing"].includes(state.status)) pull();
      },
    };
  }

  function makeTimeline(ask, choice, stepCache) {
    const strip = makeStrip(choice, stepCache);
    const find = makeFinder(ask, choice, (step) => { strip.pick(step); ask("goto", step); });
    const byTime = make("button", { type: "button", class: "agentnb-tool agentnb-flip", text: "Duration", title: "a bar for how long each step took", "aria-label": "Duration", "aria-pressed": "false" });
    byTime.addEventListener("click", () => {
      const on = byTime.getAttribute("aria-pressed") !== "true";
      byTime.setAttribute("aria-pressed", String(on));
      strip.durations(on);
    });
    const none = make("p", { class: "agentnb-faint", text: "No step yet: Step runs the first node." });
    const zooms = [["−", "smaller", 1 / 1.5], ["+", "larger", 1.5]].map(([text, word, times]) => make("button", {
      type: "button", class: "agentnb-small", text, title: `${word} steps`, "aria-label": `${word} steps`, click: () => strip.zoom(times),
    }));
    let last = { position: 0, length: 0 };

    strip.inner.addEventListener("click", (event) => {
      const number = Number(event.target.closest("[data-step]")?.dataset.step || 0);
      if (!number) return;
      strip.pick(number);
      ask("goto", number);
    });
    strip.inner.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !last.length) return;
      const at = strip.picked() ?? last.position;
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, PageDown: at + PAGE, PageUp: at - PAGE, Home: 1, End: last.length }[event.key];
      if (event.key === "Enter") ask("goto", at);
      else if (to === undefined) return;
      else strip.pick(clamp(to, [1, last.length]));
      event.preventDefault();
      event.stopPropagation();
    });
    const part = {
      name: "timeline",
      title: "Timeline",
      body: make("div", { class: "agentnb-timeline", tabindex: "-1" }, find.wrong, strip.overview, strip.element, none),
      tools: [find.form, make("small", { class: "agentnb-legend", text: "◆ intervention  ● breakpoint  ⋔ fork" }), byTime, make("span", { class: "agentnb-zooms" }, ...zooms)],
      show(state) {
        last = state;
        none.hidden = state.length > 0;
        strip.element.hidden = !state.length;
        strip.overview.hidden ||= !state.length;
        find.form.hidden = !state.length;
        find.show(state);
        strip.show(state);
        grow();
      },
    };
    /** As high as its lanes, up to a limit. */
    function grow() {
      const lanes = parseFloat(strip.inner.style.height) || 0;
      part.grow?.(Math.min(Math.max(lanes + strip.overview.offsetHeight + 34, 78), 220));
    }
    stepCache.on(() => requestAnimationFrame(grow));
    return part;
  }

  return { makeStepCache, makeRail, makeTimeline };
})();
