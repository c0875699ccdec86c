// The objects of a reactive run and their relations, drawn at the current step.
import { make, say } from "./dom.js";
import { puller } from "./graph.js";
import { sheetOf } from "./sheet.js";
import { GOING } from "./standing.js";
import { tipCard } from "./tips.js";
import { zoomed } from "./zoom.js";

const OBJECTS_PAUSE = 700; // milliseconds between two pictures while a run moves

export function objects(ask) {
  const view = zoomed("Objects");
  const note = make("p", { class: "agentnb-faint agentnb-graph-note", text: "…" });
  const element = make("div", { class: "agentnb-drawing", tabindex: "-1" }, note, view.element);
  let on = null;
  let shown = ""; // the picture that is displayed
  let seen = ""; // the run's state at the last request
  let timer = 0;
  const { pull, nudge } = puller(ask, "objects", ({ svg }) => {
    if (svg === shown) return;
    shown = svg;
    on = sheetOf(svg);
    const some = on?.svg.querySelector("g.node") ?? null;
    note.hidden = some !== null;
    view.element.hidden = some === null;
    say(note, "No objects yet.");
    if (some) view.set(on.svg, () => on.size);
  });
  function look(state) {
    const now = JSON.stringify([state.position, state.length, state.said]);
    if (now === seen) return;
    seen = now;
    pull(null);
  }
  tipCard(element, (target) => {
    const group = target.closest?.("g.node, g.edge");
    const text = group && on?.tips.get(group);
    return text ? [group, text.split("\n")] : null;
  });
  return {
    name: "objects",
    title: "Objects",
    body: element,
    tools: view.tools,
    wanted: (state) => Boolean(state.reactive),
    show(state) {
      clearTimeout(timer);
      nudge();
      if (GOING.includes(state.status)) timer = setTimeout(() => look(state), OBJECTS_PAUSE);
      else look(state);
    },
  };
}
