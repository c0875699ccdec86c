// Zoom and scroll: a sheet larger or smaller than its window, moved by drag, wheel, pinch, keys and buttons.
import { make } from "./dom.js";

const LEAST_ZOOM = 0.08;
const MOST_ZOOM = 4;
const ZOOM_NOTCH = 1.25;
const READABLE_ZOOM = 0.62; // the smallest initial zoom; beyond that, the sheet scrolls
const SHEET_RIM = 8; // pixels around a sheet that fits
const HAND_SLACK = 5; // pixels of movement that still count as a click

const wantsStill = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;
const fingersApart = ([a, b]) => Math.hypot(a.x - b.x, a.y - b.y);
const fingersMiddle = ([a, b]) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });

/** Dragging by mouse and pinching by two fingers; one finger scrolls natively. `moved()` is true if a click ends a drag. */
function handsOn(element, zoomBy) {
  const down = new Map();
  let from = null; // where a drag by the mouse began
  let dragged = false;
  let wide = 0; // the distance of the fingers at the last event
  element.addEventListener("pointerdown", (event) => {
    dragged = false;
    if (event.pointerType === "touch") {
      down.set(event.pointerId, { x: event.clientX, y: event.clientY });
      if (down.size === 2) wide = fingersApart([...down.values()]);
    } else if (event.button === 0) {
      from = { x: event.clientX, y: event.clientY, left: element.scrollLeft, top: element.scrollTop };
    }
  });
  element.addEventListener("pointermove", (event) => {
    if (down.has(event.pointerId)) {
      down.set(event.pointerId, { x: event.clientX, y: event.clientY });
      if (down.size !== 2 || !wide) return;
      const fingers = [...down.values()];
      zoomBy(fingersApart(fingers) / wide, fingersMiddle(fingers));
      wide = fingersApart(fingers);
    } else if (from && event.buttons & 1) {
      const [x, y] = [event.clientX - from.x, event.clientY - from.y];
      if (!dragged && Math.hypot(x, y) < HAND_SLACK) return;
      if (!dragged) element.setPointerCapture(event.pointerId);
      dragged = true;
      element.scrollLeft = from.left - x;
      element.scrollTop = from.top - y;
      element.classList.add("agentnb-dragged");
    }
  });
  for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) {
    element.addEventListener(name, (event) => {
      down.delete(event.pointerId);
      from = null;
      wide = 0;
      element.classList.remove("agentnb-dragged");
    });
  }
  return () => dragged;
}

/** The scroll position that makes `inner` visible: unchanged if it is, otherwise centred. */
function scrolledTo(start, size, outerStart, outerSize, scroll) {
  const room = Math.min(12, Math.max((outerSize - size) / 2, 0));
  if (start >= outerStart + room && start + size <= outerStart + outerSize - room) return scroll;
  return scroll + start + size / 2 - (outerStart + outerSize / 2);
}

function zoomTools(label, { less, more, fit, natural }) {
  const tool = (text, title, click) => make("button", { type: "button", class: "agentnb-tool", text, title, "aria-label": title.replace(/ \(.*/, ""), click });
  return make("span", { class: "agentnb-zooms", role: "group", "aria-label": `zoom of ${label}` },
    tool("−", "smaller (−, or Ctrl and wheel)", less), tool("+", "larger (+, or Ctrl and wheel)", more),
    tool("Fit", "all of it (0)", fit), tool("1:1", "natural size", natural));
}

/**
 * A window onto a sheet. `set(svg, size)` shows a sheet, `size()` returns its width and height in pixels at 1:1. `turned`
 * is called when the size of the window, and of the sheet with it, has changed.
 */
export function zoomed(label, turned = () => {}) {
  const element = make("div", { class: "agentnb-graph", tabindex: "0", role: "group", "aria-label": `${label}, scrolls`, "aria-keyshortcuts": "+ - 0" });
  let svg = null;
  let size = () => [1, 1];
  let now = 1;
  let own = false; // whether a person has chosen the zoom

  function put(factor) {
    const [width, height] = size();
    now = Math.min(MOST_ZOOM, Math.max(LEAST_ZOOM, factor));
    svg.style.width = `${width * now}px`;
    svg.style.height = `${height * now}px`;
  }
  function scale(factor, at) {
    if (!svg) return;
    const box = element.getBoundingClientRect();
    const spot = at || { x: box.left + box.width / 2, y: box.top + box.height / 2 };
    const before = svg.getBoundingClientRect();
    const share = [(spot.x - before.left) / before.width, (spot.y - before.top) / before.height];
    put(factor);
    const after = svg.getBoundingClientRect();
    element.scrollLeft += after.left + share[0] * after.width - spot.x;
    element.scrollTop += after.top + share[1] * after.height - spot.y;
  }
  const whole = () => {
    const [width, height] = size();
    return Math.min(1, (element.clientWidth - 2 * SHEET_RIM) / width, (element.clientHeight - 2 * SHEET_RIM) / height);
  };
  function fit(least = 0) {
    if (!svg || !element.clientWidth) return;
    own = false;
    put(Math.max(whole(), least));
  }
  function zoomBy(by, at) {
    if (!svg) return;
    own = true;
    scale(now * by, at);
  }
  const moved = handsOn(element, zoomBy);
  element.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoomBy(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) * 0.008), { x: event.clientX, y: event.clientY });
  }, { passive: false });
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const does = { "+": () => zoomBy(ZOOM_NOTCH), "=": () => zoomBy(ZOOM_NOTCH), "-": () => zoomBy(1 / ZOOM_NOTCH), 0: () => fit() }[event.key];
    if (!does) return;
    does();
    event.preventDefault();
    event.stopPropagation();
  });
  element.addEventListener("click", (event) => { if (moved()) event.stopImmediatePropagation(); }, true);
  new ResizeObserver(() => {
    if (own) return;
    fit(READABLE_ZOOM);
    turned();
  }).observe(element);

  return {
    element,
    tools: [zoomTools(label, { less: () => zoomBy(1 / ZOOM_NOTCH), more: () => zoomBy(ZOOM_NOTCH), fit: () => fit(), natural: () => zoomBy(1 / now) })],
    /** Show a sheet with the zoom chosen by a person, or fitted. */
    set(sheet, itsSize) {
      [svg, size] = [sheet, itsSize];
      element.replaceChildren(sheet);
      if (own) put(now);
      else fit(READABLE_ZOOM);
    },
    /** Its size has changed, for example because a part is hidden. */
    resized() { if (own) put(now); else fit(READABLE_ZOOM); },
    /** Scroll this into view without scrolling the rest of the page. */
    reveal(part, smooth = true) {
      const [outer, inner] = [element.getBoundingClientRect(), part.getBoundingClientRect()];
      const left = scrolledTo(inner.left, inner.width, outer.left, element.clientWidth, element.scrollLeft);
      const top = scrolledTo(inner.top, inner.height, outer.top, element.clientHeight, element.scrollTop);
      if (left !== element.scrollLeft || top !== element.scrollTop) element.scrollTo({ left, top, behavior: smooth && !wantsStill() ? "smooth" : "auto" });
    },
    moved,
  };
}
