// The drawing of a recipe: its nodes, edges, regions and board, with zoom and scroll.
const drawingPart = (() => {
  const { make, setText } = domPart;
  const { saveLayout, readLayout } = panesPart;

  // Zoom and scroll: a sheet larger or smaller than its window, moved by drag, wheel, pinch, keys and buttons.

  const LEAST_ZOOM = 0.08;
  const MOST_ZOOM = 4;
  const ZOOM_NOTCH = 1.25;
  const READABLE_ZOOM = 0.98; // the smallest initial zoom, at which the smallest text has 11 pixels; beyond that, the sheet scrolls
  const SHEET_RIM = 8; // pixels around a sheet that fits
  const SHEET_LOWEST = 360; // pixels that a high sheet may take in any window
  const SHEET_SHARE = 0.7; // of the window's height that it may take
  const MAP_AREA = 7500; // pixels of the map of a sheet
  const MAP_SHARE = 0.45; // of a side of its window that it may take
  const MAP_RIM = 14; // pixels between it and the sides of its window
  const MAP_CORNERS = ["bottom right", "top right", "bottom left", "top left"];
  const MAP_LEAST = 24; // pixels of its shorter side
  const HAND_SLACK = 5; // pixels of movement that still count as a click

  const prefersStill = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const measureDistance = ([a, b]) => Math.hypot(a.x - b.x, a.y - b.y);
  const findMiddle = ([a, b]) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });

  /** Dragging by mouse and pinching by two fingers; one finger scrolls natively. `moved()` is true if a click ends a drag. */
  function addDragging(element, zoomBy) {
    const down = new Map();
    let from = null; // where a drag by the mouse began
    let dragged = false;
    let distance = 0; // the distance of the fingers at the last event
    element.addEventListener("pointerdown", (event) => {
      dragged = false;
      if (event.pointerType === "touch") {
        down.set(event.pointerId, { x: event.clientX, y: event.clientY });
        if (down.size === 2) distance = measureDistance([...down.values()]);
      } else if (event.button === 0) {
        from = { x: event.clientX, y: event.clientY, left: element.scrollLeft, top: element.scrollTop };
      }
    });
    element.addEventListener("pointermove", (event) => {
      if (down.has(event.pointerId)) {
        down.set(event.pointerId, { x: event.clientX, y: event.clientY });
        if (down.size !== 2 || !distance) return;
        const fingers = [...down.values()];
        zoomBy(measureDistance(fingers) / distance, findMiddle(fingers));
        distance = measureDistance(fingers);
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
        distance = 0;
        element.classList.remove("agentnb-dragged");
      });
    }
    return () => dragged;
  }

  /** The scroll position that makes `inner` visible: unchanged if it is, otherwise centered. */
  function findScroll(start, size, outerStart, outerSize, scroll) {
    const room = Math.min(12, Math.max((outerSize - size) / 2, 0));
    if (start >= outerStart + room && start + size <= outerStart + outerSize - room) return scroll;
    return scroll + start + size / 2 - (outerStart + outerSize / 2);
  }

  /** A map of a sheet that is larger than its window: its nodes, and the part in view. A press or a drag moves the window. */
  function makeMap(window_) {
    const viewRect = makeSvg("rect", { class: "agentnb-seen-part" });
    const map = makeSvg("svg", { class: "agentnb-map", "aria-hidden": "true" });
    const holder = make("div", { hidden: true }, map);
    let [sheet, dots, box] = [null, new Map(), [1, 1]];
    let boxes = []; // x, y, width and height of each node and label
    let frame = 0;
    const scheduleShow = () => { frame ||= requestAnimationFrame(show); }; // it reads sizes: once a frame
    function show() {
      frame = 0;
      const large = sheet !== null && (window_.scrollWidth > window_.clientWidth + 24 || window_.scrollHeight > window_.clientHeight + 24);
      holder.hidden = !large;
      if (!large || !map.clientWidth) return;
      measure();
      if (!boxes.length) boxes = listBoxes();
      const [outer, inner] = [window_.getBoundingClientRect(), sheet.getBoundingClientRect()];
      const scale = box[0] / (inner.width || 1);
      const spot = { x: (outer.left - inner.left) * scale, y: (outer.top - inner.top) * scale, width: window_.clientWidth * scale, height: window_.clientHeight * scale };
      for (const [name, value] of Object.entries(spot)) viewRect.setAttribute(name, String(value));
      if (!map.matches(":hover")) chooseCorner(spot, scale);
      viewRect.setAttribute("stroke-width", String(2 * box[0] / map.clientWidth));
    }
    /** The nodes and labels of the sheet, in its own coordinates. */
    function listBoxes() {
      const inner = sheet.getBoundingClientRect();
      const scale = box[0] / (inner.width || 1);
      return [...sheet.querySelectorAll("g.node .shape, g.edge text, g.cluster-title text")].map((part) => {
        const { left, top, width, height } = part.getBoundingClientRect();
        return [(left - inner.left) * scale, (top - inner.top) * scale, width * scale, height * scale];
      });
    }
    /** Make the map as large as its window allows: a long drawing gets the full width or height. */
    function measure() {
      const shrink = Math.min(Math.sqrt(MAP_AREA / (box[0] * box[1])), (window_.clientWidth || 400) * MAP_SHARE / box[0], (window_.clientHeight || 400) * MAP_SHARE / box[1]);
      map.setAttribute("width", String(Math.max(box[0] * shrink, MAP_LEAST)));
      map.setAttribute("height", String(Math.max(box[1] * shrink, MAP_LEAST)));
    }
    /** Put the map into the corner in which it covers the least of the nodes in view; where it is, if that is as good. */
    function chooseCorner(spot, scale) {
      const [width, height] = [map.clientWidth * scale + 2 * MAP_RIM * scale, map.clientHeight * scale + 2 * MAP_RIM * scale];
      const covers = (corner) => {
        const left = corner.includes("left") ? spot.x : spot.x + spot.width - width;
        const top = corner.includes("top") ? spot.y : spot.y + spot.height - height;
        const share = (from, to, start, size) => Math.max(0, Math.min(to, start + size) - Math.max(from, start));
        return boxes.reduce((sum, [x, y, w, h]) => sum + share(x, x + w, left, width) * share(y, y + h, top, height), 0);
      };
      const all = MAP_CORNERS.map((corner) => [covers(corner), corner]);
      const [least] = all.reduce((best, each) => (each[0] < best[0] ? each : best));
      const now = all.find(([, corner]) => corner === map.dataset.corner) || all[0];
      map.dataset.corner = (now[0] > least ? all.find(([area]) => area === least) : now)[1];
    }
    function go(event) {
      const [outer, inner] = [map.getBoundingClientRect(), sheet.getBoundingClientRect()];
      window_.scrollLeft += inner.left + ((event.clientX - outer.left) / outer.width) * inner.width - (window_.getBoundingClientRect().left + window_.clientWidth / 2);
      window_.scrollTop += inner.top + ((event.clientY - outer.top) / outer.height) * inner.height - (window_.getBoundingClientRect().top + window_.clientHeight / 2);
    }
    map.addEventListener("pointerdown", (event) => { map.setPointerCapture(event.pointerId); go(event); event.preventDefault(); });
    map.addEventListener("pointermove", (event) => { if (map.hasPointerCapture(event.pointerId)) go(event); });
    window_.addEventListener("scroll", scheduleShow);
    return {
      element: holder,
      show: scheduleShow,
      draw(svg) {
        sheet = svg;
        box = (svg.getAttribute("viewBox") || "0 0 400 300").split(" ").slice(2).map(Number);
        map.setAttribute("viewBox", `0 0 ${box[0]} ${box[1]}`);
        measure();
        dots = new Map();
        for (const node of svg.querySelectorAll("g.node[data-node]")) {
          const [x, y] = (node.getAttribute("transform")?.match(/-?[\d.]+/g) || [0, 0]).map(Number);
          dots.set(node, makeSvg("rect", { x: String(x - 20), y: String(y), width: "64", height: "26", rx: "4" }));
        }
        boxes = [];
        map.replaceChildren(...dots.values(), viewRect);
        show();
      },
      /** Copy the marks of the nodes. */
      mark() {
        if (holder.hidden) return;
        for (const [node, dot] of dots) {
          const mark = ["current", "visited"].find((each) => node.classList.contains(each)) || "";
          if ((dot.getAttribute("class") || "") !== mark) dot.setAttribute("class", mark);
        }
      },
    };
  }

  function makeZoomTools(label, { less, more, fit, natural }) {
    const makeTool = (text, title, click) => make("button", { type: "button", class: "agentnb-tool", text, title, "aria-label": title.replace(/ \(.*/, ""), click });
    return make("span", { class: "agentnb-zooms", role: "group", "aria-label": `zoom of ${label}` },
      makeTool("−", "Zoom out (−, or Ctrl and wheel)", less), makeTool("+", "Zoom in (+, or Ctrl and wheel)", more),
      makeTool("Fit", "Fit (0)", fit), makeTool("1:1", "Actual size", natural));
  }

  /**
   * A window onto a sheet. `set(svg, size)` shows a sheet, `size()` returns its width and height in pixels at 1:1. `onResize`
   * is called when the size of the window, and of the sheet with it, has changed.
   */
  function makeZoomWindow(label, onResize = () => {}) {
    const element = make("div", { class: "agentnb-graph", tabindex: "0", role: "group", "aria-label": `${label}, scrolls`, "aria-keyshortcuts": "+ - 0" });
    let svg = null;
    let size = () => [1, 1];
    let now = 1;
    let isChosen = false; // whether a person has chosen the zoom
    let home = ""; // the name under which that is remembered

    function setZoom(factor) {
      const [width, height] = size();
      now = Math.min(MOST_ZOOM, Math.max(LEAST_ZOOM, factor));
      svg.style.width = `${width * now}px`;
      svg.style.height = `${height * now}px`;
      map.show();
    }
    function zoomAt(factor, at) {
      if (!svg) return;
      const box = element.getBoundingClientRect();
      const spot = at || { x: box.left + box.width / 2, y: box.top + box.height / 2 };
      const before = svg.getBoundingClientRect();
      const share = [(spot.x - before.left) / before.width, (spot.y - before.top) / before.height];
      setZoom(factor);
      const after = svg.getBoundingClientRect();
      element.scrollLeft += after.left + share[0] * after.width - spot.x;
      element.scrollTop += after.top + share[1] * after.height - spot.y;
    }
    const findWholeZoom = () => {
      const [width, height] = size();
      return Math.min(1, (element.clientWidth - 2 * SHEET_RIM) / width, (element.clientHeight - 2 * SHEET_RIM) / height);
    };
    function fit(least = 0) {
      if (!svg || !element.clientWidth) return;
      isChosen = false;
      setZoom(Math.max(findWholeZoom(), least));
    }
    function fitAgain() {
      fit();
      if (home) saveLayout("zoom", 0, home);
    }
    function zoomBy(factor, at) {
      if (!svg) return;
      isChosen = true;
      zoomAt(now * factor, at);
      if (home) saveLayout("zoom", now, home);
    }
    const map = makeMap(element);
    const wasDragged = addDragging(element, zoomBy);
    element.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoomBy(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) * 0.008), { x: event.clientX, y: event.clientY });
    }, { passive: false });
    element.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const action = { "+": () => zoomBy(ZOOM_NOTCH), "=": () => zoomBy(ZOOM_NOTCH), "-": () => zoomBy(1 / ZOOM_NOTCH), 0: fitAgain }[event.key];
      if (!action) return;
      action();
      event.preventDefault();
      event.stopPropagation();
    });
    element.addEventListener("click", (event) => { if (wasDragged()) event.stopImmediatePropagation(); }, true);
    new ResizeObserver(() => {
      if (isChosen) return;
      fit(READABLE_ZOOM);
      onResize();
    }).observe(element);

    return {
      element,
      tools: [makeZoomTools(label, { less: () => zoomBy(1 / ZOOM_NOTCH), more: () => zoomBy(ZOOM_NOTCH), fit: fitAgain, natural: () => zoomBy(1 / now) })],
      /** Show a sheet with the zoom chosen by a person, now or earlier under this name, or fitted. */
      set(sheet, itsSize, name = "") {
        [svg, size] = [sheet, itsSize];
        element.replaceChildren(sheet);
        const before = name && name !== home ? Number(readLayout().zoom?.[name]) || 0 : 0;
        home = name;
        if (before) [isChosen, now] = [true, before];
        if (isChosen) setZoom(now);
        else fit(READABLE_ZOOM);
        map.draw(sheet);
      },
      map,
      /** The width in pixels that a sheet may have to be legible without scrolling. */
      room: () => (element.clientWidth - 2 * SHEET_RIM) / READABLE_ZOOM,
      /** The height in pixels that shows the whole sheet at a legible zoom, or as much of it as leaves room for other panes. */
      height() {
        const [width, height] = size();
        const zoom = Math.max(READABLE_ZOOM, Math.min(1, (element.clientWidth - 2 * SHEET_RIM) / width));
        return Math.min(height * zoom + 2 * SHEET_RIM + 4, Math.max(SHEET_LOWEST, window.innerHeight * SHEET_SHARE));
      },
      /** Its size has changed, for example because a part is hidden. */
      resized() {
        if (isChosen) setZoom(now);
        else fit(READABLE_ZOOM);
        if (svg) map.draw(svg);
      },
      /** Scroll this into view without scrolling the rest of the page. */
      reveal(part, smooth = true) {
        const [outer, inner] = [element.getBoundingClientRect(), part.getBoundingClientRect()];
        const left = findScroll(inner.left, inner.width, outer.left, element.clientWidth, element.scrollLeft);
        const top = findScroll(inner.top, inner.height, outer.top, element.clientHeight, element.scrollTop);
        if (left !== element.scrollLeft || top !== element.scrollTop) element.scrollTo({ left, top, behavior: smooth && !prefersStill() ? "smooth" : "auto" });
      },
      moved: wasDragged,
    };
  }

  // A drawing from the kernel as part of this page: the allowed elements, and the description of each.

  const SHEET_PARTS = new Set(["svg", "g", "path", "rect", "circle", "ellipse", "line", "polygon", "polyline", "text", "tspan", "title"]);
  const SVG_POINT = 4 / 3; // pixels
  const SVG_SPACE = "http://www.w3.org/2000/svg";

  /** Create an SVG element. */
  function makeSvg(tag, attributes = {}, ...children) {
    const element = document.createElementNS(SVG_SPACE, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  /** Remove everything that loads, links, listens or runs; the kernel's drawings contain none of it. */
  function removeUnsafe(root) {
    for (const element of [...root.querySelectorAll("*")]) {
      if (!SHEET_PARTS.has(element.localName) || element.namespaceURI !== SVG_SPACE) element.remove();
    }
    for (const element of [root, ...root.querySelectorAll("*")]) {
      for (const { name, value } of [...element.attributes]) {
        if (/^on|href$|^style$/i.test(name) || (/url\(|javascript:/i.test(value) && !/^(data-|aria-)/.test(name))) element.removeAttribute(name);
      }
    }
  }

  const parsePixels = (text) => text.split(" ").slice(-2).map((points) => Number(points) * SVG_POINT);

  /** Return {svg, size, alone, tips} of an SVG text, or null. `alone` is the size without the board; `tips` describe each group. */
  function parseSheet(text) {
    if (!text) return null;
    const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    if (root.nodeName !== "svg") return null;
    removeUnsafe(root); // before it is attached: an image would load at once
    const svg = document.importNode(root, true);
    for (const name of ["width", "height", "data-static"]) svg.removeAttribute(name);
    svg.classList.add("has-run");
    svg.setAttribute("role", "group"); // its nodes are buttons
    const tips = new WeakMap();
    for (const title of svg.querySelectorAll("g > title")) { // our tooltip shows it without delay
      tips.set(title.parentNode, title.textContent);
      title.remove();
    }
    const viewBox = svg.getAttribute("viewBox") || "0 0 400 300";
    const size = parsePixels(viewBox);
    return { svg, tips, viewBox, size, alone: svg.dataset.graph ? parsePixels(svg.dataset.graph) : size };
  }

  // The nodes of a drawing as buttons: a click selects, a click in the margin sets a breakpoint; reachable by keyboard.

  const WAY_ON = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  const PRESSABLE = "g.node[data-node], g.agentnb-fold"; // what the arrow keys move through
  const MARGIN_AT = 4; // points from a node's left side to the middle of its margin
  const MARGIN_REACH = 10; // points around that in which a click counts

  /** The margin of a node: a circle at its left side. */
  function addMargin(group) {
    const dot = group.querySelector(".dot");
    if (!dot || group.classList.contains("kind-region")) return;
    const x = String(Number(dot.getAttribute("cx")) - 3 - MARGIN_AT); // the kernel draws the dot 3 points from the left side
    dot.setAttribute("cx", x);
    dot.setAttribute("cy", "0");
    group.append(makeSvg("g", { class: "agentnb-margin", "aria-hidden": "true" }, makeSvg("circle", { class: "agentnb-reach", cx: x, cy: "0", r: String(MARGIN_REACH) }), dot));
  }

  /** Make the nodes of a drawing buttons. */
  function addNodeButtons(svg) {
    for (const group of svg.querySelectorAll("g.node[data-node]")) {
      addMargin(group);
      group.setAttribute("role", "button");
      const inside = group.classList.contains("kind-region");
      group.setAttribute("aria-keyshortcuts", inside ? "Enter" : "Enter B");
      if (inside) group.setAttribute("aria-expanded", "false");
    }
    svg.querySelectorAll(PRESSABLE).forEach((each, index) => each.setAttribute("tabindex", index ? "-1" : "0"));
  }

  /** Listen in a window: `choose(node)`, `stop(node)` and `fold(region or node)` are called with the target. */
  function listenForPresses(element, { choose, stop, fold }) {
    const findGroup = (event) => event.target.closest?.(PRESSABLE);
    const press = (group) => (group.matches(".agentnb-fold, .kind-region") ? fold(group) : choose(group.dataset.node));
    const toggleStop = (group) => { if (!group.matches(".agentnb-fold, .kind-region")) stop(group.dataset.node); };
    element.addEventListener("click", (event) => {
      const group = findGroup(event);
      if (!group) return;
      if (event.target.closest(".agentnb-margin")) toggleStop(group);
      else press(group);
    });
    element.addEventListener("keydown", (event) => {
      const group = findGroup(event);
      if (!group || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Enter" || event.key === " ") press(group);
      else if (event.key === "b") toggleStop(group);
      else if (WAY_ON[event.key]) {
        const all = [...element.querySelectorAll(PRESSABLE)];
        const next = all[(all.indexOf(group) + WAY_ON[event.key] + all.length) % all.length];
        for (const each of all) each.setAttribute("tabindex", each === next ? "0" : "-1");
        next.focus();
      } else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  /** The menu of a node, opened by the secondary button or Shift+F10: `items(node)` are [text, able, action]. */
  function addNodeMenu(home, element, items) {
    const menu = make("div", { class: "agentnb-menu", role: "menu", hidden: true });
    let from = null;
    function close() {
      if (menu.contains(document.activeElement)) from?.focus({ preventScroll: true });
      menu.hidden = true;
    }
    /** Replace an item by a field; what is typed goes to the action. */
    function askMessage(item, action) {
      const input = make("input", { type: "text", class: "agentnb-input agentnb-code", "aria-label": "message", placeholder: "n is {{ n }}", spellcheck: "false" });
      const form = make("form", { class: "agentnb-line" }, input, make("button", { type: "submit", class: "agentnb-button", text: "Log" }));
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        if (!input.value.trim()) return;
        close();
        action(input.value.trim());
      });
      item.before(form);
      input.focus({ preventScroll: true }); // first: a menu without the focus closes
      item.remove();
    }
    element.addEventListener("contextmenu", (event) => {
      const group = event.target.closest?.("g.node[data-node]:not(.kind-region)");
      if (!group) return;
      event.preventDefault();
      event.stopPropagation(); // a notebook has a menu of its own
      from = group;
      menu.replaceChildren(...items(group.dataset.node).map(([text, able, action, typed]) => make("button", {
        type: "button", role: "menuitem", text, "aria-disabled": String(!able),
        click: ({ currentTarget }) => { if (able && typed) askMessage(currentTarget, typed); else if (able) { close(); action(); } },
      })));
      menu.hidden = false;
      menu.setAttribute("aria-label", `actions for ${group.dataset.node}`);
      const [outer, inner] = [home.getBoundingClientRect(), group.getBoundingClientRect()];
      const [x, y] = event.clientX || event.clientY ? [event.clientX, event.clientY] : [inner.left + 8, inner.bottom];
      const scale = outer.width / home.offsetWidth; // the zoom of the page around
      menu.style.left = `${Math.max(0, Math.min((x - outer.left) / scale, home.offsetWidth - menu.offsetWidth - 4))}px`;
      menu.style.top = `${Math.max(0, Math.min((y - outer.top) / scale, home.offsetHeight - menu.offsetHeight - 4))}px`;
      menu.firstChild.focus({ preventScroll: true });
    });
    menu.addEventListener("keydown", (event) => {
      const all = [...menu.querySelectorAll("[role=menuitem]")];
      const at = all.indexOf(document.activeElement);
      if (event.target.matches("input") && event.key !== "Escape") return;
      if (event.key === "Escape" || event.key === "Tab") close();
      else if (event.key === "ArrowDown" || event.key === "ArrowUp") all[(at + (event.key === "ArrowDown" ? 1 : -1) + all.length) % all.length].focus();
      else if (event.key !== "Enter" && event.key !== " ") return;
      else document.activeElement.click();
      event.preventDefault();
      event.stopPropagation();
    });
    menu.addEventListener("focusout", ({ relatedTarget }) => { if (!menu.contains(relatedTarget)) menu.hidden = true; });
    home.append(menu);
  }

  /** The accessible name of a node: its name and its marks. */
  function describeNode(id, classes, count) {
    const words = classes.filter((mark) => mark !== "last").map((mark) => (mark === "visited" ? `visited ${count}` : mark));
    return [id.startsWith("region: ") ? id.replace(": ", " ") : `node ${id}`, ...words].join(", ");
  }

  // Regions of a drawing collapsed to one box; what a run does inside is shown at the box.

  const MARK_ORDER = ["visited", "next", "waiting", "failed", "current", "breakpoint", "last"];
  const NO_FOLDS = { regions: {}, nodes: {}, edges: {} }; // nothing is collapsed

  /** A button at each region's title that collapses it. */
  function addFoldButtons(svg) {
    for (const holder of svg.querySelectorAll("g.cluster-title[data-scope]")) {
      const title = holder.querySelector("text");
      const [x, y] = ["x", "y"].map((name) => Number(title.getAttribute(name)));
      title.setAttribute("x", String(x + 13));
      const box = makeSvg("rect", { x: String(x - 5), y: String(y - 10), width: "13", height: "13", rx: "3" });
      const reach = makeSvg("rect", { class: "agentnb-reach", x: String(x - 8), y: String(y - 13), width: "19", height: "19" });
      const sign = makeSvg("path", { d: `M${x - 1.5},${y - 3.5}h6` });
      holder.append(makeSvg("g", { class: "agentnb-fold", role: "button", "aria-expanded": "true", "data-scope": holder.dataset.scope,
        "aria-label": `close region ${title.textContent}` }, reach, box, sign));
    }
  }

  /** The marks of the nodes as this drawing shows them: those of nodes inside a box are shown at the box. */
  function sumMarks(nodes, folds) {
    const sums = {};
    const inside = {};
    for (const [id, marks] of Object.entries(nodes)) {
      const box = folds.nodes[id];
      if (box === undefined) sums[id] = marks;
      else (inside[box] ||= []).push(marks);
    }
    for (const [box, all] of Object.entries(inside)) {
      const marks = new Set(all.flatMap(({ classes }) => classes));
      if (marks.has("current")) marks.delete("next");
      const stepCount = all.reduce((sum, { count }) => sum + (Number(count.slice(1)) || 0), 0);
      sums[box] = { classes: MARK_ORDER.filter((mark) => marks.has(mark)), count: stepCount ? `×${stepCount}` : "" };
    }
    return sums;
  }

  /** The marks of the edges as this drawing shows them. */
  function joinEdges(edges, folds) {
    const joined = {};
    for (const [place, marks] of Object.entries(edges)) {
      const stands = folds.edges[place] ?? place;
      joined[stands] = { classes: [...new Set([...(joined[stands]?.classes || []), ...marks.classes])] };
    }
    return joined;
  }

  // The blackboard in the drawing: its rows show current values, thin lines lead to the nodes that read and write them.

  const VALUE_COLUMNS = 24; // columns available for a value
  const [HEAD_TALL, ROW_TALL] = [24, 20]; // points, as the kernel draws them

  /** A text truncated to fit; East Asian wide characters take two columns. */
  function truncateText(text) {
    let columns = 0;
    let end = 0;
    for (const letter of text) {
      columns += letter >= "\u1100" ? 2 : 1;
      if (columns > VALUE_COLUMNS) return `${text.slice(0, end).trimEnd()}…`;
      if (columns < VALUE_COLUMNS) end += letter.length;
    }
    return text;
  }

  function readRow(group, tip) {
    const [key, value] = [group.querySelector(".key"), group.querySelector(".value")];
    const { row: name, index } = group.dataset;
    return { group, key, value, index, name, tip: tip || "", drawn: group.classList.contains("spare") ? null : [name, key.textContent], text: "", worn: "" };
  }

  /** The tooltip of a row: its value first, then the recipe's description of its key. */
  function describeRow(row) {
    if (!row.name) return null;
    const [, ...rest] = row.name === row.drawn?.[0] ? row.tip.split("\n") : [];
    return [row.text ? `${row.name} = ${row.text}` : row.name, ...rest];
  }

  /** The board of a drawing; `ask(then)` requests the lines that differ from the drawn ones. */
  function readBoard({ svg, tips }, ask) {
    const rows = [...svg.querySelectorAll("g.row[data-index]")].map((group) => readRow(group, tips.get(group)));
    const more = svg.querySelector(".board .more");
    const frames = [...svg.querySelectorAll(".board :is(.back, .frame)")];
    const holder = svg.querySelector("g.flows");
    const drawnFlows = new Map([...svg.querySelectorAll("g.flow")].map((group) => [`${group.dataset.direction} ${group.dataset.node}`, group]));
    const addedFlows = new Map();
    const byNode = new Map();
    let active = null;
    let lastLines = "";
    let lowest = -1; // the number of lines below the head that the frame encloses
    const width = Number(frames[0]?.getAttribute("transform").match(/-?[\d.]+/)[0]) * 2; // it is drawn around its middle

    /** Assign a key to a row, with its data on the board: [key, text, marks]. */
    function fillRow(row, names, entry) {
      const [name, label] = names || ["", ""];
      const [, text = "", marks = []] = entry || [];
      const content = JSON.stringify([name, label, text, marks]);
      if (row.worn === content) return;
      Object.assign(row, { worn: content, name, text: text || "" });
      row.group.setAttribute("class", ["row", ...(names ? marks : ["spare"])].join(" "));
      row.group.dataset.row = row.value.dataset.key = name;
      setText(row.key, label);
      setText(row.value, truncateText(row.text));
    }
    /** Let the table end below its last line: the kernel leaves room for keys to come. */
    function enclose(lines) {
      if (lines === lowest || !frames.length) return;
      lowest = lines;
      const height = HEAD_TALL + ROW_TALL * lines;
      const outline = `M8,0H${width - 8}Q${width},0 ${width},8V${height - 8}Q${width},${height} ${width - 8},${height}H8Q0,${height} 0,${height - 8}V8Q0,0 8,0Z`;
      for (const frame of frames) {
        frame.setAttribute("d", outline);
        frame.removeAttribute("transform");
      }
      more?.setAttribute("y", String(height - 7));
    }
    const listFlows = (node) => byNode.get(node) || byNode.set(node, [...drawnFlows.values(), ...addedFlows.values()].filter((each) => each.dataset.node === node)).get(node);
    function setActive(node) {
      if (active !== null) for (const each of listFlows(active)) each.classList.remove("active");
      active = node;
      if (node !== null) for (const each of listFlows(node)) each.classList.add("active");
    }
    function showFlows(result) {
      for (const each of addedFlows.values()) each.remove();
      addedFlows.clear();
      byNode.clear();
      const removed = new Set(result.removed);
      for (const [name, group] of drawnFlows) group.style.display = removed.has(name) || result.flows[name] ? "none" : "";
      for (const [name, flow] of Object.entries(result.flows)) {
        const group = makeSvg("g", { class: flow.classes.filter((word) => word !== "active").join(" "), "data-node": flow.node, "data-direction": flow.direction },
          makeSvg("path", { class: "line", d: flow.line }), makeSvg("path", { class: "heads", d: flow.heads }));
        tips.set(group, flow.tip);
        addedFlows.set(name, group);
        holder.append(group);
      }
      const now = active;
      active = null;
      setActive(now);
    }
    return {
      there: rows.length > 0,
      /** Show the reads and writes of a node, in addition to those of the current one; null hides them. */
      light(node) {
        for (const each of [...drawnFlows.values(), ...addedFlows.values()]) each.classList.toggle("agentnb-lit", node !== null && each.dataset.node === node);
      },
      tip: (group) => { const row = rows.find((each) => each.group === group); return row ? describeRow(row) : null; },
      /** `node` is the box of the current node. While a run moves no lines are requested. */
      show({ picture, board: table = [] }, node, rests) {
        if (!holder) return;
        const { rows: named = {}, board: below = {} } = picture;
        const entries = new Map(table.map((row) => [row[0], row]));
        for (const row of rows) {
          const names = named[row.index] || row.drawn;
          fillRow(row, names, names && entries.get(names[0]));
        }
        if (more) setText(more, below.more || "");
        enclose(rows.findLastIndex((row) => row.name) + 1 + (below.more ? 1 : 0));
        if (node !== active) setActive(node);
        const word = below.flows || "";
        if (word === lastLines || !rests) return;
        lastLines = word;
        if (word) ask((result) => { if (result && lastLines === word) showFlows(result); });
        else showFlows({ flows: {}, removed: [] });
      },
    };
  }

  // The graph as a table: each node, its kind, its status, its edges. For screen readers, and for reading.

  const NODE_STATES = { current: "is next", next: "comes later", waiting: "waits for a person", failed: "failed", breakpoint: "has a breakpoint" };

  /** A table of a drawing; `choose(id)` is called when a name is clicked. */
  function makeGraphTable(choose) {
    const head = make("tr", {}, ...["Node", "Kind", "State", "Leads to"].map((text) => make("th", { scope: "col", text })));
    const body = make("tbody");
    const table = make("table", { "aria-label": "Nodes of the graph" }, make("thead", {}, head), body);
    const element = make("div", { class: "agentnb-graph-table", hidden: true, tabindex: "0", role: "group", "aria-label": "Graph as a table, scrolls" }, table);
    let cells = new Map();
    return {
      element,
      /** `nodes` are {id, name, kind, edges}; an edge is a text. */
      draw(nodes) {
        cells = new Map();
        body.replaceChildren(...nodes.map(({ id, name, kind, edges }) => {
          const state = make("td");
          cells.set(id, state);
          const press = make("button", { type: "button", class: "agentnb-key", text: name, click: () => choose(id) });
          return make("tr", {}, make("th", { scope: "row" }, press), make("td", { text: kind }), state, make("td", { text: edges.join(", ") || "–" }));
        }));
      },
      /** The status of the nodes, by id; rendered only while visible. */
      show(nodes) {
        if (element.hidden) return;
        for (const [id, cell] of cells) {
          const { classes = [], count = "" } = nodes[id] || {};
          const words = Object.entries(NODE_STATES).filter(([mark]) => classes.includes(mark)).map(([, text]) => text);
          if (count) words.push(`ran ${count}`);
          setText(cell, words.join(", ") || "not yet");
        }
      },
    };
  }

  // The current drawing; a step changes its classes and texts and nothing else.

  const NODE_MARKS = ["visited", "next", "waiting", "failed", "current", "breakpoint", "last"];
  const MANY_EDGES = 400;
  const EDGE_MARKS = ["taken", "last"];
  const GOING = ["running", "pausing"];

  function describeGraph(state, nodes) {
    const parts = [`Graph of ${state.name}`];
    const listMarked = (mark) => Object.keys(nodes).filter((id) => nodes[id].classes.includes(mark));
    if (state.current) parts.push(`current node ${state.current}`);
    for (const mark of ["failed", "waiting", "visited"]) {
      const ids = listMarked(mark);
      if (ids.length) parts.push(`${mark}: ${ids.slice(0, 20).join(", ")}`);
    }
    return parts.join("; ");
  }

  /** Give each thin line a wide invisible one on top, so that it is easy to point at; not if there are very many. */
  function widenEdges(edges) {
    if (edges.length > MANY_EDGES) return;
    for (const group of edges) {
      const line = group.querySelector("path")?.cloneNode();
      if (!line) continue;
      line.setAttribute("class", "agentnb-near");
      group.append(line);
    }
  }

  /** The current drawing: its groups by node, its edges, its board; `show` applies a state's marks. */
  function makeDrawing(result, folds, askLines) {
    const { svg, tips } = result;
    const groups = new Map(); // node -> the groups that represent it
    const currentMarks = new Map(); // a group, or its node -> its current marks, to skip unchanged ones
    for (const group of svg.querySelectorAll("g.node[data-node]")) {
      const id = group.dataset.node;
      groups.set(id, [...(groups.get(id) || []), group]);
    }
    const edges = [...svg.querySelectorAll("g.edge[data-edge]")];
    const board = readBoard(result, askLines);
    widenEdges(edges);
    addFoldButtons(svg);
    addNodeButtons(svg);
    function restyle(id, { classes = [], count = "" } = {}) {
      const key = `${classes.join(" ")} ${count}`;
      if (currentMarks.get(id) === key) return;
      currentMarks.set(id, key);
      for (const group of groups.get(id)) {
        for (const mark of NODE_MARKS) group.classList.toggle(mark, classes.includes(mark));
        const text = group.querySelector(".count");
        if (text) setText(text, count);
        group.setAttribute("aria-label", describeNode(id, classes, count));
      }
    }
    function setMarks(group, classes = []) {
      const key = classes.join(" ");
      if ((currentMarks.get(group) || "") === key) return;
      currentMarks.set(group, key);
      for (const mark of EDGE_MARKS) group.classList.toggle(mark, classes.includes(mark));
    }
    return {
      ...result, board, folds, groups, edges,
      /** The group of a node, and of a region: its box, or the button at its title. */
      of: (id) => groups.get(folds.nodes[id] ?? id)?.[0],
      ofRegion(region) {
        const box = Object.keys(folds.regions).find((id) => folds.regions[id] === region);
        return box === undefined ? svg.querySelector(`.agentnb-fold[data-scope="${CSS.escape(region)}"]`) : groups.get(box)?.[0];
      },
      show(state) {
        const nodes = sumMarks(state.picture.nodes || {}, folds);
        const drawnEdges = joinEdges(state.picture.edges || {}, folds);
        for (const id of groups.keys()) restyle(id, nodes[id]);
        for (const group of edges) setMarks(group, drawnEdges[group.dataset.edge]?.classes);
        board.show(state, state.current === null ? null : folds.nodes[state.current] ?? state.current, !GOING.includes(state.status));
        svg.setAttribute("aria-label", describeGraph(state, nodes));
        return nodes;
      },
    };
  }

  /** The rows of the table: each box of the drawing with its edges. */
  function listTableRows({ groups, edges }) {
    const edgesBySource = new Map();
    for (const group of edges) {
      if (group.getAttribute("display") === "none") continue; // a line that a run may still show
      const { source, target } = group.dataset;
      const label = group.querySelector("text")?.textContent;
      edgesBySource.set(source, [...(edgesBySource.get(source) || []), label ? `${target} (${label})` : target]);
    }
    return [...groups].map(([id, [group]]) => {
      const kind = group.querySelector(".kind")?.firstChild?.textContent || "event";
      return { id, name: id, kind, edges: [...new Set(edgesBySource.get(id) || [])] };
    });
  }

  return { makeZoomWindow, parseSheet, addNodeMenu, listenForPresses, NO_FOLDS, makeGraphTable, GOING, makeDrawing, listTableRows };
})();
