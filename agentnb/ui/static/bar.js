// bar: the buttons and the slider.
import { enable, make, say, sign } from "./dom.js";

const BUTTONS = [
  ["back", "Back", "M12 3v10L4 8z", "one step back (Left)"],
  ["step", "Step", "M4 3v10l8-5z", "the next node (Right)"],
  ["run", "Run", "M2 3v10l6-5zM8 3v10l6-5z", "run until something says stop (Space)"],
  ["pause", "Pause", "M4 3h3v10H4zM9 3h3v10H9z", "no further node starts (Space)"],
  ["reset", "Reset", "M8 3V.5L4 4l4 3.5V5a3.5 3.5 0 1 1-3.5 3.5h-2A5.5 5.5 0 1 0 8 3z", "begin again (Home only goes back to the start)"],
];

export function bar(ask) {
  const buttons = new Map(BUTTONS.map(([verb, text, data, tip]) => [
    verb,
    make("button", { type: "button", class: "agentnb-button", "data-do": verb, title: tip, click: () => ask(verb) }, sign(data), text),
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

  const element = make("div", { class: "agentnb-bar" },
    make("div", { class: "agentnb-buttons", role: "toolbar", "aria-label": "steer the run" }, ...buttons.values()),
    make("label", { class: "agentnb-slide" }, slider, where));
  return {
    element,
    focus: () => buttons.get("step").focus({ preventScroll: true }),
    /** `travelling`: a place that was asked for has not been reached yet, so the slider stays where the hand left it. */
    show(state, travelling) {
      for (const [verb, button] of buttons) enable(button, state.can.includes(verb));
      slider.disabled = !state.can.includes("goto");
      slider.max = String(state.length);
      slider.setAttribute("aria-valuetext", `step ${state.position} of ${state.length}`);
      if (dragging || travelling) return;
      slider.value = String(state.position);
      say(where, `step ${state.position} of ${state.length}`);
    },
  };
}
