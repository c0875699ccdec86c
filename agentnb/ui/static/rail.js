// The slider, with marks for past events below it; a click on a mark goes to its step.
import { make } from "./dom.js";

export function rail(slider, tape, ask) {
  const marks = make("span", { class: "agentnb-marks", "aria-hidden": "true" }); // the timeline has the same as text
  tape.on(() => marks.replaceChildren(...tape.ticks().map(({ at, sort, sign, words, place }) => make("span", {
    class: "agentnb-tick", "data-sort": sort, title: words, text: sign, style: `--a-at:${at}`, click: () => ask("goto", place),
  }))));
  return make("span", { class: "agentnb-rail" }, slider, marks);
}
