// cockpit: one view of a session. It shows the model's `state` and sends what a person asks for; it decides nothing.
import { bar } from "./bar.js";
import { board } from "./board.js";
import { problems, questions } from "./cards.js";
import { followTheme, make, say } from "./dom.js";
import { graph } from "./graph.js";

const KEYS = { ArrowRight: "step", ".": "step", ArrowLeft: "back", ",": "back" };
const PATIENCE = 3000; // milliseconds without a word of the kernel until the page says so
const QUIET = "The kernel has not answered yet. It is busy with a cell, or gone; if it was restarted, run this cell again.";

/** What is sent to the kernel, and what has not been answered. A slider on its way sends one place at a time. */
function wire(model, able, working, quiet) {
  const view = Math.random().toString(36).slice(2);
  const open = new Map(); // number -> verb
  let number = 0;
  let later = null; // the place where the slider is by now
  let timer = 0;

  function send(verb, value, target) {
    number += 1;
    open.set(number, verb);
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
  const busy = (verb) => [...open.values()].includes(verb);
  return {
    busy,
    ask(verb, value = null, target = null) {
      if (!able(verb)) return;
      if (verb === "goto" && busy("goto")) later = value;
      else if (verb === "pause" || !busy(verb)) send(verb, value, target); // a key that is held down asks once at a time
    },
    /** The kernel has spoken; with a number, that command is done. */
    heard(message = {}) {
      if (message.view === view) open.delete(message.heard);
      quiet("");
      if (open.size) wait();
      else clearTimeout(timer);
      if (later !== null && !busy("goto")) {
        const place = later;
        later = null;
        send("goto", place, null);
      }
    },
    end: () => clearTimeout(timer),
  };
}

function onKey(event, state, ask) {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, .agentnb-graph, .agentnb-board")) return;
  let verb = KEYS[key];
  let value = null;
  if (key === " " && !target.closest("button")) verb = state.can.includes("pause") ? "pause" : "run";
  if (key === "Home" || key === "End") [verb, value] = ["goto", key === "Home" ? 0 : state.length];
  if (key === "Escape") target.blur();
  if (!verb) return;
  event.preventDefault();
  event.stopPropagation();
  ask(verb, value);
}

function render({ model, el }) {
  const state = () => model.get("state");
  const able = (verb) => (state().can || []).includes(verb);
  const line = wire(model, able, () => state().status === "running", (text) => asks.quiet(text));
  const root = make("section", { class: "agentnb-cockpit", tabindex: "0", "data-lm-suppress-shortcuts": "true", "aria-label": "agentnb cockpit" });
  const name = make("strong", { class: "agentnb-name" });
  const status = make("span", { class: "agentnb-status" });
  const chips = make("span", { class: "agentnb-chips" });
  const told = make("p", { class: "agentnb-said" });
  const live = make("div", { class: "agentnb-hidden", role: "status", "aria-live": "polite" });
  const gone = make("p", { class: "agentnb-gone", text: "The kernel of this cockpit is gone. Run the cell again." });
  const parts = { bar: bar(line.ask), problems: problems(), asks: questions(line.ask, root), graph: graph(), board: board() };
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
    for (const part of [parts.problems, parts.asks, parts.graph, parts.board]) part.show(now);
  }
  function draw() {
    parts.graph.draw(model.get("svg"));
    show();
  }
  const onState = () => { root.classList.remove("agentnb-dead"); line.heard(); show(); };
  const onGone = () => root.classList.add("agentnb-dead"); // the kernel has ended or was restarted
  const onMessage = (message) => { line.heard(message); show(); };

  root.append(make("header", {}, name, status, chips), gone, parts.bar.element, told, live, asks.note, parts.problems.element, asks.element,
    make("div", { class: "agentnb-panes" }, parts.graph.element, parts.board.element));
  root.addEventListener("keydown", (event) => onKey(event, state(), line.ask));
  el.append(root);
  const unfollow = followTheme(root);
  const heard = { "change:state": onState, "change:svg": draw, "msg:custom": onMessage, comm_live_update: onGone };
  for (const [event, listener] of Object.entries(heard)) model.on(event, listener);
  draw();
  return () => {
    for (const [event, listener] of Object.entries(heard)) model.off(event, listener);
    unfollow();
    line.end();
    root.remove();
  };
}

export default { render };
