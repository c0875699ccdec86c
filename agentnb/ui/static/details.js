// The details pane: what a node is and what a step did.
const detailsPart = (() => {
  const { enable, make, setText } = domPart;
  const { renderProblem } = cardsPart;

  // The values, calls, conditions and events of a step, each as an element; all content is set as text.

  const [NARROW, LINES] = [26, 14]; // letters in a line of a narrow pane; lines that fit into the box of a value
  const LONG = 64; // characters; longer or multi-line text is in a box below its name

  /** 0.00042 -> "0.42 ms". */
  function formatDuration(seconds) {
    if (seconds >= 60) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
    return seconds >= 1 ? `${seconds.toFixed(2)} s` : `${(seconds * 1000).toPrecision(2).replace(/e.*/, "")} ms`;
  }

  const renderFaint = (text) => make("span", { class: "agentnb-faint", text });
  const makeLink = (text, title, click) => make("button", { type: "button", class: "agentnb-link", text, title, click });

  /** Whether a text may be higher than its box, also in a narrow pane. */
  const isTall = (text) => text.split("\n").reduce((lines, line) => lines + Math.ceil((line.length + 1) / NARROW), 0) > LINES;

  /** The text of a value; if truncated, with a button that requests all of it. `fullValues` stores the results. */
  function renderValue(cell, requestValue, fullValues) {
    const box = make("code", { class: "agentnb-cell-value" });
    const element = make("div", { class: "agentnb-cell" }, box);
    const id = `${cell.at} ${cell.text}`;
    const long = cell.text.length > LONG || cell.text.includes("\n");
    const button = make("button", { type: "button", class: "agentnb-link", "data-at": `all ${cell.at}` });
    function show() {
      const all = fullValues.get(id);
      const cut = all ? all.cut : cell.cut;
      const { text } = all || cell;
      setText(box, text + (cut ? " …" : ""));
      box.classList.toggle("agentnb-long", long || Boolean(all));
      if (isTall(text)) box.setAttribute("tabindex", "0"); // so that the keyboard can scroll it
      else box.removeAttribute("tabindex");
      setText(button, all ? "show less" : "show all");
    }
    button.addEventListener("click", () => {
      if (fullValues.delete(id)) show();
      else requestValue(cell.at, (all) => { fullValues.set(id, all); show(); });
    });
    if (cell.cut) element.append(button);
    show();
    return element;
  }

  /** Named values, one below the other. */
  function renderRows(cells, renderCell) {
    return make("dl", { class: "agentnb-values" }, ...cells.flatMap((cell) => [
      make("dt", {}, cell.name, ...(cell.type ? [" ", make("small", { class: "agentnb-faint", text: cell.type })] : [])),
      make("dd", {}, renderCell(cell)),
    ]));
  }

  /** The changes of a step: before and after. */
  function renderChanges(rows, renderCell) {
    return make("dl", { class: "agentnb-values" }, ...rows.flatMap((row) => {
      const notes = [row.op === "append" ? "one item more" : "", row.note].filter(Boolean).join(", ");
      const after = row.new ? renderCell(row.new) : renderFaint("deleted");
      const before = row.old && row.op !== "append"
        ? make("div", { class: "agentnb-before" }, make("span", { class: "agentnb-hidden", text: "before: " }), renderCell(row.old))
        : row.op === "append" ? "" : make("div", { class: "agentnb-before" }, renderFaint("new"));
      return [
        make("dt", {}, row.key, ...(notes ? [" ", make("small", { class: "agentnb-faint", text: notes })] : [])),
        make("dd", { class: "agentnb-change" }, before, make("span", { class: "agentnb-arrow", "aria-hidden": "true", text: row.op === "append" ? "+" : "→" }), after),
      ];
    }));
  }

  const ROLES = { system: "system", user: "user", assistant: "assistant", tool: "tool" };

  /** One attempt of a call: the request, the response, time and cost. */
  function renderCall(call, renderCell) {
    const [tokensIn, tokensOut] = call.tokens || [];
    const formatCount = (number, word) => (number === null || number === undefined ? "" : `${number} ${word}`);
    const facts = [
      call.attempt > 1 ? `attempt ${call.attempt}${call.wait ? ` after ${formatDuration(call.wait)}` : ""}` : "",
      formatDuration(call.seconds), formatCount(tokensIn, "tokens in"), formatCount(tokensOut, "tokens out"), call.cost ? `${call.cost} USD` : "",
    ].filter(Boolean);
    const messages = call.messages.map((cell) => make("div", { class: "agentnb-message", "data-role": ROLES[cell.name] || "other" },
      make("small", { class: "agentnb-faint", text: cell.name }), renderCell(cell)));
    const answer = call.error
      ? [make("div", { class: "agentnb-message agentnb-bad" }, make("small", { text: "failed" }), renderCell(call.error))]
      : call.result ? [make("div", { class: "agentnb-message agentnb-answer" }, make("small", { class: "agentnb-faint", text: `answer${call.result.type ? `, ${call.result.type}` : ""}` }), renderCell(call.result))] : [];
    return make("article", { class: "agentnb-call", "aria-label": `call ${call.call}, ${call.name}` },
      make("p", {}, make("span", { class: "agentnb-chip", text: call.kind }), " ", make("strong", { text: call.name }), " ", renderFaint(facts.join(", "))),
      ...(call.arguments.length ? [renderRows(call.arguments, renderCell)] : []), ...messages, ...answer);
  }

  /** The evaluated conditions, each with its result and what it read. */
  function renderConditions(decisions) {
    return make("ul", { class: "agentnb-why" }, ...decisions.map((one) => make("li", { class: one.taken ? "agentnb-taken" : "" },
      make("span", { class: "agentnb-arrow", "aria-hidden": "true", text: one.taken ? "→" : "·" }),
      make("div", {},
        ...(one.target ? [make("strong", { text: one.target }), one.taken ? ", taken: " : ": "] : []),
        make("code", { text: one.condition }), " is ", make("code", { text: one.value }),
        ...one.operands.map(([text, value]) => make("div", { class: "agentnb-faint" }, make("code", { text }), " = ", make("code", { text: value }))),
        ...(one.warning ? [make("div", { class: "agentnb-odd", text: `odd: ${one.warning}` })] : [])))));
  }

  /** What ran inside a node: its rounds or its branches. */
  function renderInside({ parts, more }, { step, node }) {
    const rounds = parts.some((part) => part.round > 1);
    const items = parts.map((part) => {
      const branch = part.branch === null ? "" : `branch ${part.branch + 1}`;
      const name = [branch, part.title === branch ? "" : part.title, rounds ? `round ${part.round}` : ""];
      const one = part.first === part.last;
      return make("li", {}, make("span", {}, name.filter(Boolean).join(", "), ": ", step(part.first), ...(one ? [] : [" to ", step(part.last)])),
        make("small", { class: "agentnb-faint" }, "ended with ", node(part.node), `, ${part.status}`));
    });
    return make("div", {}, make("ol", { class: "agentnb-rows" }, ...items), ...(more ? [renderFaint(`and ${more} more`)] : []));
  }

  /** Events: each expands to its payload. */
  function renderEvents(events, renderCell) {
    return make("div", {}, ...events.map((event) => make("details", { class: "agentnb-event" },
      make("summary", {}, make("strong", { text: event.type }), renderFaint(` ${event.id}, by ${event.actor}`)), renderCell(event.payload))));
  }

  /** Interventions while the step was the current one. */
  function renderInterventions(interventions, renderCell) {
    return make("ul", { class: "agentnb-rows" }, ...interventions.map((intervention) => make("li", {},
      make("span", {}, make("strong", { text: intervention.action }), ` ${intervention.target}`, renderFaint(` by ${intervention.actor}, ${new Date(intervention.time).toLocaleTimeString()}`)),
      ...(intervention.new ? [renderCell(intervention.new)] : []))));
  }

  // The sections of the details pane: what a node is, and what a step did; each can be collapsed.

  const STATUS = { ok: "✓ ok", error: "✕ failed", cancelled: "⊘ cancelled", skipped: "↷ skipped" };
  const PHASE = { run: "", enter: "entered", again: "goes round again", leave: "left" };
  const CLOSED = new Set(["Parameters", "Edges", "Events", "Action and observation"]); // collapsed at first

  /** The collapsible sections; a view remembers which of them are open. */
  function makeSections() {
    const open = new Map();
    return (name, count, ...parts) => {
      const element = make("details", { class: "agentnb-part", "data-part": name, open: open.get(name) ?? !CLOSED.has(name) },
        make("summary", { "data-at": `part ${name}` }, make("span", { text: name }), ...(count ? [renderFaint(` ${count}`)] : [])), ...parts);
      element.addEventListener("toggle", () => open.set(name, element.open));
      return element;
    };
  }

  function renderEdges(edges, to) {
    return make("ul", { class: "agentnb-rows" }, ...edges.map(([leads, other, kind, condition]) => make("li", {},
      make("span", {}, leads ? "to " : "from ", to.node(other), renderFaint(` ${kind}${condition ? `, ${condition}` : ""}`)))));
  }

  /** A node: what it reads and writes, its source, its prompts, the events that it listens to. */
  function renderNode(node, fold, renderCell, to, whyNot) {
    const facts = node.facts.flatMap(([name, text]) => [make("dt", { text: name }), make("dd", { text })]);
    const written = node.definition.flatMap((cell) => [...(cell.name === node.place ? [] : [make("code", { class: "agentnb-place", title: "click to select", text: cell.name })]), renderCell(cell)]);
    return [
      ...(facts.length ? [make("dl", { class: "agentnb-values agentnb-facts" }, ...facts)] : []),
      ...(written.length ? [fold("Definition", "", ...written)] : []),
      ...(node.prompt.length ? [fold("Prompt template", "", renderRows(node.prompt, renderCell))] : []),
      ...(node.listens ? [fold("Listens", "", renderRows(node.reacts, renderCell), whyNot)] : []),
      ...(node.parameters.length ? [fold("Parameters", node.parameters.length, renderRows(node.parameters, renderCell))] : []),
      ...(node.latest.length ? [fold("Latest events", node.latest.length, renderEvents(node.latest, renderCell))] : []),
      ...(node.edges.length ? [fold("Edges", node.edges.length, renderEdges(node.edges, to))] : []),
    ];
  }

  /** What activated a step: the event and its causes. */
  function renderDelivered(event, renderCell, to) {
    const from = event.causes.map(([id, type, step, actor]) => make("li", {},
      make("span", {}, make("strong", { text: type }), renderFaint(` ${id}, by ${actor}`), ...(step ? [" in ", to.step(step)] : []))));
    const chain = [make("p", { class: "agentnb-faint", text: "caused by" }), make("ol", { class: "agentnb-rows" }, ...from)];
    return [...(event.step ? [make("p", {}, "emitted in ", to.step(event.step))] : []), renderEvents([event], renderCell), ...(from.length ? chain : [])];
  }

  function renderRoute({ targets, sets_off: off }, to) {
    const describeEdge = ({ kind, condition, value }) => {
      const words = [[kind, condition].filter(Boolean).join(": "), value && value !== condition && `value ${value}`].filter(Boolean);
      return words.length ? ` (${words.join(", ")})` : "";
    };
    return make("ul", { class: "agentnb-rows" }, ...targets.map((one) => make("li", {}, make("span", {}, "went to ", to.node(one.target), renderFaint(describeEdge(one))))),
      ...off.map((id) => make("li", {}, make("span", {}, "its event triggers ", to.node(id)))));
  }

  function renderAbout(step) {
    const words = [
      STATUS[step.status], PHASE[step.phase], step.frame === "root" ? "" : `in ${step.frame}`,
      step.branch === null ? "" : `branch ${step.branch + 1}`, step.round > 1 ? `round ${step.round}` : "",
      formatDuration(step.seconds), new Date(step.time).toLocaleTimeString(),
    ];
    return make("p", { class: "agentnb-about", "data-status": step.status, text: words.filter(Boolean).join(" · ") });
  }

  /** A step: its inputs, its result, its calls, and why the run continued as it did. */
  function renderStep(step, fold, renderCell, to) {
    const addSection = (name, rows, ...parts) => (rows.length ? [fold(name, rows.length, ...parts)] : []);
    const calls = step.calls.map((call) => renderCall(call, renderCell));
    if (step.more_calls) calls.push(renderFaint(`and ${step.more_calls} more`));
    const [thought, rest] = [step.notes.filter(({ name }) => name === "thought"), step.notes.filter(({ name }) => name !== "thought")];
    const inside = step.inside;
    return [
      renderAbout(step),
      ...(thought.length ? [make("div", { class: "agentnb-thought" }, renderCell(thought[0]))] : []),
      ...(step.error ? [renderProblem(step.error)] : []),
      ...(step.delivered ? [fold("Triggered by", "", ...renderDelivered(step.delivered, renderCell, to))] : []),
      ...addSection("Inputs", step.inputs, renderRows(step.inputs, renderCell)),
      ...addSection("Outputs", step.outputs, renderChanges(step.outputs, renderCell)),
      ...addSection("Calls", step.calls, ...calls),
      ...(inside ? [fold("Inside", `steps ${inside.opened} to ${inside.last ?? "…"}`, renderInside(inside, to))] : []),
      ...(step.targets.length + step.sets_off.length + step.why.length ? [fold("Route, and why", "", renderRoute(step, to), renderConditions(step.why))] : []),
      ...addSection("Action and observation", rest, renderRows(rest, renderCell)),
      ...addSection("Events", step.events, renderEvents(step.events, renderCell)),
      ...addSection("People", step.interventions, renderInterventions(step.interventions, renderCell)),
    ];
  }

  /** A query on demand: why a node was not activated, now or by one of the last events. */
  function makeWhyNot(node, events, ask) {
    const eventMenu = make("select", { class: "agentnb-input agentnb-pick", "aria-label": "by which event" }, make("option", { value: "", text: "here" }),
      ...events.map(([id, type]) => make("option", { value: id, text: `${id} ${type}` })).reverse());
    const answer = make("div", { role: "status" });
    const renderWay = ([source, kind, sentence, lines]) => make("li", {},
      make("span", {}, make("strong", { text: source }), renderFaint(` ${kind}`), `: ${sentence}`), ...lines.map((text) => make("small", { text })));
    const whyButton = make("button", { type: "button", class: "agentnb-button", text: "Why not?", title: "why this node was not triggered", "data-at": "why not" });
    whyButton.addEventListener("click", () => ask("query", "why_not", [node, eventMenu.value || null], (result) => {
      if (result) answer.replaceChildren(make("p", { text: result.reason }), make("ul", { class: "agentnb-rows" }, ...result.edges.map(renderWay)));
    }));
    return make("div", { class: "agentnb-whynot" }, make("div", { class: "agentnb-line" }, whyButton, eventMenu), answer);
  }

  const VIA = { write: "wrote", read: "read", condition: "decided by", call: "called" };

  /** What led to the value of a key, nearest first. */
  function renderSlice(result, key, to) {
    if (!result || result.wrong) return [make("p", { class: "agentnb-faint", text: result?.wrong || "An exported page has no slices. In a notebook: session.slice(...)." })];
    const rows = result.rows.map(([step, node, name, via, distance, inferred]) => make("li", { style: `padding-left:${Math.min(distance, 8) * 12}px` },
      make("span", {}, step ? to.step(step) : "inputs", ...(node === null ? (step ? [" manually"] : []) : [", ", to.node(node)]), renderFaint(` ${VIA[via]} `), make("code", { text: name }),
        ...(inferred ? [renderFaint(" (inferred)")] : []))));
    return [
      make("p", { class: "agentnb-details-head" }, make("strong", { text: key }), renderFaint(`after step ${result.at}: ${result.steps.length} steps led to its value`)),
      make("ol", { class: "agentnb-rows agentnb-slice", "aria-label": `what led to ${key}, nearest first` }, ...rows),
      ...(result.more ? [make("p", {}, renderFaint(`and ${result.more} more`))] : []),
    ];
  }

  // The details pane: the selected node, step or key; without a selection, the last step.

  const PACE = 600; // milliseconds between two requests while a run moves
  const LOST = 6000; // milliseconds after which a request counts as lost and the next one is sent
  const MOVES = new Set(["running", "pausing"]);

  /** Request the content to show, never twice for the same state, and only one request at a time. */
  function makeRequester(ask, paint) {
    let [lastKey, sentAt, next, target] = ["", 0, 0, null];
    function sendRequest() {
      if (!target) return;
      const { kind, id, key, moves } = target;
      const now = Date.now();
      if (key === lastKey || now - sentAt < LOST || (moves && now < next)) return;
      [lastKey, sentAt, next] = [key, now, now + PACE];
      ask("query", kind, id, (result) => {
        sentAt = 0;
        if (result && target?.kind === kind && target.id === id) paint(result, { kind, id });
        sendRequest();
      });
    }
    return (wanted) => {
      target = wanted;
      if (!wanted) lastKey = "";
      sendRequest();
    };
  }

  function makeTool(text, title, at, click) {
    const button = make("button", { type: "button", class: "agentnb-button", text, title, "data-at": at, click });
    if (text.length === 1) button.setAttribute("aria-label", title);
    return button;
  }

  /** The buttons at the top: to a step, through the steps of the node, up to the node, and its breakpoint. */
  function makeToolbar({ node, step, before: previousStep, after: nextStep }, ask, choice) {
    const goToStep = step && makeTool(`Go to step ${step.step}`, "go to just after this step", "goto", () => ask("goto", step.step));
    const runs = makeTool("Run to here", "run until this node is next", "run_to", () => ask("run_to", null, node.id));
    const next = makeTool("Make it next", "continue with this node instead of the scheduled one", "set_next", () => ask("set_next", null, node.id));
    const stops = makeTool("Breakpoint", "set or remove a breakpoint before this node", "stop_at", () => ask("stop_at", null, node.id));
    const through = [
      previousStep && makeTool("◂", `previous step of this node: step ${previousStep}`, "before", () => choice.set("step", previousStep)),
      nextStep && makeTool("▸", `next step of this node: step ${nextStep}`, "after", () => choice.set("step", nextStep)),
    ];
    const element = make("div", { class: "agentnb-line agentnb-details-tools" }, ...[goToStep, ...through, ...(node.missing ? [] : [runs, ...(node.settable ? [next] : []), stops])].filter(Boolean));
    return {
      element,
      able({ can, position, breakpoints = [] }) {
        if (goToStep) enable(goToStep, can.includes("goto") && position !== step.step);
        runs.hidden = !can.includes("run_to");
        next.hidden = !can.includes("set_next");
        stops.setAttribute("aria-pressed", String(breakpoints.some((row) => row.node === node.id)));
      },
    };
  }

  /** The node or step, and its source position: a text that one click selects. */
  function renderHead({ node, step }, kind, to) {
    const name = kind === "step" && step ? [make("strong", { text: `Step ${step.step}` }), to.node(node.id)] : [make("strong", { text: node.id })];
    const facts = node.missing ? [renderFaint("is not in the recipe")] : [make("span", { class: "agentnb-chip", text: node.kind }), ...(node.label ? [renderFaint(node.label)] : [])];
    const place = node.place ? [make("p", {}, make("code", { class: "agentnb-place", title: "click to select", text: node.place }), " ", renderFaint(node.path))] : [];
    return make("div", { class: "agentnb-details-head" }, ...name, ...facts, ...(node.now ? [make("span", { class: "agentnb-now", text: node.now })] : []), ...place);
  }

  /** All sections, one below the other: for a node its definition first, for a step what it did. */
  function renderContent(result, kind, ask, renderCell, to, fold) {
    const { node, step, runs } = result;
    const ofNode = node.missing ? [] : renderNode(node, fold, renderCell, to, makeWhyNot(node.id, result.events || [], ask));
    const ofStep = step ? renderStep(step, fold, renderCell, to) : [];
    if (kind === "step") return [...ofStep, make("h4", { "aria-level": "2", text: `Node ${node.id}` }), ...ofNode];
    const stepCount = runs === 1 ? "It has made one step: " : `It has made ${runs} steps, the last is `;
    const last = step ? [stepCount, to.step(step.step), "."] : node.kind === "event type" ? [] : ["It has not run up to here."];
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

  function makeDetails(ask, choice, reveal = () => {}) {
    const body = make("div", { class: "agentnb-details", tabindex: "0", role: "group", "aria-label": "Details, scrolls" });
    let scrolled = 0;
    body.addEventListener("scroll", () => { scrolled = body.scrollTop; });
    const unpin = make("button", { type: "button", class: "agentnb-link", text: "follow the run", title: "show the last step, whichever it is", hidden: true, click: () => choice.set(null) });
    const [fold, fullValues] = [makeSections(), new Map()]; // which sections are open, and which values were requested in full
    const to = {
      step: (number) => makeLink(`step ${number}`, `show step ${number}`, () => choice.set("step", number)),
      node: (id) => makeLink(id, `show node ${id}`, () => choice.set("node", id)),
    };
    let [state, lastContent, subject, tools, arrived] = [null, "", "", null, false];

    function showHint(text) {
      body.replaceChildren(make("p", { class: "agentnb-faint", text }));
      [lastContent, subject, tools] = ["", "", null];
    }
    function paint(result, { kind, id }) {
      const content = JSON.stringify([kind, result]);
      if (!result.node) showHint("This step no longer exists.");
      if (!result.node || content === lastContent) return;
      const now = JSON.stringify([result.node.id, result.step?.step]);
      const same = now === subject;
      if (!same) fullValues.clear();
      [lastContent, subject] = [content, now];
      const renderCell = (cell) => renderValue(cell, (cellId, onValue) => ask("query", "whole", [kind, id, cellId], (all) => all?.at && onValue(all)), fullValues);
      tools = makeToolbar(result, ask, choice);
      refill(body, same, scrolled, [renderHead(result, kind, to), tools.element, ...renderContent(result, kind, ask, renderCell, to, fold)]);
      tools.able(state);
    }
    const request = makeRequester(ask, paint);
    let lastSlice = ""; // the state for which the slice was requested
    /** What led to the value of a key: a list here, marks in the graph and the timeline. */
    function requestSlice(key) {
      const sliceState = JSON.stringify([key, state.position, state.length, state.line]);
      if (sliceState === lastSlice || MOVES.has(state.status)) return;
      lastSlice = sliceState;
      ask("query", "slice", key, (result) => {
        if (lastSlice !== sliceState) return;
        choice.light({ slice: result && !result.wrong ? { key, nodes: result.nodes, steps: new Set(result.steps) } : null });
        body.replaceChildren(...renderSlice(result, key, to));
        [lastContent, subject, tools] = ["", "", null];
      });
    }
    function update() {
      const selection = choice.get();
      if (selection?.kind === "key") {
        unpin.hidden = false;
        request(null);
        requestSlice(selection.id);
        return;
      }
      if (lastSlice) {
        lastSlice = "";
        choice.light({ slice: null });
      }
      const { kind, id } = selection || { kind: "step", id: state.position };
      unpin.hidden = !selection;
      tools?.able(state);
      const nothing = kind === "step" && !id;
      if (nothing) showHint("Nothing has run yet. Press Step, or click a node of the graph.");
      request(nothing ? null : { kind, id, moves: MOVES.has(state.status), key: JSON.stringify([kind, id, state.number, state.position, state.length, state.status, state.sentence, state.name]) });
    }
    choice.on((selection) => {
      arrived = selection?.kind === "step" && state?.position === selection.id;
      if (selection) reveal();
      if (state) update();
      part.retitle?.();
    });
    const part = {
      name: "details",
      title: "Details",
      body,
      tools: [unpin],
      getTitle() {
        const { kind, id } = choice.get() ?? {};
        return kind === "key" ? `What led to ${id}` : kind ? `Details of ${kind} ${id}` : "Details of the last step";
      },
      show(now) {
        state = now;
        const left = arrived && choice.get()?.id !== now.position; // the run has moved on from the selected step
        arrived = choice.get()?.kind === "step" && choice.get().id === now.position;
        if (left && choice.get()?.kind === "step") choice.set(null);
        else update();
      },
    };
    return part;
  }

  return { makeDetails };
})();
