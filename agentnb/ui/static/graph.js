// The panes with drawings: the recipe's graph, and the objects of a reactive run.
const graphPart = (() => {
  const { make, setText, addTooltips } = domPart;
  const { saveLayout, readLayout } = panesPart;
  const { GOING, NO_FOLDS, makeGraphTable, addNodeMenu, listenForPresses, parseSheet, makeDrawing, listTableRows, makeZoomWindow } = drawingPart;

  // The pane with the drawing of the recipe. It is laid out once, and again when a region is collapsed or expanded.

  const ASK_AGAIN = 250; // milliseconds until a drawing that is being made is requested again
  const OVERDUE = 3500; // milliseconds after which a request counts as lost

  /** A toggle in the header of a pane; it shows its state by more than its color. */
  function makeToggle(text, title, pressed, onChange) {
    const button = make("button", { type: "button", class: "agentnb-tool agentnb-flip", text, title, "aria-label": text, "aria-pressed": String(pressed) });
    button.addEventListener("click", () => {
      const now = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(now));
      onChange(now);
    });
    return button;
  }

  /** Request a drawing until it is ready; a later request cancels an earlier one. `onDrawing` receives the result. */
  function makeRequester(ask, query, onDrawing) {
    let number = 0;
    let since = 0; // the time of the request, 0 if none is pending
    let resend = () => {};
    function request(parameters, then = () => {}) {
      number += 1;
      const ownNumber = number;
      resend = () => {
        since = Date.now();
        ask("query", query, parameters, (result) => {
          if (ownNumber !== number || !result) return;
          since = 0;
          if (result.again) setTimeout(() => { if (ownNumber === number) resend(); }, ASK_AGAIN);
          else {
            onDrawing(result);
            then();
          }
        });
      };
      resend();
    }
    /** On any kernel message, resend overdue requests. */
    const resendOverdue = () => { if (since && Date.now() - since > OVERDUE) resend(); };
    return { pull: request, nudge: resendOverdue };
  }

  /** The tooltip lines for the element under the pointer, and the part of the drawing that they describe. */
  function describeTarget(standing_, target) {
    const group = target.closest?.("g.node, g.edge, g.row, g.flow, g.start, g.cluster");
    if (!group || !standing_) return null;
    if (group.matches(".row")) {
      const lines = standing_.board.tip(group);
      return lines && [group, lines];
    }
    const text = standing_.tips.get(group);
    if (!text) return null;
    const status = group.matches(".node:not(.kind-region)") ? [group.getAttribute("aria-label").split(", ").slice(1).join(", ")] : [];
    return [group, [...text.split("\n"), ...status].filter(Boolean)];
  }

  /** Marks the selection: a node or the box that represents it. */
  function makeChoiceMarker(now) {
    return (selection) => {
      for (const [id, groups] of now.on?.groups || []) {
        const is = selection?.kind === "node" && (now.on.folds.nodes[selection.id] ?? selection.id) === id;
        for (const group of groups) {
          group.classList.toggle("agentnb-chosen", is);
          if (!group.matches(".kind-region")) group.setAttribute("aria-pressed", String(is));
        }
      }
    };
  }

  const LIGHTS = ["in-slice", "maybe-in-slice", "only-a", "only-b", "differs", "parted", "agentnb-second", "agentnb-reads", "agentnb-writes"];

  /** Marks what is lit: a slice, the differences from a second run and where that stands, readers and writers of a key. */
  function makeLightMarker(now) {
    return ({ slice, second, reads = [], writes = [] }) => {
      if (!now.on) return;
      const marksByBox = new Map();
      const addMarks = (id, ...marks) => {
        const box = now.on.folds.nodes[id] ?? id;
        marksByBox.set(box, [...(marksByBox.get(box) || []), ...marks]);
      };
      for (const [id, mark] of Object.entries(slice?.nodes || {})) addMarks(id, mark);
      for (const [id, marks] of Object.entries(second?.nodes || {})) addMarks(id, ...marks);
      if (second?.node) addMarks(second.node, "agentnb-second");
      for (const id of reads) addMarks(id, "agentnb-reads");
      for (const id of writes) addMarks(id, "agentnb-writes");
      for (const [id, groups] of now.on.groups) {
        const marks = marksByBox.get(id) || [];
        for (const group of groups) for (const mark of LIGHTS) group.classList.toggle(mark, marks.includes(mark));
      }
    };
  }

  /** Collapses a region, or expands a box; focus moves to the replacement. */
  function makeRegionToggle(now, view, redraw) {
    return (group) => {
      const { scope } = group.dataset;
      const region = scope ?? now.on.folds.regions[group.dataset.node];
      redraw(scope === undefined ? now.closed.filter((one) => one !== region) : [...now.closed, region], () => {
        const next = now.on.ofRegion(region);
        if (!next) return;
        next.focus({ preventScroll: true });
        view.reveal(next);
      });
    };
  }

  function makeGraph(ask, choice) {
    const view = makeZoomWindow("Graph", () => {
      if (now.on) crop();
      follow(false);
    });
    const note = make("p", { class: "agentnb-faint agentnb-graph-note", hidden: true });
    const table = makeGraphTable((id) => choose(id));
    const element = make("div", { class: "agentnb-drawing", tabindex: "-1" }, note, view.element, table.element, view.map.element);
    const now = { on: null, closed: [], last: null, current: null, board: null, follows: true, name: "", folded: false };
    /** Whether the drawing includes the board: as chosen, otherwise where both fit side by side. */
    const showsBoard = () => now.board ?? now.on.size[0] <= view.room();
    const { pull: request, nudge: resendOverdue } = makeRequester(ask, "drawing", (result) => {
      now.closed = result.closed;
      if (now.folded) saveLayout("closed", now.closed, now.name);
      setDrawing(result.svg, result.folds);
    });
    const markChoice = makeChoiceMarker(now);
    const markLights = makeLightMarker(now);
    const toggleRegion = makeRegionToggle(now, view, (closed, then) => redraw(closed, then));

    function choose(id) {
      const scope = now.on?.folds.regions[id];
      if (scope === undefined) choice.set("node", id);
      else redraw(now.closed.filter((one) => one !== scope));
    }
    /** Draw with these regions collapsed, as a person wishes; later cockpits of the recipe begin so. */
    function redraw(closed, then) {
      now.folded = true;
      request(closed, then);
    }
    /** With or without the board: hidden parts take no space. */
    function crop() {
      const { svg, viewBox } = now.on;
      const board = showsBoard();
      svg.classList.toggle("agentnb-boardless", !board);
      svg.setAttribute("viewBox", board || !svg.dataset.graph ? viewBox : `0 0 ${svg.dataset.graph}`);
      tools.setBoardShown(board);
      view.resized();
      part.grow?.(view.height() + table.element.offsetHeight);
    }
    function setDrawing(text, folds) {
      const result = parseSheet(text);
      const hasFocus = view.element.contains(document.activeElement);
      now.on = result && makeDrawing(result, folds, (then) => ask("query", "flows", now.closed, then));
      now.current = null;
      note.hidden = Boolean(result);
      view.element.hidden = !result;
      if (!result) return setText(note, "There is no drawing.");
      view.set(result.svg, () => (showsBoard() ? result.size : result.alone), now.name);
      crop();
      table.draw(listTableRows(now.on));
      tools.update(now.on);
      markChoice(choice.get());
      markLights(choice.lit());
      if (now.last) show(now.last);
      if (hasFocus) view.element.focus({ preventScroll: true });
      return undefined;
    }
    function follow(smooth) {
      const group = now.current !== null && now.on?.of(now.current);
      if (group && now.follows) view.reveal(group, smooth);
    }
    function show(state) {
      const isFirst = now.last === null;
      now.last = state;
      resendOverdue();
      if (!now.on) return;
      table.show(now.on.show(state));
      view.map.mark();
      if (state.current === now.current) return;
      now.current = state.current;
      follow(!isFirst && !GOING.includes(state.status));
    }
    let chosenNode = null; // the chosen node, whose reads and writes are shown
    choice.onLight(markLights);
    const tools = makeHeadTools(now, {
      crop, follow, pull: redraw,
      table(isVisible) {
        table.element.hidden = !isVisible;
        if (now.on && now.last) table.show(now.on.show(now.last));
      },
    });
    choice.on((selection) => {
      markChoice(selection);
      chosenNode = selection?.kind === "node" ? selection.id : null;
      now.on?.board.light(chosenNode);
    });
    view.element.addEventListener("pointerover", ({ target }) => {
      const node = target.closest?.("g.node[data-node]")?.dataset.node ?? null;
      now.on?.board.light(node ?? chosenNode);
    });
    listenForPresses(view.element, { choose, fold: toggleRegion, stop: (id) => ask("stop_at", null, id) });
    addNodeMenu(element, view.element, (id) => {
      const can = (verb) => Boolean(now.last?.can.includes(verb));
      const stops = now.last?.breakpoints.some((row) => row.node === id);
      return [
        ["Run to here", can("run_to"), () => ask("run_to", null, id)],
        ["Make it next", can("set_next"), () => ask("set_next", null, id)],
        [stops ? "Remove the breakpoint" : "Set a breakpoint", can("edit") || can("pause"), () => ask("stop_at", null, id)],
        ["Log a message here …", can("edit") || can("pause"), null, (text) => ask("log_at", text, id)],
        ["Details, and why not?", true, () => choice.set("node", id)],
      ];
    });
    addTooltips(element, (target) => describeTarget(now.on, target));
    const part = {
      name: "graph",
      title: "Graph",
      body: element,
      tools: [...tools.elements, ...view.tools],
      /** Show a drawing; if its text is empty, request it from the kernel. */
      draw(text, name) {
        const closed = readLayout().closed?.[name] ?? null; // as a person left it
        Object.assign(now, { closed: [], name, folded: false });
        if (text.startsWith("<svg")) {
          setDrawing(text, NO_FOLDS);
          return closed?.length ? request(closed) : undefined;
        }
        now.on = null;
        note.hidden = false;
        setText(note, "The graph is being laid out.");
        return request(closed);
      },
      show,
    };
    return part;
  }

  /** The toggles in the pane's header. */
  function makeHeadTools(now, { crop, follow, pull: redraw, table }) {
    const all = make("button", { type: "button", class: "agentnb-tool", text: "Close all", title: "close, or open, every region", hidden: true });
    const board = makeToggle("Board", "the blackboard in the drawing, and who reads and writes what", true, (on) => {
      now.board = on;
      if (now.on) crop();
    });
    const follows = makeToggle("Follow", "scroll to where the run stands", now.follows, (on) => {
      now.follows = on;
      follow(true);
    });
    const asTable = makeToggle("Table", "the nodes as a table, below the drawing", false, table);
    let open = []; // the regions that can be collapsed
    all.addEventListener("click", () => redraw(open));
    return {
      elements: [all, follows, board, asTable],
      setBoardShown: (on) => board.setAttribute("aria-pressed", String(on)),
      update(on) {
        const closed = Object.values(on.folds.regions);
        open = [...on.svg.querySelectorAll("g.cluster[data-scope]")].map((cluster) => cluster.dataset.scope);
        all.hidden = !open.length && !closed.length;
        setText(all, open.length ? "Close all" : "Open all");
        open = open.length ? [...now.closed, ...open] : [];
        board.hidden = !on.board.there;
      },
    };
  }

  // The objects of a reactive run and their relations, drawn at the current step.

  const OBJECTS_PAUSE = 700; // milliseconds between two pictures while a run moves
  const OBJECTS_SHARE = 0.45; // of the window's height that the drawing may take

  function makeObjects(ask) {
    const view = makeZoomWindow("Objects");
    const note = make("p", { class: "agentnb-faint agentnb-graph-note", text: "…" });
    const element = make("div", { class: "agentnb-drawing", tabindex: "-1" }, note, view.element, view.map.element);
    let on = null;
    let lastPicture = ""; // the picture that is displayed
    let lastState = ""; // the run's state at the last request
    let timer = 0;
    const { pull: request, nudge: resendOverdue } = makeRequester(ask, "objects", ({ svg }) => {
      if (svg === lastPicture) return;
      lastPicture = svg;
      on = parseSheet(svg);
      const some = on?.svg.querySelector("g.node") ?? null;
      note.hidden = some !== null;
      view.element.hidden = some === null;
      setText(note, "No objects yet.");
      if (!some) return;
      view.set(on.svg, () => on.size);
      part.grow?.(Math.min(view.height(), window.innerHeight * OBJECTS_SHARE));
    });
    function update(state) {
      const now = JSON.stringify([state.position, state.length, state.sentence]);
      if (now === lastState) return;
      lastState = now;
      request(null);
    }
    addTooltips(element, (target) => {
      const group = target.closest?.("g.node, g.edge");
      const text = group && on?.tips.get(group);
      return text ? [group, text.split("\n")] : null;
    });
    const part = {
      name: "objects",
      title: "Objects",
      body: element,
      tools: view.tools,
      isShown: (state) => Boolean(state.reactive),
      show(state) {
        clearTimeout(timer);
        resendOverdue();
        if (GOING.includes(state.status)) timer = setTimeout(() => update(state), OBJECTS_PAUSE);
        else update(state);
      },
    };
    return part;
  }

  return { makeGraph, makeObjects };
})();
