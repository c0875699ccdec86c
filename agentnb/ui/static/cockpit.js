// cockpit: one view of a session. It shows the model's `state` and sends what a person asks for; it decides nothing.
import { bar } from "./bar.js";
import { board } from "./board.js";
import { problems } from "./cards.js";
import { chosen } from "./chosen.js";
import { followTheme, make, say } from "./dom.js";
import { graph } from "./graph.js";
import { panes } from "./panes.js";
import { people } from "./people.js";
import { stack } from "./stack.js";
import { stops } from "./stops.js";

const KEYS = {
  ArrowRight: "step", ".": "step", ArrowLeft: "back", ",": "back",
  i: "into", o: "over", u: "out", x: "stop", b: "stop_at", R: "reset",
};
const ASIDE = new Set(["look", "stop_at", "stop_when", "enable", "remove", "watch", "unwatch"]); // these move nothing
const NEEDS = { approve: "answer", deny: "answer" };
const PATIENCE = 3000; // milliseconds without a word of the kernel until the page says so
const QUIET = "The kernel has not answered yet. It is busy with a cell, or gone; if it was restarted, run this cell again.";

/** What is sent to the kernel, and what has not been answered. A slider on its way sends one place at a time. */
function wire(model, { able, working, quiet, before }) {
  const view = Math.random().toString(36).slice(2);
  const open = new Map(); // number -> [verb, what is done with what the kernel found]
  let number = 0;
  let later = null; // the place where the slider is by now
  let timer = 0;

  function send(verb, value, target, then) {
    number += 1;
    open.set(number, [verb, then]);
    wait();
    model.send({ do: verb, value, target, view, number });
  }
  function wait() {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (working()) return; // it has said that a step is at work, and a step may take its time
      open.clear();
      quiet(QUIET);
    }, PATIENCE);
  }
  const busy = (verb) => [...open.values()].some(([asked]) => asked === verb);
  return {
    busy,
    ask(verb, value = null, target = null, then = () => {}) {
      if (!ASIDE.has(verb) && !able(NEEDS[verb] || verb)) return;
      if (verb === "goto" && busy("goto")) later = value;
      else if (verb === "pause" || ASIDE.has(verb)) send(verb, value, target, then);
      else if (!busy(verb) && before(verb)) send(verb, value, target, then); // a key that is held down asks once at a time
    },
    /** The kernel has spoken; with a number, that command is done. */
    heard(message = {}) {
      if (message.view === view && open.has(message.heard)) {
        const [, then] = open.get(message.heard);
        open.delete(message.heard);
        then(message.found);
      }
      quiet("");
      if (open.size) wait();
      else clearTimeout(timer);
      if (later !== null && !busy("goto")) {
        const place = later;
        later = null;
        send("goto", place, null, () => {});
      }
    },
    end: () => clearTimeout(timer),
  };
}

/** The state with what the kernel says has changed of it; null where something was missed, so that it does not fit. */
function merged(state, { changed, number }) {
  if ((state.number || 0) + 1 !== number) return null;
  const now = { ...state, ...changed, number };
  if (changed.board?.rows) {
    const rows = new Map([...state.board, ...changed.board.rows].map((row) => [row[0], row]));
    now.board = (changed.board.keys || state.board.map(([key]) => key)).map((key) => rows.get(key));
  }
  if (changed.picture && state.picture) {
    now.picture = { ...state.picture };
    for (const [part, marks] of Object.entries(changed.picture)) {
      now.picture[part] = Object.fromEntries(Object.entries({ ...state.picture[part], ...marks }).filter(([, one]) => one !== null));
    }
  }
  return now;
}

/** Put what has changed into the model, whose views all hear of it; of several views the first one does. */
function take(model, message) {
  const state = model.get("state");
  if (message.number <= (state.number || 0)) return;
  const now = merged(state, message);
  if (now) model.set("state", now);
  else model.send({ do: "whole" });
}

function onKey(event, state, ask) {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, .agentnb-graph, .agentnb-board")) return;
  let verb = KEYS[key];
  let value = null;
  const pressed = target.closest("button, summary");
  if (key === " " && !pressed) verb = event.shiftKey ? "run_back" : state.can.includes("pause") ? "pause" : "run";
  if (key === "Home" || key === "End") [verb, value] = ["goto", key === "Home" ? 0 : state.length];
  if (key === "Escape") target.blur();
  if (!verb) return;
  event.preventDefault();
  event.stopPropagation();
  if (verb === "stop_at" && state.current === null) return;
  ask(verb, value, verb === "stop_at" ? state.current : null);
}

function render({ model, el }) {
  const state = () => model.get("state");
  const able = (verb) => (state().can || []).includes(verb);
  const line = wire(model, {
    able,
    working: () => state().status === "running",
    quiet: (text) => asks.quiet(text),
    before: (verb) => asks.ready(verb),
  });
  const root = make("section", { class: "agentnb-cockpit", tabindex: "0", "data-lm-suppress-shortcuts": "true", "aria-label": "agentnb cockpit" });
  const name = make("strong", { class: "agentnb-name" });
  const status = make("span", { class: "agentnb-status" });
  const chips = make("span", { class: "agentnb-chips" });
  const told = make("p", { class: "agentnb-said" });
  const live = make("div", { class: "agentnb-hidden", role: "status", "aria-live": "polite" });
  const gone = make("p", { class: "agentnb-gone", text: "The kernel of this cockpit is gone. Run the cell again." });
  const choice = chosen();
  const parts = {
    bar: bar(line.ask), problems: problems(), asks: people(line.ask, root), graph: graph(line.ask, choice),
  };
  const below = panes([parts.graph], [board(line.ask), stack(), stops(line.ask)]);
  const { asks } = parts;

  function show() {
    const now = state();
    if (!now || !now.can) return;
    root.dataset.status = now.status;
    say(name, now.name);
    say(status, now.status.replace("_", " "));
    chips.replaceChildren(...(now.chips || []).map((text) => make("span", { class: "agentnb-chip", text })));
    say(told, now.said);
    if (!["running", "pausing"].includes(now.status)) say(live, now.said);
    parts.bar.show(now, line.busy("goto"));
    for (const part of [parts.problems, parts.asks, below]) part.show(now);
  }
  function draw() {
    parts.graph.draw(model.get("svg"));
    show();
  }
  const onState = () => { root.classList.remove("agentnb-dead"); line.heard(); show(); };
  const onGone = () => root.classList.add("agentnb-dead"); // the kernel has ended or was restarted
  const onMessage = (message) => {
    if (message.changed) take(model, message);
    else {
      line.heard(message);
      show();
    }
  };

  root.append(make("header", {}, name, status, chips), gone, parts.bar.element, told, live, asks.note, parts.problems.element, asks.element, below.element);
  root.addEventListener("keydown", (event) => onKey(event, state(), line.ask));
  el.append(root);
  const unfollow = followTheme(root);
  const heard = { "change:state": onState, "change:svg": draw, "msg:custom": onMessage, comm_live_update: onGone };
  for (const [event, listener] of Object.entries(heard)) model.on(event, listener);
  draw();
  model.send({ do: "whole" }); // what has changed since the model was made may not have been heard
  return () => {
    for (const [event, listener] of Object.entries(heard)) model.off(event, listener);
    unfollow();
    line.end();
    root.remove();
  };
}

export default { render };
