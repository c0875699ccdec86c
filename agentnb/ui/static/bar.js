// The buttons and the slider.
import { enable, make, say, sign } from "./dom.js";
import { rail } from "./rail.js";
import { speed } from "./speed.js";

// verb, text, icon, tooltip, the key as displayed, and as `aria-keyshortcuts` expects it
const BUTTONS = [
  ["back", "Back", "M12 3v10L4 8zM3 3h2v10H3z", "one step back", "Left", "ArrowLeft"],
  ["step", "Step", "M4 3v10l8-5zM11 3h2v10h-2z", "the next node", "Right", "ArrowRight"],
  ["into", "Into", "M7 1h2v7h3l-4 5-4-5h3zM4 14h8v1.5H4z", "stop inside the node too: at each event, before and after each call", "I", "I"],
  ["over", "Over", "M2 10a6 6 0 0 1 11-3l1.5-1.5V11H9l2-2a4 4 0 0 0-7 1zM6 13h4v2H6z", "until the next node has left what it opens", "O", "O"],
  ["out", "Out", "M7 13h2V6h3L8 1 4 6h3zM4 14h8v1.5H4z", "until the frame around the next node is left", "U", "U"],
  ["run", "Run", "M2 3v10l6-5zM8 3v10l6-5z", "until something says stop", "Space", "Space"],
  ["run_back", "Run back", "M14 3v10L8 8zM8 3v10L2 8z", "back to a breakpoint or the start", "Shift+Space", "Shift+Space"],
  ["pause", "Pause", "M4 3h3v10H4zM9 3h3v10H9z", "no further node starts", "Space", "Space"],
  ["stop", "Stop", "M4 4h8v8H4z", "pause, and cancel what is in flight; it runs again when it is stepped", "X", "X"],
  ["reset", "Reset", "M8 3V.5L4 4l4 3.5V5a3.5 3.5 0 1 1-3.5 3.5h-2A5.5 5.5 0 1 0 8 3z", "begin again from the inputs", "Shift+R", "Shift+R"],
];

export function bar(ask, tape) {
  const buttons = new Map(BUTTONS.map(([verb, text, data, does, key, keys]) => [
    verb,
    make("button", {
      type: "button", class: "agentnb-button", "data-do": verb, title: `${text}: ${does} (${key})`, "aria-keyshortcuts": keys, click: () => ask(verb),
    }, sign(data), text),
  ]));
  buttons.get("step").classList.add("agentnb-main");
  const where = make("output", { class: "agentnb-where" });
  const slider = make("input", { type: "range", min: "0", max: "0", step: "1", value: "0", "aria-label": "step" });
  let dragging = false;
  slider.addEventListener("input", () => {
    dragging = true;
    say(where, `step ${slider.value} of ${slider.max}`);
    ask("goto", Number(slider.value));
  });
  for (const name of ["change", "pointerup", "blur"]) slider.addEventListener(name, () => { dragging = false; });

  const pace = speed(ask);
  const element = make("div", { class: "agentnb-bar" },
    make("div", { class: "agentnb-buttons", role: "toolbar", "aria-label": "steer the run" }, ...buttons.values(), pace.element),
    make("label", { class: "agentnb-slide" }, rail(slider, tape, ask), where));
  return {
    element,
    focus: () => buttons.get("step").focus({ preventScroll: true }),
    /** `travelling`: a requested step has not been reached yet, so the slider does not move from where it was dragged. */
    show(state, travelling) {
      for (const [verb, button] of buttons) enable(button, state.can.includes(verb));
      pace.show(state);
      slider.disabled = !state.can.includes("goto");
      slider.max = String(state.length);
      slider.setAttribute("aria-valuetext", `step ${state.position} of ${state.length}`);
      if (dragging || travelling) return;
      slider.value = String(state.position);
      say(where, `step ${state.position} of ${state.length}`);
    },
  };
}
