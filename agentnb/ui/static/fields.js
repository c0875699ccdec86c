// fields: values as a person may read and change them. Everything is a text; what is typed is looked at before it is sent.
import { make, say } from "./dom.js";

function fault(text, as) {
  if (as !== "json") return "";
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    return `This is no JSON: ${error.message}`;
  }
}

/** One field: `typed()` is its text where it was changed, else null; `fault()` says what is wrong with it. */
export function field({ label, text, as, note = "" }, { changeable = true, named = true, typed: onType = () => {} } = {}) {
  const fixed = as === "fixed" || !changeable;
  const box = fixed
    ? make("div", { class: "agentnb-fixed", text, tabindex: "0", role: "group", "aria-label": label || "value" })
    : make("textarea", { class: "agentnb-input agentnb-code", rows: String(Math.min(text.split("\n").length, 12)), spellcheck: "false", "aria-label": label || "value" });
  if (!fixed) box.value = text;
  const before = fixed ? text : box.value; // a text area may have changed the ends of lines
  const wrong = make("p", { class: "agentnb-wrong", role: "alert" });
  const element = make("div", { class: "agentnb-field" },
    ...(named && label ? [make("span", { class: "agentnb-label", text: label, "aria-hidden": "true" })] : []), box, wrong);
  if (note) element.append(make("small", { class: "agentnb-note", text: note }));
  const found = {
    element,
    box,
    typed: () => (fixed || box.value === before ? null : box.value),
    fault() {
      const told = found.typed() === null ? "" : fault(box.value, as);
      say(wrong, told);
      if (told) box.setAttribute("aria-invalid", "true");
      else box.removeAttribute("aria-invalid");
      return told;
    },
    reset() {
      if (!fixed) box.value = before;
      found.fault();
    },
  };
  box.addEventListener("input", () => { found.fault(); onType(); });
  return found;
}

/** Several fields under each other; `changes()` are pairs of a path and what was typed there. */
export function fields(rows, options = {}) {
  const all = rows.map((row) => [row.path, field(row, options)]);
  return {
    element: make("div", { class: `agentnb-fields${options.changeable === false ? " agentnb-told" : ""}` }, ...all.map(([, one]) => one.element)),
    changes: () => all.map(([path, one]) => [path, one.typed()]).filter(([, text]) => text !== null),
    /** Say what is wrong, and go to the first place where something is. */
    right() {
      const bad = all.map(([, one]) => one).filter((one) => one.fault());
      if (bad.length) bad[0].box.focus();
      return bad.length === 0;
    },
    reset: () => all.forEach(([, one]) => one.reset()),
  };
}
