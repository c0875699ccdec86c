// One view of a session: it shows the model's state and sends a person's commands; it decides nothing.
const cockpitPart = (() => {
  const { makeSelection, followTheme, make, setText } = domPart;
  const { saveLayout, readLayout, makePanes } = panesPart;
  const { makeGraph, makeObjects } = graphPart;
  const { makeStepCache, makeTimeline } = timelinePart;
  const { makeBoard } = boardPart;
  const { makePeople, makeProblems, makeRemedies, makeStreams } = cardsPart;
  const { makeDetails } = detailsPart;
  const { makeEvents, makeListPanes, makeStack } = listsPart;
  const { makeSecond } = secondPart;
  const { makeBar, findNextSpeed, formatKey } = barPart;
  const { makeConnection } = wirePart;

  /** Return the state with the kernel's changes applied; null if a message was missed, so that they do not apply. */
  function mergeState(state, { changed, number }) {
    if ((state.number || 0) + 1 !== number) return null;
    const now = { ...state, ...changed, number };
    if (changed.board?.rows) {
      const rows = new Map(state.board.map((row) => [row[0], row]));
      for (const key of changed.board.removed || []) rows.delete(key);
      for (const row of changed.board.rows) rows.set(row[0], row);
      now.board = changed.board.keys ? changed.board.keys.map((key) => rows.get(key)) : [...rows.values()];
    }
    if (changed.picture && state.picture) {
      now.picture = { ...state.picture };
      for (const [part, marks] of Object.entries(changed.picture)) {
        now.picture[part] = Object.fromEntries(Object.entries({ ...state.picture[part], ...marks }).filter(([, one]) => one !== null));
      }
    }
    return now;
  }

  /** Apply changes to the model, which notifies all its views; of several views the first one does it. */
  function applyMessage(model, message) {
    const state = model.get("state");
    if (message.number <= (state.number || 0)) return;
    const now = mergeState(state, message);
    if (now) model.set("state", now);
    else model.send({ do: "whole" });
  }

  /**
   * Enter in a field submits its form, Ctrl+Enter that of a text of several lines. In JupyterLab the browser does not do so by
   * itself: a listener around the notebook cancels the input event that would.
   */
  function submitOnEnter(event) {
    const { target } = event;
    if (event.key !== "Enter" || event.defaultPrevented || event.isComposing || !target.form) return;
    if (!target.matches("input:not([type=checkbox])") && !(target.matches("textarea") && (event.ctrlKey || event.metaKey))) return;
    event.preventDefault();
    event.stopPropagation();
    target.form.requestSubmit();
  }

  /** The key of an event as in aria-keyshortcuts: "ArrowRight", "Shift+R", "F10", "Space". */
  function readKey({ key, shiftKey }) {
    const name = key === " " ? "Space" : key.length === 1 ? key.toUpperCase() : key;
    return shiftKey && (name.length > 1 || /[A-Z]/.test(name)) ? `Shift+${name}` : name;
  }

  /** Handle a key of the cockpit; keys with Ctrl, Alt or the command key belong to the notebook. */
  function onKey(event, state, commands, ask, help) {
    const { target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, .agentnb-graph, .agentnb-board")) return;
    const key = readKey(event);
    if (key === "?") {
      help.toggle();
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (key === "Escape") target.blur();
    if (key === "Space" && target.closest("button, summary")) return;
    const verbs = commands.filter(({ keys }) => keys.includes(key)).map(({ name }) => name);
    let verb = verbs.find((name) => state.can.includes(name)) ?? verbs[0];
    let value = null;
    if (key === "Home" || key === "End") [verb, value] = ["goto", key === "Home" ? 0 : state.length];
    if (key === "+" || key === "-") [verb, value] = ["speed", findNextSpeed(state.speed, key === "+")];
    if (!verb) return;
    event.preventDefault();
    event.stopPropagation();
    if (verb === "stop_at" && state.current === null) return;
    ask(verb, value, verb === "stop_at" ? state.current : null, undefined, event.repeat);
  }

  /** Return true if a chord belongs to the notebook: in a field, Ctrl+S and those with Shift; the others edit its text. */
  function isChord({ target, key, ctrlKey, metaKey, altKey, shiftKey }) {
    if (!target.closest("input, textarea, select")) return ctrlKey || metaKey || altKey;
    return (ctrlKey || metaKey) && !altKey && (key.toLowerCase() === "s" || (shiftKey && /^[a-y]$/i.test(key)));
  }

  /**
   * Keep the keys of the cockpit from the notebook, but let chords pass. JupyterLab looks for the attribute in each keydown, before
   * the cockpit hears of it. Returns a function that ends it.
   */
  function guardShortcuts(root) {
    const guard = (event) => {
      if (root.contains(event.target)) root.setAttribute("data-lm-suppress-shortcuts", "true");
      if (root.contains(event.target) && isChord(event)) root.removeAttribute("data-lm-suppress-shortcuts");
    };
    window.addEventListener("keydown", guard, true);
    return () => window.removeEventListener("keydown", guard, true);
  }

  const OTHER_KEYS = [["Home, End", "first or last step"], ["+, -", "faster or slower Run; in the graph: zoom"], ["0", "in the graph: fit"],
    ["Arrows, Enter", "in the graph, the board and the timeline: move and open"], ["F2", "in the board: edit"], ["Shift+F10", "in the graph: menu of the node"],
    ["Ctrl+Enter", "submit a text of several lines"], ["Esc", "close, or leave the field"], ["?", "these keys"]];

  /** The sheet of all keys, opened by `?`. */
  function makeKeySheet(commands) {
    const rows = [...commands.filter(({ keys, label }) => keys.length && label).map(({ keys, label, tip }) => [keys.map(formatKey).join(" or "), `${label}: ${tip}`]), ...OTHER_KEYS];
    const close = make("button", { type: "button", class: "agentnb-small", text: "×", "aria-label": "close the keys", click: () => toggle() });
    const sheet = make("div", { class: "agentnb-keys", role: "dialog", "aria-label": "Keys", hidden: true },
      make("div", { class: "agentnb-pane-head" }, make("strong", { text: "Keys" }), make("span", { class: "agentnb-faint", text: "while the cockpit has the focus" }), close),
      make("dl", {}, ...rows.flatMap(([keys, text]) => [make("dt", {}, make("kbd", { text: keys })), make("dd", { text })])));
    const button = make("button", { type: "button", class: "agentnb-small agentnb-help", text: "?", "aria-label": "keys", title: "Keys (?)", "aria-expanded": "false", click: () => toggle() });
    let before = null;
    function toggle() {
      sheet.hidden = !sheet.hidden;
      button.setAttribute("aria-expanded", String(!sheet.hidden));
      if (!sheet.hidden) before = document.activeElement;
      (sheet.hidden ? before ?? button : close).focus({ preventScroll: true });
    }
    sheet.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      toggle();
      event.stopPropagation();
    });
    return { sheet, button, toggle };
  }

  /** A toggle for the projector: large text, with the graph, the board and the timeline alone. The browser remembers it. */
  function makePresenterButton(root) {
    const button = make("button", { type: "button", class: "agentnb-tool agentnb-flip", text: "Present", title: "large text, with the graph, the board and the timeline alone" });
    function set(on) {
      root.classList.toggle("agentnb-presenting", on);
      button.setAttribute("aria-pressed", String(on));
    }
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      set(on);
      saveLayout("presenting", on);
    });
    set(readLayout().presenting === true);
    return button;
  }

  /** The shown run: its name if it has one, its parent run, and the end of its id. */
  function describeRun({ name, run }) {
    if (!run) return "";
    const parts = [run.name === name ? "run" : `run ${run.name}`, run.id];
    return [parts.join(" "), ...(run.of === null ? [] : [`a fork of ${run.of}`])].join(", ");
  }

  function render({ model, el }) {
    const getState = () => model.get("state");
    const commands = model.get("commands");
    const connection = makeConnection(model, {
      state: getState,
      quiet: (text) => asks.quiet(text),
      before: (verb) => asks.ready(verb),
    });
    const root = make("section", { class: "agentnb-cockpit", tabindex: "0", "data-lm-suppress-shortcuts": "true", "aria-label": "agentnb cockpit" });
    const endGuard = guardShortcuts(root);
    const name = make("strong", { class: "agentnb-name" });
    const status = make("span", { class: "agentnb-status" });
    const run = make("span", { class: "agentnb-run" });
    const chips = make("span", { class: "agentnb-chips" });
    const sentence = make("p", { class: "agentnb-sentence" });
    const announcer = make("div", { class: "agentnb-hidden", role: "status", "aria-live": "polite" });
    const goneNote = make("p", { class: "agentnb-gone", text: "The kernel of this cockpit is gone. Run the cell again." });
    const choice = makeSelection();
    const stepCache = makeStepCache(connection.ask);
    const parts = {
      bar: makeBar(connection.ask, stepCache, commands), problems: makeProblems(makeRemedies(connection.ask)), asks: makePeople(connection.ask, root), graph: makeGraph(connection.ask, choice),
    };
    const textCards = makeStreams((id) => model.send({ do: "text", target: id }));
    const below = makePanes(
      [parts.problems.element, parts.asks.element, textCards.element],
      [parts.graph, makeTimeline(connection.ask, choice, stepCache), makeSecond(connection.ask, choice), makeObjects(connection.ask), makeStack()],
      [makeEvents(connection.ask, choice), makeBoard(connection.ask, choice), makeDetails(connection.ask, choice, () => below.open("details"))],
      makeListPanes(connection.ask, choice),
    );
    const { asks } = parts;

    function show() {
      const now = getState();
      if (!now || !now.can) return;
      root.dataset.status = now.status;
      setText(name, now.name);
      setText(status, now.status.replace("_", " "));
      setText(run, describeRun(now));
      run.title = run.textContent;
      chips.replaceChildren(...(now.chips || []).map((text) => make("span", { class: "agentnb-chip", text })));
      setText(sentence, now.sentence);
      if (!["running", "pausing"].includes(now.status)) setText(announcer, now.sentence);
      parts.bar.show(now, connection.isBusy("goto"));
      stepCache.show(now);
      for (const part of [parts.problems, parts.asks, textCards, below]) part.show(now);
    }
    function draw() {
      parts.graph.draw(model.get("svg"), getState()?.name ?? "");
      show();
    }
    const onState = () => { root.classList.remove("agentnb-dead"); connection.receive(); show(); };
    const onGone = () => root.classList.add("agentnb-dead"); // the kernel has ended or restarted
    const onMessage = (message) => {
      if (message.changed) applyMessage(model, message);
      else if (message.streams) textCards.hear(message.streams, getState());
      else {
        connection.receive(message);
        const now = getState();
        if (now?.can) parts.bar.show(now, connection.isBusy("goto")); // an answer changes nothing else
      }
    };

    const help = makeKeySheet(commands);
    root.append(make("header", {}, name, status, run, chips, make("span", { class: "agentnb-head-tools" }, makePresenterButton(root), help.button)), help.sheet, goneNote, parts.bar.element, sentence, announcer, asks.note, below.element);
    root.addEventListener("keydown", submitOnEnter);
    root.addEventListener("keydown", (event) => onKey(event, getState(), commands, connection.ask, help));
    el.append(root);
    const stopFollowing = followTheme(root);
    const handlers = { "change:state": onState, "change:svg": draw, "msg:custom": onMessage, comm_live_update: onGone };
    for (const [event, listener] of Object.entries(handlers)) model.on(event, listener);
    draw();
    model.send({ do: "whole" }); // changes since the model was created may have been missed
    return () => {
      endGuard();
      for (const [event, listener] of Object.entries(handlers)) model.off(event, listener);
      stopFollowing();
      connection.end();
      stepCache.end();
      root.remove();
    };
  }

  return { mergeState, render };
})();
