// The call stack (the frames around the next node), and the next nodes with the reason.
import { make, say } from "./dom.js";

const TURNS = { resume: "goes on", fail: "fails", event: "is matched" };

function frameItem(frame, name, last) {
  const parts = [make("strong", { text: frame.node ?? name })];
  const more = [];
  if (frame.node !== null && frame.branch !== null) more.push(`branch ${frame.branch + 1}`);
  if (frame.node !== null && frame.round > 1) more.push(`round ${frame.round}`);
  if (more.length) parts.push(make("span", { class: "agentnb-faint", text: ` ${more.join(", ")}` }));
  return make("li", last ? { "aria-current": "true" } : {}, ...parts);
}

function nextItem(one) {
  const turn = TURNS[one.turn] ? ` ${TURNS[one.turn]}` : "";
  const branch = one.branch === null ? "" : ` branch ${one.branch + 1}`;
  return make("li", {}, make("strong", { text: one.node }), make("span", { class: "agentnb-faint", text: `${branch}${turn}: ${one.why}` }));
}

export function stack() {
  const frames = make("ol", { class: "agentnb-frames", "aria-label": "call stack, the outermost first" });
  const next = make("ol", { class: "agentnb-next", "aria-label": "what comes next" });
  const nothing = make("p", { class: "agentnb-faint", text: "Nothing comes next." });
  const later = make("p", { class: "agentnb-faint" });
  const element = make("div", { class: "agentnb-stack" },
    make("h4", { text: "Call stack" }), frames, make("h4", { text: "Comes next" }), next, nothing, later);
  let shown = "";
  return {
    name: "stack",
    title: "Where the run stands",
    body: element,
    show(state) {
      const { name, frames: open = [], next: soon = [], later: more = 0 } = state;
      const told = JSON.stringify([name, open, soon, more]);
      if (told === shown) return;
      shown = told;
      frames.replaceChildren(...open.map((frame, index) => frameItem(frame, name, index === open.length - 1)));
      next.replaceChildren(...soon.map(nextItem));
      nothing.hidden = soon.length > 0;
      later.hidden = !more;
      say(later, `and ${more} more`);
    },
  };
}
