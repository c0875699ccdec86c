// Fields that show and edit values: a text, a number, true or false, null, or JSON.
// Input is validated before it is sent, and validated again by the kernel.
import { make, say } from "./dom.js";

const KINDS = { text: "text", number: "number", flag: "true / false", none: "nothing", json: "JSON" };
const NUMBER = /^\s*-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?\s*$/;
const LINES = 12; // lines of a text visible at once

function fault(text, as) {
  if (as === "number" && !NUMBER.test(text)) return "This is no number: write digits, as 3 or -0.5.";
  if (as !== "json") return "";
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    return `This is no JSON: ${error.message}. Choose "text" to have it as it stands.`;
  }
}

/** The input element for one type of value. */
function boxOf(as, text, label) {
  const named = { "aria-label": label };
  if (as === "fixed") return make("div", { class: "agentnb-fixed", text, tabindex: "0", role: "group", ...named });
  if (as === "none") return make("div", { class: "agentnb-fixed agentnb-absent", text: "nothing (None)", tabindex: "0", role: "group", ...named });
  let box;
  if (as === "flag") {
    box = make("select", { class: "agentnb-input", ...named }, make("option", { value: "true", text: "true" }), make("option", { value: "false", text: "false" }));
    box.value = text === "false" ? "false" : "true";
  } else if (as === "number") box = make("input", { type: "text", inputmode: "decimal", class: "agentnb-input agentnb-code", autocomplete: "off", ...named });
  else if (as === "secret") box = make("input", { type: "password", class: "agentnb-input", autocomplete: "new-password", placeholder: "type a new value", ...named });
  else box = make("textarea", { class: `agentnb-input${as === "json" ? " agentnb-code" : ""}`, rows: String(Math.min(text.split("\n").length, LINES)), spellcheck: "false", ...named });
  if (as !== "flag") box.value = text;
  return box;
}

/** Convert a field's content to another type: the same value if possible, otherwise a likely one. */
function carried(text, from, to) {
  if (to === "flag") return /^\s*(false|no|0|)\s*$/i.test(text) ? "false" : "true";
  if (to === "number") return NUMBER.test(text) ? text.trim() : "0";
  if (to === "json" && from === "text") return JSON.stringify(text);
  if (to === "text" && from === "json") {
    try {
      const value = JSON.parse(text);
      if (typeof value === "string") return value;
    } catch { /* not convertible: unchanged */ }
  }
  return to === "none" ? "null" : text;
}

/** One field. `typed()` is what is sent if it was changed, {text, as}, otherwise null; `fault()` is its error. */
export function field(about, { changeable = true, named = true, kinds = false, typed: onType = () => {} } = {}) {
  const { label, text, note = "" } = about;
  const first = changeable ? about.as : "fixed";
  const name = label || "value";
  const wrong = make("p", { class: "agentnb-wrong", role: "alert" });
  const space = make("div", { class: "agentnb-line agentnb-space" });
  const element = make("div", { class: "agentnb-field", "data-role": about.role || null, "data-fixed": first === "fixed" },
    ...(named && label ? [make("span", { class: "agentnb-label", text: label, "aria-hidden": "true" })] : []), space, wrong);
  if (note) element.append(make("small", { class: "agentnb-note", text: note }));
  const pick = kinds && first in KINDS
    ? make("select", { class: "agentnb-input agentnb-kind", "aria-label": "kind", title: `what kind of value ${name} is` }, ...Object.entries(KINDS).map(([value, words]) => make("option", { value, text: words })))
    : null;
  let as;
  let before = "";
  function become(kind, shown) {
    as = kind;
    const box = boxOf(kind, shown, name);
    if (found.box) found.box.replaceWith(box);
    else space.append(box);
    found.box = box;
    if (pick) pick.value = kind;
    for (const event of ["input", "change"]) box.addEventListener(event, () => { found.fault(); onType(); });
    return box.value ?? "";
  }
  const found = {
    element,
    box: null,
    typed: () => (as === "fixed" || (as === first && (found.box.value ?? "") === before) ? null : { text: found.box.value ?? "null", as }),
    /** The current content, changed or not. */
    now: () => ({ text: found.box.value ?? "null", as }),
    fault(told = found.typed() === null ? "" : fault(found.box.value ?? "", as)) {
      say(wrong, told);
      if (told) found.box.setAttribute("aria-invalid", "true");
      else found.box.removeAttribute("aria-invalid");
      return told;
    },
    reset() {
      before = become(first, text);
      found.fault();
    },
  };
  if (pick) {
    space.append(pick);
    pick.addEventListener("change", () => { become(pick.value, carried(found.box.value ?? "", as, pick.value)); found.fault(); onType(); });
  }
  before = become(first, text); // a text area may normalize line ends
  return found;
}

/** Several fields, one below the other; `changes()` are pairs of a path and the typed input. */
export function fields(rows, options = {}) {
  const all = rows.map((row) => [row.path, field(row, { kinds: row.as !== "text", ...options })]);
  return {
    element: make("div", { class: `agentnb-fields${options.changeable === false ? " agentnb-told" : ""}` }, ...all.map(([, one]) => one.element)),
    changes: () => all.map(([path, one]) => [path, one.typed()]).filter(([, typed]) => typed !== null),
    /** Show what is invalid, and focus the first invalid field. */
    right() {
      const bad = all.map(([, one]) => one).filter((one) => one.fault());
      const folded = bad[0]?.box.closest("details");
      if (folded) folded.open = true;
      if (bad.length) bad[0].box.focus();
      return bad.length === 0;
    },
    reset: () => all.forEach(([, one]) => one.reset()),
  };
}
