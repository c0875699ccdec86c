// cards: what stands between the buttons and the graph: what went wrong, and what a person is asked.
import { make, say } from "./dom.js";

const ANSWERS = [["where", "where"], ["why", "why"], ["do", "do"]];

function problemCard(problem) {
  const title = make("p", { class: "agentnb-what" }, make("code", { text: problem.code }), ` ${problem.what}`);
  const answers = make("dl", {}, ...ANSWERS.flatMap(([name, label]) => [make("dt", { text: label }), make("dd", { text: problem[name] })]));
  const kind = problem.severity === "warning" ? "warning" : "error";
  return make("div", { class: "agentnb-problem", "data-severity": kind, "data-code": problem.code }, title, answers);
}

export function problems() {
  const element = make("div", { class: "agentnb-problems", role: "alert" });
  let shown = "[]";
  return {
    element,
    show(state) {
      const told = JSON.stringify(state.problems);
      if (told === shown) return;
      shown = told;
      element.replaceChildren(...state.problems.map(problemCard));
    },
  };
}

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

function question(pending, ask) {
  const form = make("form", { class: "agentnb-ask", "data-node": pending.node });
  const input = make("textarea", { class: "agentnb-input", rows: "1", placeholder: `answer for ${pending.node}` });
  const send = () => ask("answer", input.value, pending.node);
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  const options = pending.options.map((text) =>
    make("button", { type: "button", class: "agentnb-button", text, click: () => ask("answer", text, pending.node) }));
  form.append(
    make("label", { class: "agentnb-prompt" }, make("strong", { text: pending.node }), " asks", terms(pending), ": ", pending.prompt,
      make("span", { class: "agentnb-line" }, input)),
    make("div", { class: "agentnb-line" }, make("button", { type: "submit", class: "agentnb-button agentnb-main", text: "Answer" }), ...options),
  );
  return form;
}

/** The questions that wait. A form lives as long as its question, so nothing that is typed is lost by an update. */
export function questions(ask, home) {
  const element = make("div", { class: "agentnb-asks" });
  const note = make("p", { class: "agentnb-quiet", hidden: true });
  const forms = new Map();
  return {
    element,
    note,
    quiet(text) {
      note.hidden = !text;
      say(note, text);
    },
    show(state) {
      const ids = new Set(state.pending.map((pending) => pending.id));
      for (const [id, form] of forms) {
        if (ids.has(id)) continue;
        if (form.contains(document.activeElement)) home.focus({ preventScroll: true });
        form.remove();
        forms.delete(id);
      }
      for (const pending of state.pending) {
        if (forms.has(pending.id) || pending.kind !== "answer") continue;
        const form = question(pending, ask);
        forms.set(pending.id, form);
        element.append(form);
        if (home.contains(document.activeElement)) form.querySelector("textarea, button").focus({ preventScroll: true });
      }
    },
  };
}
