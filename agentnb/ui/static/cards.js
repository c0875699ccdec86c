// cards: what went wrong, between the buttons and the graph.
import { make } from "./dom.js";

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
