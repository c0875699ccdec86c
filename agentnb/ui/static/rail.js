// rail: the slider with what happened on the way marked below it; a press on a mark goes there.
import { make } from "./dom.js";

export function rail(slider, tape, ask) {
  const marks = make("span", { class: "agentnb-marks", "aria-hidden": "true" }); // the timeline says the same in words
  tape.on(() => marks.replaceChildren(...tape.ticks().map(({ at, sort, sign, words, place }) => make("span", {
    class: "agentnb-tick", "data-sort": sort, title: words, text: sign, style: `--a-at:${at}`, click: () => ask("goto", place),
  }))));
  return make("span", { class: "agentnb-rail" }, slider, marks);
}
