// The blackboard in the drawing: its rows show current values, thin lines lead to the nodes that read and write them.
import { say } from "./dom.js";
import { svgPart } from "./sheet.js";

const VALUE_COLUMNS = 24; // columns available for a value

/** A text truncated to fit; East Asian wide characters take two columns. */
function fitting(text) {
  let used = 0;
  let end = 0;
  for (const letter of text) {
    used += letter >= "\u1100" ? 2 : 1;
    if (used > VALUE_COLUMNS) return `${text.slice(0, end).trimEnd()}…`;
    if (used < VALUE_COLUMNS) end += letter.length;
  }
  return text;
}

function drawnRow(group, tip) {
  const [key, value] = [group.querySelector(".key"), group.querySelector(".value")];
  const { row: name, index } = group.dataset;
  return { group, key, value, index, name, tip: tip || "", drawn: group.classList.contains("spare") ? null : [name, key.textContent], text: "", worn: "" };
}

/** The tooltip of a row: its value first, then the recipe's description of its key. */
function rowTip(row) {
  if (!row.name) return null;
  const [, ...rest] = row.name === row.drawn?.[0] ? row.tip.split("\n") : [];
  return [row.text ? `${row.name} = ${row.text}` : row.name, ...rest];
}

/** The board of a drawing; `ask(then)` requests the lines that differ from the drawn ones. */
export function drawnBoard({ svg, tips }, ask) {
  const rows = [...svg.querySelectorAll("g.row[data-index]")].map((group) => drawnRow(group, tips.get(group)));
  const more = svg.querySelector(".board .more");
  const holder = svg.querySelector("g.flows");
  const drawn = new Map([...svg.querySelectorAll("g.flow")].map((group) => [`${group.dataset.way} ${group.dataset.node}`, group]));
  const added = new Map();
  const byNode = new Map();
  let active = null;
  let lastLines = "";

  /** Assign a key to a row, with its data on the board: [key, text, marks]. */
  function fill(row, names, told) {
    const [name, label] = names || ["", ""];
    const [, text = "", marks = []] = told || [];
    const wear = JSON.stringify([name, label, text, marks]);
    if (row.worn === wear) return;
    Object.assign(row, { worn: wear, name, text: text || "" });
    row.group.setAttribute("class", ["row", ...(names ? marks : ["spare"])].join(" "));
    row.group.dataset.row = row.value.dataset.key = name;
    say(row.key, label);
    say(row.value, fitting(row.text));
  }
  const flowsOf = (node) => byNode.get(node) || byNode.set(node, [...drawn.values(), ...added.values()].filter((each) => each.dataset.node === node)).get(node);
  function stand(node) {
    if (active !== null) for (const each of flowsOf(active)) each.classList.remove("active");
    active = node;
    if (node !== null) for (const each of flowsOf(node)) each.classList.add("active");
  }
  function lines(found) {
    for (const each of added.values()) each.remove();
    added.clear();
    byNode.clear();
    const gone = new Set(found.gone);
    for (const [name, group] of drawn) group.style.display = gone.has(name) || found.flows[name] ? "none" : "";
    for (const [name, flow] of Object.entries(found.flows)) {
      const group = svgPart("g", { class: flow.classes.filter((word) => word !== "active").join(" "), "data-node": flow.node, "data-way": flow.way },
        svgPart("path", { class: "line", d: flow.line }), svgPart("path", { class: "heads", d: flow.heads }));
      tips.set(group, flow.tip);
      added.set(name, group);
      holder.append(group);
    }
    const now = active;
    active = null;
    stand(now);
  }
  return {
    there: rows.length > 0,
    tip: (group) => { const row = rows.find((each) => each.group === group); return row ? rowTip(row) : null; },
    /** `node` is the box of the current node. While a run moves no lines are requested. */
    show({ picture, board: table = [] }, node, rests) {
      if (!holder) return;
      const { rows: named = {}, board: below = {} } = picture;
      const known = new Map(table.map((row) => [row[0], row]));
      for (const row of rows) {
        const names = named[row.index] || row.drawn;
        fill(row, names, names && known.get(names[0]));
      }
      if (more) say(more, below.more || "");
      if (node !== active) stand(node);
      const word = below.flows || "";
      if (word === lastLines || !rests) return;
      lastLines = word;
      if (word) ask((found) => { if (found && lastLines === word) lines(found); });
      else lines({ flows: {}, gone: [] });
    },
  };
}
