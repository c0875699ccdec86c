// Remedies for a run that cannot continue: retry or skip a failed node, raise a limit.
import { enable, make, say } from "./dom.js";
import { field } from "./fields.js";
import { askButton, askLine, folded, strongly } from "./questions.js";

const NOTHING = "{}"; // a node that wrote nothing

/** Move the focus to the cockpit before its button is removed, so that keyboard shortcuts continue to work. */
function keepFocus(element) {
  if (element.contains(document.activeElement)) element.closest(".agentnb-cockpit")?.focus({ preventScroll: true });
}

/** A failed node: retry it, or skip it with the values that it would have written. */
function failedPart(ask) {
  const again = askButton("Try again", () => ask("retry"), true);
  again.title = "run the failed node once more, as a new step";
  const skip = askButton("Skip", () => ask("skip"));
  skip.title = "go on as if the failed node had written nothing";
  const writes = field({ label: "what it would have written, as JSON", text: NOTHING, as: "json" });
  const use = askButton("Skip with this", () => {
    if (writes.fault()) writes.box.focus();
    else ask("skip", writes.now().text);
  });
  const [link, part] = folded("Skip, and write …", make("div", { class: "agentnb-reply" }, writes.element, askLine(use)),
    { focus: () => writes.box.focus() });
  const element = make("div", { class: "agentnb-remedy" }, askLine(again, skip, link), part);
  return {
    element,
    able(can) {
      enable(again, can.includes("retry"));
      for (const each of [skip, use]) enable(each, can.includes("skip"));
      link.hidden = !can.includes("skip");
      if (link.hidden) part.hidden = true;
    },
    fresh: () => { writes.reset(); part.hidden = true; link.setAttribute("aria-expanded", "false"); },
  };
}

/** An exhausted limit: its value, and an input for a larger one. */
function limitPart(ask) {
  const told = make("p", { class: "agentnb-what" });
  const about = make("p", { class: "agentnb-faint" });
  const number = make("input", { type: "text", inputmode: "decimal", class: "agentnb-input agentnb-code agentnb-limit", autocomplete: "off" });
  const raise = askButton("Raise the limit", null, true);
  const lift = askButton("No limit", () => { if (limit) ask("set_budget", null, limit.name); });
  lift.title = "let this run use as much as it needs";
  const form = make("form", { class: "agentnb-problem", "data-severity": "warning" }, told, about, askLine(number, raise, lift));
  let limit = null;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (limit) ask("set_budget", number.value, limit.name);
  });
  return {
    element: form,
    show(now, can) {
      for (const each of [raise, lift]) enable(each, can.includes("set_budget"));
      if (!now || JSON.stringify(now) === JSON.stringify(limit)) return;
      limit = now;
      told.replaceChildren("The limit ", strongly(now.name), ` = ${now.value} is used up.`);
      say(about, now.used === "" ? "" : `Used: ${now.used}. What has run stays; with a larger limit the run goes on from here.`);
      number.value = now.more;
      number.setAttribute("aria-label", `new ${now.name}`);
    },
    forget: () => { limit = null; },
  };
}

/** The actions on the cards of a run that cannot continue: `cards(state, cards)` adds them, `show(state)` updates them. */
export function remedies(ask) {
  const [failed, limit] = [failedPart(ask), limitPart(ask)];
  const hasFailed = (state) => state.status === "failed" && state.problems.length > 0;
  return {
    names: (state) => [hasFailed(state), state.limit ?? null, state.position],
    cards(state, cards) {
      const [before] = cards;
      if (hasFailed(state)) {
        failed.fresh();
        before.append(failed.element);
      } else keepFocus(failed.element);
      if (!state.limit) {
        keepFocus(limit.element);
        limit.forget();
      }
      return state.limit ? [...cards, limit.element] : cards;
    },
    show(state) {
      failed.able(state.can);
      limit.show(state.limit, state.can);
    },
  };
}
