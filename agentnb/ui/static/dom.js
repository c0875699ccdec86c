// Elements, icons, the theme, tooltips, and what is selected.
const domPart = (() => {
  // DOM helpers: create an element, draw an icon, detect the theme.

  const SVG = "http://www.w3.org/2000/svg";

  /** Return a new element; `text` is its text, `style` its CSS, a function is a listener, everything else an attribute. */
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "text") element.textContent = value;
      else if (name === "style") element.style.cssText = value; // as an attribute, a strict page would refuse it
      else if (typeof value === "function") element.addEventListener(name, value);
      else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children);
    return element;
  }

  /** Return an icon of 16 by 16 from path data, in the color of the surrounding text. */
  function makeIcon(data) {
    const svg = document.createElementNS(SVG, "svg");
    const path = document.createElementNS(SVG, "path");
    svg.setAttribute("viewBox", "0 0 16 16");
    svg.setAttribute("aria-hidden", "true");
    svg.setAttribute("class", "agentnb-sign");
    path.setAttribute("d", data);
    svg.append(path);
    return svg;
  }

  /** Set a text only if it differs, so that an unchanged page is not touched. */
  function setText(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  /** Enable or disable a button without `disabled`, which would move its focus to the notebook. */
  function enable(button, able) {
    button.setAttribute("aria-disabled", String(!able));
  }

  function isDark() {
    const { body, documentElement: page } = document;
    if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false";
    if (body.dataset.vscodeThemeKind) return /dark|high-contrast$/.test(body.dataset.vscodeThemeKind);
    const themeName = page.dataset.theme || page.getAttribute("theme") || body.dataset.theme || "";
    if (/dark|light/.test(themeName)) return themeName.includes("dark");
    return window.matchMedia("(prefers-color-scheme: dark)").matches;
  }

  /** Synchronize `data-theme` of an element with the page's theme; returns a function that stops it. */
  function followTheme(element) {
    const set = () => { element.dataset.theme = isDark() ? "dark" : "light"; };
    const watcher = new MutationObserver(set);
    const preference = window.matchMedia("(prefers-color-scheme: dark)");
    for (const target of [document.body, document.documentElement]) {
      watcher.observe(target, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind", "data-theme", "theme"] });
    }
    preference.addEventListener("change", set);
    set();
    return () => { watcher.disconnect(); preference.removeEventListener("change", set); };
  }

  // The selection: a node, a step or a key. Shared by the parts of one cockpit; the kernel does not know it.

  /**
   * Return the selection: `get()` is {kind, id} or null; listeners added by `on` are called on each change. `light(part)`
   * sets what is lit in the graph and the timeline besides: `slice` and `second` {nodes, steps}, `hits` (steps), and the
   * nodes that `reads` and `writes` name.
   */
  function makeSelection() {
    let now = null;
    let lights = {};
    const listeners = [];
    const watchers = [];
    return {
      lit: () => lights,
      light(part) {
        lights = { ...lights, ...part };
        for (const watcher of watchers) watcher(lights);
      },
      onLight: (watcher) => watchers.push(watcher),
      get: () => now,
      set(kind, id) {
        now = kind === null ? null : { kind, id };
        for (const listener of listeners) listener(now);
      },
      on: (listener) => listeners.push(listener),
    };
  }

  // Tooltips: a card beside the element under the pointer or with the focus.

  const TIP_PAUSE = 220; // milliseconds until the card is shown

  /**
   * `describe(element)` returns the lines for the element under the pointer or with the focus: [element, [line, ...]], or null.
   * A line is a text or an element; instead of the lines, a function that passes them on when they have arrived.
   */
  function addTooltips(home, describe) {
    const card = make("div", { class: "agentnb-tip", role: "tooltip", hidden: true });
    let timer = 0;
    let anchor = null;
    function hide() {
      clearTimeout(timer);
      card.hidden = true;
      anchor = null;
    }
    function show(element, lines) {
      const [first, ...rest] = lines;
      card.replaceChildren(make("strong", { text: first }), ...rest.map((line) => (typeof line === "string" ? make("div", { text: line }) : line)));
      card.hidden = false;
      const [outer, inner, size] = [home.getBoundingClientRect(), element.getBoundingClientRect(), card.getBoundingClientRect()];
      const left = Math.min(Math.max(inner.left + inner.width / 2 - size.width / 2, outer.left + 4), Math.max(outer.right - size.width - 4, outer.left + 4));
      const below = inner.bottom + 8;
      const fits = below + size.height <= outer.bottom || inner.top - outer.top < size.height + 8;
      const scale = outer.width / home.offsetWidth; // the zoom of the page around
      card.style.left = `${(left - outer.left) / scale}px`;
      card.style.top = `${((fits ? below : inner.top - size.height - 8) - outer.top) / scale}px`;
    }
    function look(target, pause) {
      const tip = describe(target);
      if (tip?.[0] === anchor) return;
      hide();
      if (!tip) return;
      [anchor] = tip;
      const [element, lines] = tip;
      const showIfCurrent = (late) => { if (element.isConnected && anchor === element && late) show(element, late); };
      timer = setTimeout(() => (typeof lines === "function" ? lines(showIfCurrent) : showIfCurrent(lines)), pause);
    }
    home.addEventListener("pointerover", (event) => { if (event.pointerType !== "touch") look(event.target, TIP_PAUSE); });
    home.addEventListener("pointerleave", hide);
    home.addEventListener("pointerdown", hide);
    home.addEventListener("scroll", hide, true);
    home.addEventListener("focusin", ({ target }) => { if (target.matches(":focus-visible")) look(target, 0); });
    home.addEventListener("focusout", hide);
    home.addEventListener("keydown", ({ key }) => { if (key === "Escape") hide(); });
    home.append(card);
    return { hide };
  }

  return { make, makeIcon, setText, enable, followTheme, makeSelection, addTooltips };
})();
