// Breakpoints and watches.
import { make } from "./dom.js";

function adder(label, hint, add) {
  const input = make("input", { type: "text", class: "agentnb-input agentnb-code", placeholder: hint, "aria-label": label, spellcheck: "false" });
  const form = make("form", { class: "agentnb-line" }, input, make("button", { type: "submit", class: "agentnb-button", text: "Add", "aria-label": `add: ${label}` }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!input.value.trim()) return;
    add(input.value.trim());
    input.value = "";
  });
  return form;
}

const remover = (label, click) => make("button", { type: "button", class: "agentnb-small", text: "×", title: label, "aria-label": label, click });

function stopRow(row, ask) {
  const box = make("input", { type: "checkbox", change: () => ask("enable", box.checked, row.id) });
  box.checked = row.enabled;
  const hits = row.hits ? [make("span", { class: "agentnb-faint", text: ` met ${row.hits}×` })] : [];
  const met = row.met ? [make("span", { class: "agentnb-chip", text: "stopped here" })] : [];
  const failed = row.failed ? [make("small", { class: "agentnb-note", text: `not worked out: ${row.failed}` })] : [];
  return make("li", { "data-stop": String(row.id) },
    make("label", {}, box, make("span", { text: ` ${row.text}` }), ...hits), ...met,
    remover(`remove breakpoint: ${row.text}`, () => ask("remove", null, row.id)), ...failed);
}

function watchRow([text, value], ask) {
  return make("li", { "data-watch": text }, make("span", { class: "agentnb-code" }, text, " = ", make("strong", { text: value })),
    remover(`watch no longer: ${text}`, () => ask("unwatch", null, text)));
}

/** Rows rebuilt only if they differ; the focus stays near its place. */
function list(label, hint, rowOf) {
  const element = make("ul", { class: "agentnb-rows", "aria-label": label });
  const none = make("p", { class: "agentnb-faint", text: hint });
  let shown = "";
  return {
    parts: [element, none],
    show(rows, home) {
      const told = JSON.stringify(rows);
      if (told === shown) return;
      shown = told;
      const inside = element.contains(document.activeElement);
      element.replaceChildren(...rows.map(rowOf));
      none.hidden = rows.length > 0;
      if (inside) (element.querySelector("input, button") || home).focus({ preventScroll: true });
    },
  };
}

export function stops(ask) {
  const marks = list("breakpoints", "A click beside a node of the graph sets one, at its left.", (row) => stopRow(row, ask));
  const watches = list("watches", "A condition or a key, worked out after each step.", (row) => watchRow(row, ask));
  const body = make("div", { class: "agentnb-stops", tabindex: "-1" },
    make("div", {}, make("h4", { text: "Breakpoints" }), ...marks.parts, adder("stop when this holds", "stop when, as: n > 3", (text) => ask("stop_when", text))),
    make("div", {}, make("h4", { text: "Watches" }), ...watches.parts, adder("watch this", "watch, as: items|length", (text) => ask("watch", text))));
  return {
    name: "stops",
    title: "Breakpoints and watches",
    body,
    says: ({ breakpoints = [], watches: watched = [] }) => `Breakpoints (${breakpoints.length}) and watches (${watched.length})`,
    show({ breakpoints = [], watches: watched = [] }) {
      marks.show(breakpoints, body);
      watches.show(watched, body);
    },
  };
}
