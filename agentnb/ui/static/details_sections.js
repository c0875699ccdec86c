// The sections of the details pane: what a node is, and what a step did; each can be collapsed.
import { problemCard } from "./cards.js";
import { make } from "./dom.js";
import { actsOf, callOf, changesOf, eventsOf, faintly, insideOf, lasted, rowsOf, whyOf } from "./details_parts.js";

const STATUS = { ok: "✓ ok", error: "✕ failed", cancelled: "⊘ cancelled", skipped: "↷ skipped" };
const PHASE = { run: "", enter: "entered", again: "goes round again", leave: "left" };
const CLOSED = new Set(["Parameters", "Ways in and out", "Events", "Action and observation"]); // collapsed at first

/** The collapsible sections; a view remembers which of them are open. */
export function folder() {
  const open = new Map();
  return (name, count, ...parts) => {
    const element = make("details", { class: "agentnb-part", "data-part": name, open: open.get(name) ?? !CLOSED.has(name) },
      make("summary", { "data-at": `part ${name}` }, make("span", { text: name }), ...(count ? [faintly(` ${count}`)] : [])), ...parts);
    element.addEventListener("toggle", () => open.set(name, element.open));
    return element;
  };
}

function waysOf(ways, to) {
  return make("ul", { class: "agentnb-rows" }, ...ways.map(([leads, other, kind, condition]) => make("li", {},
    make("span", {}, leads ? "to " : "from ", to.node(other), faintly(` ${kind}${condition ? `, ${condition}` : ""}`)))));
}

/** A node: what it reads and writes, its source, its prompts, the events that it listens to. */
export function nodeParts(node, fold, tell, to, whyNot) {
  const facts = node.facts.flatMap(([name, text]) => [make("dt", { text: name }), make("dd", { text })]);
  const written = node.definition.flatMap((cell) => [...(cell.name === node.place ? [] : [make("code", { class: "agentnb-place", title: "a click selects it", text: cell.name })]), tell(cell)]);
  return [
    ...(facts.length ? [make("dl", { class: "agentnb-values agentnb-facts" }, ...facts)] : []),
    ...(written.length ? [fold("Definition", "", ...written)] : []),
    ...(node.prompt.length ? [fold("Prompt as it is written", "", rowsOf(node.prompt, tell))] : []),
    ...(node.listens ? [fold("Listens", "", rowsOf(node.reacts, tell), whyNot)] : []),
    ...(node.parameters.length ? [fold("Parameters", node.parameters.length, rowsOf(node.parameters, tell))] : []),
    ...(node.latest.length ? [fold("Latest events", node.latest.length, eventsOf(node.latest, tell))] : []),
    ...(node.ways.length ? [fold("Ways in and out", node.ways.length, waysOf(node.ways, to))] : []),
  ];
}

/** What activated a step: the event and its causes. */
function deliveredPart(event, tell, to) {
  const from = event.causes.map(([id, type, step, actor]) => make("li", {},
    make("span", {}, make("strong", { text: type }), faintly(` ${id}, by ${actor}`), ...(step ? [" in ", to.step(step)] : []))));
  const chain = [make("p", { class: "agentnb-faint", text: "which came from" }), make("ol", { class: "agentnb-rows" }, ...from)];
  return [...(event.step ? [make("p", {}, "told in ", to.step(event.step))] : []), eventsOf([event], tell), ...(from.length ? chain : [])];
}

function wentOf({ went, sets_off: off }, to) {
  const about = ({ kind, condition, value }) => [kind, condition, value && `value ${value}`].filter(Boolean).map((text) => `, ${text}`).join("");
  return make("ul", { class: "agentnb-rows" }, ...went.map((one) => make("li", {}, make("span", {}, "went to ", to.node(one.target), faintly(about(one))))),
    ...off.map((id) => make("li", {}, make("span", {}, "what it told sets off ", to.node(id)))));
}

function aboutOf(step) {
  const words = [
    STATUS[step.status], PHASE[step.phase], step.frame === "root" ? "" : `in ${step.frame}`,
    step.branch === null ? "" : `branch ${step.branch + 1}`, step.round > 1 ? `round ${step.round}` : "",
    lasted(step.seconds), new Date(step.time).toLocaleTimeString(),
  ];
  return make("p", { class: "agentnb-about", "data-status": step.status, text: words.filter(Boolean).join(" · ") });
}

/** A step: its inputs, its result, its calls, and why the run continued as it did. */
export function stepParts(step, fold, tell, to) {
  const part = (name, rows, ...parts) => (rows.length ? [fold(name, rows.length, ...parts)] : []);
  const calls = step.calls.map((call) => callOf(call, tell));
  if (step.more_calls) calls.push(faintly(`and ${step.more_calls} more`));
  const [thought, rest] = [step.said.filter(({ name }) => name === "thought"), step.said.filter(({ name }) => name !== "thought")];
  const inside = step.inside;
  return [
    aboutOf(step),
    ...(thought.length ? [make("div", { class: "agentnb-thought" }, tell(thought[0]))] : []),
    ...(step.error ? [problemCard(step.error)] : []),
    ...(step.delivered ? [fold("Set off by", "", ...deliveredPart(step.delivered, tell, to))] : []),
    ...part("Inputs", step.inputs, rowsOf(step.inputs, tell)),
    ...part("Outputs", step.outputs, changesOf(step.outputs, tell)),
    ...part("Calls", step.calls, ...calls),
    ...(inside ? [fold("Inside", `steps ${inside.opened} to ${inside.left ?? "…"}`, insideOf(inside, to))] : []),
    ...part("Route, and why", [...step.went, ...step.sets_off, ...step.why], wentOf(step, to), whyOf(step.why)),
    ...part("Action and observation", rest, rowsOf(rest, tell)),
    ...part("Events", step.events, eventsOf(step.events, tell)),
    ...part("People", step.acts, actsOf(step.acts, tell)),
  ];
}

/** A query on demand: why a node was not activated, now or by one of the last events. */
export function whyNotOf(node, events, ask) {
  const which = make("select", { class: "agentnb-input agentnb-pick", "aria-label": "by which event" }, make("option", { value: "", text: "here" }),
    ...events.map(([id, type]) => make("option", { value: id, text: `${id} ${type}` })).reverse());
  const told = make("div", { role: "status" });
  const wayOf = ([source, kind, said, lines]) => make("li", {},
    make("span", {}, make("strong", { text: source }), faintly(` ${kind}`), `: ${said}`), ...lines.map((text) => make("small", { text })));
  const asks = make("button", { type: "button", class: "agentnb-button", text: "Why not?", title: "what kept it from being set off", "data-at": "why not" });
  asks.addEventListener("click", () => ask("look", "why_not", [node, which.value || null], (found) => {
    if (found) told.replaceChildren(make("p", { text: found.said }), make("ul", { class: "agentnb-rows" }, ...found.ways.map(wayOf)));
  }));
  return make("div", { class: "agentnb-whynot" }, make("div", { class: "agentnb-line" }, asks, which), told);
}
