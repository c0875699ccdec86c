// The cells of the timeline, one per step, in lanes by depth and branch, with the marks above them.
import { make, say } from "./dom.js";

const NAMED = 34; // minimum pixels of a cell that shows its node's name
const LANE = 26; // pixels per lane
const ABOVE = 18; // pixels for the marks
const STATUS_NAMES = ["", "failed", "cancelled", "skipped"];
const STATUS_SIGNS = ["", "✕", "⊘", "»"];
const PHASE_NAMES = ["", "entered", "once more", "left"];
const PHASE_SIGNS = ["", "▾", "↻", "▴"];
const MARK_SIGNS = { stop: "●", act: "◆", fork: "⋔" };

/** The description of a step, for tooltips and screen readers. */
function toldStep(number, step, marks = []) {
  const parts = [STATUS_NAMES[step.status] || "ok", PHASE_NAMES[step.phase], `${step.ms} ms`];
  if (step.depth) parts.push(`depth ${step.depth}`);
  if (step.branch >= 0) parts.push(`branch ${step.branch + 1}`);
  return [`step ${number}: ${step.node}, ${parts.filter(Boolean).join(", ")}`, ...marks.map(([, words]) => words)].join("; ");
}

const laneOf = ({ depth, branch }) => `${depth}.${branch}`;

/** The lane of each depth and branch among the known ones. */
function lanesOf(steps) {
  const keys = new Map();
  for (const step of steps.values()) keys.set(laneOf(step), step);
  const sorted = [...keys].sort(([, one], [, other]) => one.depth - other.depth || one.branch - other.branch);
  return new Map(sorted.map(([key], index) => [key, index]));
}

function fillStep(cell, step, { number, marks, width, state, picked }) {
  const sign = STATUS_SIGNS[step.status] || PHASE_SIGNS[step.phase];
  const words = toldStep(number, step, marks);
  say(cell, width < NAMED ? sign : `${sign} ${step.node}`.trim());
  const told = {
    title: words, "aria-label": words, "aria-selected": String(number === picked), "aria-setsize": String(state.length), "aria-posinset": String(number),
    "data-status": STATUS_NAMES[step.status] || "ok", "data-later": number > state.position ? "" : null, "aria-current": number === state.position ? "step" : null,
  };
  for (const [key, value] of Object.entries(told)) {
    if (value === null) cell.removeAttribute(key);
    else if (cell.getAttribute(key) !== value) cell.setAttribute(key, value);
  }
}

function fillMark(mark, told) {
  mark.dataset.sort = told[0][0];
  say(mark, MARK_SIGNS[told[0][0]] + (told.length > 1 ? told.length : ""));
  mark.title = told.map(([, words]) => words).join("\n");
}

/** Renders the visible steps' cells into `inner` and removes the others. `left` is where the first one begins. */
export function stepCells(inner, tape, left) {
  const name = `agentnb-${Math.random().toString(36).slice(2)}`;
  let cells = new Map(); // "step" or "@position" -> its element
  const idOf = (number) => `${name}-${number}`;
  const made = (key, tag, attributes) => cells.get(key) || make(tag, attributes);

  function stepsOf(first, end, width, state, picked, lanes) {
    const found = [];
    for (let number = first; number <= end; number += 1) {
      const step = tape.steps.get(number);
      if (!step) continue;
      const cell = made(String(number), "div", { class: "agentnb-step", role: "option", id: idOf(number), "data-step": String(number) });
      fillStep(cell, step, { number, marks: tape.marks.get(number), width, state, picked });
      Object.assign(cell.style, { left: `${left + (number - 1) * width}px`, width: `${width - 3}px`, top: `${ABOVE + lanes.get(laneOf(step)) * LANE}px` });
      found.push([String(number), cell]);
    }
    return found;
  }
  function marksOf(first, end, width) {
    const found = [];
    for (let place = first - 1; place <= end; place += 1) {
      const told = tape.marks.get(place);
      if (!told) continue;
      const mark = made(`@${place}`, "span", { class: "agentnb-tick", "aria-hidden": "true" });
      fillMark(mark, told);
      mark.style.left = `${left + place * width - 1}px`;
      found.push([`@${place}`, mark]);
    }
    return found;
  }
  return {
    draw([first, end], width, state, picked) {
      const lanes = lanesOf(tape.steps);
      inner.style.height = `${ABOVE + Math.max(lanes.size, 1) * LANE}px`;
      const now = new Map([...stepsOf(first, end, width, state, picked, lanes), ...marksOf(first, end, width)]);
      for (const [key, one] of cells) if (!now.has(key)) one.remove();
      let before = inner.firstChild; // in order, for screen readers
      for (const one of now.values()) {
        if (before.nextSibling !== one) before.after(one);
        before = one;
      }
      cells = now;
      const active = String(picked ?? state.position);
      if (cells.has(active)) inner.setAttribute("aria-activedescendant", idOf(active));
      else inner.removeAttribute("aria-activedescendant");
    },
  };
}
