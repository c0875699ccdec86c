// The layout: panes in two columns, which can be collapsed and resized.
const panesPart = (() => {
  const { make, setText } = domPart;

  const STORAGE_KEY = "agentnb.panes"; // storage key of collapsed panes and sizes; the initial layout of the next cockpit
  const NARROWEST = 20; // minimum percentage of a column
  const LOWEST = 48; // minimum height of an open pane in pixels
  const HIGHEST = 1200;
  const TALL = { graph: 420, objects: 260, timeline: 78, board: 206, details: 228, second: 110, usage: 150, stack: 58, stops: 84, forks: 38 }; // initial pixels
  const OTHERWISE = 160;
  // Panes that are as high as their content, and the least and the most pixels that they take for it.
  const FITS = { second: [110, 260], usage: [150, 260], stack: [58, 260], stops: [84, 260], forks: [38, 260] };
  const FIT_ROOM = 10; // pixels below the last line of a pane that is as high as its content
  let unsaved = {}; // the same, if the browser stores nothing

  function readLayout() {
    try {
      return { ...JSON.parse(localStorage.getItem(STORAGE_KEY)), ...unsaved };
    } catch {
      return unsaved; // no storage, or unreadable content
    }
  }

  /** Save one setting of one pane (or of the columns, without a name) for later cockpits. */
  function saveLayout(setting, value, name) {
    const newValue = name ? { ...readLayout()[setting], [name]: value } : value;
    try {
      localStorage.setItem(STORAGE_KEY, JSON.stringify({ ...readLayout(), [setting]: newValue }));
    } catch {
      unsaved = { ...unsaved, [setting]: newValue }; // valid until the page is closed
    }
  }

  /**
   * A divider, dragged or moved by arrow keys. `set(value)` sets and returns the result; `at(event)` converts a pointer position;
   * `size()` is the present value where it may be another than the one that was set.
   */
  function makeSash(attributes, { arrows, by, begin, at, set, done, size = null }) {
    const bar = make("div", { role: "separator", tabindex: "0", ...attributes });
    let now = 0;
    const setValue = (value) => {
      now = set(value);
      bar.setAttribute("aria-valuenow", String(Math.round(now)));
    };
    let grip = null;
    let isDragged = false;
    bar.addEventListener("pointerdown", (event) => {
      bar.setPointerCapture(event.pointerId);
      isDragged = true;
      grip = begin?.(event, now) ?? null;
      event.preventDefault();
    });
    bar.addEventListener("pointermove", (event) => { if (bar.hasPointerCapture(event.pointerId)) setValue(at(event, grip)); });
    bar.addEventListener("lostpointercapture", () => {
      done(now);
      isDragged = false;
    });
    bar.addEventListener("keydown", (event) => {
      const sign = arrows.indexOf(event.key) * 2 - 1;
      if (sign < -1) return;
      setValue((size ? size() : now) + sign * by);
      done(now);
      event.preventDefault();
      event.stopPropagation();
    });
    return { bar, put: setValue, isDragged: () => isDragged };
  }

  /**
   * The handle below a pane, which resizes it; a double click restores its initial height. `part.grow(pixels)` makes an
   * unresized pane as high as its content.
   */
  function makeHeightHandle(part, element) {
    const first = TALL[part.name] || OTHERWISE;
    const { bar, put, isDragged } = makeSash(
      { class: "agentnb-sash", "aria-orientation": "horizontal", "aria-label": `height of ${part.title}`, "aria-valuemin": String(LOWEST), "aria-valuemax": String(HIGHEST),
        title: "drag to resize; double-click to reset" },
      {
        arrows: ["ArrowUp", "ArrowDown"],
        by: 16,
        begin: (event, now) => now - event.clientY,
        at: (event, grip) => grip + event.clientY,
        done: (value) => saveLayout("tall", value, part.name),
        set(value) {
          const tall = Math.min(HIGHEST, Math.max(LOWEST, value));
          element.style.setProperty("--a-tall", `${tall}px`);
          return tall;
        },
      },
    );
    bar.addEventListener("dblclick", () => {
      saveLayout("tall", 0, part.name);
      put(first);
    });
    const readHeight = () => Number(readLayout().tall?.[part.name]) || 0;
    put(readHeight() || first);
    part.grow = (height) => { if (!readHeight() && !isDragged()) put(height); };
    return bar;
  }

  /**
   * One pane with its header. `part` is {name, title, body, tools, open, getTitle(state), isShown(state), show(state)};
   * tools to isShown are optional.
   */
  function makePane(part) {
    let open = readLayout().open?.[part.name] ?? part.open ?? true;
    let [last, frame] = [null, 0];
    const title = make("span", { text: part.title });
    const head = make("button", { type: "button", class: "agentnb-pane-title", "aria-expanded": String(open) }, title);
    const tools = make("span", { class: "agentnb-pane-tools" }, ...(part.tools || []));
    const element = make("section", { class: "agentnb-pane", "data-pane": part.name, "aria-label": part.title },
      make("div", { class: "agentnb-pane-head" }, head, tools), part.body);
    const bar = makeHeightHandle(part, element);
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
    if (part.getTitle) part.retitle = () => { if (last) setText(title, part.getTitle(last)); };
    head.addEventListener("click", () => {
      set(!open);
      saveLayout("open", open, part.name);
    });
    /** As high as its content, up to a limit: a list is not cut below its last visible line. */
    function fit() {
      frame = 0;
      const { body } = part;
      if (!open || !body.offsetParent) return;
      const end = Math.max(0, ...[...body.children].map((each) => each.offsetTop + each.offsetHeight));
      const [least, most] = FITS[part.name];
      if (end) part.grow(Math.min(Math.max(end - body.offsetTop + FIT_ROOM, least), most));
    }
    set(open);
    const scheduleFit = () => { frame ||= requestAnimationFrame(fit); };
    if (FITS[part.name]) {
      const watcher = new ResizeObserver(scheduleFit);
      for (const each of [part.body, ...part.body.children]) watcher.observe(each); // a message at a field makes its form higher
    }
    return {
      element,
      /** A collapsed pane is not rendered until it is opened. Its title may show more than its name: `part.getTitle`. */
      show(state) {
        last = state;
        element.hidden = part.isShown ? !part.isShown(state) : false;
        part.retitle?.();
        if (open && !element.hidden) part.show(state);
        if (FITS[part.name] && !element.hidden) scheduleFit();
      },
      open: () => { if (!open) set(true); },
    };
  }

  /** The divider between the columns. */
  function makeSplitter(columns) {
    const { bar, put } = makeSash(
      { class: "agentnb-split", "aria-orientation": "vertical", "aria-label": "width of the columns", "aria-valuemin": String(NARROWEST), "aria-valuemax": String(100 - NARROWEST) },
      {
        arrows: ["ArrowLeft", "ArrowRight"],
        by: 2,
        at(event) {
          const box = columns.getBoundingClientRect();
          return ((event.clientX - box.left) / box.width) * 100;
        },
        done: (value) => saveLayout("share", value),
        set(percent) {
          const share = Math.min(100 - NARROWEST, Math.max(NARROWEST, percent));
          columns.style.setProperty("--a-share", `${share}fr`);
          columns.style.setProperty("--a-rest", `${100 - share}fr`);
          return share;
        },
      },
    );
    put(Number(readLayout().share) || 60);
    return bar;
  }

  /**
   * Two columns of panes: `left`; `right`, with cards above it, so that a card moves nothing on the left; and below the shorter
   * one `lists`. In a narrow page they are one column, and the lists come last.
   */
  function makePanes(cards, left, right, lists) {
    const paneByName = new Map([...left, ...right, ...lists].map((part) => [part.name, makePane(part)]));
    const makeSide = (name, parts, ...before) => make("div", { class: `agentnb-side agentnb-${name}` }, ...before, ...parts.map((part) => paneByName.get(part.name).element));
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
    element.append(makeSide("left", left), makeSplitter(element), makeSide("right", right, make("div", { class: "agentnb-cards" }, ...cards)), makeSide("lists", lists));
    return {
      element,
      show(state) { for (const one of paneByName.values()) one.show(state); },
      /** Open a pane by its name. */
      open: (name) => paneByName.get(name)?.open(),
    };
  }

  return { saveLayout, readLayout, makePanes, makeSash };
})();
