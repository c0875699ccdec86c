// The graph as a table: each node, its kind, its status, its edges. For screen readers, and for reading.
import { make, say } from "./dom.js";

const NODE_STATES = { current: "is next", next: "comes later", waiting: "waits for a person", failed: "failed", breakpoint: "has a breakpoint" };

/** A table of a drawing; `choose(id)` is called when a name is clicked. */
export function graphTable(choose) {
  const head = make("tr", {}, ...["Node", "Kind", "State", "Leads to"].map((text) => make("th", { scope: "col", text })));
  const body = make("tbody");
  const table = make("table", { "aria-label": "Nodes of the graph" }, make("thead", {}, head), body);
  const element = make("div", { class: "agentnb-graph-table", hidden: true, tabindex: "0", role: "group", "aria-label": "Graph as a table, scrolls" }, table);
  let cells = new Map();
  return {
    element,
    /** `nodes` are {id, name, kind, ways}; a way is a text. */
    draw(nodes) {
      cells = new Map();
      body.replaceChildren(...nodes.map(({ id, name, kind, ways }) => {
        const state = make("td");
        cells.set(id, state);
        const press = make("button", { type: "button", class: "agentnb-key", text: name, click: () => choose(id) });
        return make("tr", {}, make("th", { scope: "row" }, press), make("td", { text: kind }), state, make("td", { text: ways.join(", ") || "–" }));
      }));
    },
    /** The status of the nodes, by id; rendered only while visible. */
    show(nodes) {
      if (element.hidden) return;
      for (const [id, cell] of cells) {
        const { classes = [], count = "" } = nodes[id] || {};
        const words = Object.entries(NODE_STATES).filter(([mark]) => classes.includes(mark)).map(([, text]) => text);
        if (count) words.push(`ran ${count}`);
        say(cell, words.join(", ") || "not yet");
      }
    },
  };
}
