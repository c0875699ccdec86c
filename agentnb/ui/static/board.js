// board: the blackboard as a table; a row stays where it is, says what the last step did to it, and opens to all of its value.
import { enable, make, say } from "./dom.js";
import { field } from "./fields.js";

const SAYS = { written: ["●", "written by the last step"], read: ["○", "read by the last step"] };

/** What a row shows when it is open: all of its value, who wrote it, and a place to change it. */
function detail(key, ask, look) {
  const about = make("p", { class: "agentnb-faint" });
  const space = make("div", {}, make("p", { class: "agentnb-faint", text: "…" }));
  const save = make("button", { type: "submit", class: "agentnb-button agentnb-main", text: "Save", hidden: true });
  const drop = make("button", { type: "button", class: "agentnb-button", text: "Undo changes", hidden: true });
  const form = make("form", { class: "agentnb-detail" }, about, space, make("div", { class: "agentnb-line" }, save, drop));
  let shown = "";
  let one = null;
  const dirty = () => { for (const each of [save, drop]) each.hidden = !one || one.typed() === null; };
  drop.addEventListener("click", () => { one.reset(); dirty(); one.box.focus(); });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!one || one.typed() === null || one.fault()) return;
    ask("edit", one.typed(), key);
    shown = "";
    one = null;
    look();
  });
  function writer(found) {
    if (found.writer === null) return [found.type ? "" : "not yet on the board: what is saved here puts it there"];
    if (!found.by) return ["from the inputs, or written by hand at the start"];
    const words = `step ${found.writer}, ${found.by}`;
    return ["written by ", make("button", { type: "button", class: "agentnb-link", text: words, title: `go to step ${found.writer}`, click: () => ask("goto", found.writer) })];
  }
  return {
    form,
    able: (can) => { for (const each of [save]) enable(each, can); },
    show(found) {
      const told = JSON.stringify(found);
      if (told === shown || (one && one.typed() !== null)) return; // what is being typed stays
      shown = told;
      const held = one && one.element.contains(document.activeElement);
      one = field({ ...found.field, label: `value of ${key}` }, { named: false, typed: dirty });
      about.replaceChildren(...[found.type, ...writer(found)].flatMap((part, index) => (index === 1 && found.type && part ? [", ", part] : [part])));
      space.replaceChildren(one.element);
      if (held) one.box.focus({ preventScroll: true });
      dirty();
    },
  };
}

function newRow(key, ask) {
  const mark = make("td", { class: "agentnb-mark" });
  const value = make("td", { class: "agentnb-value" });
  const name = make("button", { type: "button", class: "agentnb-key", text: key, "aria-expanded": "false", title: "all of it, who wrote it, and edit" });
  const row = make("tr", { "data-row": key }, mark, make("th", { scope: "row" }, name), value);
  const body = make("tbody", {}, row);
  const found = { body, row, mark, value, key, open: null, seen: "" };
  const look = () => ask("look", "key", key, (got) => { if (got && found.open) found.open.show(got); });
  name.addEventListener("click", () => {
    const open = row.classList.toggle("agentnb-open");
    name.setAttribute("aria-expanded", String(open));
    if (open) {
      found.open = detail(key, ask, look);
      body.append(make("tr", { class: "agentnb-all" }, make("td", { colspan: "3" }, found.open.form)));
      look();
    } else {
      body.lastChild.remove();
      found.open = null;
    }
  });
  return Object.assign(found, { look });
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

/** An open row asks for its value again when the run has moved; not while it runs. */
function follow(found, state, text) {
  if (!found.open) return;
  found.open.able(state.can.includes("edit"));
  const seen = JSON.stringify([state.position, state.length, state.said, text]);
  if (seen === found.seen || ["running", "pausing"].includes(state.status)) return;
  found.seen = seen;
  found.look();
}

export function board(ask) {
  const more = make("p", { class: "agentnb-more", hidden: true });
  const filter = make("input", { type: "search", class: "agentnb-input agentnb-filter", placeholder: "filter", "aria-label": "filter the blackboard" });
  const head = make("tr", {}, ...["Change", "Key", "Value"].map((text) => make("th", { scope: "col", text })));
  const columns = make("colgroup", {}, ...["mark", "key", "value"].map((name) => make("col", { class: `agentnb-col-${name}` })));
  const table = make("table", { "aria-label": "Blackboard" }, columns, make("thead", { class: "agentnb-hidden" }, head));
  const element = make("div", { class: "agentnb-board", tabindex: "0", role: "group", "aria-label": "Blackboard, scrolls" }, table, more);
  const rows = new Map();
  let last = { board: [], more: 0, can: [] };

  function sift() {
    const word = filter.value.trim().toLowerCase();
    let shown = 0;
    for (const { body, key, value } of rows.values()) {
      body.hidden = word !== "" && !key.toLowerCase().includes(word) && !value.textContent.toLowerCase().includes(word);
      shown += body.hidden ? 0 : 1;
    }
    const nothing = last.board.length ? "Nothing has this in its key or value." : "Nothing on it yet.";
    more.hidden = !last.more && shown > 0;
    say(more, last.more ? `and ${last.more} more keys` : nothing);
  }
  filter.addEventListener("input", sift);
  return {
    name: "board",
    title: "Blackboard",
    tools: [make("small", { text: "● written  ○ read" }), filter],
    body: element,
    show(state) {
      last = state;
      const keys = new Set(state.board.map(([key]) => key));
      for (const [key, found] of rows) {
        if (!keys.has(key)) {
          found.body.remove();
          rows.delete(key);
        }
      }
      state.board.forEach(([key, text, marks], index) => {
        if (!rows.has(key)) rows.set(key, newRow(key, ask));
        const found = rows.get(key);
        fill(found, text, marks);
        if (table.tBodies[index] !== found.body) table.insertBefore(found.body, table.tBodies[index] || null);
        follow(found, state, text);
      });
      sift();
    },
  };
}
