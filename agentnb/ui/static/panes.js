// The layout: panes in two columns, which can be collapsed and resized.
const panesPart = (() => {
  const { make, say } = domPart;

  const KEPT = "agentnb.panes"; // storage key of collapsed panes and sizes; the initial layout of the next cockpit
  const NARROWEST = 20; // minimum percentage of a column
  const LOWEST = 48; // minimum height of an open pane in pixels
  const HIGHEST = 1200;
  const TALL = { graph: 420, objects: 260, timeline: 78, board: 206, details: 228, second: 110, usage: 150, stack: 58, stops: 84, forks: 38 }; // initial pixels
  const OTHERWISE = 160;
  const FIT_ROOM = 10; // pixels below the last line of a pane that is as high as its content
  const FIT_MOST = 260;
  let held = {}; // the same, if the browser stores nothing

  function kept() {
    try {
      return { ...JSON.parse(localStorage.getItem(KEPT)), ...held };
    } catch {
      return held; // no storage, or unreadable content
    }
  }

  /** Save one setting of one pane (or of the columns, without a name) for later cockpits. */
  function keep(what, value, name) {
    const now = name ? { ...kept()[what], [name]: value } : value;
    try {
      localStorage.setItem(KEPT, JSON.stringify({ ...kept(), [what]: now }));
    } catch {
      held = { ...held, [what]: now }; // valid until the page is closed
    }
  }

  /**
   * A divider, dragged or moved by arrow keys. `set(value)` sets and returns the result; `at(event)` converts a pointer position;
   * `size()` is the present value where it may be another than the one that was set.
   */
  function sash(attributes, { arrows, by, begin, at, set, done, size = null }) {
    const bar = make("div", { role: "separator", tabindex: "0", ...attributes });
    let now = 0;
    const put = (value) => {
      now = set(value);
      bar.setAttribute("aria-valuenow", String(Math.round(now)));
    };
    let grip = null;
    bar.addEventListener("pointerdown", (event) => {
      bar.setPointerCapture(event.pointerId);
      grip = begin?.(event, now) ?? null;
      event.preventDefault();
    });
    bar.addEventListener("pointermove", (event) => { if (bar.hasPointerCapture(event.pointerId)) put(at(event, grip)); });
    bar.addEventListener("lostpointercapture", () => done(now));
    bar.addEventListener("keydown", (event) => {
      const sign = arrows.indexOf(event.key) * 2 - 1;
      if (sign < -1) return;
      put((size ? size() : now) + sign * by);
      done(now);
      event.preventDefault();
      event.stopPropagation();
    });
    return { bar, put };
  }

  /**
   * The handle below a pane, which resizes it; a double click restores its initial height. `part.grow(pixels)` makes an
   * unresized pane as high as its content.
   */
  function heightOf(part, element) {
    const first = TALL[part.name] || OTHERWISE;
    const { bar, put } = sash(
      { class: "agentnb-sash", "aria-orientation": "horizontal", "aria-label": `height of ${part.title}`, "aria-valuemin": String(LOWEST), "aria-valuemax": String(HIGHEST),
        title: "drag to resize; double-click to reset" },
      {
        arrows: ["ArrowUp", "ArrowDown"],
        by: 16,
        begin: (event, now) => now - event.clientY,
        at: (event, grip) => grip + event.clientY,
        done: (value) => keep("tall", value, part.name),
        set(value) {
          const tall = Math.min(HIGHEST, Math.max(LOWEST, value));
          element.style.setProperty("--a-tall", `${tall}px`);
          return tall;
        },
      },
    );
    bar.addEventListener("dblclick", () => {
      keep("tall", 0, part.name);
      put(first);
    });
    const own = () => Number(kept().tall?.[part.name]) || 0;
    put(own() || first);
    part.grow = (height) => { if (!own()) put(height); };
    return bar;
  }

  /**
   * One pane with its header. `part` is {name, title, body, tools, open, fits, says(state), wanted(state), show(state)}; tools to
   * wanted are optional. With `fits` it is as high as its content.
   */
  function pane(part) {
    let open = kept().open?.[part.name] ?? part.open ?? true;
    let [last, due] = [null, 0];
    const title = make("span", { text: part.title });
    const head = make("button", { type: "button", class: "agentnb-pane-title", "aria-expanded": String(open) }, title);
    const tools = make("span", { class: "agentnb-pane-tools" }, ...(part.tools || []));
    const element = make("section", { class: "agentnb-pane", "data-pane": part.name, "aria-label": part.title },
      make("div", { class: "agentnb-pane-head" }, head, tools), part.body);
    const bar = heightOf(part, element);
    element.append(bar);
    part.body.classList.add("agentnb-room");
    if (!part.body.hasAttribute("tabindex")) { // make it scrollable by keyboard
      for (const [key, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", `${part.title}, scrolls`]]) part.body.setAttribute(key, value);
    }
    function set(now) {
      open = now;
      head.setAttribute("aria-expanded", String(open));
      part.body.hidden = tools.hidden = bar.hidden = !open;
      if (open && last) part.show(last);
    }
    if (part.says) part.retitle = () => { if (last) say(title, part.says(last)); };
    head.addEventListener("click", () => {
      set(!open);
      keep("open", open, part.name);
    });
    /** As high as its content, up to a limit: a list is not cut below its last visible line. */
    function fit() {
      due = 0;
      const { body } = part;
      if (!open || !body.offsetParent) return;
      const end = Math.max(0, ...[...body.children].map((each) => each.offsetTop + each.offsetHeight));
      if (end) part.grow(Math.min(Math.max(end - body.offsetTop + FIT_ROOM, TALL[part.name] || OTHERWISE), FIT_MOST));
    }
    set(open);
    const fitSoon = () => { due ||= requestAnimationFrame(fit); };
    if (part.fits) new ResizeObserver(fitSoon).observe(part.body);
    return {
      element,
      /** A collapsed pane is not rendered until it is opened. Its title may show more than its name: `part.says`. */
      show(state) {
        last = state;
        element.hidden = part.wanted ? !part.wanted(state) : false;
        part.retitle?.();
        if (open && !element.hidden) part.show(state);
        if (part.fits && !element.hidden) fitSoon();
      },
      open: () => { if (!open) set(true); },
    };
  }

  /** The divider between the columns. */
  function splitter(columns) {
    const { bar, put } = sash(
      { class: "agentnb-split", "aria-orientation": "vertical", "aria-label": "width of the columns", "aria-valuemin": String(NARROWEST), "aria-valuemax": String(100 - NARROWEST) },
      {
        arrows: ["ArrowLeft", "ArrowRight"],
        by: 2,
        at(event) {
          const box = columns.getBoundingClientRect();
          return ((event.clientX - box.left) / box.width) * 100;
        },
        done: (value) => keep("share", value),
        set(percent) {
          const share = Math.min(100 - NARROWEST, Math.max(NARROWEST, percent));
          columns.style.setProperty("--a-share", `${share}fr`);
          columns.style.setProperty("--a-rest", `${100 - share}fr`);
          return share;
        },
      },
    );
    put(Number(kept().share) || 60);
    return bar;
  }

  /**
   * Two columns of panes: `left`; `right`, with cards above it, so that a card moves nothing on the left; and below the shorter
   * one `lists`. In a narrow page they are one column, and the lists come last.
   */
  function panes(cards, left, right, lists) {
    const made = new Map([...left, ...right, ...lists].map((part) => [part.name, pane(part)]));
    const side = (name, parts, ...before) => make("div", { class: `agentnb-side agentnb-${name}` }, ...before, ...parts.map((part) => made.get(part.name).element));
    const element = make("div", { class: "agentnb-panes" });
    let width = 0; // of the page for which the place of the lists was chosen
    /** Put the lists where there is more room, once the graph is there, and again when the page has another width. */
    function balance([{ contentRect }]) {
      if (contentRect.width === width || !element.querySelector(".agentnb-graph svg")) return;
      width = contentRect.width;
      const [one, other] = ["left", "right"].map((name) => element.querySelector(`.agentnb-${name}`).offsetHeight);
      element.classList.toggle("agentnb-lists-right", one > other);
    }
    new ResizeObserver(balance).observe(element);
    element.append(side("left", left), splitter(element), side("right", right, make("div", { class: "agentnb-cards" }, ...cards)), side("lists", lists));
    return {
      element,
      show(state) { for (const one of made.values()) one.show(state); },
      /** Open a pane by its name. */
      open: (name) => made.get(name)?.open(),
    };
  }

  return { keep, kept, panes, sash };
})();
