// The details pane: the selected node or step; without a selection, the last step.
import { folder, nodeParts, stepParts, whyNotOf } from "./details_sections.js";
import { faintly, linkTo, valueOf } from "./details_parts.js";
import { enable, make } from "./dom.js";

const PACE = 600; // milliseconds between two requests while a run moves
const LOST = 6000; // milliseconds after which a request counts as lost and the next one is sent
const MOVES = new Set(["running", "pausing"]);

/** Requests what is to be shown, never twice for the same state and only one at a time. */
function detailsPuller(ask, paint) {
  let [asked, waiting, next, wanted] = ["", 0, 0, null];
  function pull() {
    if (!wanted) return;
    const { kind, id, key, moves } = wanted;
    const now = Date.now();
    if (key === asked || now - waiting < LOST || (moves && now < next)) return;
    [asked, waiting, next] = [key, now, now + PACE];
    ask("look", kind, id, (found) => {
      waiting = 0;
      if (found && wanted?.kind === kind && wanted.id === id) paint(found, { kind, id });
      pull();
    });
  }
  return (want) => {
    wanted = want;
    if (!want) asked = "";
    pull();
  };
}

function tool(text, title, at, click) {
  const button = make("button", { type: "button", class: "agentnb-button", text, title, "data-at": at, click });
  if (text.length === 1) button.setAttribute("aria-label", title);
  return button;
}

/** The buttons at the top: to a step, through the steps of the node, up to the node, and its breakpoint. */
function toolbar({ node, step, before, after }, ask, choice) {
  const goes = step && tool(`Go to step ${step.step}`, "the run stands behind this step again", "goto", () => ask("goto", step.step));
  const runs = tool("Run to here", "run until it is this node's turn", "run_to", () => ask("run_to", null, node.id));
  const next = tool("Make it next", "go on with this node, in place of the one whose turn it is", "set_next", () => ask("set_next", null, node.id));
  const stops = tool("Breakpoint", "stop before this node, or no longer", "stop_at", () => ask("stop_at", null, node.id));
  const through = [
    before && tool("◂", `the step of this node before: step ${before}`, "before", () => choice.set("step", before)),
    after && tool("▸", `the next step of this node: step ${after}`, "after", () => choice.set("step", after)),
  ];
  const element = make("div", { class: "agentnb-line agentnb-details-tools" }, ...[goes, ...through, ...(node.gone ? [] : [runs, ...(node.settable ? [next] : []), stops])].filter(Boolean));
  return {
    element,
    able({ can, position, breakpoints = [] }) {
      if (goes) enable(goes, can.includes("goto") && position !== step.step);
      runs.hidden = !can.includes("run_to");
      next.hidden = !can.includes("set_next");
      stops.setAttribute("aria-pressed", String(breakpoints.some((row) => row.node === node.id)));
    },
  };
}

/** The node or step, and its source position: a text that one click selects. */
function headOf({ node, step }, kind, to) {
  const name = kind === "step" && step ? [make("strong", { text: `Step ${step.step}` }), to.node(node.id)] : [make("strong", { text: node.id })];
  const about = node.gone ? [faintly("is not in the recipe")] : [make("span", { class: "agentnb-chip", text: node.kind }), ...(node.label ? [faintly(node.label)] : [])];
  const place = node.place ? [make("p", {}, make("code", { class: "agentnb-place", title: "a click selects it", text: node.place }), " ", faintly(node.path))] : [];
  return make("div", { class: "agentnb-details-head" }, ...name, ...about, ...(node.now ? [make("span", { class: "agentnb-now", text: node.now })] : []), ...place);
}

/** All sections, one below the other: for a node its definition first, for a step what it did. */
function contentOf(found, kind, ask, tell, to, fold) {
  const { node, step, runs } = found;
  const ofNode = node.gone ? [] : nodeParts(node, fold, tell, to, whyNotOf(node.id, found.events || [], ask));
  const ofStep = step ? stepParts(step, fold, tell, to) : [];
  if (kind === "step") return [...ofStep, make("h4", { text: `Node ${node.id}` }), ...ofNode];
  const made = runs === 1 ? "It has made one step: " : `It has made ${runs} steps, the last is `;
  const last = step ? [made, to.step(step.step), "."] : node.kind === "event type" ? [] : ["It has not run up to here."];
  return [...ofNode, make("p", { class: "agentnb-ran" }, ...last), ...ofStep];
}

/** Refill the pane; focus stays on the button or section of the same name, and scrolling within the same object. */
function refill(body, same, parts) {
  const top = same ? body.scrollTop : 0;
  const at = body.contains(document.activeElement) ? document.activeElement.dataset.at || "" : null;
  body.replaceChildren(...parts);
  body.scrollTop = top;
  if (at !== null) ([...body.querySelectorAll("[data-at]")].find((one) => one.dataset.at === at) || body).focus({ preventScroll: true });
}

export function details(ask, choice, reveal = () => {}) {
  const body = make("div", { class: "agentnb-details", tabindex: "0", role: "group", "aria-label": "Details, scrolls" });
  const unpin = make("button", { type: "button", class: "agentnb-link", text: "follow the run", title: "show the last step, whichever it is", hidden: true, click: () => choice.set(null) });
  const [fold, whole] = [folder(), new Map()]; // which sections are open, and which values were requested in full
  const to = {
    step: (number) => linkTo(`step ${number}`, `show step ${number}`, () => choice.set("step", number)),
    node: (id) => linkTo(id, `show node ${id}`, () => choice.set("node", id)),
  };
  let [state, shown, subject, tools, arrived] = [null, "", "", null, false];

  function hint(text) {
    body.replaceChildren(make("p", { class: "agentnb-faint", text }));
    [shown, subject, tools] = ["", "", null];
  }
  function paint(found, { kind, id }) {
    const told = JSON.stringify([kind, found]);
    if (!found.node) hint("There is no such step any more.");
    if (!found.node || told === shown) return;
    const now = JSON.stringify([found.node.id, found.step?.step]);
    const same = now === subject;
    if (!same) whole.clear();
    [shown, subject] = [told, now];
    const tell = (cell) => valueOf(cell, (which, then) => ask("look", "whole", [kind, id, which], (all) => all?.at && then(all)), whole);
    tools = toolbar(found, ask, choice);
    refill(body, same, [headOf(found, kind, to), tools.element, ...contentOf(found, kind, ask, tell, to, fold)]);
    tools.able(state);
  }
  const pull = detailsPuller(ask, paint);
  function look() {
    const picked = choice.get();
    const { kind, id } = picked || { kind: "step", id: state.position };
    unpin.hidden = !picked;
    tools?.able(state);
    const nothing = kind === "step" && !id;
    if (nothing) hint("Nothing has run yet. Step, or pick a node of the graph.");
    pull(nothing ? null : { kind, id, moves: MOVES.has(state.status), key: JSON.stringify([kind, id, state.number, state.position, state.length, state.status, state.said, state.name]) });
  }
  choice.on((picked) => {
    arrived = picked?.kind === "step" && state?.position === picked.id;
    if (picked) reveal();
    if (state) look();
  });
  return {
    name: "details",
    title: "Details",
    body,
    tools: [unpin],
    open: false,
    says: () => (choice.get() ? `Details of ${choice.get().kind} ${choice.get().id}` : "Details of the last step"),
    show(now) {
      state = now;
      const left = arrived && choice.get()?.id !== now.position; // the run has moved on from the selected step
      arrived = choice.get()?.kind === "step" && choice.get().id === now.position;
      if (left && choice.get()?.kind === "step") choice.set(null);
      else look();
    },
  };
}
