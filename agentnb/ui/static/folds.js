// Regions of a drawing collapsed to one box; what a run does inside is shown at the box.
import { svgPart } from "./sheet.js";

const MARK_ORDER = ["visited", "next", "waiting", "failed", "current", "breakpoint", "last"];
export const NO_FOLDS = { regions: {}, nodes: {}, edges: {} }; // nothing is collapsed

/** A button at each region's title that collapses it. */
export function foldable(svg) {
  for (const cluster of svg.querySelectorAll("g.cluster[data-scope]")) {
    const title = cluster.querySelector("text");
    const [x, y] = ["x", "y"].map((name) => Number(title.getAttribute(name)));
    title.setAttribute("x", String(x + 13));
    const box = svgPart("rect", { x: String(x - 5), y: String(y - 10), width: "13", height: "13", rx: "3" });
    const reach = svgPart("rect", { class: "agentnb-reach", x: String(x - 8), y: String(y - 13), width: "19", height: "19" });
    const sign = svgPart("path", { d: `M${x - 1.5},${y - 3.5}h6` });
    cluster.append(svgPart("g", { class: "agentnb-fold", role: "button", "aria-expanded": "true", "data-scope": cluster.dataset.scope,
      "aria-label": `close region ${title.textContent}` }, reach, box, sign));
  }
}

/** The marks of the nodes as this drawing shows them: those of nodes inside a box are shown at the box. */
export function summedMarks(nodes, folds) {
  const found = {};
  const inside = {};
  for (const [id, marks] of Object.entries(nodes)) {
    const box = folds.nodes[id];
    if (box === undefined) found[id] = marks;
    else (inside[box] ||= []).push(marks);
  }
  for (const [box, all] of Object.entries(inside)) {
    const worn = new Set(all.flatMap(({ classes }) => classes));
    if (worn.has("current")) worn.delete("next");
    const times = all.reduce((sum, { count }) => sum + (Number(count.slice(1)) || 0), 0);
    found[box] = { classes: MARK_ORDER.filter((mark) => worn.has(mark)), count: times ? `×${times}` : "" };
  }
  return found;
}

/** The marks of the edges as this drawing shows them. */
export function joinedEdges(edges, folds) {
  const found = {};
  for (const [place, marks] of Object.entries(edges)) {
    const stands = folds.edges[place] ?? place;
    found[stands] = { classes: [...new Set([...(found[stands]?.classes || []), ...marks.classes])] };
  }
  return found;
}
