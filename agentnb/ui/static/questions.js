// A question and its input: a text, a number, yes or no, one of several options, JSON.
import { make, say } from "./dom.js";
import { field } from "./fields.js";

const FEW = 6; // up to this many options are buttons; more are a list

/** " for role reviewer, 29 s left": counts down. */
export function terms(pending) {
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

export const askButton = (text, click, main = false) =>
  make("button", { type: click ? "button" : "submit", class: `agentnb-button${main ? " agentnb-main" : ""}`, text, ...(click ? { click } : {}) });
export const askLine = (...parts) => make("div", { class: "agentnb-line" }, ...parts);
export const strongly = (text) => make("strong", { text });

export function formOf(pending, submit, ...children) {
  const form = make("form", { class: "agentnb-ask", "data-node": pending.node, "data-kind": pending.kind }, ...children);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  return form;
}

/** Enter sends, Shift+Enter begins a new line. */
export function sends(input, send) {
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
}

/** A link and the content that it expands: `[link, content]`. */
export function folded(text, part, first) {
  const link = make("button", { type: "button", class: "agentnb-link", text, "aria-expanded": "false" });
  part.hidden = true;
  link.addEventListener("click", () => {
    part.hidden = !part.hidden;
    link.setAttribute("aria-expanded", String(!part.hidden));
    if (!part.hidden) first.focus();
  });
  return [link, part];
}

/** Few options are a row of buttons, many a list; a different answer can be typed if allowed. */
function choosing(pending, give) {
  const { options } = pending;
  const own = make("textarea", { class: "agentnb-input", rows: "1", "aria-label": `another answer for ${pending.node}` });
  const [link, other] = folded("Another answer", askLine(own, askButton("Answer", () => give(own.value))), own);
  sends(own, () => give(own.value));
  if (options.length <= FEW) {
    const all = options.map((text, index) => askButton(text, () => give(text), index === 0 && pending.way === "confirm"));
    return { first: all[0], parts: [make("div", { class: "agentnb-line", role: "group", "aria-label": pending.prompt }, ...all, link), other] };
  }
  const list = make("select", { class: "agentnb-input", "aria-label": pending.prompt }, ...options.map((text) => make("option", { value: text, text })));
  return { first: list, send: () => give(list.value), parts: [askLine(list, askButton("Answer", null, true), link), other] };
}

function yesOrNo(pending, give) {
  const all = [askButton("yes", () => give("yes"), true), askButton("no", () => give("no"))];
  return { first: all[0], parts: [make("div", { class: "agentnb-line", role: "group", "aria-label": pending.prompt }, ...all)] };
}

function typing(pending, give) {
  const one = field({ label: pending.prompt, text: "", as: pending.way }, { named: false });
  const input = one.box;
  input.placeholder = pending.way === "secret" ? "type the value" : `answer for ${pending.node}`;
  const send = () => { if (!one.fault(pending.way === "text" || pending.way === "secret" ? "" : undefined)) give(input.value); };
  if (pending.way !== "json") sends(input, send);
  return { first: input, send, parts: [one.element, askLine(askButton("Answer", null, true))] };
}

export function question(pending, ask) {
  const give = (value) => ask("answer", value, pending.node);
  const ways = { choice: choosing, confirm: pending.options.length ? choosing : yesOrNo };
  const { first, parts, send = () => {} } = (ways[pending.way] || typing)({ way: "text", ...pending }, give);
  const element = formOf(pending, send,
    make("p", { class: "agentnb-prompt" }, strongly(pending.node), " asks", terms(pending), ": ", make("span", { class: "agentnb-told-prompt", text: pending.prompt })), ...parts);
  return { element, first };
}
