// The details pane: what a node is and what a step did.
const detailsPart = (() => {
  const { enable, make, say } = domPart;
  const { problemCard } = cardsPart;

  // The values, calls, conditions and events of a step, each as an element; all content is set as text.

  const [NARROW, LINES] = [26, 14]; // letters in a line of a narrow pane; lines that fit into the box of a value
  const LONG = 64; // characters; longer or multi-line text is in a box below its name

  /** 0.00042 -> "0.42 ms". */
  function lasted(seconds) {
    if (seconds >= 60) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
    return seconds >= 1 ? `${seconds.toFixed(2)} s` : `${(seconds * 1000).toPrecision(2).replace(/e.*/, "")} ms`;
  }

  const faintly = (text) => make("span", { class: "agentnb-faint", text });
  const linkTo = (text, title, click) => make("button", { type: "button", class: "agentnb-link", text, title, click });

  /** Whether a text may be higher than its box, also in a narrow pane. */
  const isTall = (text) => text.split("\n").reduce((lines, line) => lines + Math.ceil((line.length + 1) / NARROW), 0) > LINES;

  /** The text of a value; if truncated, with a button that requests all of it. `whole` stores the full values. */
  function valueOf(cell, pull, whole) {
    const box = make("code", { class: "agentnb-cell-value" });
    const element = make("div", { class: "agentnb-cell" }, box);
    const id = `${cell.at} ${cell.text}`;
    const long = cell.text.length > LONG || cell.text.includes("\n");
    const button = make("button", { type: "button", class: "agentnb-link", "data-at": `all ${cell.at}` });
    function show() {
      const all = whole.get(id);
      const cut = all ? all.cut : cell.cut;
      const { text } = all || cell;
      say(box, text + (cut ? " …" : ""));
      box.classList.toggle("agentnb-long", long || Boolean(all));
      if (isTall(text)) box.setAttribute("tabindex", "0"); // so that the keyboard can scroll it
      else box.removeAttribute("tabindex");
      say(button, all ? "show less" : "show all");
    }
    button.addEventListener("click", () => {
      if (whole.delete(id)) show();
      else pull(cell.at, (all) => { whole.set(id, all); show(); });
    });
    if (cell.cut) element.append(button);
    show();
    return element;
  }

  /** Named values, one below the other. */
  function rowsOf(cells, tell) {
    return make("dl", { class: "agentnb-values" }, ...cells.flatMap((cell) => [
      make("dt", {}, cell.name, ...(cell.type ? [" ", make("small", { class: "agentnb-faint", text: cell.type })] : [])),
      make("dd", {}, tell(cell)),
    ]));
  }

  /** The changes of a step: before and after. */
  function changesOf(rows, tell) {
    return make("dl", { class: "agentnb-values" }, ...rows.flatMap((row) => {
      const about = [row.op === "append" ? "one item more" : "", row.note].filter(Boolean).join(", ");
      const after = row.new ? tell(row.new) : faintly("deleted");
      const before = row.old && row.op !== "append"
        ? make("div", { class: "agentnb-before" }, make("span", { class: "agentnb-hidden", text: "before: " }), tell(row.old))
        : row.op === "append" ? "" : make("div", { class: "agentnb-before" }, faintly("new"));
      return [
        make("dt", {}, row.key, ...(about ? [" ", make("small", { class: "agentnb-faint", text: about })] : [])),
        make("dd", { class: "agentnb-change" }, before, make("span", { class: "agentnb-arrow", "aria-hidden": "true", text: row.op === "append" ? "+" : "→" }), after),
      ];
    }));
  }

  const SAID = { system: "system", user: "user", assistant: "assistant", tool: "tool" };

  /** One attempt of a call: the request, the response, time and cost. */
  function callOf(call, tell) {
    const [sent, back] = call.tokens || [];
    const count = (number, word) => (number === null || number === undefined ? "" : `${number} ${word}`);
    const took = [
      call.attempt > 1 ? `attempt ${call.attempt}${call.wait ? ` after ${lasted(call.wait)}` : ""}` : "",
      lasted(call.seconds), count(sent, "tokens in"), count(back, "tokens out"), call.cost ? `${call.cost} USD` : "",
    ].filter(Boolean);
    const said = call.messages.map((cell) => make("div", { class: "agentnb-message", "data-role": SAID[cell.name] || "other" },
      make("small", { class: "agentnb-faint", text: cell.name }), tell(cell)));
    const answer = call.error
      ? [make("div", { class: "agentnb-message agentnb-bad" }, make("small", { text: "failed" }), tell(call.error))]
      : call.result ? [make("div", { class: "agentnb-message agentnb-answer" }, make("small", { class: "agentnb-faint", text: `answer${call.result.type ? `, ${call.result.type}` : ""}` }), tell(call.result))] : [];
    return make("article", { class: "agentnb-call", "aria-label": `call ${call.call}, ${call.name}` },
      make("p", {}, make("span", { class: "agentnb-chip", text: call.kind }), " ", make("strong", { text: call.name }), " ", faintly(took.join(", "))),
      ...(call.arguments.length ? [rowsOf(call.arguments, tell)] : []), ...said, ...answer);
  }

  /** The evaluated conditions, each with its result and what it read. */
  function whyOf(asked) {
    return make("ul", { class: "agentnb-why" }, ...asked.map((one) => make("li", { class: one.taken ? "agentnb-taken" : "" },
      make("span", { class: "agentnb-arrow", "aria-hidden": "true", text: one.taken ? "→" : "·" }),
      make("div", {},
        ...(one.target ? [make("strong", { text: one.target }), one.taken ? ", taken: " : ": "] : []),
        make("code", { text: one.condition }), " is ", make("code", { text: one.value }),
        ...one.operands.map(([text, value]) => make("div", { class: "agentnb-faint" }, make("code", { text }), " = ", make("code", { text: value }))),
        ...(one.warning ? [make("div", { class: "agentnb-odd", text: `odd: ${one.warning}` })] : [])))));
  }

  /** What ran inside a node: its rounds or its branches. */
  function insideOf({ parts, more }, { step, node }) {
    const rounds = parts.some((part) => part.round > 1);
    const items = parts.map((part) => {
      const branch = part.branch === null ? "" : `branch ${part.branch + 1}`;
      const name = [branch, part.title === branch ? "" : part.title, rounds ? `round ${part.round}` : ""];
      const one = part.first === part.last;
      return make("li", {}, make("span", {}, name.filter(Boolean).join(", "), ": ", step(part.first), ...(one ? [] : [" to ", step(part.last)])),
        make("small", { class: "agentnb-faint" }, "ended with ", node(part.node), `, ${part.status}`));
    });
    return make("div", {}, make("ol", { class: "agentnb-rows" }, ...items), ...(more ? [faintly(`and ${more} more`)] : []));
  }

  /** Events: each expands to its payload. */
  function eventsOf(events, tell) {
    return make("div", {}, ...events.map((event) => make("details", { class: "agentnb-event" },
      make("summary", {}, make("strong", { text: event.type }), faintly(` ${event.id}, by ${event.actor}`)), tell(event.payload))));
  }

  /** Interventions while the step was the current one. */
  function actsOf(acts, tell) {
    return make("ul", { class: "agentnb-rows" }, ...acts.map((act) => make("li", {},
      make("span", {}, make("strong", { text: act.act }), ` ${act.target}`, faintly(` by ${act.actor}, ${new Date(act.time).toLocaleTimeString()}`)),
      ...(act.new ? [tell(act.new)] : []))));
  }

  // The sections of the details pane: what a node is, and what a step did; each can be collapsed.

  const STATUS = { ok: "✓ ok", error: "✕ failed", cancelled: "⊘ cancelled", skipped: "↷ skipped" };
  const PHASE = { run: "", enter: "entered", again: "goes round again", leave: "left" };
  const CLOSED = new Set(["Parameters", "Edges", "Events", "Action and observation"]); // collapsed at first

  /** The collapsible sections; a view remembers which of them are open. */
  function folder() {
    const open = new Map();
    return (name, count, ...parts) => {
      const element = make("details", { class: "agentnb-part", "data-part": name, open: open.get(name) ?? !CLOSED.has(name) },
        make("summary", { "data-at": `part ${name}` }, make("span", { text: name }), ...(count ? [faintly(` ${count}`)] : [])), ...parts);
      element.addEventListener("toggle", () => open.set(name, element.open));
      return element;
    };
  }

  function waysOf(ways, to) {
    return make("ul", { class: "agentnb-rows" }, ...ways.map(([leads, other, kind, condition]) => make("li", {},
      make("span", {}, leads ? "to " : "from ", to.node(other), faintly(` ${kind}${condition ? `, ${condition}` : ""}`)))));
  }

  /** A node: what it reads and writes, its source, its prompts, the events that it listens to. */
  function nodeParts(node, fold, tell, to, whyNot) {
    const facts = node.facts.flatMap(([name, text]) => [make("dt", { text: name }), make("dd", { text })]);
    const written = node.definition.flatMap((cell) => [...(cell.name === node.place ? [] : [make("code", { class: "agentnb-place", title: "click to select", text: cell.name })]), tell(cell)]);
    return [
      ...(facts.length ? [make("dl", { class: "agentnb-values agentnb-facts" }, ...facts)] : []),
      ...(written.length ? [fold("Definition", "", ...written)] : []),
      ...(node.prompt.length ? [fold("Prompt as it is written", "", rowsOf(node.prompt, tell))] : []),
      ...(node.listens ? [fold("Listens", "", rowsOf(node.reacts, tell), whyNot)] : []),
      ...(node.parameters.length ? [fold("Parameters", node.parameters.length, rowsOf(node.parameters, tell))] : []),
      ...(node.latest.length ? [fold("Latest events", node.latest.length, eventsOf(node.latest, tell))] : []),
      ...(node.ways.length ? [fold("Edges", node.ways.length, waysOf(node.ways, to))] : []),
    ];
  }

  /** What activated a step: the event and its causes. */
  function deliveredPart(event, tell, to) {
    const from = event.causes.map(([id, type, step, actor]) => make("li", {},
      make("span", {}, make("strong", { text: type }), faintly(` ${id}, by ${actor}`), ...(step ? [" in ", to.step(step)] : []))));
    const chain = [make("p", { class: "agentnb-faint", text: "caused by" }), make("ol", { class: "agentnb-rows" }, ...from)];
    return [...(event.step ? [make("p", {}, "emitted in ", to.step(event.step))] : []), eventsOf([event], tell), ...(from.length ? chain : [])];
  }

  function wentOf({ went, sets_off: off }, to) {
    const about = ({ kind, condition, value }) => [kind, condition, value && value !== condition && `value ${value}`].filter(Boolean).map((text) => `, ${text}`).join("");
    return make("ul", { class: "agentnb-rows" }, ...went.map((one) => make("li", {}, make("span", {}, "went to ", to.node(one.target), faintly(about(one))))),
      ...off.map((id) => make("li", {}, make("span", {}, "its event triggers ", to.node(id)))));
  }

  function aboutOf(step) {
    const words = [
      STATUS[step.status], PHASE[step.phase], step.frame === "root" ? "" : `in ${step.frame}`,
      step.branch === null ? "" : `branch ${step.branch + 1}`, step.round > 1 ? `round ${step.round}` : "",
      lasted(step.seconds), new Date(step.time).toLocaleTimeString(),
    ];
    return make("p", { class: "agentnb-about", "data-status": step.status, text: words.filter(Boolean).join(" · ") });
  }

  /** A step: its inputs, its result, its calls, and why the run continued as it did. */
  function stepParts(step, fold, tell, to) {
    const part = (name, rows, ...parts) => (rows.length ? [fold(name, rows.length, ...parts)] : []);
    const calls = step.calls.map((call) => callOf(call, tell));
    if (step.more_calls) calls.push(faintly(`and ${step.more_calls} more`));
    const [thought, rest] = [step.said.filter(({ name }) => name === "thought"), step.said.filter(({ name }) => name !== "thought")];
    const inside = step.inside;
    return [
      aboutOf(step),
      ...(thought.length ? [make("div", { class: "agentnb-thought" }, tell(thought[0]))] : []),
      ...(step.error ? [problemCard(step.error)] : []),
      ...(step.delivered ? [fold("Triggered by", "", ...deliveredPart(step.delivered, tell, to))] : []),
      ...part("Inputs", step.inputs, rowsOf(step.inputs, tell)),
      ...part("Outputs", step.outputs, changesOf(step.outputs, tell)),
      ...part("Calls", step.calls, ...calls),
      ...(inside ? [fold("Inside", `steps ${inside.opened} to ${inside.left ?? "…"}`, insideOf(inside, to))] : []),
      ...(step.went.length + step.sets_off.length + step.why.length ? [fold("Route, and why", "", wentOf(step, to), whyOf(step.why))] : []),
      ...part("Action and observation", rest, rowsOf(rest, tell)),
      ...part("Events", step.events, eventsOf(step.events, tell)),
      ...part("People", step.acts, actsOf(step.acts, tell)),
    ];
  }

  /** A query on demand: why a node was not activated, now or by one of the last events. */
  function whyNotOf(node, events, ask) {
    const which = make("select", { class: "agentnb-input agentnb-pick", "aria-label": "by which event" }, make("option", { value: "", text: "here" }),
      ...events.map(([id, type]) => make("option", { value: id, text: `${id} ${type}` })).reverse());
    const told = make("div", { role: "status" });
    const wayOf = ([source, kind, said, lines]) => make("li", {},
      make("span", {}, make("strong", { text: source }), faintly(` ${kind}`), `: ${said}`), ...lines.map((text) => make("small", { text })));
    const asks = make("button", { type: "button", class: "agentnb-button", text: "Why not?", title: "why this node was not triggered", "data-at": "why not" });
    asks.addEventListener("click", () => ask("look", "why_not", [node, which.value || null], (found) => {
      if (found) told.replaceChildren(make("p", { text: found.said }), make("ul", { class: "agentnb-rows" }, ...found.ways.map(wayOf)));
    }));
    return make("div", { class: "agentnb-whynot" }, make("div", { class: "agentnb-line" }, asks, which), told);
  }

  const VIA = { write: "wrote", read: "read", condition: "decided by", call: "called" };

  /** What led to the value of a key, nearest first. */
  function sliceOf(found, key, to) {
    if (!found || found.wrong) return [make("p", { class: "agentnb-faint", text: found?.wrong || "An exported page has no slices. In a notebook: session.slice(...)." })];
    const rows = found.rows.map(([step, node, name, via, distance, inferred]) => make("li", { style: `padding-left:${Math.min(distance, 8) * 12}px` },
      make("span", {}, step ? to.step(step) : "inputs", ...(node === null ? (step ? [" manually"] : []) : [", ", to.node(node)]), faintly(` ${VIA[via]} `), make("code", { text: name }),
        ...(inferred ? [faintly(" (inferred)")] : []))));
    return [
      make("p", { class: "agentnb-details-head" }, make("strong", { text: key }), faintly(`after step ${found.at}: ${found.steps.length} steps led to its value`)),
      make("ol", { class: "agentnb-rows agentnb-slice", "aria-label": `what led to ${key}, nearest first` }, ...rows),
      ...(found.more ? [make("p", {}, faintly(`and ${found.more} more`))] : []),
    ];
  }

  // The details pane: the selected node, step or key; without a selection, the last step.

  const PACE = 600; // milliseconds between two requests while a run moves
  const LOST = 6000; // milliseconds after which a request counts as lost and the next one is sent
  const MOVES = new Set(["running", "pausing"]);

  /** Requests what is to be shown, never twice for the same state and only one at a time. */
  function detailsPuller(ask, paint) {
    let [asked, waiting, next, wanted] = ["", 0, 0, null];
    function pull() {
      if (!wanted) return;
      const { kind, id, key, moves } = wanted;
      const now = Date.now();
      if (key === asked || now - waiting < LOST || (moves && now < next)) return;
      [asked, waiting, next] = [key, now, now + PACE];
      ask("look", kind, id, (found) => {
        waiting = 0;
        if (found && wanted?.kind === kind && wanted.id === id) paint(found, { kind, id });
        pull();
      });
    }
    return (want) => {
      wanted = want;
      if (!want) asked = "";
      pull();
    };
  }

  function tool(text, title, at, click) {
    const button = make("button", { type: "button", class: "agentnb-button", text, title, "data-at": at, click });
    if (text.length === 1) button.setAttribute("aria-label", title);
    return button;
  }

  /** The buttons at the top: to a step, through the steps of the node, up to the node, and its breakpoint. */
  function toolbar({ node, step, before, after }, ask, choice) {
    const goes = step && tool(`Go to step ${step.step}`, "go to just after this step", "goto", () => ask("goto", step.step));
    const runs = tool("Run to here", "run until this node is next", "run_to", () => ask("run_to", null, node.id));
    const next = tool("Make it next", "continue with this node instead of the scheduled one", "set_next", () => ask("set_next", null, node.id));
    const stops = tool("Breakpoint", "set or remove a breakpoint before this node", "stop_at", () => ask("stop_at", null, node.id));
    const through = [
      before && tool("◂", `the step of this node before: step ${before}`, "before", () => choice.set("step", before)),
      after && tool("▸", `the next step of this node: step ${after}`, "after", () => choice.set("step", after)),
    ];
    const element = make("div", { class: "agentnb-line agentnb-details-tools" }, ...[goes, ...through, ...(node.gone ? [] : [runs, ...(node.settable ? [next] : []), stops])].filter(Boolean));
    return {
      element,
      able({ can, position, breakpoints = [] }) {
        if (goes) enable(goes, can.includes("goto") && position !== step.step);
        runs.hidden = !can.includes("run_to");
        next.hidden = !can.includes("set_next");
        stops.setAttribute("aria-pressed", String(breakpoints.some((row) => row.node === node.id)));
      },
    };
  }

  /** The node or step, and its source position: a text that one click selects. */
  function headOf({ node, step }, kind, to) {
    const name = kind === "step" && step ? [make("strong", { text: `Step ${step.step}` }), to.node(node.id)] : [make("strong", { text: node.id })];
    const about = node.gone ? [faintly("is not in the recipe")] : [make("span", { class: "agentnb-chip", text: node.kind }), ...(node.label ? [faintly(node.label)] : [])];
    const place = node.place ? [make("p", {}, make("code", { class: "agentnb-place", title: "click to select", text: node.place }), " ", faintly(node.path))] : [];
    return make("div", { class: "agentnb-details-head" }, ...name, ...about, ...(node.now ? [make("span", { class: "agentnb-now", text: node.now })] : []), ...place);
  }

  /** All sections, one below the other: for a node its definition first, for a step what it did. */
  function contentOf(found, kind, ask, tell, to, fold) {
    const { node, step, runs } = found;
    const ofNode = node.gone ? [] : nodeParts(node, fold, tell, to, whyNotOf(node.id, found.events || [], ask));
    const ofStep = step ? stepParts(step, fold, tell, to) : [];
    if (kind === "step") return [...ofStep, make("h4", { "aria-level": "2", text: `Node ${node.id}` }), ...ofNode];
    const made = runs === 1 ? "It has made one step: " : `It has made ${runs} steps, the last is `;
    const last = step ? [made, to.step(step.step), "."] : node.kind === "event type" ? [] : ["It has not run up to here."];
    return [...ofNode, make("p", { class: "agentnb-ran" }, ...last), ...ofStep];
  }

  /** Refill the pane; focus stays on the button or section of the same name, and scrolling within the same object. */
  function refill(body, same, scrolled, parts) {
    const top = same ? scrolled : 0;
    const at = body.contains(document.activeElement) ? document.activeElement.dataset.at || "" : null;
    body.replaceChildren(...parts);
    if (scrolled) body.scrollTop = top; // only then: it makes the browser lay the page out
    if (at !== null) ([...body.querySelectorAll("[data-at]")].find((one) => one.dataset.at === at) || body).focus({ preventScroll: true });
  }

  function details(ask, choice, reveal = () => {}) {
    const body = make("div", { class: "agentnb-details", tabindex: "0", role: "group", "aria-label": "Details, scrolls" });
    let scrolled = 0;
    body.addEventListener("scroll", () => { scrolled = body.scrollTop; });
    const unpin = make("button", { type: "button", class: "agentnb-link", text: "follow the run", title: "show the last step, whichever it is", hidden: true, click: () => choice.set(null) });
    const [fold, whole] = [folder(), new Map()]; // which sections are open, and which values were requested in full
    const to = {
      step: (number) => linkTo(`step ${number}`, `show step ${number}`, () => choice.set("step", number)),
      node: (id) => linkTo(id, `show node ${id}`, () => choice.set("node", id)),
    };
    let [state, shown, subject, tools, arrived] = [null, "", "", null, false];

    function hint(text) {
      body.replaceChildren(make("p", { class: "agentnb-faint", text }));
      [shown, subject, tools] = ["", "", null];
    }
    function paint(found, { kind, id }) {
      const told = JSON.stringify([kind, found]);
      if (!found.node) hint("There is no such step any more.");
      if (!found.node || told === shown) return;
      const now = JSON.stringify([found.node.id, found.step?.step]);
      const same = now === subject;
      if (!same) whole.clear();
      [shown, subject] = [told, now];
      const tell = (cell) => valueOf(cell, (which, then) => ask("look", "whole", [kind, id, which], (all) => all?.at && then(all)), whole);
      tools = toolbar(found, ask, choice);
      refill(body, same, scrolled, [headOf(found, kind, to), tools.element, ...contentOf(found, kind, ask, tell, to, fold)]);
      tools.able(state);
    }
    const pull = detailsPuller(ask, paint);
    let sliced = ""; // the state for which the slice was requested
    /** What led to the value of a key: a list here, marks in the graph and the timeline. */
    function lookSlice(key) {
      const told = JSON.stringify([key, state.position, state.length, state.line]);
      if (told === sliced || MOVES.has(state.status)) return;
      sliced = told;
      ask("look", "slice", key, (found) => {
        if (sliced !== told) return;
        choice.light({ slice: found && !found.wrong ? { key, nodes: found.nodes, steps: new Set(found.steps) } : null });
        body.replaceChildren(...sliceOf(found, key, to));
        [shown, subject, tools] = ["", "", null];
      });
    }
    function look() {
      const picked = choice.get();
      if (picked?.kind === "key") {
        unpin.hidden = false;
        pull(null);
        lookSlice(picked.id);
        return;
      }
      if (sliced) {
        sliced = "";
        choice.light({ slice: null });
      }
      const { kind, id } = picked || { kind: "step", id: state.position };
      unpin.hidden = !picked;
      tools?.able(state);
      const nothing = kind === "step" && !id;
      if (nothing) hint("Nothing has run yet. Press Step, or click a node of the graph.");
      pull(nothing ? null : { kind, id, moves: MOVES.has(state.status), key: JSON.stringify([kind, id, state.number, state.position, state.length, state.status, state.said, state.name]) });
    }
    choice.on((picked) => {
      arrived = picked?.kind === "step" && state?.position === picked.id;
      if (picked) reveal();
      if (state) look();
      part.retitle?.();
    });
    const part = {
      name: "details",
      title: "Details",
      body,
      tools: [unpin],
      says() {
        const { kind, id } = choice.get() ?? {};
        return kind === "key" ? `What led to ${id}` : kind ? `Details of ${kind} ${id}` : "Details of the last step";
      },
      show(now) {
        state = now;
        const left = arrived && choice.get()?.id !== now.position; // the run has moved on from the selected step
        arrived = choice.get()?.kind === "step" && choice.get().id === now.position;
        if (left && choice.get()?.kind === "step") choice.set(null);
        else look();
      },
    };
    return part;
  }

  return { details };
})();
