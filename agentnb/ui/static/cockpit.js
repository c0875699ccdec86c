// One view of a session. It shows the model's `state` and sends a person's commands; it decides nothing.
import { bar } from "./bar.js";
import { board } from "./board.js";
import { problems } from "./cards.js";
import { chosen } from "./chosen.js";
import { details } from "./details.js";
import { followTheme, make, say } from "./dom.js";
import { events } from "./events.js";
import { forks } from "./forks.js";
import { graph } from "./graph.js";
import { objects } from "./objects.js";
import { panes } from "./panes.js";
import { people } from "./people.js";
import { remedies } from "./remedies.js";
import { faster } from "./speed.js";
import { stack } from "./stack.js";
import { stops } from "./stops.js";
import { streams } from "./streams.js";
import { tape } from "./tape.js";
import { timeline } from "./timeline.js";
import { wire } from "./wire.js";

const KEYS = {
  ArrowRight: "step", ".": "step", ArrowLeft: "back", ",": "back",
  i: "into", o: "over", u: "out", x: "stop", b: "stop_at", R: "reset", "+": "speed", "-": "speed",
};

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

function onKey(event, state, ask) {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, .agentnb-graph, .agentnb-board")) return;
  let verb = KEYS[key];
  let value = null;
  const pressed = target.closest("button, summary");
  if (key === " " && !pressed) verb = event.shiftKey ? "run_back" : state.can.includes("pause") ? "pause" : "run";
  if (key === "Home" || key === "End") [verb, value] = ["goto", key === "Home" ? 0 : state.length];
  if (verb === "speed") value = faster(state.speed, key === "+");
  if (key === "Escape") target.blur();
  if (!verb) return;
  event.preventDefault();
  event.stopPropagation();
  if (verb === "stop_at" && state.current === null) return;
  ask(verb, value, verb === "stop_at" ? state.current : null, undefined, event.repeat);
}

/** The shown run: its name if it has one, its parent run, and the end of its id. */
function toldRun({ name, run }) {
  if (!run) return "";
  const parts = [run.name === name ? "run" : `run ${run.name}`, run.id];
  return [parts.join(" "), ...(run.of === null ? [] : [`a fork of ${run.of}`])].join(", ");
}

function render({ model, el }) {
  const state = () => model.get("state");
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
    bar: bar(line.ask, film), problems: problems(remedies(line.ask)), asks: people(line.ask, root), graph: graph(line.ask, choice),
  };
  const below = panes(
    [parts.graph, timeline(line.ask, choice, film), objects(line.ask)],
    [events(line.ask, choice), board(line.ask, choice), details(line.ask, choice, () => below.open("details")), stack(), stops(line.ask), forks(line.ask)],
  );
  const { asks } = parts;
  const saying = streams((id) => model.send({ do: "text", target: id }));

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
    parts.graph.draw(model.get("svg"));
    show();
  }
  const onState = () => { root.classList.remove("agentnb-dead"); line.heard(); show(); };
  const onGone = () => root.classList.add("agentnb-dead"); // the kernel has ended or restarted
  const onMessage = (message) => {
    if (message.changed) take(model, message);
    else if (message.streams) saying.hear(message.streams, state());
    else {
      line.heard(message);
      show();
    }
  };

  root.append(make("header", {}, name, status, run, chips), gone, parts.bar.element, told, live, asks.note, parts.problems.element, asks.element, saying.element, below.element);
  root.addEventListener("keydown", (event) => onKey(event, state(), line.ask));
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

export default { render };
