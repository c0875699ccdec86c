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
  svg.setAttribute("role", "group"); // its nodes are buttons
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

const NEXT = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** What a node is told as: its name and its marks. */
function named(id, classes, count) {
  const words = classes.filter((mark) => mark !== "breakpoint").map((mark) => (mark === "visited" ? `visited ${count}` : mark));
  return [`node ${id}`, ...words].join(", ");
}

/** Nodes are buttons that set a breakpoint; one of them is in the order of Tab, the arrows go on from there. */
function pressable(element, ask) {
  const nodes = () => [...element.querySelectorAll("g.node[data-node]")];
  const at = (event) => event.target.closest?.("g.node[data-node]");
  const press = (node) => ask("stop_at", null, node.dataset.node);
  element.addEventListener("click", (event) => {
    const node = at(event);
    if (node) press(node);
  });
  element.addEventListener("keydown", (event) => {
    const node = at(event);
    if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
    const all = nodes();
    if (event.key === "Enter" || event.key === " ") press(node);
    else if (NEXT[event.key]) {
      const next = all[(all.indexOf(node) + NEXT[event.key] + all.length) % all.length];
      for (const each of all) each.setAttribute("tabindex", each === next ? "0" : "-1");
      next.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return () => nodes().forEach((node, index) => {
    node.setAttribute("role", "button");
    node.setAttribute("tabindex", index ? "-1" : "0");
  });
}

export function graph(ask) {
  const element = make("div", { class: "agentnb-graph", tabindex: "0", role: "group", "aria-label": "Graph, scrolls" });
  const prepare = pressable(element, ask);
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
      group.setAttribute("aria-pressed", String(classes.includes("breakpoint")));
      group.setAttribute("aria-label", named(id, classes, count));
      group.setAttribute("aria-description", "a click sets or removes a breakpoint");
    }
  }

  return {
    name: "graph",
    title: "Graph",
    body: element,
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
      prepare();
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
