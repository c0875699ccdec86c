// An exported page: the data in the file take the place of a kernel. Nothing runs; moving shows another recorded state.
const recordedPart = (() => {
  const { merged, render } = cockpitPart;

  const STEPS_A_FRAME = 1; // positions per tick while Run plays
  const PLAY_PAUSE = 350; // milliseconds between two positions while Run plays

  /** The value of a chunk of the file, by its name. */
  async function unpacked(name) {
    const text = document.querySelector(`script[data-name="${name}"]`).textContent;
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(stream).text());
  }

  /** The recorded states: a chunk is unpacked when a step in it is shown, and its states are derived once. */
  function record(size) {
    const known = new Map(); // number of a chunk -> the promise of its content
    const raw = (number) => unpacked(String(number));
    function chunk(number) {
      if (!known.has(number)) {
        known.set(number, raw(number).then((found) => {
          found.states = [found.state];
          for (const changed of found.changes) {
            const before = found.states.at(-1);
            found.states.push(merged(before, { changed, number: (before.number || 0) + 1 }));
          }
          return found;
        }));
      }
      return known.get(number);
    }
    const at = (position) => chunk(Math.floor(position / size));
    return { at, raw: (position) => raw(Math.floor(position / size)), state: async (position) => (await at(position)).states[position % size] };
  }

  /** The texts of a value, without the names of its fields and places. */
  function textsOf(value) {
    if (Array.isArray(value)) return value.map(textsOf).join("\n");
    if (value === null || typeof value !== "object") return String(value ?? "");
    return Object.entries(value).map(([name, each]) => (["at", "cut", "old", "time", "seconds"].includes(name) ? "" : textsOf(each))).join("\n");
  }

  /** Searches the nodes, outputs, calls, events and errors of all steps for a text; the latest search is kept. */
  function searcher(steps, main) {
    let latest = [null, null];
    async function search(text) {
      const found = [];
      for (let first = 0; first <= main.length; first += main.chunk) {
        const { steps: told } = await steps.raw(first);
        for (const [number, { node, outputs, error, calls, events, acts }] of Object.entries(told)) {
          if (textsOf([node, outputs, error, calls, events, acts]).toLowerCase().includes(text)) found.push(Number(number));
        }
      }
      return found;
    }
    return (text) => {
      const wanted = String(text).trim().toLowerCase();
      if (latest[0] !== wanted) latest = [wanted, search(wanted)];
      return latest[1];
    };
  }

  /** The drawing with regions closed: the one with exactly these, otherwise the most similar one besides the shown one. */
  function nearest(drawings, wanted, shown) {
    const apart = (one, other) => one.filter((each) => !other.includes(each)).length + other.filter((each) => !one.includes(each)).length;
    const cost = ({ closed }) => apart(closed, wanted) + (apart(closed, wanted) && !apart(closed, shown) ? Infinity : 0);
    return [...drawings].sort((one, other) => cost(one) - cost(other) || 0)[0];
  }

  /** The exercises: the first unanswered one hides what follows its step. */
  function exercises(all) {
    const right = new Set();
    const sorted = [...all].sort((one, other) => one.step - other.step);
    let wrong = "";
    const open = () => sorted.find((each) => !right.has(each)) ?? null;
    const plain = (text) => text.trim().replace(/\s+/g, " ").replace(/^(['"])(.*)\1$/, "$2").toLowerCase();
    return {
      open,
      /** The last position that may be shown. */
      end: (length) => open()?.step ?? length,
      answer(text) {
        const asked = open();
        if (plain(text) === plain(asked.answer)) {
          right.add(asked);
          wrong = "";
        } else wrong = text;
      },
      /** A state as a reader may see it: at an open exercise without what comes next, but with the question. */
      hide(state) {
        const asked = open();
        if (!asked || state.position !== asked.step) return state;
        const name = `Exercise ${right.size + 1} of ${all.length}`;
        const nodes = Object.fromEntries(Object.entries(state.picture.nodes || {}).map(([id, marks]) => (
          [id, { ...marks, classes: marks.classes.filter((mark) => !["current", "next", "waiting"].includes(mark)) }])));
        return {
          ...state, current: null, next: [], later: 0, picture: { ...state.picture, nodes }, said: `${name}: ${asked.question}`,
          problems: wrong ? [{ code: "", what: `Not ${wrong}. Look at the board and the edges, and try again.`, severity: "warning" }] : [],
          pending: [{ id: "quiz", kind: "answer", node: name, name, prompt: asked.question, role: "", left: null, options: asked.options,
            way: asked.options.length ? "choice" : "text", arguments: [], answer: null, about: [] }],
        };
      },
    };
  }

  /** The model of the page, with the interface that a widget's model has. */
  function recordedModel(main, times, steps, quiz, first) {
    const values = { svg: main.begins_closed ? "requested" : main.drawings[0].svg, commands: main.commands, state: first };
    const listeners = {};
    const fire = (name, ...told) => [...(listeners[name] || [])].forEach((listener) => listener(...told));
    const byNode = new Map(); // index of a name -> its steps
    let timer = 0;
    const search = searcher(steps, main);
    let drawn = main.drawings[main.begins_closed ? 1 : 0];
    let wanted = first.position; // the position that was requested last

    /** What a page may do at a position. */
    function able(position) {
      const end = quiz.end(main.length);
      const can = ["goto", "switch", ...(position > 0 ? ["back", "run_back"] : []), ...(position < end ? ["step", "over", "run"] : [])];
      return [...can, ...(quiz.open()?.step === position ? ["answer"] : []), ...(timer ? ["pause"] : [])];
    }
    async function show(position) {
      const end = quiz.end(main.length);
      wanted = Math.max(0, Math.min(position, end));
      const place = wanted;
      const state = await steps.state(place);
      if (place !== wanted) return; // another position was requested meanwhile
      values.state = quiz.hide({ ...state, position: place, length: end, can: able(place) });
      fire("change:state");
    }
    function stop() {
      clearInterval(timer);
      timer = 0;
    }
    function play() {
      stop();
      timer = setInterval(() => {
        if (wanted >= quiz.end(main.length)) stop();
        show(wanted + STEPS_A_FRAME);
      }, PLAY_PAUSE);
    }
    /** The position after a node and everything inside it: the next step at most as deep. */
    function over() {
      const depth = times.steps[wanted]?.[2] ?? 0;
      let place = wanted + 1;
      if (times.steps[wanted]?.[1] !== 1) return place; // only a node that opens a frame contains others
      while (place < main.length && times.steps[place][2] > depth) place += 1;
      return Math.min(place + 1, main.length);
    }
    /** The steps of a node, by its name. */
    function stepsOf(name) {
      if (!byNode.size) times.steps.forEach(([name_], at) => (byNode.get(name_) || byNode.set(name_, []).get(name_)).push(at + 1));
      return byNode.get(times.names.indexOf(name)) || [];
    }
    async function step(number) {
      const found = (await steps.at(number)).steps[number];
      const name = times.names[times.steps[number - 1]?.[0]];
      if (name === undefined || number > quiz.end(main.length)) return { node: null, step: null };
      const node = main.nodes[name] || { id: name, gone: true, settable: false };
      const all = stepsOf(name).filter((each) => each <= quiz.end(main.length));
      const at = all.indexOf(number);
      return { node, runs: 0, step: found || null, before: all[at - 1] ?? null, after: all[at + 1] ?? null };
    }
    async function node(name) {
      const all = stepsOf(name).filter((number) => number <= wanted);
      const last = all.length ? await step(all.at(-1)) : { step: null, before: null, after: null };
      return { ...last, node: main.nodes[name] || { id: name, gone: true }, runs: all.length };
    }
    const queries = {
      timeline({ from = 1, to = 0 }) {
        const end = quiz.end(main.length);
        const last = Math.min(to, end);
        const marks = times.marks.filter(([place]) => place >= from - 1 && place <= last);
        return { ...times, length: end, first: from, steps: times.steps.slice(from - 1, last), marks, overview: end === main.length ? times.overview : { size: 1 } };
      },
      forks: () => main.forks,
      drawing(which) {
        drawn = which === null ? main.drawings[main.begins_closed ? 1 : 0] : nearest(main.drawings, which, drawn.closed);
        return drawn;
      },
      async find(text) {
        const all = (await search(text)).filter((number) => number <= quiz.end(main.length));
        const rank = all.filter((number) => number <= wanted).length;
        const [before, after] = [all.findLast((number) => number < wanted) ?? null, all[rank] ?? null];
        return { wrong: "", total: all.length, before, after, rank, hits: all };
      },
      async flows() {
        const { flows } = await steps.at(wanted);
        return flows[values.state.picture.board?.flows] || { flows: {}, gone: [] };
      },
      async events() { return (await steps.at(wanted)).events[wanted] || { types: [], rows: [], more: 0 }; },
      async objects() { return { svg: (await steps.at(wanted)).objects[wanted] || "" }; },
      step,
      node,
      async key([key]) {
        const row = values.state.board.find(([name]) => name === key);
        const [at] = row?.[4] || [0];
        const found = (await steps.at(at)).values[at]?.[key];
        return found || { path: [key], type: row?.[3] || "", by: row?.[4] || null, field: { path: [key], text: row?.[1] ?? "not yet", as: "fixed", note: "" } };
      },
      why_not: () => ({ said: "An exported page cannot evaluate this. In a notebook: session.why_not(...).", ways: [] }),
    };
    async function obey({ do: verb, value, target }) {
      if (verb === "look") return queries[value]?.(target);
      if (verb !== "goto" || timer) stop();
      const does = {
        step: () => show(wanted + 1), back: () => show(wanted - 1), over: () => show(over()), goto: () => show(value),
        run: play, run_back: () => show(0), pause: () => show(wanted),
        answer() { quiz.answer(String(value)); return show(wanted); },
      }[verb];
      return does?.();
    }
    return {
      show,
      get: (name) => values[name],
      set: (name, value) => { values[name] = value; },
      on: (name, listener) => { (listeners[name] ||= []).push(listener); },
      off: (name, listener) => { listeners[name] = (listeners[name] || []).filter((one) => one !== listener); },
      async send(message) {
        if (message.do === "whole" || message.do === "text") return;
        const found = await obey(message);
        fire("msg:custom", { heard: message.number, view: message.view, ...(message.do === "look" ? { found } : {}) });
      },
    };
  }

  async function open() {
    const [main, times] = await Promise.all([unpacked("main"), unpacked("timeline")]);
    const [steps, quiz] = [record(main.chunk), exercises(main.quiz)];
    const start = Math.min(Number(location.hash.slice(1)) || (main.quiz.length ? 0 : main.length), quiz.end(main.length));
    const model = recordedModel(main, times, steps, quiz, { ...(await steps.state(start)), position: start });
    await model.show(start);
    const el = document.querySelector("#agentnb");
    el.classList.add("agentnb-recorded");
    render({ model, el });
    const find = el.querySelector(".agentnb-find");
    find.placeholder = "find text";
    find.setAttribute("aria-label", "find steps that have this text");
    const page = document.documentElement;
    window.matchMedia("print").addEventListener("change", ({ matches }) => {
      if (matches) page.dataset.theme = "light"; // paper is white
      else delete page.dataset.theme;
    });
    page.dataset.ready = "yes";
  }

  return { open };
})();
