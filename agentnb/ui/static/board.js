// board: the blackboard as a table; a row stays where it is, and says what the last step did to it.
import { make, say } from "./dom.js";

const SAYS = { written: ["●", "written by the last step"], read: ["○", "read by the last step"] };

function newRow(key) {
  const mark = make("td", { class: "agentnb-mark" });
  const value = make("td", { class: "agentnb-value" });
  const name = make("button", { type: "button", class: "agentnb-key", text: key, "aria-expanded": "false", title: "show all of it" });
  const row = make("tr", { "data-row": key }, mark, make("th", { scope: "row" }, name), value);
  name.addEventListener("click", () => {
    const open = row.classList.toggle("agentnb-open");
    name.setAttribute("aria-expanded", String(open));
  });
  return { row, mark, value };
}

function fill({ row, mark, value }, text, marks) {
  const name = marks.includes("written") ? "written" : marks.includes("read") ? "read" : "";
  if ((row.dataset.mark || "") !== name) {
    row.dataset.mark = name;
    const [glyph, words] = SAYS[name] || ["", ""];
    mark.replaceChildren(
      make("span", { "aria-hidden": "true", title: words, text: glyph }),
      make("span", { class: "agentnb-hidden", text: words }),
    );
  }
  const absent = text === null;
  say(value, absent ? (name === "written" ? "deleted" : "not yet") : text);
  value.classList.toggle("agentnb-absent", absent);
}

export function board() {
  const body = make("tbody");
  const more = make("p", { class: "agentnb-more", hidden: true });
  const head = make("tr", {}, ...["Change", "Key", "Value"].map((text) => make("th", { scope: "col", text })));
  const columns = make("colgroup", {}, ...["mark", "key", "value"].map((name) => make("col", { class: `agentnb-col-${name}` })));
  const table = make("table", {}, make("caption", {}, "Blackboard", make("small", { text: "● written  ○ read" })), columns, make("thead", { class: "agentnb-hidden" }, head), body);
  const element = make("div", { class: "agentnb-board", tabindex: "0", role: "group", "aria-label": "Blackboard, scrolls" }, table, more);
  const rows = new Map();

  return {
    element,
    show(state) {
      const keys = new Set(state.board.map(([key]) => key));
      for (const [key, found] of rows) {
        if (!keys.has(key)) {
          found.row.remove();
          rows.delete(key);
        }
      }
      state.board.forEach(([key, text, marks], index) => {
        if (!rows.has(key)) rows.set(key, newRow(key));
        const found = rows.get(key);
        fill(found, text, marks);
        if (body.children[index] !== found.row) body.insertBefore(found.row, body.children[index] || null);
      });
      more.hidden = !state.more && state.board.length > 0;
      say(more, state.more ? `and ${state.more} more keys` : "Nothing on it yet.");
    },
  };
}
