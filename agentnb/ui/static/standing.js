// The current drawing; a step changes its classes and texts and nothing else.
import { say } from "./dom.js";
import { drawnBoard } from "./drawnboard.js";
import { foldable, joinedEdges, summedMarks } from "./folds.js";
import { nodeButtons, nodeSaid } from "./nodes.js";

const NODE_MARKS = ["visited", "next", "waiting", "failed", "current", "breakpoint", "last"];
const MANY_EDGES = 400;
const EDGE_MARKS = ["taken", "last"];
export const GOING = ["running", "pausing"];

function described(state, nodes) {
  const parts = [`Graph of ${state.name}`];
  const marked = (mark) => Object.keys(nodes).filter((id) => nodes[id].classes.includes(mark));
  if (state.current) parts.push(`current node ${state.current}`);
  for (const mark of ["failed", "waiting", "visited"]) {
    const ids = marked(mark);
    if (ids.length) parts.push(`${mark}: ${ids.slice(0, 20).join(", ")}`);
  }
  return parts.join("; ");
}

/** Give each thin line a wide invisible one on top, so that it is easy to point at; not if there are very many. */
function reachable(edges) {
  if (edges.length > MANY_EDGES) return;
  for (const group of edges) {
    const line = group.querySelector("path")?.cloneNode();
    if (!line) continue;
    line.setAttribute("class", "agentnb-near");
    group.append(line);
  }
}

/** The current drawing: its groups by node, its edges, its board; `show` applies a state's marks. */
export function standing(found, folds, askLines) {
  const { svg, tips } = found;
  const groups = new Map(); // node -> the groups that represent it
  const worn = new Map(); // a group, or its node -> its current marks, to skip unchanged ones
  for (const group of svg.querySelectorAll("g.node[data-node]")) {
    const id = group.dataset.node;
    groups.set(id, [...(groups.get(id) || []), group]);
  }
  const edges = [...svg.querySelectorAll("g.edge[data-edge]")];
  const board = drawnBoard(found, askLines);
  reachable(edges);
  foldable(svg);
  nodeButtons(svg);
  function restyle(id, { classes = [], count = "" } = {}) {
    const key = `${classes.join(" ")} ${count}`;
    if (worn.get(id) === key) return;
    worn.set(id, key);
    for (const group of groups.get(id)) {
      for (const mark of NODE_MARKS) group.classList.toggle(mark, classes.includes(mark));
      const text = group.querySelector(".count");
      if (text) say(text, count);
      group.setAttribute("aria-label", nodeSaid(id, classes, count));
    }
  }
  function wear(group, classes = []) {
    const key = classes.join(" ");
    if ((worn.get(group) || "") === key) return;
    worn.set(group, key);
    for (const mark of EDGE_MARKS) group.classList.toggle(mark, classes.includes(mark));
  }
  return {
    ...found, board, folds, groups, edges,
    /** The group of a node, and of a region: its box, or the button at its title. */
    of: (id) => groups.get(folds.nodes[id] ?? id)?.[0],
    ofRegion(region) {
      const box = Object.keys(folds.regions).find((id) => folds.regions[id] === region);
      return box === undefined ? svg.querySelector(`.agentnb-fold[data-scope="${CSS.escape(region)}"]`) : groups.get(box)?.[0];
    },
    show(state) {
      const nodes = summedMarks(state.picture.nodes || {}, folds);
      const ways = joinedEdges(state.picture.edges || {}, folds);
      for (const id of groups.keys()) restyle(id, nodes[id]);
      for (const group of edges) wear(group, ways[group.dataset.edge]?.classes);
      board.show(state, state.current === null ? null : folds.nodes[state.current] ?? state.current, !GOING.includes(state.status));
      svg.setAttribute("aria-label", described(state, nodes));
      return nodes;
    },
  };
}

/** The rows of the table: each box of the drawing with its edges. */
export function tableRows({ groups, edges }) {
  const ways = new Map();
  for (const group of edges) {
    if (group.getAttribute("display") === "none") continue; // a line that a run may still show
    const { source, target } = group.dataset;
    const label = group.querySelector("text")?.textContent;
    ways.set(source, [...(ways.get(source) || []), label ? `${target} (${label})` : target]);
  }
  return [...groups].map(([id, [group]]) => {
    const kind = group.querySelector(".kind")?.firstChild?.textContent || "event";
    return { id, name: id, kind, ways: [...new Set(ways.get(id) || [])] };
  });
}
