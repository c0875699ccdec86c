// panes: the parts of the cockpit beside and below each other; each can be closed, and the columns made wider or narrower.
import { make, say } from "./dom.js";

const KEPT = "agentnb.panes"; // what a person has closed and how wide the columns are, kept by the browser
const NARROWEST = 20; // percent that a column keeps

function kept() {
  try {
    return JSON.parse(localStorage.getItem(KEPT)) || {};
  } catch {
    return {}; // a page without storage, or with somebody else's text in it
  }
}

function keep(change) {
  try {
    localStorage.setItem(KEPT, JSON.stringify({ ...kept(), ...change }));
  } catch {
    // what cannot be kept holds until the page is gone
  }
}

/** One part with its head. `part` is {name, title, body, tools, open, show(state), wanted(state)}; the last four may be left out. */
function pane(part) {
  const told = kept().open?.[part.name];
  let open = told ?? part.open ?? true;
  let last = null;
  const title = make("span", { text: part.title });
  const head = make("button", { type: "button", class: "agentnb-pane-title", "aria-expanded": String(open) }, title);
  const tools = make("span", { class: "agentnb-pane-tools" }, ...(part.tools || []));
  const element = make("section", { class: "agentnb-pane", "data-pane": part.name, "aria-label": part.title },
    make("div", { class: "agentnb-pane-head" }, head, tools), part.body);
  function set(now) {
    open = now;
    head.setAttribute("aria-expanded", String(open));
    part.body.hidden = tools.hidden = !open;
    if (open && last) part.show(last);
  }
  head.addEventListener("click", () => {
    set(!open);
    keep({ open: { ...kept().open, [part.name]: open } });
  });
  set(open);
  return {
    element,
    /** What is closed is not painted; it is when it is opened. A title may say more than its name: `part.says`. */
    show(state) {
      last = state;
      element.hidden = part.wanted ? !part.wanted(state) : false;
      if (part.says) say(title, part.says(state));
      if (open && !element.hidden) part.show(state);
    },
    open: () => { if (!open) set(true); },
  };
}

/** The line between two columns: dragged, or moved by the arrows. */
function splitter(columns) {
  const bar = make("div", { class: "agentnb-split", role: "separator", tabindex: "0", "aria-orientation": "vertical", "aria-label": "width of the columns",
    "aria-valuemin": String(NARROWEST), "aria-valuemax": String(100 - NARROWEST) });
  let share = kept().share ?? 60;
  function set(percent) {
    share = Math.min(100 - NARROWEST, Math.max(NARROWEST, percent));
    columns.style.setProperty("--a-share", `${share}fr`);
    columns.style.setProperty("--a-rest", `${100 - share}fr`);
    bar.setAttribute("aria-valuenow", String(Math.round(share)));
  }
  bar.addEventListener("pointerdown", (event) => { bar.setPointerCapture(event.pointerId); event.preventDefault(); });
  bar.addEventListener("pointermove", (event) => {
    if (!bar.hasPointerCapture(event.pointerId)) return;
    const box = columns.getBoundingClientRect();
    set(((event.clientX - box.left) / box.width) * 100);
  });
  bar.addEventListener("lostpointercapture", () => keep({ share }));
  bar.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -2, ArrowRight: 2 }[event.key];
    if (!by) return;
    set(share + by);
    keep({ share });
    event.preventDefault();
    event.stopPropagation();
  });
  set(share);
  return bar;
}

/** Two columns of parts; `open(name)` opens one by its name. */
export function panes(left, right) {
  const made = new Map([...left, ...right].map((part) => [part.name, pane(part)]));
  const side = (parts) => make("div", { class: "agentnb-side" }, ...parts.map((part) => made.get(part.name).element));
  const element = make("div", { class: "agentnb-panes" });
  element.append(side(left), splitter(element), side(right));
  return {
    element,
    show(state) { for (const one of made.values()) one.show(state); },
    open: (name) => made.get(name)?.open(),
  };
}
