// The nodes of a drawing as buttons: a click selects, a click in the margin sets a breakpoint; reachable by keyboard.
import { svgPart } from "./sheet.js";

const WAY_ON = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
const PRESSABLE = "g.node[data-node], g.agentnb-fold"; // what the arrow keys move through
const MARGIN_AT = 4; // points from a node's left side to the middle of its margin
const MARGIN_REACH = 10; // points around that in which a click counts

/** The margin of a node: a circle at its left side. */
function nodeMargin(group) {
  const dot = group.querySelector(".dot");
  if (!dot || group.classList.contains("kind-region")) return;
  const x = String(Number(dot.getAttribute("cx")) - 3 - MARGIN_AT); // the kernel draws the dot 3 points from the left side
  dot.setAttribute("cx", x);
  dot.setAttribute("cy", "0");
  group.append(svgPart("g", { class: "agentnb-margin", "aria-hidden": "true" }, svgPart("circle", { class: "agentnb-reach", cx: x, cy: "0", r: String(MARGIN_REACH) }), dot));
}

/** Make the nodes of a drawing buttons. */
export function nodeButtons(svg) {
  for (const group of svg.querySelectorAll("g.node[data-node]")) {
    nodeMargin(group);
    group.setAttribute("role", "button");
    const inside = group.classList.contains("kind-region");
    group.setAttribute("aria-keyshortcuts", inside ? "Enter" : "Enter B");
    if (inside) group.setAttribute("aria-expanded", "false");
  }
  svg.querySelectorAll(PRESSABLE).forEach((each, index) => each.setAttribute("tabindex", index ? "-1" : "0"));
}

/** Listen in a window: `choose(node)`, `stop(node)` and `fold(region or node)` are called with the target. */
export function pressable(element, { choose, stop, fold }) {
  const at = (event) => event.target.closest?.(PRESSABLE);
  const press = (group) => (group.matches(".agentnb-fold, .kind-region") ? fold(group) : choose(group.dataset.node));
  const stops = (group) => { if (!group.matches(".agentnb-fold, .kind-region")) stop(group.dataset.node); };
  element.addEventListener("click", (event) => {
    const group = at(event);
    if (!group) return;
    if (event.target.closest(".agentnb-margin")) stops(group);
    else press(group);
  });
  element.addEventListener("keydown", (event) => {
    const group = at(event);
    if (!group || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") press(group);
    else if (event.key === "b") stops(group);
    else if (WAY_ON[event.key]) {
      const all = [...element.querySelectorAll(PRESSABLE)];
      const next = all[(all.indexOf(group) + WAY_ON[event.key] + all.length) % all.length];
      for (const each of all) each.setAttribute("tabindex", each === next ? "0" : "-1");
      next.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

/** The accessible name of a node: its name and its marks. */
export function nodeSaid(id, classes, count) {
  const words = classes.filter((mark) => mark !== "last").map((mark) => (mark === "visited" ? `visited ${count}` : mark));
  return [id.startsWith("region: ") ? id.replace(": ", " ") : `node ${id}`, ...words].join(", ");
}
