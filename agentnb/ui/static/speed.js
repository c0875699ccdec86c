// The number of steps per second of Run; stored by the kernel.
import { make } from "./dom.js";

const SPEEDS = [null, 10, 3, 1]; // steps per second; null: unlimited

const named = (steps) => (steps === null ? "full speed" : `${steps} a second`);

/** The next choice, faster or slower; unchanged at the end. */
export function faster(now, more) {
  const order = [...SPEEDS].reverse();
  const rank = (steps) => (steps === null ? Infinity : steps);
  if (more) return order.find((steps) => rank(steps) > rank(now)) ?? null;
  return SPEEDS.find((steps) => rank(steps) < rank(now)) ?? SPEEDS.at(-1);
}

/** A selection beside the buttons. */
export function speed(ask) {
  const choice = make("select", {
    class: "agentnb-speed", "aria-label": "speed of Run", title: "how many steps a second Run makes (+ and -)", "aria-keyshortcuts": "+ -",
    change: () => ask("speed", choice.value === "" ? null : Number(choice.value)),
  });
  let offered = "";
  return {
    element: choice,
    show({ speed: steps = null }) {
      const all = SPEEDS.includes(steps) ? SPEEDS : [...SPEEDS, steps]; // a cell may have set another one
      if (all.join() !== offered) {
        offered = all.join();
        choice.replaceChildren(...all.map((one) => make("option", { value: one === null ? "" : String(one), text: named(one) })));
      }
      const value = steps === null ? "" : String(steps);
      if (choice.value !== value) choice.value = value;
    },
  };
}
