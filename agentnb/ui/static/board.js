// The blackboard as a table of expandable rows; it renders as many as requested, and searches all of them.
import { enable, make, say } from "./dom.js";
import { field } from "./fields.js";
import { treeLine } from "./tree.js";

const SOME = 200; // rows rendered until more are requested
const COLUMNS = [["mark", "Change"], ["heading", "Key"], ["type", "Type"], ["value", "Value"], ["by", "Step"], ["acts", "Edit"]];
const TYPED = 250; // milliseconds after the last key until the kernel is asked to search

/** The visible part of all rows: those that match the search, up to a limit; missing ones are requested. */
function boardSifter(ask, changed) {
  let [word, limit, beyond, total, asked, timer] = ["", SOME, [], 0, "", 0];
  const fits = ([key, text]) => key.toLowerCase().includes(word) || (text || "").toLowerCase().includes(word);
  function pull(state, start) {
    const name = JSON.stringify([word, start, state.position, state.length]);
    if (asked === name) return;
    asked = name;
    ask("look", "rows", { word, start }, (found) => {
      if (!found || asked !== name) return;
      beyond = start ? [...beyond, ...found.rows] : found.rows;
      total = found.total;
      changed();
    });
  }
  return {
    /** The rows to render, and the number of further ones. */
    rows(state) {
      const own = word ? state.board.filter(fits) : state.board;
      const known = new Set(own.map(([key]) => key));
      const all = state.more ? [...own, ...beyond.filter(([key]) => !known.has(key))] : own;
      const every = !state.more ? all.length : word ? Math.max(total, all.length) : state.board.length + state.more;
      return { rows: all.slice(0, limit), left: every - Math.min(limit, all.length), hidden: all.slice(limit) };
    },
    find(state, text) {
      [word, limit, beyond, total] = [text.trim().toLowerCase(), SOME, [], 0];
      clearTimeout(timer);
      if (state.more && word) timer = setTimeout(() => pull(state, 0), TYPED);
      changed();
    },
    further(state) {
      limit += SOME;
      if (state.more && limit > state.board.length) pull(state, word ? beyond.length : state.board.length + beyond.length);
      changed();
    },
    word: () => word,
  };
}

/** A form that adds a key, or a part of one, to the board. */
function keyAdder(ask, can) {
  const name = make("input", { type: "text", class: "agentnb-input agentnb-code", required: true, placeholder: "key, or a path: order.lines.0", "aria-label": "new key" });
  const value = field({ label: "value of the new key", text: "", as: "text" }, { named: false, kinds: true });
  const form = make("form", { class: "agentnb-add", hidden: true }, make("div", { class: "agentnb-line" }, name), value.element,
    make("div", { class: "agentnb-line" }, make("button", { type: "submit", class: "agentnb-button agentnb-main", text: "Add" }),
      make("button", { type: "button", class: "agentnb-button", text: "Cancel", click: () => toggle(false) })));
  const button = make("button", { type: "button", class: "agentnb-small", text: "+", "aria-label": "add a key", title: "put a new key on the blackboard", "aria-expanded": "false", click: () => toggle(form.hidden) });
  function toggle(open) {
    form.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    (open ? name : button).focus({ preventScroll: true });
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const [key, typed] = [name.value.trim(), value.now()];
    if (!key || value.fault(value.fault())) return;
    ask("look", "typed", { path: key, typed }, (wrong) => {
      if (wrong) value.fault(wrong);
      if (wrong || !can("edit")) return;
      ask("edit", typed, key);
      name.value = "";
      value.reset();
      toggle(false);
    });
  });
  return { form, button };
}

