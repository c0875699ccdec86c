// Error cards, between the buttons and the graph.
import { make } from "./dom.js";

const ANSWERS = [["where", "where"], ["why", "why"], ["do", "do"]];

export function problemCard(problem) {
  const title = make("p", { class: "agentnb-what" }, ...(problem.code ? [make("code", { text: problem.code }), " "] : []), problem.what);
  const answers = make("dl", {}, ...ANSWERS.filter(([name]) => problem[name]).flatMap(([name, label]) => [make("dt", { text: label }), make("dd", { text: problem[name] })]));
  const kind = problem.severity === "warning" ? "warning" : "error";
  return make("div", { class: "agentnb-problem", "data-severity": kind, "data-code": problem.code }, title, answers);
}

/** `remedies` are the actions on the card of a failure, and a card of their own. */
export function problems(remedies) {
  const element = make("div", { class: "agentnb-problems", role: "alert" });
  let shown = "";
  return {
    element,
    show(state) {
      const told = JSON.stringify([state.problems, remedies.names(state)]);
      if (told !== shown) {
        shown = told;
        element.replaceChildren(...remedies.cards(state, state.problems.map(problemCard)));
      }
      remedies.show(state);
    },
  };
}
