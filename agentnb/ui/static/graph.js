// graph: the drawing. It is placed once; a step only changes classes and counts.
import { make } from "./dom.js";

const MARKS = ["visited", "next", "waiting", "failed", "current", "breakpoint"];
const SMALLEST = 0.62; // a drawing is made this much smaller at most, then it scrolls

function parsed(text) {
  const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (root.nodeName !== "svg") return null;
  const svg = document.importNode(root, true);
  for (const found of svg.querySelectorAll("style, script, foreignObject")) found.remove();
  svg.classList.add("has-run");
  const [, , ...size] = (svg.getAttribute("viewBox") || "0 0 400 300").split(" ").map(Number);
  const [width, height] = size.map((points) => Math.round((points * 4) / 3));
  Object.assign(svg.style, {
    width: "100%", height: "auto", maxWidth: `${width}px`, minWidth: `${Math.round(width * SMALLEST)}px`,
    maxHeight: `max(var(--a-tall) - 12px, ${Math.round(height * SMALLEST)}px)`,
  });
  return svg;
}

function describe(state) {
  const parts = [`Graph of ${state.name}`];
  const { nodes = {} } = state.picture;
  const marked = (mark) => Object.keys(nodes).filter((id) => nodes[id].classes.includes(mark));
  if (state.current) parts.push(`current node ${state.current}`);
  for (const mark of ["failed", "waiting", "visited"]) {
    const ids = marked(mark);
    if (ids.length) parts.push(`${mark}: ${ids.slice(0, 20).join(", ")}`);
  }
  return parts.join("; ");
}

/** Scroll the pane, and nothing else, so that the current node can be seen. */
function reveal(pane, node) {
  const outer = pane.getBoundingClientRect();
  const inner = node.getBoundingClientRect();
  const room = 12;
  if (inner.top < outer.top || inner.bottom > outer.bottom) {
    pane.scrollTop += inner.top < outer.top ? inner.top - outer.top - room : inner.bottom - outer.bottom + room;
  }
  if (inner.left < outer.left || inner.right > outer.right) {
    pane.scrollLeft += inner.left < outer.left ? inner.left - outer.left - room : inner.right - outer.right + room;
  }
}

export function graph() {
  const element = make("div", { class: "agentnb-graph", tabindex: "0", role: "group", "aria-label": "Graph, scrolls" });
  const groups = new Map(); // node -> the groups that stand for it
  const worn = new Map(); // node -> its marks as they are, to leave alone what does not change
  let edges = []; // every edge with its place in the recipe
  let svg = null;
  let current = null;

  function restyle(id, marks) {
    const { classes = [], count = "" } = marks || {};
    const key = `${classes.join(" ")} ${count}`;
    if (worn.get(id) === key) return;
    worn.set(id, key);
    for (const group of groups.get(id) || []) {
      for (const mark of MARKS) group.classList.toggle(mark, classes.includes(mark));
      const text = group.querySelector(".count");
      if (text) text.textContent = count;
    }
  }

  return {
    element,
    draw(text) {
      groups.clear();
      worn.clear();
      current = null;
      svg = parsed(text);
      element.replaceChildren(svg || make("p", { text: "There is no drawing." }));
      edges = [...element.querySelectorAll("g.edge[data-edge]")].map((group) => [group, group.dataset.edge]);
      for (const group of element.querySelectorAll("g.node[data-node]")) {
        const id = group.dataset.node;
        groups.set(id, [...(groups.get(id) || []), group]);
      }
    },
    show(state) {
      if (!svg) return;
      const { nodes = {}, edges: ways = {} } = state.picture;
      for (const id of groups.keys()) restyle(id, nodes[id]);
      for (const [group, place] of edges) group.classList.toggle("taken", Boolean(ways[place]?.classes.includes("taken")));
      svg.setAttribute("aria-label", describe(state));
      if (state.current === current) return;
      current = state.current;
      const [node] = groups.get(current) || [];
      if (node) reveal(element, node);
    },
  };
}