/** Arrow keys: up and down through the rows, right to expand, left to collapse. */
function boardWalks(table, known) {
  const rows = () => [...table.querySelectorAll("tbody:not([hidden]) > tr[data-path]")];
  let here = null;
  function stand(row) {
    for (const [each, index] of [[here, "-1"], [row, "0"]]) {
      for (const part of each ? [each, ...each.querySelectorAll("button")] : []) part.setAttribute("tabindex", index);
    }
    here = row;
  }
  function parent(row) {
    const level = Number(row.getAttribute("aria-level"));
    return rows().slice(0, rows().indexOf(row)).findLast((each) => Number(each.getAttribute("aria-level")) < level);
  }
  table.addEventListener("focusin", ({ target }) => {
    const row = target.closest("tr[data-path]");
    if (row && row !== here) stand(row);
  });
  table.addEventListener("keydown", (event) => {
    const { key, target } = event;
    const row = target.closest("tr[data-path]");
    if (!row || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const [all, line] = [rows(), known.get(row)];
    const at = all.indexOf(row);
    const does = {
      ArrowDown: () => all[at + 1]?.focus(),
      ArrowUp: () => all[at - 1]?.focus(),
      Home: () => all[0].focus(),
      End: () => all.at(-1).focus(),
      ArrowRight: () => (line.opens() && !line.spread() ? line.toggle(true) : row.querySelector("button").focus()),
      ArrowLeft: () => (target !== row ? row : line.spread() ? void line.toggle(false) : parent(row))?.focus(),
      ...(target === row ? { Enter: () => line.toggle(), F2: () => line.edit() } : {}),
    }[key];
    if (!does) return;
    does();
    event.preventDefault();
    event.stopPropagation();
  });
  return () => { if (!here?.isConnected || here.closest("[hidden]")) stand(rows()[0] || null); };
}

/** Render rows in order, each in its own part of the table; an expanded row is hidden, never removed. */
function boardPainter(table, tools) {
  const lines = new Map(); // key -> {line, body, seen}
  return {
    lines,
    paint(rows) {
      const wanted = new Set(rows.map(([key]) => key));
      for (const [key, { line, body }] of lines) {
        body.hidden = !wanted.has(key);
        if (body.hidden && !line.isOpen()) {
          body.remove();
          lines.delete(key);
        }
      }
      let next = table.tBodies[0] || null;
      for (const row of rows) {
        const [key, text, marks, type, by] = row;
        if (!lines.has(key)) {
          const line = treeLine({ path: [key], label: key, level: 1 }, tools);
          lines.set(key, { line, body: make("tbody", { role: "rowgroup" }, line.row), seen: null });
        }
        const found = lines.get(key);
        if (found.seen !== row) found.line.set(text, marks, type, by);
        found.seen = row;
        while (next?.hidden) next = next.nextElementSibling;
        if (next === found.body) next = next.nextElementSibling;
        else table.insertBefore(found.body, next);
      }
    },
  };
}

export function board(ask, choice) {
  const head = make("tr", { role: "row" }, ...COLUMNS.map(([name, text]) => make("th", { role: "columnheader", scope: "col", class: `agentnb-${name}` }, make("span", { text }))));
  const table = make("table", { role: "treegrid", "aria-label": "Blackboard" }, make("thead", { role: "rowgroup" }, head));
  const told = make("span", {});
  const further = make("button", { type: "button", class: "agentnb-link", text: "show more", click: () => sift.further(last) });
  const more = make("p", { class: "agentnb-more" }, told, " ", further);
  let last = { board: [], more: 0, can: [] };
  let seen = "";
  const can = (verb) => last.can.includes(verb);
  const known = new WeakMap();
  const go = (step) => { choice?.set("step", step); ask("goto", step); };
  const { paint, lines } = boardPainter(table, { ask, go, can, known });
  const reach = boardWalks(table, known);
  const add = keyAdder(ask, can);
  const element = make("div", { class: "agentnb-board", tabindex: "0", role: "group", "aria-label": "Blackboard, scrolls" }, add.form, table, more);
  const filter = make("input", { type: "search", class: "agentnb-input agentnb-filter", placeholder: "filter", "aria-label": "filter the blackboard", input: () => sift.find(last, filter.value) });

  function repaint() {
    const { rows, left, hidden } = sift.rows(last);
    paint(rows);
    reach();
    const fresh = hidden.filter(([, , marks]) => marks.includes("written")).length;
    more.hidden = !left && rows.length > 0;
    further.hidden = !left;
    if (rows.length) say(told, `and ${left} more keys${fresh ? `, ${fresh} of them written by the last step` : ""}`);
    else say(told, sift.word() ? "Nothing has this in its key or value." : "Nothing on it yet.");
  }
  const sift = boardSifter(ask, repaint);
  return {
    name: "board",
    title: "Blackboard",
    tools: [make("small", { text: "● written  ○ read" }), filter, add.button],
    body: element,
    show(state) {
      last = state;
      repaint();
      enable(add.button, can("edit"));
      for (const { line } of lines.values()) line.able(can("edit"));
      // Expanded rows request their values again when the run has moved; not while it runs.
      const where = JSON.stringify([state.position, state.length, state.said, state.run]);
      if (where === seen || ["running", "pausing"].includes(state.status)) return;
      seen = where;
      for (const { line } of lines.values()) line.follow();
    },
  };
}
