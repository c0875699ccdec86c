// One row of the board's table, a key or a part of its value, and its content below: its parts and its editor.
import { make, say } from "./dom.js";
import { editor, writerOf } from "./editor.js";

const MARKS = { written: ["●", "written by the last step"], read: ["○", "read by the last step"] };
const OPENS = /\[\d+\]$/; // a type with a number of parts can be expanded

const treeCell = (name, role, ...children) => make(role === "rowheader" ? "th" : "td", { class: `agentnb-${name}`, role, ...(role === "rowheader" ? { scope: "row" } : {}) }, ...children);

/** The cells of a row; `set(text, marks, type, by)` fills them, and touches only what differs. */
function treeCells({ path, label, level }, tools, { open, edit }) {
  const twist = make("span", { class: "agentnb-twist", "aria-hidden": "true" });
  const name = make("button", { type: "button", class: "agentnb-key", tabindex: "-1", click: open }, twist, make("span", { text: label }));
  const pen = make("button", { type: "button", class: "agentnb-small agentnb-pen", tabindex: "-1", text: "✎", "aria-label": `edit ${label}`, title: "all of it: read, edit, copy, delete", click: edit });
  const [mark, type, value, by] = [treeCell("mark", "gridcell"), treeCell("type", "gridcell"), treeCell("value", "gridcell"), treeCell("by", "gridcell")];
  const row = make("tr", { role: "row", tabindex: "-1", "aria-level": String(level), style: `--a-level: ${level - 1}`, "data-path": JSON.stringify(path), ...(level === 1 ? { "data-row": label } : {}) },
    mark, treeCell("heading", "rowheader", name), type, value, by, treeCell("acts", "gridcell", pen));
  let before = "";
  value.addEventListener("click", () => { if (!String(getSelection())) open(); });
  function marked(marks) {
    const word = marks.includes("written") ? "written" : marks.includes("read") ? "read" : "";
    if ((row.dataset.mark || "") === word) return word;
    row.dataset.mark = word;
    const [glyph, words] = MARKS[word] || ["", ""];
    mark.replaceChildren(make("span", { "aria-hidden": "true", title: words, text: glyph }), make("span", { class: "agentnb-hidden", text: words }));
    return word;
  }
  return {
    row, name, pen,
    set(text, marks, kind, who) {
      const word = marked(marks);
      say(value, text === null ? (word === "written" ? "deleted" : "not yet") : text);
      value.classList.toggle("agentnb-absent", text === null);
      say(type, kind);
      row.classList.toggle("agentnb-opens", OPENS.test(kind));
      const told = JSON.stringify(who ?? null);
      if (told === before) return;
      before = told;
      by.replaceChildren(...(who ? [writerOf(who, tools.go, { brief: true })] : []));
      for (const link of by.querySelectorAll("button")) link.tabIndex = -1;
    },
  };
}

/**
 * A row with its expandable content. `tools` has ask, go(step), can(verb), and `known`: row -> line.
 * `follow()` requests all expanded content again; `lines()` are the visible rows, from the top.
 */
export function treeLine(about, tools) {
  const { path, label, level } = about;
  const cells = treeCells(about, tools, { open: () => line.toggle(), edit: () => line.edit() });
  const kids = new Map(); // name -> line
  let [below, kind, spread, count, more] = [null, "", false, 0, null];
  const lookAt = () => tools.ask("look", "key", path, (found) => { if (found && below) below.show(found); });

  function place(found, start) {
    const rows = found?.rows || [];
    let after = start ? [...kids.values()].at(-1)?.lines().at(-1) || cells.row : below?.row || cells.row;
    const names = new Set(rows.map(([, , , shown]) => shown));
    if (!start) for (const [shown, kid] of kids) if (!names.has(shown)) { kid.remove(); kids.delete(shown); }
    rows.forEach(([name, text, type, shown]) => {
      const known = kids.get(shown);
      const kid = known || treeLine({ path: name === null ? null : [...path, name], label: shown, level: level + 1 }, tools);
      kids.set(shown, kid);
      kid.set(text, known && known.text !== text ? ["written"] : [], type, null);
      if (after.nextSibling !== kid.row) after.after(...kid.lines());
      after = kid.lines().at(-1);
      kid.follow();
    });
    count = found?.total || 0;
    rest(after);
  }
  function rest(after) {
    more?.remove();
    more = null;
    if (kids.size >= count) return;
    more = make("tr", { class: "agentnb-all", role: "row" }, make("td", { role: "gridcell" },
      make("button", { type: "button", class: "agentnb-link", text: `show more of ${count - kids.size} further parts of ${label}`, click: () => pull(kids.size) })));
    after.after(more);
  }
  const pull = (start = 0) => tools.ask("look", "branch", { path, start }, (found) => { if (spread && found) place(found, start); });
  function shut() {
    for (const kid of kids.values()) kid.remove();
    kids.clear();
    more?.remove();
    more = null;
  }
  function spreadOut(open) {
    spread = open;
    cells.row.classList.toggle("agentnb-open", open);
    if (open) pull();
    else shut();
    tell();
  }
  function tell() {
    if (OPENS.test(kind)) cells.row.setAttribute("aria-expanded", String(spread));
    else if (below) cells.row.setAttribute("aria-expanded", "true");
    else cells.row.removeAttribute("aria-expanded");
  }
  const line = {
    row: cells.row, path, level, text: null, kids,
    set(text, marks, type, by) {
      line.text = text;
      kind = path === null ? "" : type;
      cells.set(text, marks, type, by);
      cells.pen.hidden = path === null;
      if (spread && !OPENS.test(kind)) spreadOut(false);
      tell();
    },
    opens: () => OPENS.test(kind),
    spread: () => spread,
    toggle(open = !spread) {
      if (path === null) return;
      if (OPENS.test(kind)) spreadOut(open);
      else line.edit();
    },
    edit() {
      if (path === null) return;
      if (below) {
        const held = below.row.contains(document.activeElement);
        below.row.remove();
        below = null;
        if (held) cells.row.focus({ preventScroll: true });
      } else {
        const made = editor(path, label, tools, lookAt);
        below = { ...made, row: make("tr", { class: "agentnb-all", role: "row" }, make("td", { role: "gridcell" }, made.form)) };
        cells.row.after(below.row);
        below.able(tools.can("edit"));
        lookAt();
      }
      tell();
    },
    able: (can) => { below?.able(can); for (const kid of kids.values()) kid.able(can); },
    follow() {
      if (below) lookAt();
      if (spread) pull();
    },
    isOpen: () => Boolean(below) || spread,
    lines: () => [cells.row, ...(below ? [below.row] : []), ...[...kids.values()].flatMap((kid) => kid.lines()), ...(more ? [more] : [])],
    remove() { for (const row of line.lines()) row.remove(); },
  };
  tools.known.set(cells.row, line);
  return line;
}
