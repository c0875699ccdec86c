// The panes with lists: call stack, events, breakpoints and watches, forks.
const listsPart = (() => {
  const { enable, make, setText } = domPart;
  const { makeField } = boardPart;

  // The call stack (the frames around the next node), and the next nodes with the reason.

  const TURNS = { resume: "resumes", fail: "fails", event: "is matched" };

  function renderFrame(frame, name, last) {
    const parts = [make("strong", { text: frame.node ?? name })];
    const more = [];
    if (frame.node !== null && frame.branch !== null) more.push(`branch ${frame.branch + 1}`);
    if (frame.node !== null && frame.round > 1) more.push(`round ${frame.round}`);
    if (more.length) parts.push(make("span", { class: "agentnb-faint", text: ` ${more.join(", ")}` }));
    return make("li", last ? { "aria-current": "true" } : {}, ...parts);
  }

  function renderNext(one) {
    const turn = TURNS[one.turn] ? ` ${TURNS[one.turn]}` : "";
    const branch = one.branch === null ? "" : ` branch ${one.branch + 1}`;
    return make("li", {}, make("strong", { text: one.node }), make("span", { class: "agentnb-faint", text: `${branch}${turn}: ${one.why}` }));
  }

  function makeStack() {
    const frames = make("ol", { class: "agentnb-frames", "aria-label": "call stack, the outermost first" });
    const next = make("ol", { class: "agentnb-next", "aria-label": "what comes next" });
    const nothing = make("p", { class: "agentnb-faint", text: "Nothing comes next." });
    const later = make("p", { class: "agentnb-faint" });
    const element = make("div", { class: "agentnb-stack" },
      make("h4", { "aria-level": "2", text: "Call stack" }), frames, make("h4", { "aria-level": "2", text: "Comes next" }), next, nothing, later);
    let lastContent = "";
    return {
      name: "stack",
      title: "Call stack and next nodes",
      body: element,
      show(state) {
        const { name, frames: open = [], next: soon = [], later: more = 0 } = state;
        const content = JSON.stringify([name, open, soon, more]);
        if (content === lastContent) return;
        lastContent = content;
        frames.replaceChildren(...open.map((frame, index) => renderFrame(frame, name, index === open.length - 1)));
        next.replaceChildren(...soon.map(renderNext));
        nothing.hidden = soon.length > 0;
        later.hidden = !more;
        setText(later, `and ${more} more`);
      },
    };
  }

  // Runs driven by events: emit an event from outside, and show the latest ones.

  const PAYLOAD = "{}";
  const RATE = 700; // milliseconds between two requests while a run moves
  let forms = 0;

  function renderEvent([seq, id, type, actor, cause, step, at], choice) {
    const source = [`by ${actor}`, cause && `from ${cause}`].filter(Boolean).join(", ");
    const where = step === null
      ? make("span", { class: "agentnb-faint", text: at ? `after step ${at}` : "at the start" })
      : make("button", { type: "button", class: "agentnb-link", text: `step ${step}`, title: `show step ${step}, which emitted it`, click: () => choice.set("step", step) });
    return make("li", { "data-event": id }, make("span", {}, make("span", { class: "agentnb-faint", text: `${seq} ` }), make("strong", { text: type }),
      make("span", { class: "agentnb-faint", text: ` ${source}` })), where);
  }

  /** The form: a type, listened to or not, and a payload. */
  function makeEmitForm(ask) {
    forms += 1;
    const types = make("datalist", { id: `agentnb-types-${forms}-${Math.random().toString(36).slice(2)}` });
    const type = make("input", { type: "text", class: "agentnb-input", list: types.id, "aria-label": "type of the event", autocomplete: "off", spellcheck: "false" });
    const payload = makeField({ label: "payload, as JSON", text: PAYLOAD, as: "json" }, { named: false });
    const send = make("button", { type: "submit", class: "agentnb-button agentnb-main", text: "Emit", title: "Emit this event; its listeners will run" });
    const faultLabel = make("p", { class: "agentnb-wrong", role: "alert" });
    const form = make("form", { class: "agentnb-emit" }, make("div", { class: "agentnb-line" }, type, send), faultLabel, types, payload.element);
    const showFault = (text) => {
      setText(faultLabel, text);
      if (text) type.setAttribute("aria-invalid", "true");
      else type.removeAttribute("aria-invalid");
    };
    type.addEventListener("input", () => showFault(""));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      showFault(type.value.trim() ? "" : "Enter a type: nodes listen to events by type.");
      const faulty = payload.check();
      if (!type.value.trim()) type.focus();
      else if (faulty) payload.box.focus();
      else ask("emit", payload.readContent().text, type.value.trim());
    });
    let lastNames = "";
    return {
      form,
      able: (can) => enable(send, can),
      offer(names) {
        const content = JSON.stringify(names);
        if (content === lastNames) return;
        lastNames = content;
        types.replaceChildren(...names.map((name) => make("option", { value: name })));
        type.placeholder = names.length ? `e.g. ${names[0]}` : "type";
      },
    };
  }

  function makeEvents(ask, choice) {
    const emit = makeEmitForm(ask);
    const list = make("ol", { class: "agentnb-rows", "aria-label": "latest events, the last one first" });
    const none = make("p", { class: "agentnb-faint", text: "No event yet. Emit one, and its listeners will run." });
    const later = make("p", { class: "agentnb-faint" });
    const body = make("div", { class: "agentnb-events", tabindex: "-1" }, emit.form, list, none, later);
    let [lastKey, lastRows, waiting, next, now] = ["", "", false, 0, null];

    function paint({ types, rows, more }) {
      emit.offer(types);
      const content = JSON.stringify([rows, more]);
      if (content === lastRows) return;
      lastRows = content;
      const hasFocus = list.contains(document.activeElement);
      list.replaceChildren(...rows.map((row) => renderEvent(row, choice)));
      none.hidden = rows.length > 0;
      later.hidden = !more;
      setText(later, `and ${more} before`);
      if (hasFocus) body.focus({ preventScroll: true });
    }
    /** Requests never repeat for the same state, do not overlap, and are rate-limited while a run moves. */
    function update() {
      const { number, position, length, status, run } = now;
      const key = JSON.stringify([number, position, length, status, run?.id]);
      if (key === lastKey || waiting || (status === "running" && Date.now() < next)) return;
      [lastKey, waiting, next] = [key, true, Date.now() + RATE];
      ask("query", "events", null, (result) => {
        waiting = false;
        if (result) paint(result);
        update();
      });
    }
    return {
      name: "events",
      title: "Events",
      body,
      isShown: ({ reactive }) => Boolean(reactive),
      show(state) {
        now = state;
        emit.able(state.can.includes("emit"));
        update();
      },
    };
  }

  // Breakpoints and watches.

  /** A field for an expression. A mistake is shown at the field, and what was typed stays. */
  function makeExpressionForm(label, hint, { use, ask, add }) {
    const faultLabel = make("p", { class: "agentnb-wrong", role: "alert" });
    const input = make("input", { type: "text", class: "agentnb-input agentnb-code", placeholder: hint, "aria-label": label, spellcheck: "false" });
    const form = make("form", { class: "agentnb-line" }, input, make("button", { type: "submit", class: "agentnb-button", text: "Add", "aria-label": `add: ${label}` }));
    function showFault(text) {
      setText(faultLabel, text);
      if (text) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
    input.addEventListener("input", () => showFault(""));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = input.value.trim();
      if (!text) return;
      ask("query", "condition", { text, use }, (result) => {
        showFault(result || "");
        if (result) {
          input.focus();
          return;
        }
        add(text);
        input.value = "";
      });
    });
    return make("div", {}, form, faultLabel);
  }

  /** The form of a breakpoint: what stops the run, its field, and a message that makes it a logpoint. */
  function makeStopForm(ask) {
    const clause = make("select", { class: "agentnb-input agentnb-clause", "aria-label": "what stops the run" }, make("option", { value: "when", text: "this holds" }));
    const input = make("input", { type: "text", class: "agentnb-input agentnb-code", placeholder: "e.g. n > 3", "aria-label": "stop when this holds", autocomplete: "off", spellcheck: "false" });
    const log = make("input", { type: "text", class: "agentnb-input agentnb-code agentnb-log", placeholder: "log: n is {{ n }}", "aria-label": "message to log instead of stopping", title: "With a message, the run does not stop: the message is written",
      autocomplete: "off", spellcheck: "false" });
    const faultLabel = make("p", { class: "agentnb-wrong", role: "alert" });
    const form = make("form", { class: "agentnb-stop-form" }, make("label", { class: "agentnb-faint" }, "stop when ", clause), input, log, make("button", { type: "submit", class: "agentnb-button", text: "Add", "aria-label": "add this breakpoint" }), faultLabel);
    let rows = [];
    function showFault(text) {
      setText(faultLabel, text);
      if (text) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
    for (const each of [input, log]) each.addEventListener("input", () => showFault(""));
    clause.addEventListener("change", () => {
      const [, label, hint] = rows.find(([name]) => name === clause.value);
      input.placeholder = hint;
      input.setAttribute("aria-label", `stop when ${label}`);
      showFault("");
      input.focus();
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const typed = { clause: clause.value, text: input.value.trim(), log: log.value.trim() };
      if (!typed.text && !rows.find(([name]) => name === typed.clause)?.[3]) {
        input.focus();
        return;
      }
      ask("query", "breakpoint", typed, (result) => {
        showFault(result || "");
        if (result) {
          input.focus();
          return;
        }
        ask("stop_when", typed);
        [input.value, log.value] = ["", ""];
      });
    });
    return {
      form,
      /** Request the choices once. */
      fill() {
        if (rows.length) return;
        rows = [["when", "this holds", "e.g. n > 3", false]];
        ask("query", "clauses", null, (result) => {
          if (!result) return;
          rows = result;
          clause.replaceChildren(...rows.map(([name, label]) => make("option", { value: name, text: label })));
        });
      },
    };
  }

  const makeRemoveButton = (label, click) => make("button", { type: "button", class: "agentnb-small", text: "×", title: label, "aria-label": label, click });

  function renderStop(row, ask) {
    const box = make("input", { type: "checkbox", change: () => ask("enable", box.checked, row.id) });
    box.checked = row.enabled;
    const hits = row.hits ? [make("span", { class: "agentnb-faint", text: ` met ${row.hits}×` })] : [];
    const met = row.stopped_here && !row.log ? [make("span", { class: "agentnb-chip", text: "stopped here" })] : [];
    const failed = row.failed ? [make("small", { class: "agentnb-note", text: `could not be evaluated: ${row.failed}` })] : [];
    return make("li", { "data-stop": String(row.id) },
      make("label", {}, box, make("span", { text: ` ${row.text}` }), ...hits), ...met,
      makeRemoveButton(`remove breakpoint: ${row.text}`, () => ask("remove", null, row.id)), ...failed);
  }

  function renderWatch([text, value], ask) {
    return make("li", { "data-watch": text }, make("span", { class: "agentnb-code" }, text, " = ", make("strong", { text: value })),
      makeRemoveButton(`watch no longer: ${text}`, () => ask("unwatch", null, text)));
  }

  /** Rows rebuilt only if they differ; the focus stays near its place. */
  function makeList(label, hint, rowOf) {
    const element = make("ul", { class: "agentnb-rows", "aria-label": label });
    const none = make("span", { class: "agentnb-hint agentnb-faint", text: hint });
    let lastRows = "";
    return {
      element,
      hint: none, // shown while there are no rows
      show(rows, home) {
        const content = JSON.stringify(rows);
        if (content === lastRows) return;
        lastRows = content;
        const inside = element.contains(document.activeElement);
        element.replaceChildren(...rows.map(rowOf));
        none.hidden = rows.length > 0;
        if (inside) (element.querySelector("input, button") || home).focus({ preventScroll: true });
      },
    };
  }

  function makeStops(ask) {
    const marks = makeList("breakpoints", "click left of a node to set one", (row) => renderStop(row, ask));
    const watches = makeList("watches", "evaluated after each step", (row) => renderWatch(row, ask));
    const messages = makeList("messages of logpoints", "", (text) => make("li", { class: "agentnb-code", text }));
    const logged = make("div", { class: "agentnb-messages", hidden: true }, make("h4", { "aria-level": "2", text: "Messages" }), messages.element);
    const form = makeStopForm(ask);
    const body = make("div", { class: "agentnb-stops", tabindex: "-1" },
      make("div", {}, make("h4", { "aria-level": "2" }, "Breakpoints", marks.hint), marks.element, form.form),
      make("div", {}, make("h4", { "aria-level": "2" }, "Watches", watches.hint), watches.element,
        makeExpressionForm("watch this", "e.g. x|length", { use: "watch", ask, add: (text) => ask("watch", text) })), logged);
    return {
      name: "stops",
      title: "Breakpoints and watches",
      body,
      getTitle: ({ breakpoints = [], watches: watched = [] }) => `Breakpoints (${breakpoints.length}) and watches (${watched.length})`,
      show({ breakpoints = [], watches: watched = [], messages: logMessages = [] }) {
        form.fill();
        marks.show(breakpoints, body);
        watches.show(watched, body);
        messages.show(logMessages, body);
        logged.hidden = !logMessages.length;
      },
    };
  }

  // Usage by node, as bars.

  const MEASURES = [["time", 2, (value) => (value >= 1 ? `${value.toFixed(2)} s` : `${(value * 1000).toPrecision(2).replace(/e.*/, "")} ms`)],
    ["steps", 1, String], ["calls", 3, String], ["tokens", 4, String], ["cost", 5, (value) => `${value.toPrecision(3)} USD`]];

  function makeUsage(ask, choice) {
    const pick = make("select", { class: "agentnb-speed", "aria-label": "what the bars show" }, ...MEASURES.map(([name]) => make("option", { value: name, text: name })));
    const bars = make("ol", { class: "agentnb-bars", "aria-label": "usage by node, the most first" });
    const none = make("p", { class: "agentnb-faint", text: "…" });
    const body = make("div", { class: "agentnb-usage", tabindex: "-1" }, bars, none);
    let [usage, lastKey] = [null, ""];
    function paint() {
      const [name, column, content] = MEASURES.find(([each]) => each === pick.value);
      const rows = [...(usage?.rows || [])].filter((row) => row[column] > 0).sort((one, other) => other[column] - one[column]);
      none.hidden = rows.length > 0;
      setText(none, !usage ? "…" : usage.rows.length ? `No ${name} used yet.` : "Nothing has run yet.");
      bars.replaceChildren(...rows.map((row) => make("li", {},
        make("button", { type: "button", class: "agentnb-link", text: row[0], title: `show node ${row[0]}`, click: () => choice.set("node", row[0]) }),
        make("span", { class: "agentnb-bar-line", style: `--a-part: ${row[column] / rows[0][column]}` }), make("small", { text: content(row[column]) }))));
    }
    pick.addEventListener("change", paint);
    return {
      name: "usage",
      title: "Usage by node",
      open: false,
      body,
      tools: [pick],
      show(state) {
        const now = JSON.stringify([state.position, state.length, state.run, state.line]);
        if (now === lastKey || ["running", "pausing"].includes(state.status)) return;
        lastKey = now;
        ask("query", "usage", null, (result) => {
          if (!result) return;
          usage = result;
          paint();
        });
      },
    };
  }

  // The tree of runs that this cockpit can show: where each was forked, its length, and which one is shown.

  function describeStart(row) {
    if (row.depth === 0) return "";
    return row.from === null ? " after reset" : row.from === 0 ? " from the start" : ` from step ${row.from}`;
  }

  function describeStatus({ position, length, status }) {
    return `${position === length ? length : `${position} of ${length}`} ${length === 1 ? "step" : "steps"}, ${status.replace("_", " ")}`;
  }

  /** A run of the tree; the shown one is marked, and a click shows another one. */
  function renderFork(row, ask) {
    const name = row.shown
      ? make("strong", { "aria-current": "true" }, row.name)
      : make("button", { type: "button", class: "agentnb-link", text: row.name,
        title: `show this run here: ${row.name} (${row.id})`, click: () => ask("switch", null, row.id) });
    const sign = row.depth ? [make("span", { class: "agentnb-faint", "aria-hidden": "true", text: "⋔ " })] : [];
    const compareButtons = row.shown ? [] : [make("button", { type: "button", class: "agentnb-link", text: "compare", title: `show ${row.name} beside this run; one slider moves both`,
      "aria-label": `compare with ${row.name}`, click: () => ask("beside", null, row.id) })];
    const words = row.holds === true ? "holds" : row.holds === false ? "does not hold" : "not known yet";
    const expected = row.expected ? [make("small", { class: "agentnb-note", "data-holds": String(row.holds), text: `expected ${row.expected}: ${words}` })] : [];
    const note = row.note ? [make("small", { class: "agentnb-note", text: row.note })] : [];
    return make("li", { style: `padding-left:${Math.min(row.depth, 8) * 14}px` },
      make("span", {}, ...sign, name, make("span", { class: "agentnb-faint", text: `${describeStart(row)}: ${describeStatus(row)}` })),
      ...(row.shown ? [make("span", { class: "agentnb-chip", text: "shown" })] : []), ...compareButtons, ...note, ...expected);
  }

  function makeForkForm(ask) {
    const name = make("input", { type: "text", class: "agentnb-input", placeholder: "name", "aria-label": "name of the fork", spellcheck: "false" });
    const expect = make("input", { type: "text", class: "agentnb-input agentnb-code", placeholder: "expect n<3", "aria-label": "what the fork is expected to satisfy", spellcheck: "false" });
    const button = make("button", { type: "submit", class: "agentnb-button", text: "Fork here", title: "continue in a fork from here; this run is unchanged" });
    const faultLabel = make("p", { class: "agentnb-wrong", role: "alert" });
    const form = make("form", { class: "agentnb-fork-form" }, name, expect, button, faultLabel);
    function fork() {
      ask("fork", { name: name.value.trim() || null, expect: expect.value.trim() || null });
      [name.value, expect.value] = ["", ""];
    }
    expect.addEventListener("input", () => setText(faultLabel, ""));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = expect.value.trim();
      if (!text) return fork();
      return ask("query", "condition", { text, use: "expect" }, (result) => {
        setText(faultLabel, result || "");
        if (!result) fork();
      });
    });
    return { form, button };
  }

  function makeForks(ask) {
    const list = make("ul", { class: "agentnb-rows", "aria-label": "runs, each below the one that it began from" });
    const more = make("p", { class: "agentnb-faint" });
    const { form, button } = makeForkForm(ask);
    const body = make("div", { class: "agentnb-forks", tabindex: "-1" }, list, more);
    let tree = null; // the tree as last received
    let last = null;
    let lastRows = "";
    let lastKey = "";

    /** The row of the shown run follows the state; the others are requested when the tree changes. */
    function paint() {
      if (!tree) return;
      const { position, length, status } = last;
      const rows = tree.rows.map((row) => (row.shown ? { ...row, position, length, status } : row));
      const content = JSON.stringify([rows, tree.more]);
      if (content === lastRows) return;
      lastRows = content;
      const inside = list.contains(document.activeElement);
      list.replaceChildren(...rows.map((row) => renderFork(row, ask)));
      if (inside) (list.querySelector("button") || body).focus({ preventScroll: true });
      more.hidden = !tree.more;
      setText(more, `and ${tree.more} more`);
    }
    return {
      name: "forks",
      title: "Forks",
      tools: [form],
      getTitle({ forks: own }) {
        const count = tree ? tree.rows.length - 1 + tree.more : own;
        return count ? `Forks (${count})` : "Forks";
      },
      body,
      show(state) {
        last = state;
        enable(button, state.can.includes("fork"));
        const moving = tree?.rows.some(({ expected }) => expected) ? [state.position, state.length] : []; // what is expected may hold later
        const now = JSON.stringify([state.run, state.line, state.forks, ...moving]);
        if (now === lastKey) paint();
        if (now === lastKey || (tree && ["running", "pausing"].includes(state.status))) return; // requested once it rests
        lastKey = now;
        ask("query", "forks", null, (result) => {
          if (!result) return;
          tree = result;
          paint();
        });
      },
    };
  }

  /** The panes below the timeline, from top to bottom. */
  const makeListPanes = (ask, choice) => [makeStops(ask), makeForks(ask), makeUsage(ask, choice)];

  return { makeEvents, makeListPanes, makeStack };
})();
