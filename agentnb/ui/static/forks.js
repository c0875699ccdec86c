// The tree of runs that this cockpit can show: where each was forked, its length, and which one is shown.
import { enable, make, say } from "./dom.js";

function begun(row) {
  if (row.depth === 0) return "";
  return row.from === null ? " began anew" : row.from === 0 ? " from the start" : ` from step ${row.from}`;
}

function stood({ position, length, status }) {
  return `${position === length ? length : `${position} of ${length}`} ${length === 1 ? "step" : "steps"}, ${status.replace("_", " ")}`;
}

/** A run of the tree; the shown one is marked, and a click shows another one. */
function forkRow(row, ask) {
  const name = row.shown
    ? make("strong", { "aria-current": "true" }, row.name)
    : make("button", { type: "button", class: "agentnb-link", text: row.kept ? "later steps, kept" : row.name,
      title: `show this run here: ${row.name} (${row.id})`, click: () => ask("switch", null, row.id) });
  const sign = row.depth ? [make("span", { class: "agentnb-faint", "aria-hidden": "true", text: "⋔ " })] : [];
  return make("li", { style: `padding-left:${Math.min(row.depth, 8) * 14}px` },
    make("span", {}, ...sign, name, make("span", { class: "agentnb-faint", text: `${begun(row)}: ${stood(row)}` })),
    ...(row.shown ? [make("span", { class: "agentnb-chip", text: "shown" })] : []));
}

function forkForm(ask) {
  const name = make("input", { type: "text", class: "agentnb-input", placeholder: "its name", "aria-label": "name of the fork", spellcheck: "false" });
  const button = make("button", { type: "submit", class: "agentnb-button", text: "Fork here", title: "go on in a fork from here; this run stays as it is" });
  const form = make("form", { class: "agentnb-fork-form" }, name, button);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask("fork", name.value.trim() || null);
    name.value = "";
  });
  return { form, button };
}

export function forks(ask) {
  const list = make("ul", { class: "agentnb-rows", "aria-label": "runs, each below the one that it began from" });
  const more = make("p", { class: "agentnb-faint" });
  const body = make("div", { class: "agentnb-forks", tabindex: "-1" }, list, more);
  const { form, button } = forkForm(ask);
  let known = null; // the tree as last received
  let last = null;
  let shown = "";
  let asked = "";

  /** The row of the shown run follows the state; the others are requested when the tree changes. */
  function paint() {
    if (!known) return;
    const { position, length, status } = last;
    const rows = known.rows.map((row) => (row.shown ? { ...row, position, length, status } : row));
    const told = JSON.stringify([rows, known.more]);
    if (told === shown) return;
    shown = told;
    const inside = list.contains(document.activeElement);
    list.replaceChildren(...rows.map((row) => forkRow(row, ask)));
    if (inside) (list.querySelector("button") || body).focus({ preventScroll: true });
    more.hidden = !known.more;
    say(more, `and ${known.more} more`);
  }
  return {
    name: "forks",
    title: "Forks",
    says({ forks: own }) {
      const count = known ? known.rows.length - 1 + known.more : own;
      return count ? `Forks (${count})` : "Forks";
    },
    tools: [form],
    body,
    show(state) {
      last = state;
      enable(button, state.can.includes("fork"));
      const now = JSON.stringify([state.run, state.line, state.forks]);
      if (now === asked) paint();
      if (now === asked || (known && ["running", "pausing"].includes(state.status))) return; // requested once it rests
      asked = now;
      ask("look", "forks", null, (found) => {
        if (!found) return;
        known = found;
        paint();
      });
    },
  };
}
