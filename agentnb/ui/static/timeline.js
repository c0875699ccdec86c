// The steps in order. Only the visible ones are on the page, and all of them as marks of an overview.
import { make } from "./dom.js";
import { stepCells } from "./steps.js";

const FITTED = [56, 112]; // pixels per step until a person chooses: wider for fewer steps; names are legible
const ZOOMED = [14, 168]; // pixels per step that a person may choose
const LONGEST = 8e6; // maximum width of the strip in pixels, a limit of browsers
const LEFT = 10; // pixels before the first step, for marks of interventions before it
const BESIDE = 6; // steps rendered beyond the visible ones
const PAGE = 20; // steps moved by PageUp and PageDown

const within = (value, [least, most]) => Math.min(Math.max(value, least), most);

/** The overview: all steps in few marks, and the visible part of them; a click scrolls there. */
function overviewOf(tape, seek) {
  const part = make("div", { class: "agentnb-seen" });
  const here = make("div", { class: "agentnb-here" });
  const marks = make("div", {});
  const element = make("div", { class: "agentnb-overview", "aria-hidden": "true", title: "all steps: press to look there" }, marks, part, here);
  const look = (event) => {
    const box = element.getBoundingClientRect();
    seek((event.clientX - box.left) / box.width);
  };
  element.addEventListener("pointerdown", (event) => { element.setPointerCapture(event.pointerId); look(event); });
  element.addEventListener("pointermove", (event) => { if (element.hasPointerCapture(event.pointerId)) look(event); });
  tape.on(() => marks.replaceChildren(...tape.ticks().map(({ at, sort, sign, words }) => (
    make("span", { class: "agentnb-tick", "data-sort": sort, style: `left:${at * 100}%`, title: words, text: sign })))));
  return {
    element,
    show(first, last, at) {
      Object.assign(part.style, { left: `${first * 100}%`, width: `${(last - first) * 100}%` });
      here.style.left = `${at * 100}%`;
    },
  };
}

/** The width of a step in the strip, and which steps are visible. */
function stripSizes(strip) {
  let length = 0;
  let zoom = null;
  const fitting = () => within((strip.clientWidth - 2 * LEFT) / Math.max(length, 1), FITTED);
  const wide = () => Math.min(zoom ?? fitting(), LONGEST / Math.max(length, 1));
  return {
    wide,
    of: (steps) => { length = steps; },
    zoom: (times) => { zoom = within(wide() * times, ZOOMED); },
    whole: () => 2 * LEFT + length * wide(),
    /** The offset of a position in pixels from the start of the strip. */
    at: (place) => LEFT + place * wide(),
    seen() {
      if (!strip.clientWidth || !length) return null;
      const width = wide();
      const first = Math.floor((strip.scrollLeft - LEFT) / width) + 1 - BESIDE;
      return [Math.max(first, 1), Math.min(first + Math.ceil(strip.clientWidth / width) + 2 * BESIDE, length)];
    },
  };
}

/** The strip with its overview: it renders the visible steps and reports the selected one. */
function stripOf(choice, tape) {
  const head = make("div", { class: "agentnb-head-of-run", "aria-hidden": "true" });
  const inner = make("div", { class: "agentnb-steps", role: "listbox", tabindex: "0", "aria-orientation": "horizontal", "aria-label": "steps of the run" }, head);
  const element = make("div", { class: "agentnb-strip" }, inner);
  const cells = stepCells(inner, tape, LEFT);
  const sizes = stripSizes(element);
  const view = overviewOf(tape, (share) => { element.scrollLeft = share * element.scrollWidth - element.clientWidth / 2; });
  let last = { position: 0, length: 0 };
  let due = 0;

  const picked = () => (choice.get()?.kind === "step" ? Number(choice.get().id) : null);
  function draw() {
    due = 0;
    const range = sizes.seen();
    if (!range) return;
    const whole = sizes.whole();
    inner.style.width = `${whole}px`;
    head.style.left = `${sizes.at(last.position) - 2}px`;
    cells.draw(range, sizes.wide(), last, picked());
    view.element.hidden = whole <= element.clientWidth + 1;
    view.show(element.scrollLeft / whole, Math.min((element.scrollLeft + element.clientWidth) / whole, 1), last.position / last.length);
    tape.look();
  }
  const soon = () => { due ||= requestAnimationFrame(draw); };
  function reveal(place) {
    const left = sizes.at(place);
    const room = Math.min(60, element.clientWidth / 4);
    const hidden = left < element.scrollLeft + room || left > element.scrollLeft + element.clientWidth - room;
    if (hidden) element.scrollLeft = left - element.clientWidth / 2;
  }
  element.addEventListener("scroll", soon);
  new ResizeObserver(soon).observe(element);
  choice.on(soon);
  tape.on(soon);
  tape.want(sizes.seen);
  return {
    element,
    inner,
    overview: view.element,
    picked,
    pick(number) {
      choice.set("step", number);
      reveal(number);
    },
    zoom(times) {
      sizes.zoom(times);
      draw();
      reveal(last.position);
    },
    show(state) {
      const moved = state.position !== last.position || state.length !== last.length;
      last = state;
      sizes.of(state.length);
      draw();
      if (moved) reveal(state.position);
    },
  };
}

export function timeline(ask, choice, tape) {
  const strip = stripOf(choice, tape);
  const none = make("p", { class: "agentnb-faint", text: "No step yet: Step runs the first node." });
  const zooms = [["−", "smaller", 1 / 1.5], ["+", "larger", 1.5]].map(([text, word, times]) => make("button", {
    type: "button", class: "agentnb-small", text, title: `${word} steps`, "aria-label": `${word} steps`, click: () => strip.zoom(times),
  }));
  let last = { position: 0, length: 0 };

  strip.inner.addEventListener("click", (event) => {
    const number = Number(event.target.closest("[data-step]")?.dataset.step || 0);
    if (!number) return;
    strip.pick(number);
    ask("goto", number);
  });
  strip.inner.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !last.length) return;
    const at = strip.picked() ?? last.position;
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, PageDown: at + PAGE, PageUp: at - PAGE, Home: 1, End: last.length }[event.key];
    if (event.key === "Enter") ask("goto", at);
    else if (to === undefined) return;
    else strip.pick(within(to, [1, last.length]));
    event.preventDefault();
    event.stopPropagation();
  });
  return {
    name: "timeline",
    title: "Timeline",
    body: make("div", { class: "agentnb-timeline", tabindex: "-1" }, strip.overview, strip.element, none),
    tools: [make("small", { text: "◆ by hand  ● breakpoint  ⋔ fork" }), ...zooms],
    show(state) {
      last = state;
      none.hidden = state.length > 0;
      strip.element.hidden = !state.length;
      strip.overview.hidden ||= !state.length;
      strip.show(state);
    },
  };
}
