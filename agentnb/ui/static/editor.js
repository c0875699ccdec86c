// The editor of one value of the board: the full value, who wrote it, and commands to change, copy or delete it.
import { enable, make, say } from "./dom.js";
import { field } from "./fields.js";

const COPIED = 1500; // milliseconds for which a button confirms the copy

const plain = (text, more = {}) => make("button", { type: "button", class: "agentnb-button", text, ...more });

function copyByHand(text) {
  const held = document.activeElement;
  const box = make("textarea", { "aria-hidden": "true", style: "position: fixed; opacity: 0;" });
  box.value = text;
  document.body.append(box);
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  held?.focus?.({ preventScroll: true });
  return done;
}

/** Copy a text, also on pages that may not use the clipboard API; return whether it succeeded. */
export function copyText(text) {
  const asked = navigator.clipboard ? navigator.clipboard.writeText(text) : Promise.reject();
  return asked.then(() => true, () => copyByHand(text));
}

function copier(textOf) {
  const button = plain("Copy", { title: "copy the value as text" });
  button.addEventListener("click", async () => {
    say(button, (await copyText(textOf())) ? "Copied" : "The page may not copy");
    setTimeout(() => say(button, "Copy"), COPIED);
  });
  return button;
}

/** Who wrote a value, as text and, for a step, a link to it: `go(step)`. */
export function writerOf(by, go, { brief = false } = {}) {
  if (!by) return make("span", { class: "agentnb-faint", text: brief ? "" : "not yet on the board: what is saved here puts it there" });
  const [step, node] = by;
  if (!step) return make("span", { class: "agentnb-faint", text: brief ? (node === null ? "by hand" : "input") : "from the inputs, or written by hand at the start" });
  const who = node === null ? "by hand" : node;
  const link = make("button", { type: "button", class: "agentnb-link", title: `go to step ${step}${node === null ? ", after which it was written by hand" : ""}`,
    text: brief ? `${step} ${who}` : node === null ? `step ${step}` : `step ${step}, ${who}`, click: () => go(step) });
  return brief ? link : make("span", {}, node === null ? "written by hand after " : "written by ", link);
}

/**
 * The editor of the value at a path. `tools` has ask, go(step), can(verb); `look()` requests the value again.
 * Unsaved input is preserved whatever the run does meanwhile.
 */
export function editor(path, label, tools, look) {
  const about = make("p", { class: "agentnb-faint" });
  const space = make("div", {}, make("p", { class: "agentnb-faint", text: "…" }));
  const save = make("button", { type: "submit", class: "agentnb-button agentnb-main", text: "Save", hidden: true });
  const undo = plain("Undo changes", { hidden: true });
  const drop = plain("Delete", { title: "take it off the board; going back brings it back" });
  const form = make("form", { class: "agentnb-detail" }, about, space,
    make("div", { class: "agentnb-line" }, save, undo, copier(() => (one ? one.now().text : "")), drop));
  let [shown, one] = ["", null];
  const dirty = () => { for (const each of [save, undo]) each.hidden = !one || one.typed() === null; };
  undo.addEventListener("click", () => { one.reset(); dirty(); one.box.focus(); });
  drop.addEventListener("click", () => tools.ask("delete", null, path, look));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const typed = one && one.typed();
    if (!typed || one.fault()) return;
    tools.ask("look", "typed", { path, typed }, (wrong) => {
      if (one && one.fault(wrong || "")) one.box.focus();
      if (wrong || !tools.can("edit")) return;
      [shown, one] = ["", null];
      tools.ask("edit", typed, path, look);
    });
  });
  return {
    form,
    able: (can) => { for (const each of [save, drop]) enable(each, can); },
    show(found) {
      const told = JSON.stringify(found);
      if (told === shown || (one && one.typed() !== null)) return;
      shown = told;
      const held = one && one.element.contains(document.activeElement);
      one = field({ ...found.field, label: `value of ${label}` }, { named: false, kinds: true, typed: dirty });
      about.replaceChildren(...(found.type ? [`${found.type}, `] : []), writerOf(found.by, tools.go));
      drop.hidden = !found.type;
      space.replaceChildren(one.element);
      if (held) one.box.focus({ preventScroll: true });
      dirty();
    },
  };
}
