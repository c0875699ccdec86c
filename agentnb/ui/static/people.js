// people: what waits for a person: questions, approvals, and calls that are held before they go out or after they came back.
import { enable, make, say } from "./dom.js";
import { fields } from "./fields.js";

/** " for role reviewer, 29 s left": the seconds go down as they pass. */
function terms(pending) {
  const role = pending.role ? ` for role ${pending.role}` : "";
  const element = make("span", { class: "agentnb-terms", text: role });
  if (pending.left === null) return element;
  const end = Date.now() + pending.left * 1000;
  const tick = () => {
    const left = Math.max(0, Math.ceil((end - Date.now()) / 1000));
    say(element, `${role}, ${left} s left`);
    if (left > 0 && (element.isConnected || !element.dataset.shown)) setTimeout(tick, 1000);
    element.dataset.shown = "yes";
  };
  tick();
  return element;
}

const button = (text, click, main = false) =>
  make("button", { type: click ? "button" : "submit", class: `agentnb-button${main ? " agentnb-main" : ""}`, text, ...(click ? { click } : {}) });

function formOf(pending, submit, ...children) {
  const form = make("form", { class: "agentnb-ask", "data-node": pending.node, "data-kind": pending.kind }, ...children);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  return form;
}

/** Enter sends, Shift and Enter begin a new line. */
function sends(input, send) {
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
}

function question(pending, ask) {
  const input = make("textarea", { class: "agentnb-input", rows: "1", placeholder: `answer for ${pending.node}` });
  const send = () => ask("answer", input.value, pending.node);
  sends(input, send);
  const options = pending.options.map((text) => button(text, () => ask("answer", text, pending.node)));
  const element = formOf(pending, send,
    make("label", { class: "agentnb-prompt" }, make("strong", { text: pending.node }), " asks", terms(pending), ": ", pending.prompt,
      make("span", { class: "agentnb-line" }, input)),
    make("div", { class: "agentnb-line" }, button("Answer", null, true), ...options));
  return { element, first: input };
}

function approval(pending, ask) {
  const reason = make("textarea", { class: "agentnb-input", rows: "1", placeholder: "why not (the agent is told)", "aria-label": "reason, where you deny it" });
  const deny = () => ask("deny", reason.value, pending.id);
  sends(reason, deny);
  const shown = fields(pending.arguments, { changeable: false });
  const element = formOf(pending, () => {},
    make("p", { class: "agentnb-prompt" }, make("strong", { text: pending.node }), " asks leave for ", make("strong", { text: pending.name }), terms(pending),
      pending.arguments.length ? " with:" : ", which takes no arguments."),
    ...(pending.prompt !== pending.name ? [make("p", { class: "agentnb-prompt", text: pending.prompt })] : []),
    shown.element,
    make("div", { class: "agentnb-line" }, button("Approve", () => ask("approve", null, pending.id), true), button("Deny", deny), reason));
  return { element };
}

function call(pending, ask) {
  const back = pending.answer !== null;
  const rows = back ? pending.answer : pending.arguments;
  const keep = button("Keep changes", () => { if (open.right()) save(); });
  const drop = button("Undo changes", () => { open.reset(); dirty(); });
  const open = fields(rows, { typed: () => dirty() });
  const dirty = () => {
    const some = open.changes().length > 0;
    for (const each of [keep, drop]) each.hidden = !some;
  };
  const save = () => {
    const changes = open.changes();
    if (changes.length) ask("change", { [back ? "answer" : "arguments"]: changes }, pending.id);
  };
  const goOn = () => { if (open.right()) ask("into"); };
  const title = back
    ? [make("strong", { text: pending.name }), " has answered ", make("strong", { text: pending.node }), ". It can be changed before the node reads it."]
    : [make("strong", { text: pending.node }), " is about to call ", make("strong", { text: pending.name }), ". What it sends can be changed."];
  const sent = back && pending.arguments.length
    ? [make("details", { class: "agentnb-sent" }, make("summary", { text: "What was sent" }), fields(pending.arguments, { changeable: false }).element)]
    : [];
  const element = formOf(pending, goOn, make("p", { class: "agentnb-prompt" }, ...title), open.element, ...sent,
    make("div", { class: "agentnb-line" }, button(back ? "Take it" : "Send it", null, true), keep, drop));
  dirty();
  return { element, save, right: open.right };
}

const CARDS = { answer: question, approval, call };
const FOLLOWS = new Set(["step", "into", "over", "out", "run"]);

/** What waits. A card lives as long as what it shows, so nothing that is typed is lost by an update. */
export function people(ask, home) {
  const element = make("div", { class: "agentnb-asks" });
  const note = make("p", { class: "agentnb-quiet", hidden: true });
  const cards = new Map();
  const name = (pending) => JSON.stringify([pending.kind, pending.id, pending.arguments, pending.answer]);
  const remove = (key, card) => {
    if (card.element.contains(document.activeElement)) home.focus({ preventScroll: true });
    card.element.remove();
    cards.delete(key);
  };
  return {
    element,
    note,
    quiet(text) {
      note.hidden = !text;
      say(note, text);
    },
    /** Before the run goes on: send what was typed into held calls. False where it cannot go on like this. */
    ready(verb) {
      if (!FOLLOWS.has(verb)) return true;
      const open = [...cards.values()].filter((card) => card.save);
      if (!open.every((card) => card.right())) return false;
      for (const card of open) card.save();
      return true;
    },
    show(state) {
      const wanted = new Set(state.pending.map(name));
      for (const [key, card] of cards) if (!wanted.has(key)) remove(key, card);
      for (const pending of state.pending) {
        const key = name(pending);
        if (!cards.has(key)) {
          const card = CARDS[pending.kind](pending, ask);
          cards.set(key, card);
          element.append(card.element);
          if (card.first && home.contains(document.activeElement)) card.first.focus({ preventScroll: true });
        }
        const verb = pending.kind === "call" ? "change" : "answer";
        for (const each of cards.get(key).element.querySelectorAll("button")) enable(each, state.can.includes(verb));
      }
    },
  };
}
