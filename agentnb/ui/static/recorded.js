// An exported page: the data in the file take the place of a kernel. Nothing runs; moving shows another recorded state.
const recordedPart = (() => {
  const { mergeState, render } = cockpitPart;
  const { Wrong, applyChanges, compileCondition, holds } = conditionsPart;

  const STEPS_A_FRAME = 1; // positions per tick while Run plays
  const PLAY_PAUSE = 350; // milliseconds between two positions while Run plays
  const ROUNDS = 100000; // of deriving a key from an answer, as in export/html.py

  // Encrypted chunks: what follows an exercise, with its answer as the key.

  const decodeBytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

  /** `size` pseudo-random bytes that a secret and a salt determine. */
  async function deriveBytes(secret, salt, rounds, size) {
    const key = await crypto.subtle.importKey("raw", secret, "PBKDF2", false, ["deriveBits"]);
    const how = { name: "PBKDF2", hash: "SHA-256", salt: new TextEncoder().encode(salt), iterations: rounds };
    return new Uint8Array(await crypto.subtle.deriveBits(how, key, size * 8));
  }

  /** An answer without differences that do not matter: case, blanks, enclosing quotes; as in page_export.py. */
  function normalizeAnswer(answer) {
    const text = answer.normalize("NFC").replace(/[ \t\n\r\f\v\u00a0]+/g, " ").replace(/^ | $/g, "").toLowerCase();
    return text.replace(/^(['"])(.*)\1$/s, "$2");
  }

  /** The key of what follows an exercise; null if the answer is wrong. `before` is the key of the stretch that asks. */
  async function deriveKey({ salt, check }, answer, before) {
    const secret = new Uint8Array([...new TextEncoder().encode(normalizeAnswer(answer)), ...(before || [])]);
    const key = await deriveBytes(secret, salt, ROUNDS, 32);
    const result = await deriveBytes(key, "check", 1, 16);
    return decodeBytes(check).every((byte, at) => byte === result[at]) ? key : null;
  }

  /** The value of a chunk of the file, by its name. */
  async function unpackChunk(name, key = null) {
    let bytes = decodeBytes(document.querySelector(`script[data-name="${name}"]`).textContent);
    if (key) {
      const mask = await deriveBytes(key, name, 1, bytes.length);
      bytes = bytes.map((byte, at) => byte ^ mask[at]);
    }
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(stream).text());
  }

  /**
   * A stretch of positions of one run. Earlier positions are read from the preceding stretch. A chunk is unpacked when one
   * of its steps is shown, and its states are derived once.
   */
  function makeStretch(number, description, size, all, key = null) {
    const chunkByNumber = new Map(); // number of a chunk -> the promise of its content
    const readChunk = (at) => unpackChunk(`${number}-${at}`, key);
    const findChunk = (position) => Math.floor((position - description.first) / size);
    const isOwn = (position) => position >= description.first || description.before === null;
    let rows = null;
    function getChunk(position) {
      if (!isOwn(position)) return all[description.before].getChunk(position);
      const chunkNumber = findChunk(position);
      if (!chunkByNumber.has(chunkNumber)) {
        chunkByNumber.set(chunkNumber, readChunk(chunkNumber).then((result) => {
          result.states = [result.state];
          for (const changed of result.changes) {
            const before = result.states.at(-1);
            result.states.push(mergeState(before, { changed, number: (before.number || 0) + 1 }));
          }
          return result;
        }));
      }
      return chunkByNumber.get(chunkNumber);
    }
    async function getState(position) {
      if (!isOwn(position)) return { ...await all[description.before].getState(position), ...description.state };
      return { ...(await getChunk(position)).states[(position - description.first) % size], ...description.state };
    }
    /** The chunks of the whole run in order, as [first position, last position, chunk, whether a stretch begins]; they are not cached. */
    async function* chunks(last = description.last) {
      if (description.before !== null && description.first > 0) yield* all[description.before].chunks(description.first - 1);
      for (let first = description.first; first <= Math.min(last, description.last); first += size) {
        yield [first, Math.min(first + size - 1, last, description.last), await readChunk(findChunk(first)), first === description.first];
      }
    }
    /** The timeline of the whole run: {names, steps, marks, overview}. */
    async function readTimeline() {
      if (rows) return rows;
      const own = await unpackChunk(`${number}-timeline`, key);
      const earlier = description.before === null ? { names: [], steps: [], interventionMarks: [] } : await all[description.before].readTimeline();
      const names = [...earlier.names];
      const numbers = own.names.map((name) => {
        if (!names.includes(name)) names.push(name);
        return names.indexOf(name);
      });
      const interventionMarks = [...earlier.interventionMarks.filter(([place]) => place < description.first), ...own.marks];
      rows = {
        names, interventionMarks, overview: own.overview, steps: [...earlier.steps.slice(0, description.first), ...own.steps.map(([name, ...rest]) => [numbers[name], ...rest])],
        marks: [...interventionMarks, ...own.forks].sort(([one], [other]) => one - other),
      };
      return rows;
    }
    /** The stretches of the run with the positions where they begin, as a cockpit compares them. */
    const getLine = () => [...(description.before === null ? [] : all[description.before].getLine()), [number, description.first]];
    return { about: description, key, getChunk, getState, chunks, readTimeline, getLine };
  }

  /** The texts of a value, without the names of its fields and places. */
  function joinTexts(value) {
    if (Array.isArray(value)) return value.map(joinTexts).join("\n");
    if (value === null || typeof value !== "object") return String(value ?? "");
    return Object.entries(value).map(([name, each]) => (["at", "cut", "old", "time", "seconds"].includes(name) ? "" : joinTexts(each))).join("\n");
  }

  const getStepText = ({ node, outputs, error, calls, events, interventions }) => joinTexts([node, outputs, error, calls, events, interventions]).toLowerCase();

  /** The steps of a run that have a text in their nodes, outputs, calls, events, errors or interventions. */
  async function findText(text, run) {
    const result = [];
    for await (const [, last, { steps }] of run.chunks()) {
      for (const [number, step] of Object.entries(steps)) {
        if (Number(number) <= last && result.at(-1) !== Number(number) && getStepText(step).includes(text)) result.push(Number(number));
      }
    }
    return result;
  }

  /** The steps of a run after which a condition holds. */
  async function findMatches(condition, run, declared) {
    const result = [];
    const keys = new Set(declared);
    let board = {};
    let holdsNow = null;
    for await (const [first, last, { board: changes }, begins] of run.chunks()) {
      if (begins) board = {}; // its first changes set all of it
      for (let position = first; position <= last; position += 1) {
        const changed = changes[position - first];
        applyChanges(board, changed);
        for (const [path] of changed) keys.add(String(path[0]));
        if (holdsNow === null || changed.length) holdsNow = holds(condition, board);
        if (position && holdsNow) result.push(position);
      }
    }
    if (!result.length) condition.checkKeys(keys);
    return result;
  }

  /**
   * Searches a run: for the text in quotes, for words none of which is a key, or otherwise for where a condition holds.
   * Returns {steps, wrong}; the latest search is kept.
   */
  function makeSearch() {
    let latest = [];
    async function search(text, run, declared) {
      const quoted = /^"(.*)"$|^'(.*)'$/s.exec(text);
      if (quoted && !/["']/.test(text.slice(1, -1))) return { steps: await findText((quoted[1] ?? quoted[2]).toLowerCase(), run), wrong: "" };
      try {
        return { steps: await findMatches(compileCondition(text), run, declared), wrong: "" };
      } catch (error) {
        if (!(error instanceof Wrong)) throw error;
        const words = /^[\p{L}\p{M}\s'’_-]+$/u.test(text) ? text.split(/\s+/) : [];
        if (words.length && !words.some((word) => declared.includes(word))) return { steps: await findText(text.toLowerCase(), run), wrong: "" };
        return { steps: [], wrong: error.message };
      }
    }
    return (text, run, declared) => {
      const query = String(text).trim();
      if (latest[0] !== query || latest[1] !== run) latest = [query, run, search(query, run, declared)];
      return latest[2];
    };
  }

  /** The drawing with regions closed: the one with exactly these, otherwise the most similar one besides the shown one. */
  function findNearest(drawings, regions, shownRegions) {
    const countDifferences = (left, right) => left.filter((each) => !right.includes(each)).length + right.filter((each) => !left.includes(each)).length;
    const getCost = ({ closed }) => countDifferences(closed, regions) + (countDifferences(closed, regions) && !countDifferences(closed, shownRegions) ? Infinity : 0);
    return [...drawings].sort((left, right) => getCost(left) - getCost(right) || 0)[0];
  }

  /** The card of an exercise, as a pending question. */
  function makeQuestion({ question, options }, name) {
    return { id: "quiz", kind: "answer", node: name, name, prompt: question, role: "", seconds_left: null, options, input: options.length ? "choice" : "text", arguments: [], answer: null, about: [] };
  }

  /** The model of the page, with the interface that a widget's model has. */
  function makeRecordedModel(main, all) {
    let run = all[main.shown];
    let timeline = null; // the timeline of the run
    let byNode = new Map(); // index of a name -> its steps
    let targetPosition = 0; // the position that was requested last
    let wrongAnswer = ""; // the last wrong answer
    let timer = 0;
    let answerCount = 0; // exercises
    const getView = () => main.views[run.about.view];
    const getFirstDrawing = () => getView().drawings[getView().begins_closed ? 1 : 0];
    let drawing = getFirstDrawing();
    const getDrawing = () => (getView().begins_closed ? `requested ${run.about.view}` : drawing.svg);
    const values = { svg: getDrawing(), commands: main.commands, state: null };
    const listeners = {};
    const fire = (name, ...parameters) => [...(listeners[name] || [])].forEach((listener) => listener(...parameters));
    const search = makeSearch();

    /** What a page may do at a position. */
    function listAllowed(position) {
      const { last, exercise } = run.about;
      const can = ["goto", "switch", ...(position > 0 ? ["back", "run_back"] : []), ...(position < last ? ["step", "over", "run"] : [])];
      return [...can, ...(exercise && position === last ? ["answer"] : []), ...(timer ? ["pause"] : [])];
    }
    /** What an open exercise adds to the last state before it. */
    function getExercise() {
      if (!run.about.exercise) return {};
      const name = `Exercise ${answerCount + 1} of ${main.exercises}`;
      const problems = wrongAnswer ? [{ code: "", what: wrongAnswer, severity: "warning" }] : [];
      return { pending: [makeQuestion(run.about.exercise, name)], problems };
    }
    async function show(position) {
      const { last } = run.about;
      targetPosition = Math.max(0, Math.min(position, last));
      const [target, shownRun] = [targetPosition, run];
      const state = await run.getState(target);
      if (target !== targetPosition || shownRun !== run) return; // another position was requested meanwhile
      values.state = { ...state, position: target, length: last, line: run.getLine(), can: listAllowed(target), ...(target === last ? getExercise() : {}) };
      fire("change:state");
    }
    async function setRun(other) {
      const lastView = getView();
      [run, byNode] = [other, new Map()];
      timeline = await run.readTimeline();
      if (getView() === lastView) return;
      drawing = getFirstDrawing();
      values.svg = getDrawing();
    }
    /** Show another run of the tree of forks. */
    async function switchRun(id) {
      const other = all.find(({ about: description }) => description.id === id);
      if (!other) return;
      const lastPicture = values.svg;
      await setRun(other);
      await show(run.about.position);
      if (values.svg !== lastPicture) fire("change:svg");
    }
    async function checkAnswer(text) {
      if (!globalThis.crypto?.subtle) {
        wrongAnswer = "This browser can show the rest only of a page opened from disk, over https or from this machine.";
        return show(targetPosition);
      }
      const key = await deriveKey(run.about.exercise, text, run.key);
      wrongAnswer = key ? "" : `Not ${text}. Look at the board and the edges, and try again.`;
      if (key) {
        answerCount += 1;
        const number = all.length;
        all.push(makeStretch(number, await unpackChunk(`stretch ${number}`, key), main.chunk, all, key));
        await setRun(all[number]);
      }
      return show(targetPosition);
    }
    function stop() {
      clearInterval(timer);
      timer = 0;
    }
    function play() {
      stop();
      timer = setInterval(() => {
        if (targetPosition >= run.about.last) stop();
        show(targetPosition + STEPS_A_FRAME);
      }, PLAY_PAUSE);
    }
    /** The position after a node and everything inside it: the next step at most as deep. */
    function stepOver() {
      const depth = timeline.steps[targetPosition]?.[2] ?? 0;
      let position = targetPosition + 1;
      if (timeline.steps[targetPosition]?.[1] !== 1) return position; // only a node that opens a frame contains others
      while (position < run.about.last && timeline.steps[position][2] > depth) position += 1;
      return Math.min(position + 1, run.about.last);
    }
    /** The steps of a node, by its name. */
    function listStepsOf(name) {
      if (!byNode.size) timeline.steps.forEach(([nodeName], at) => (byNode.get(nodeName) || byNode.set(nodeName, []).get(nodeName)).push(at + 1));
      return byNode.get(timeline.names.indexOf(name)) || [];
    }
    async function describeStep(number) {
      const name = timeline.names[timeline.steps[number - 1]?.[0]];
      if (name === undefined || number > run.about.last) return { node: null, step: null };
      const result = (await run.getChunk(number)).steps[number];
      const node = getView().nodes[name] || { id: name, missing: true, settable: false };
      const steps = listStepsOf(name);
      const at = steps.indexOf(number);
      return { node, runs: 0, step: result || null, before: steps[at - 1] ?? null, after: steps[at + 1] ?? null };
    }
    async function describeNode(name) {
      const steps = listStepsOf(name).filter((number) => number <= targetPosition);
      const last = steps.length ? await describeStep(steps.at(-1)) : { step: null, before: null, after: null };
      return { ...last, node: getView().nodes[name] || { id: name, missing: true }, runs: steps.length };
    }
    const queries = {
      timeline({ from = 1, to = 0 }) {
        const { last } = run.about;
        const end = Math.min(to, last);
        const marks = timeline.marks.filter(([position]) => position >= from - 1 && position <= end);
        return { names: timeline.names, line: run.getLine(), length: last, first: from, steps: timeline.steps.slice(from - 1, end), marks, overview: timeline.overview };
      },
      forks: () => ({ ...main.forks, rows: main.forks.rows.map((row) => ({ ...row, shown: row.id === run.about.id })) }),
      drawing(regions) {
        drawing = regions === null ? getFirstDrawing() : findNearest(getView().drawings, regions, drawing.closed);
        return drawing;
      },
      async find(text) {
        const { steps, wrong: message } = await search(text, run, values.state.board.map(([key]) => key));
        const rank = steps.filter((number) => number <= targetPosition).length;
        const [previous, next] = [steps.findLast((number) => number < targetPosition) ?? null, steps[rank] ?? null];
        return { wrong: message, total: steps.length, before: previous, after: next, rank, hits: steps };
      },
      async flows() {
        const { flows } = await run.getChunk(targetPosition);
        return flows[values.state.picture.board?.flows] || { flows: {}, removed: [] };
      },
      async events() { return (await run.getChunk(targetPosition)).events[targetPosition] || { types: [], rows: [], more: 0 }; },
      async objects() { return { svg: (await run.getChunk(targetPosition)).objects[targetPosition] || "" }; },
      step: describeStep,
      node: describeNode,
      async key([key]) {
        const row = values.state.board.find(([name]) => name === key);
        const [at] = row?.[4] || [0];
        const result = (await run.getChunk(at)).values[at]?.[key];
        return result || { path: [key], type: row?.[3] || "", by: row?.[4] || null, field: { path: [key], text: row?.[1] ?? "not yet", as: "fixed", note: "" } };
      },
      why_not: () => ({ reason: "An exported page cannot evaluate this. In a notebook: session.why_not(...).", edges: [] }),
    };
    async function runCommand({ do: verb, value, target }) {
      if (verb === "query") return queries[value]?.(target);
      if (verb !== "goto" || timer) stop();
      const action = {
        step: () => show(targetPosition + 1), back: () => show(targetPosition - 1), over: () => show(stepOver()), goto: () => show(value),
        run: play, run_back: () => show(0), pause: () => show(targetPosition), switch: () => switchRun(target), answer: () => checkAnswer(String(value)),
      }[verb];
      return action?.();
    }
    return {
      async begin(position) {
        await setRun(run);
        await show(position ?? (main.exercises ? 0 : run.about.last));
      },
      get: (name) => values[name],
      set: (name, value) => { values[name] = value; },
      on: (name, listener) => { (listeners[name] ||= []).push(listener); },
      off: (name, listener) => { listeners[name] = (listeners[name] || []).filter((one) => one !== listener); },
      async send(message) {
        if (message.do === "whole" || message.do === "text") return;
        const result = await runCommand(message);
        fire("msg:custom", { answers: message.number, view: message.view, ...(message.do === "query" ? { result: result } : {}) });
      },
    };
  }

  /** The tables of the steps that readers without JavaScript see, for the printed page. */
  function listTablesForPrint() {
    const page = new DOMParser().parseFromString(document.querySelector("noscript").textContent, "text/html");
    return [...page.querySelectorAll("h2, .agentnb-steps-table")];
  }

  async function open() {
    const main = await unpackChunk("main");
    const all = [];
    main.stretches.forEach((description, number) => all.push(makeStretch(number, description, main.chunk, all)));
    const model = makeRecordedModel(main, all);
    await model.begin(Number(location.hash.slice(1)) || null);
    const element = document.querySelector("#agentnb");
    element.classList.add("agentnb-recorded");
    render({ model, el: element });
    const find = element.querySelector(".agentnb-find");
    find.placeholder = 'n > 3, or "text"';
    find.setAttribute("aria-label", "find steps where this holds, or that have this text");
    const name = element.querySelector(".agentnb-name");
    name.setAttribute("role", "heading");
    name.setAttribute("aria-level", "1");
    element.append(...listTablesForPrint());
    const page = document.documentElement;
    window.matchMedia("print").addEventListener("change", ({ matches }) => {
      if (matches) page.dataset.theme = "light"; // paper is white
      else delete page.dataset.theme;
    });
    page.dataset.ready = "yes";
  }

  return { open };
})();
