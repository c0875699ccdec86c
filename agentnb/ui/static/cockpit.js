// One view of a session: it shows the model's state and sends a person's commands; it decides nothing.
const cockpitPart = (() => {
  const { chosen, followTheme, make, say } = domPart;
  const { keep, kept, panes } = panesPart;
  const { graph, objects } = graphPart;
  const { tape, timeline } = timelinePart;
  const { board } = boardPart;
  const { people, problems, remedies, streams } = cardsPart;
  const { details } = detailsPart;
  const { events, listPanes, stack } = listsPart;
  const { second } = secondPart;
  const { bar, faster, keyName } = barPart;
  const { wire } = wirePart;

  /** Return the state with the kernel's changes applied; null if a message was missed, so that they do not apply. */
  function merged(state, { changed, number }) {
    if ((state.number || 0) + 1 !== number) return null;
    const now = { ...state, ...changed, number };
    if (changed.board?.rows) {
      const rows = new Map(state.board.map((row) => [row[0], row]));
      for (const key of changed.board.gone || []) rows.delete(key);
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
  function take(model, message) {
    const state = model.get("state");
    if (message.number <= (state.number || 0)) return;
    const now = merged(state, message);
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
  function keyOf({ key, shiftKey }) {
    const name = key === " " ? "Space" : key.length === 1 ? key.toUpperCase() : key;
    return shiftKey && (name.length > 1 || /[A-Z]/.test(name)) ? `Shift+${name}` : name;
  }

  /** Handle a key of the cockpit; keys with Ctrl, Alt or the command key belong to the notebook. */
  function onKey(event, state, commands, ask, help) {
    const { target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, .agentnb-graph, .agentnb-board")) return;
    const key = keyOf(event);
    if (key === "?") {
      help.toggle();
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (key === "Escape") target.blur();
    if (key === "Space" && target.closest("button, summary")) return;
    const named = commands.filter(({ keys }) => keys.includes(key)).map(({ name }) => name);
    let verb = named.find((name) => state.can.includes(name)) ?? named[0];
    let value = null;
    if (key === "Home" || key === "End") [verb, value] = ["goto", key === "Home" ? 0 : state.length];
    if (key === "+" || key === "-") [verb, value] = ["speed", faster(state.speed, key === "+")];
    if (!verb) return;
    event.preventDefault();
    event.stopPropagation();
    if (verb === "stop_at" && state.current === null) return;
    ask(verb, value, verb === "stop_at" ? state.current : null, undefined, event.repeat);
  }

  const OTHER_KEYS = [["Home, End", "first or last step"], ["+, -", "faster or slower Run; in the graph: zoom"], ["0", "in the graph: fit"],
    ["Arrows, Enter", "in the graph, the board and the timeline: move and open"], ["F2", "in the board: edit"], ["Shift+F10", "in the graph: menu of the node"],
    ["Ctrl+Enter", "submit a text of several lines"], ["Esc", "close, or leave the field"], ["?", "these keys"]];

  /** The sheet of all keys, opened by `?`. */
  function keySheet(commands) {
    const rows = [...commands.filter(({ keys, label }) => keys.length && label).map(({ keys, label, tip }) => [keys.map(keyName).join(", "), `${label}: ${tip}`]), ...OTHER_KEYS];
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

  /** A toggle for the projector: large text, the graph and the board alone. The browser remembers it. */
  function presenter(root) {
    const button = make("button", { type: "button", class: "agentnb-tool agentnb-flip", text: "Present", title: "large text, with the graph, the board and the timeline alone" });
    function set(on) {
      root.classList.toggle("agentnb-presenting", on);
      button.setAttribute("aria-pressed", String(on));
    }
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      set(on);
      keep("presenting", on);
    });
    set(kept().presenting === true);
    return button;
  }

  /** The shown run: its name if it has one, its parent run, and the end of its id. */
  function toldRun({ name, run }) {
    if (!run) return "";
    const parts = [run.name === name ? "run" : `run ${run.name}`, run.id];
    return [parts.join(" "), ...(run.of === null ? [] : [`a fork of ${run.of}`])].join(", ");
  }

  function render({ model, el }) {
    const state = () => model.get("state");
    const commands = model.get("commands");
    const line = wire(model, {
      state,
      quiet: (text) => asks.quiet(text),
      before: (verb) => asks.ready(verb),
    });
    const root = make("section", { class: "agentnb-cockpit", tabindex: "0", "data-lm-suppress-shortcuts": "true", "aria-label": "agentnb cockpit" });
    const name = make("strong", { class: "agentnb-name" });
    const status = make("span", { class: "agentnb-status" });
    const run = make("span", { class: "agentnb-run" });
    const chips = make("span", { class: "agentnb-chips" });
    const told = make("p", { class: "agentnb-said" });
    const live = make("div", { class: "agentnb-hidden", role: "status", "aria-live": "polite" });
    const gone = make("p", { class: "agentnb-gone", text: "The kernel of this cockpit is gone. Run the cell again." });
    const choice = chosen();
    const film = tape(line.ask);
    const parts = {
      bar: bar(line.ask, film, commands), problems: problems(remedies(line.ask)), asks: people(line.ask, root), graph: graph(line.ask, choice),
    };
    const saying = streams((id) => model.send({ do: "text", target: id }));
    const below = panes(
      [parts.problems.element, parts.asks.element, saying.element],
      [parts.graph, timeline(line.ask, choice, film), second(line.ask, choice), objects(line.ask), stack()],
      [events(line.ask, choice), board(line.ask, choice), details(line.ask, choice, () => below.open("details"))],
      listPanes(line.ask, choice),
    );
    const { asks } = parts;

    function show() {
      const now = state();
      if (!now || !now.can) return;
      root.dataset.status = now.status;
      say(name, now.name);
      say(status, now.status.replace("_", " "));
      say(run, toldRun(now));
      run.title = run.textContent;
      chips.replaceChildren(...(now.chips || []).map((text) => make("span", { class: "agentnb-chip", text })));
      say(told, now.said);
      if (!["running", "pausing"].includes(now.status)) say(live, now.said);
      parts.bar.show(now, line.busy("goto"));
      film.show(now);
      for (const part of [parts.problems, parts.asks, saying, below]) part.show(now);
    }
    function draw() {
      parts.graph.draw(model.get("svg"), state()?.name ?? "");
      show();
    }
    const onState = () => { root.classList.remove("agentnb-dead"); line.heard(); show(); };
    const onGone = () => root.classList.add("agentnb-dead"); // the kernel has ended or restarted
    const onMessage = (message) => {
      if (message.changed) take(model, message);
      else if (message.streams) saying.hear(message.streams, state());
      else {
        line.heard(message);
        const now = state();
        if (now?.can) parts.bar.show(now, line.busy("goto")); // an answer changes nothing else
      }
    };

    const help = keySheet(commands);
    root.append(make("header", {}, name, status, run, chips, make("span", { class: "agentnb-head-tools" }, presenter(root), help.button)), help.sheet, gone, parts.bar.element, told, live, asks.note, below.element);
    root.addEventListener("keydown", submitOnEnter);
    root.addEventListener("keydown", (event) => onKey(event, state(), commands, line.ask, help));
    el.append(root);
    const unfollow = followTheme(root);
    const heard = { "change:state": onState, "change:svg": draw, "msg:custom": onMessage, comm_live_update: onGone };
    for (const [event, listener] of Object.entries(heard)) model.on(event, listener);
    draw();
    model.send({ do: "whole" }); // changes since the model was created may have been missed
    return () => {
      for (const [event, listener] of Object.entries(heard)) model.off(event, listener);
      unfollow();
      line.end();
      film.end();
      root.remove();
    };
  }

  return { merged, render };
})();
