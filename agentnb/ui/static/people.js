// What waits for a person: questions, approvals, and pending calls before they are sent or after they were answered.
import { enable, make, say } from "./dom.js";
import { field, fields } from "./fields.js";
import { askButton, askLine, folded, formOf, question, sends, strongly, terms } from "./questions.js";

/** Fields edited in place, and applied before the run continues. */
function changing(rows, save) {
  const keep = askButton("Keep changes", () => { if (open.right()) keepAll(); });
  const drop = askButton("Undo changes", () => { open.reset(); dirty(); });
  const open = fields(rows, { typed: () => dirty() });
  const dirty = () => { for (const each of [keep, drop]) each.hidden = open.changes().length === 0; };
  const keepAll = () => { if (open.changes().length) save(open.changes()); };
  dirty();
  return { element: open.element, right: open.right, save: keepAll, buttons: [keep, drop] };
}

function approval(pending, ask) {
  const reason = make("textarea", { class: "agentnb-input", rows: "1", placeholder: "why not (the agent is told)", "aria-label": "reason, where you deny it" });
  const deny = () => ask("deny", reason.value, pending.id);
  sends(reason, deny);
  const open = changing(pending.arguments, (changes) => ask("change", { arguments: changes }, pending.id));
  const approve = () => {
    if (!open.right()) return;
    open.save();
    ask("approve", null, pending.id);
  };
  const element = formOf(pending, () => {},
    make("p", { class: "agentnb-prompt" }, strongly(pending.node), " asks leave for ", strongly(pending.name), terms(pending),
      pending.arguments.length ? " with:" : ", which takes no arguments."),
    ...(pending.prompt !== pending.name ? [make("p", { class: "agentnb-prompt", text: pending.prompt })] : []),
    open.element,
    askLine(askButton("Approve", approve, true), ...open.buttons, askButton("Deny", deny), reason));
  return { element };
}

/** The messages of a conversation, one below the other; with messages, other arguments are collapsed. */
function sentParts(rows, open) {
  if (!rows.some((row) => row.role)) return [open.element];
  const rest = [...open.element.children].filter((_, index) => !rows[index].role);
  if (!rest.length) return [open.element];
  const words = `${rest.length} ${rest.length === 1 ? "setting" : "settings"}`;
  const more = make("details", { class: "agentnb-sent" }, make("summary", { text: words }),
    make("div", { class: open.element.className }, ...rest));
  return [open.element, more];
}

/** A form that answers a call before it is sent. */
function replying(pending, ask) {
  const one = field({ label: `answer in place of ${pending.name}`, text: "", as: pending.model ? "text" : "json" }, { kinds: true });
  const use = askButton("Use this answer", () => {
    if (one.fault(one.typed() || pending.model ? undefined : "Type an answer.")) return one.box.focus();
    ask("change", { reply: one.now() }, pending.id);
    return ask("into");
  });
  const part = make("div", { class: "agentnb-reply" }, one.element, askLine(use));
  return folded("Answer it myself", part, one.box);
}

function call(pending, ask) {
  const back = pending.answer !== null;
  const rows = back ? pending.answer : pending.arguments;
  const open = changing(rows, (changes) => ask("change", { [back ? "answer" : "arguments"]: changes }, pending.id));
  const goOn = () => { if (open.right()) ask("into"); };
  const title = back
    ? [strongly(pending.name), " has answered ", strongly(pending.node), ". It can be changed before the node reads it."]
    : [strongly(pending.node), " is about to call ", strongly(pending.name), ". What it sends can be changed."];
  const sent = back && pending.arguments.length
    ? [make("details", { class: "agentnb-sent" }, make("summary", { text: "What was sent" }), fields(pending.arguments, { changeable: false }).element)]
    : [];
  const [link, part] = back ? [null, null] : replying(pending, ask);
  const element = formOf(pending, goOn, make("p", { class: "agentnb-prompt" }, ...title), ...sentParts(rows, open), ...sent,
    askLine(askButton(back ? "Take it" : "Send it", null, true), ...open.buttons, ...(link ? [link] : [])), ...(part ? [part] : []));
  return { element, save: open.save, right: open.right };
}

const CARDS = { answer: question, approval, call };
const FOLLOWS = new Set(["step", "into", "over", "out", "run"]);

/** A new question takes the focus if it is in the cockpit and not in an input. */
function isFree(home) {
  const at = document.activeElement;
  return home.contains(at) && !at.closest("input, textarea, select");
}

/** The pending items. A card lives as long as its item, so an update never discards input. */
export function people(ask, home) {
  const element = make("div", { class: "agentnb-asks" });
  const note = make("p", { class: "agentnb-quiet", hidden: true });
  const cards = new Map();
  const name = (pending) => JSON.stringify([pending.kind, pending.id, pending.prompt, pending.arguments, pending.answer]);
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
    /** Before the run continues: send the edits of pending calls. Returns false if one is invalid. */
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
          if (card.first && isFree(home)) card.first.focus({ preventScroll: true });
        }
        const verb = pending.kind === "call" ? "change" : "answer";
        for (const each of cards.get(key).element.querySelectorAll("button")) enable(each, state.can.includes(verb));
      }
    },
  };
}
