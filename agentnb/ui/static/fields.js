// fields: values as a person may read and change them: a text, a number, true or false, nothing, or JSON.
// What is typed is looked at before it is sent, and looked at again where it is written.
import { make, say } from "./dom.js";

const KINDS = { text: "text", number: "number", flag: "true / false", none: "nothing", json: "JSON" };
const NUMBER = /^\s*-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?\s*$/;
const LINES = 12; // lines of a text that are shown at once

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

/** What one kind of value is typed into. */
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

/** What stands in a field that becomes of another kind: the same where it may be, else what is likely meant. */
function carried(text, from, to) {
  if (to === "flag") return /^\s*(false|no|0|)\s*$/i.test(text) ? "false" : "true";
  if (to === "number") return NUMBER.test(text) ? text.trim() : "0";
  if (to === "json" && from === "text") return JSON.stringify(text);
  if (to === "text" && from === "json") {
    try {
      const value = JSON.parse(text);
      if (typeof value === "string") return value;
    } catch { /* it stays as it is */ }
  }
  return to === "none" ? "null" : text;
}

/** One field. `typed()` is what is sent where it was changed, {text, as}, else null; `fault()` says what is wrong with it. */
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
    /** What stands there now, changed or not. */
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
  before = become(first, text); // a text area may change the ends of lines
  return found;
}

/** Several fields under each other; `changes()` are pairs of a path and what was typed there. */
export function fields(rows, options = {}) {
  const all = rows.map((row) => [row.path, field(row, { kinds: row.as !== "text", ...options })]);
  return {
    element: make("div", { class: `agentnb-fields${options.changeable === false ? " agentnb-told" : ""}` }, ...all.map(([, one]) => one.element)),
    changes: () => all.map(([path, one]) => [path, one.typed()]).filter(([, typed]) => typed !== null),
    /** Say what is wrong, and go to the first place where something is. */
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
