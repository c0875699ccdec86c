// The blackboard: fields that show and edit values, rows that expand, the table of all keys.
const boardPart = (() => {
  const { enable, make, setText, addTooltips } = domPart;
  const { saveLayout, readLayout, makeSash } = panesPart;

  // Fields that show and edit values: a text, a number, true or false, null, or JSON.
  // Input is validated before it is sent, and validated again by the kernel.

  const KINDS = { text: "text", number: "number", flag: "true / false", none: "nothing", json: "JSON" };
  const NUMBER = /^\s*-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?\s*$/;
  const LINES = 12; // lines of a text visible at once
  const COLUMNS_WIDE = 60; // letters in a line, about

  function checkText(text, as) {
    if (as === "number" && !NUMBER.test(text)) return "This is not a number: write digits, such as 3 or -0.5.";
    if (as !== "json") return "";
    try {
      JSON.parse(text);
      return "";
    } catch (error) {
      return `This is not JSON: ${error.message}. Choose "text" to keep it as a text.`;
    }
  }

  /** The number of lines that a text area shows of a text. */
  function countLines(text) {
    const parts = text.split("\n", LINES);
    return Math.min(parts.reduce((lines, part) => lines + Math.max(1, Math.ceil(part.length / COLUMNS_WIDE)), 0), LINES);
  }

  /** The input element for one type of value. */
  function makeInput(as, text, label) {
    const attributes = { "aria-label": label };
    if (as === "fixed") return make("div", { class: "agentnb-fixed", text, tabindex: "0", role: "group", ...attributes });
    if (as === "none") return make("div", { class: "agentnb-fixed agentnb-absent", text: "nothing (None)", tabindex: "0", role: "group", ...attributes });
    let box;
    if (as === "flag") {
      box = make("select", { class: "agentnb-input", ...attributes }, make("option", { value: "true", text: "true" }), make("option", { value: "false", text: "false" }));
      box.value = text === "false" ? "false" : "true";
    } else if (as === "number") box = make("input", { type: "text", inputmode: "decimal", class: "agentnb-input agentnb-code", autocomplete: "off", ...attributes });
    else if (as === "secret") box = make("input", { type: "password", class: "agentnb-input", autocomplete: "new-password", placeholder: "type a new value", ...attributes });
    else box = make("textarea", { class: `agentnb-input${as === "json" ? " agentnb-code" : ""}`, rows: String(countLines(text)), spellcheck: "false", ...attributes });
    if (as !== "flag") box.value = text;
    return box;
  }

  /** Convert a field's content to another type: the same value if possible, otherwise a likely one. */
  function convertText(text, from, to) {
    if (to === "flag") return /^\s*(false|no|0|)\s*$/i.test(text) ? "false" : "true";
    if (to === "number") return NUMBER.test(text) ? text.trim() : "0";
    if (to === "json" && from === "text") return JSON.stringify(text);
    if (to === "text" && from === "json") {
      try {
        const value = JSON.parse(text);
        if (typeof value === "string") return value;
      } catch { /* not convertible: unchanged */ }
    }
    return to === "none" ? "null" : text;
  }

  /** One field. `readChange()` returns what is sent if it was changed, {text, as}, otherwise null; `check()` shows and returns what is wrong. */
  function makeField(field, { changeable = true, named = true, kinds = false, onInput = () => {} } = {}) {
    const { label, text, note = "" } = field;
    const first = changeable ? field.as : "fixed";
    const name = label || "value";
    const faultLabel = make("p", { class: "agentnb-wrong", role: "alert" });
    const space = make("div", { class: "agentnb-line agentnb-space" });
    const element = make("div", { class: "agentnb-field", "data-role": field.role || null, "data-fixed": first === "fixed" },
      ...(named && label ? [make("span", { class: "agentnb-label", text: label, "aria-hidden": "true" })] : []), space, faultLabel);
    if (note) element.append(make("small", { class: "agentnb-note", text: note }));
    const pick = kinds && first in KINDS
      ? make("select", { class: "agentnb-input agentnb-kind", "aria-label": "kind", title: `type of ${name}` }, ...Object.entries(KINDS).map(([value, words]) => make("option", { value, text: words })))
      : null;
    let as;
    let before = "";
    function setKind(kind, content) {
      as = kind;
      const box = makeInput(kind, content, name);
      if (control.box) control.box.replaceWith(box);
      else space.append(box);
      control.box = box;
      if (pick) pick.value = kind;
      for (const event of ["input", "change"]) box.addEventListener(event, () => { control.check(); onInput(); });
      return box.value ?? "";
    }
    const control = {
      element,
      box: null,
      readChange: () => (as === "fixed" || (as === first && (control.box.value ?? "") === before) ? null : { text: control.box.value ?? "null", as }),
      /** The current content, changed or not. */
      readContent: () => ({ text: control.box.value ?? "null", as }),
      check(message = control.readChange() === null ? "" : checkText(control.box.value ?? "", as)) {
        setText(faultLabel, message);
        if (message) control.box.setAttribute("aria-invalid", "true");
        else control.box.removeAttribute("aria-invalid");
        return message;
      },
      reset() {
        before = setKind(first, text);
        control.check();
      },
    };
    if (pick) {
      space.append(pick);
      pick.addEventListener("change", () => { setKind(pick.value, convertText(control.box.value ?? "", as, pick.value)); control.check(); onInput(); });
    }
    before = setKind(first, text); // a text area may normalize line ends
    return control;
  }

  /** Several fields, one below the other; `changes()` are pairs of a path and the typed input. */
  function makeFields(rows, options = {}) {
    const all = rows.map((row) => [row.path, makeField(row, { kinds: row.as !== "text", ...options })]);
    return {
      element: make("div", { class: `agentnb-fields${options.changeable === false ? " agentnb-told" : ""}` }, ...all.map(([, field]) => field.element)),
      changes: () => all.map(([path, field]) => [path, field.readChange()]).filter(([, typed]) => typed !== null),
      /** Show what is invalid, and focus the first invalid field. */
      validate() {
        const bad = all.map(([, field]) => field).filter((field) => field.check());
        const folded = bad[0]?.box.closest("details");
        if (folded) folded.open = true;
        if (bad.length) bad[0].box.focus();
        return bad.length === 0;
      },
      reset: () => all.forEach(([, field]) => field.reset()),
    };
  }

  // The editor of one value of the board: the full value, who wrote it, and commands to change, copy or delete it.

  const COPIED = 1500; // milliseconds for which a button confirms the copy

  const makeButton = (text, more = {}) => make("button", { type: "button", class: "agentnb-button", text, ...more });

  function copyByHand(text) {
    const focused = document.activeElement;
    const box = make("textarea", { "aria-hidden": "true", style: "position: fixed; opacity: 0;" });
    box.value = text;
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    focused?.focus?.({ preventScroll: true });
    return done;
  }

  /** Copy a text, also on pages that may not use the clipboard API; return whether it succeeded. */
  function copyText(text) {
    const writing = navigator.clipboard ? navigator.clipboard.writeText(text) : Promise.reject();
    return writing.then(() => true, () => copyByHand(text));
  }

  function makeCopyButton(textOf) {
    const button = makeButton("Copy", { title: "copy the value as text" });
    button.addEventListener("click", async () => {
      setText(button, (await copyText(textOf())) ? "Copied" : "The page may not copy");
      setTimeout(() => setText(button, "Copy"), COPIED);
    });
    return button;
  }

  /** Who wrote a value, as text and, for a step, a link to it: `go(step)`. */
  function renderWriter(by, go, { brief = false } = {}) {
    if (!by) return make("span", { class: "agentnb-faint", text: brief ? "" : "not yet on the board; Save adds it" });
    const [step, node] = by;
    if (!step) return make("span", { class: "agentnb-faint", text: brief ? (node === null ? "manually" : "input") : "from the inputs, or written manually at the start" });
    const author = node === null ? "manually" : node;
    const link = make("button", { type: "button", class: "agentnb-link", title: `go to step ${step}${node === null ? ", after which it was written manually" : ""}`,
      text: brief ? `${step} ${author}` : node === null ? `step ${step}` : `step ${step}, ${author}`, click: () => go(step) });
    return brief ? link : make("span", {}, node === null ? "written manually after " : "written by ", link);
  }

  /**
   * The editor of the value at a path. `tools` has ask, go(step), can(verb); `look()` requests the value again.
   * Unsaved input is preserved whatever the run does meanwhile.
   */
  function makeEditor(path, label, tools, { look, close, takesFocus }) {
    const summary = make("p", { class: "agentnb-faint" });
    const space = make("div", {}, make("p", { class: "agentnb-faint", text: "…" }));
    const save = make("button", { type: "submit", class: "agentnb-button agentnb-main", text: "Save", title: "replace the value on the board", "aria-disabled": "true" });
    const undo = makeButton("Undo changes", { hidden: true });
    const drop = makeButton("Delete", { title: "delete it from the board; going back restores it" });
    const form = make("form", { class: "agentnb-detail" }, summary, space,
      make("div", { class: "agentnb-line" }, save, undo, makeCopyButton(() => (onlyField ? onlyField.readContent().text : "")), drop));
    let [lastValue, onlyField] = ["", null];
    let changeable = true;
    function updateButtons() {
      const typed = Boolean(onlyField) && onlyField.readChange() !== null;
      undo.hidden = !typed;
      save.hidden = Boolean(onlyField) && onlyField.readContent().as === "fixed";
      enable(save, typed && changeable);
    }
    form.addEventListener("keydown", (event) => { // what was typed goes first, then the editor
      if (event.key !== "Escape" || event.defaultPrevented) return;
      event.preventDefault();
      event.stopPropagation();
      if (onlyField && onlyField.readChange() !== null) undo.click();
      else close();
    });
    undo.addEventListener("click", () => { onlyField.reset(); updateButtons(); onlyField.box.focus(); });
    drop.addEventListener("click", () => tools.ask("delete", null, path, look));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const typed = onlyField && onlyField.readChange();
      if (!typed || onlyField.check()) return;
      tools.ask("query", "typed", { path, typed }, (message) => {
        if (onlyField && onlyField.check(message || "")) onlyField.box.focus();
        if (message || !tools.can("edit")) return;
        [lastValue, onlyField] = ["", null];
        tools.ask("edit", typed, path, look);
      });
    });
    return {
      form,
      able(can) {
        changeable = can;
        enable(drop, can);
        updateButtons();
      },
      show(result) {
        const value = JSON.stringify(result);
        if (value === lastValue || (onlyField && onlyField.readChange() !== null)) return;
        lastValue = value;
        const hasFocus = onlyField ? onlyField.element.contains(document.activeElement) : takesFocus;
        onlyField = makeField({ ...result.field, label: `value of ${label}` }, { named: false, kinds: true, onInput: updateButtons });
        summary.replaceChildren(...(result.type ? [`${result.type}, `] : []), renderWriter(result.by, tools.go));
        drop.hidden = !result.type;
        space.replaceChildren(onlyField.element);
        if (hasFocus) onlyField.box.focus({ preventScroll: true });
        updateButtons();
      },
    };
  }

  // One row of the board's table, a key or a part of its value, and its content below: its parts and its editor.

  const MARKS = { written: ["●", "written by the last step"], read: ["○", "read by the last step"] };
  const OPENS = /\[\d+\]$/; // a type with a number of parts can be expanded

  const makeCell = (name, role, ...children) => make(role === "rowheader" ? "th" : "td", { class: `agentnb-${name}`, role, ...(role === "rowheader" ? { scope: "row" } : {}) }, ...children);

  /** A name that may break after its dots and underscores, before it breaks anywhere else. */
  const addBreaks = (text) => make("span", {}, ...text.split(/(?<=[_.])/).flatMap((part, index) => (index ? [make("wbr"), part] : [part])));

  /** The cells of a row; `set(text, marks, type, by)` fills them, and touches only what differs. */
  function makeCells({ path, label, level }, tools, { open, edit }) {
    const toggleButton = make("span", { class: "agentnb-twist", "aria-hidden": "true" });
    const name = make("button", { type: "button", class: "agentnb-key", tabindex: "-1", click: open }, toggleButton, addBreaks(label));
    const editButton = make("button", { type: "button", class: "agentnb-small agentnb-pen", tabindex: "-1", text: "✎", click: edit });
    const [mark, type, value, by] = [makeCell("mark", "gridcell"), makeCell("type", "gridcell"), makeCell("value", "gridcell"), makeCell("by", "gridcell")];
    const row = make("tr", { role: "row", tabindex: "-1", "aria-level": String(level), style: `--a-level: ${level - 1}`, "data-path": JSON.stringify(path), ...(level === 1 ? { "data-row": label } : {}) },
      mark, makeCell("heading", "rowheader", name), type, value, by, makeCell("acts", "gridcell", editButton));
    let before = "";
    value.addEventListener("click", () => { if (!String(getSelection())) open(); });
    function setMark(marks) {
      const word = marks.includes("written") ? "written" : marks.includes("read") ? "read" : "";
      if ((row.dataset.mark || "") === word) return word;
      row.dataset.mark = word;
      const [glyph, words] = MARKS[word] || ["", ""];
      mark.replaceChildren(make("span", { "aria-hidden": "true", title: words, text: glyph }), make("span", { class: "agentnb-hidden", text: words }));
      return word;
    }
    /** The button says what it does: in a cockpit that cannot be edited it only shows the value. */
    function setReadOnly(readOnly) {
      if (editButton.dataset.readOnly === String(readOnly)) return;
      editButton.dataset.readOnly = String(readOnly);
      editButton.textContent = readOnly ? "⋯" : "✎";
      editButton.setAttribute("aria-label", `${readOnly ? "show" : "edit"} ${label}`);
      editButton.title = readOnly ? "Show or copy the whole value" : "Show, edit, copy or delete the whole value";
    }
    setReadOnly(tools.isReadOnly());
    return {
      row, name, pen: editButton, setReadOnly,
      /** `added` are items that the last step appended. `other` is the value in a second run: undefined if it is the same, null if there is none. */
      set(text, marks, kind, author, old = null, added = null, other = undefined) {
        const word = setMark(marks);
        const now = text === null ? (word === "written" ? "deleted" : "not yet") : text;
        const changed = word === "written" && old !== null && old !== text;
        if (word === "written" && added !== null) value.replaceChildren(make("span", { class: "agentnb-faint", title: "the last step appended", text: "… + " }), added);
        else if (changed) value.replaceChildren(make("s", { class: "agentnb-old", title: "before the last step", text: old }), make("span", { class: "agentnb-faint", text: " → " }), now);
        else if (value.childElementCount) value.replaceChildren(now);
        else setText(value, now);
        row.toggleAttribute("data-differs", other !== undefined);
        if (other !== undefined) value.append(make("span", { class: "agentnb-other", title: "in the second run", text: other === null ? "not there" : other }));
        value.classList.toggle("agentnb-absent", text === null);
        setText(type, kind);
        row.classList.toggle("agentnb-opens", OPENS.test(kind));
        const writer = JSON.stringify(author ?? null);
        if (writer === before) return;
        before = writer;
        by.replaceChildren(...(author ? [renderWriter(author, tools.go, { brief: true })] : []));
        for (const link of by.querySelectorAll("button")) link.tabIndex = -1;
      },
    };
  }

  /**
   * A row with its expandable content. `tools` has ask, go(step), can(verb), isReadOnly(), and `known`: row -> line.
   * `follow()` requests all expanded content again; `lines()` are the visible rows, from the top.
   */
  function makeLine(row, tools) {
    const { path, label, level } = row;
    const cells = makeCells(row, tools, { open: () => line.toggle(), edit: () => line.edit(true) });
    const kids = new Map(); // name -> line
    let [below, kind, spread, count, more] = [null, "", false, 0, null];
    const requestValue = () => tools.ask("query", "key", path, (result) => { if (result && below) below.show(result); });

    function placeParts(result, start) {
      const rows = result?.rows || [];
      let after = start ? [...kids.values()].at(-1)?.lines().at(-1) || cells.row : below?.row || cells.row;
      const names = new Set(rows.map(([, , , label]) => label));
      if (!start) for (const [label, kid] of kids) if (!names.has(label)) { kid.remove(); kids.delete(label); }
      rows.forEach(([name, text, type, label]) => {
        const earlier = kids.get(label);
        const kid = earlier || makeLine({ path: name === null ? null : [...path, name], label: label, level: level + 1 }, tools);
        kids.set(label, kid);
        kid.set(text, earlier && earlier.text !== text ? ["written"] : [], type, null);
        if (after.nextSibling !== kid.row) after.after(...kid.lines());
        after = kid.lines().at(-1);
        kid.follow();
      });
      count = result?.total || 0;
      offerRest(after);
    }
    function offerRest(after) {
      more?.remove();
      more = null;
      if (kids.size >= count) return;
      more = make("tr", { class: "agentnb-all", role: "row" }, make("td", { role: "gridcell" },
        make("button", { type: "button", class: "agentnb-link", text: `show more of ${count - kids.size} further parts of ${label}`, click: () => requestParts(kids.size) })));
      after.after(more);
    }
    const requestParts = (start = 0) => tools.ask("query", "branch", { path, start }, (result) => { if (spread && result) placeParts(result, start); });
    function removeParts() {
      for (const kid of kids.values()) kid.remove();
      kids.clear();
      more?.remove();
      more = null;
    }
    function setSpread(open) {
      spread = open;
      cells.row.classList.toggle("agentnb-open", open);
      if (open) requestParts();
      else removeParts();
      updateExpanded();
    }
    function updateExpanded() {
      if (OPENS.test(kind)) cells.row.setAttribute("aria-expanded", String(spread));
      else if (below) cells.row.setAttribute("aria-expanded", "true");
      else cells.row.removeAttribute("aria-expanded");
    }
    const line = {
      row: cells.row, path, level, text: null, kids,
      set(text, marks, type, by, old, added, other) {
        line.text = text;
        kind = path === null ? "" : type;
        cells.set(text, marks, type, by, old, added, other);
        cells.pen.hidden = path === null;
        if (spread && !OPENS.test(kind)) setSpread(false);
        updateExpanded();
      },
      opens: () => OPENS.test(kind),
      spread: () => spread,
      toggle(open = !spread) {
        if (path === null) return;
        if (OPENS.test(kind)) setSpread(open);
        else line.edit();
      },
      /** Open the editor of the value, or close it; an opened one gets the focus with `takesFocus`. */
      edit(takesFocus = false) {
        if (path === null) return;
        if (below) {
          const hasFocus = below.row.contains(document.activeElement);
          below.row.remove();
          below = null;
          if (hasFocus) cells.row.focus({ preventScroll: true });
        } else {
          const editor = makeEditor(path, label, tools, { look: requestValue, close: () => line.edit(), takesFocus });
          below = { ...editor, row: make("tr", { class: "agentnb-all", role: "row" }, make("td", { role: "gridcell" }, editor.form)) };
          cells.row.after(below.row);
          below.able(tools.can("edit"));
          requestValue();
        }
        updateExpanded();
      },
      able(can) {
        cells.setReadOnly(tools.isReadOnly());
        below?.able(can);
        for (const kid of kids.values()) kid.able(can);
      },
      follow() {
        if (below) requestValue();
        if (spread) requestParts();
      },
      isOpen: () => Boolean(below) || spread,
      lines: () => [cells.row, ...(below ? [below.row] : []), ...[...kids.values()].flatMap((kid) => kid.lines()), ...(more ? [more] : [])],
      remove() { for (const row of line.lines()) row.remove(); },
    };
    tools.known.set(cells.row, line);
    return line;
  }

  // The blackboard as a table of expandable rows; it renders as many as requested, and searches all of them.

  const SOME = 200; // rows rendered until more are requested
  const COLUMNS = [["mark", "Change"], ["heading", "Key"], ["type", "Type"], ["value", "Value"], ["by", "Step"], ["acts", "Whole value"]];
  const TYPED = 250; // milliseconds after the last key until the kernel is asked to search

  /** Written keys first: what just changed is in view. */
  const sortRows = (rows) => [...rows.filter(([, , marks]) => marks.includes("written")), ...rows.filter(([, , marks]) => !marks.includes("written"))];

  /** The visible part of all rows: those that match the search, up to a limit; missing ones are requested. */
  function makeRowFilter(ask, changed) {
    let [word, limit, beyond, total, lastRequest, timer] = ["", SOME, [], 0, "", 0];
    const matchesWord = ([key, text]) => key.toLowerCase().includes(word) || (text || "").toLowerCase().includes(word);
    function requestRows(state, start) {
      const name = JSON.stringify([word, start, state.position, state.length]);
      if (lastRequest === name) return;
      lastRequest = name;
      ask("query", "rows", { word, start }, (result) => {
        if (!result || lastRequest !== name) return;
        beyond = start ? [...beyond, ...result.rows] : result.rows;
        total = result.total;
        changed();
      });
    }
    return {
      /** The rows to render, and the number of further ones. */
      rows(state) {
        const own = word ? state.board.filter(matchesWord) : state.board;
        const ownKeys = new Set(own.map(([key]) => key));
        const all = sortRows(state.more ? [...own, ...beyond.filter(([key]) => !ownKeys.has(key))] : own);
        const every = !state.more ? all.length : word ? Math.max(total, all.length) : state.board.length + state.more;
        return { rows: all.slice(0, limit), left: every - Math.min(limit, all.length), hidden: all.slice(limit) };
      },
      find(state, text) {
        [word, limit, beyond, total] = [text.trim().toLowerCase(), SOME, [], 0];
        clearTimeout(timer);
        if (state.more && word) timer = setTimeout(() => requestRows(state, 0), TYPED);
        changed();
      },
      further(state) {
        limit += SOME;
        if (state.more && limit > state.board.length) requestRows(state, word ? beyond.length : state.board.length + beyond.length);
        changed();
      },
      word: () => word,
    };
  }

  /** A form that adds a key, or a part of one, to the board. */
  function makeKeyForm(ask, can) {
    const name = make("input", { type: "text", class: "agentnb-input agentnb-code", required: true, placeholder: "key, or a path: order.lines.0", "aria-label": "new key" });
    const value = makeField({ label: "value of the new key", text: "", as: "text" }, { named: false, kinds: true });
    const form = make("form", { class: "agentnb-add", hidden: true }, make("div", { class: "agentnb-line" }, name), value.element,
      make("div", { class: "agentnb-line" }, make("button", { type: "submit", class: "agentnb-button agentnb-main", text: "Add" }),
        make("button", { type: "button", class: "agentnb-button", text: "Cancel", click: () => toggle(false) })));
    const button = make("button", { type: "button", class: "agentnb-small", text: "+", "aria-label": "add a key", title: "add a key to the blackboard", "aria-expanded": "false", click: () => toggle(form.hidden) });
    function toggle(open) {
      form.hidden = !open;
      button.setAttribute("aria-expanded", String(open));
      (open ? name : button).focus({ preventScroll: true });
    }
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const [key, typed] = [name.value.trim(), value.readContent()];
      if (!key || value.check(value.check())) return;
      ask("query", "typed", { path: key, typed }, (message) => {
        if (message) value.check(message);
        if (message || !can("edit")) return;
        ask("edit", typed, key);
        name.value = "";
        value.reset();
        toggle(false);
      });
    });
    return { form, button };
  }

  /** Arrow keys: up and down through the rows, right to expand, left to collapse. */
  function addArrowKeys(table, linesByRow) {
    const listRows = () => [...table.querySelectorAll("tbody:not([hidden]) > tr[data-path]")];
    let currentRow = null;
    function setCurrentRow(row) {
      for (const [each, index] of [[currentRow, "-1"], [row, "0"]]) {
        for (const part of each ? [each, ...each.querySelectorAll("button")] : []) part.setAttribute("tabindex", index);
      }
      currentRow = row;
    }
    function findParent(row) {
      const level = Number(row.getAttribute("aria-level"));
      return listRows().slice(0, listRows().indexOf(row)).findLast((each) => Number(each.getAttribute("aria-level")) < level);
    }
    table.addEventListener("focusin", ({ target }) => {
      const row = target.closest("tr[data-path]");
      if (row && row !== currentRow) setCurrentRow(row);
    });
    table.addEventListener("keydown", (event) => {
      const { key, target } = event;
      const row = target.closest("tr[data-path]");
      if (!row || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
      const [all, line] = [listRows(), linesByRow.get(row)];
      const at = all.indexOf(row);
      const action = {
        ArrowDown: () => all[at + 1]?.focus(),
        ArrowUp: () => all[at - 1]?.focus(),
        Home: () => all[0].focus(),
        End: () => all.at(-1).focus(),
        ArrowRight: () => (line.opens() && !line.spread() ? line.toggle(true) : row.querySelector("button").focus()),
        ArrowLeft: () => (target !== row ? row : line.spread() ? void line.toggle(false) : findParent(row))?.focus(),
        ...(target === row ? { Enter: () => line.toggle(), F2: () => line.edit(true) } : {}),
      }[key];
      if (!action) return;
      action();
      event.preventDefault();
      event.stopPropagation();
    });
    return () => { if (!currentRow?.isConnected || currentRow.closest("[hidden]")) setCurrentRow(listRows()[0] || null); };
  }

  /** Render rows in order, each in its own part of the table; an expanded row is hidden, never removed. */
  function makePainter(table, tools) {
    const lines = new Map(); // key -> {line, body, seen}
    return {
      lines,
      paint(rows, others = {}) {
        const keys = new Set(rows.map(([key]) => key));
        for (const [key, { line, body }] of lines) {
          body.hidden = !keys.has(key);
          if (body.hidden && !line.isOpen()) {
            body.remove();
            lines.delete(key);
          }
        }
        let next = table.tBodies[0] || null;
        for (const row of rows) {
          const [key, text, marks, type, by, old, added] = row;
          if (!lines.has(key)) {
            const line = makeLine({ path: [key], label: key, level: 1 }, tools);
            lines.set(key, { line, body: make("tbody", { role: "rowgroup" }, line.row), seen: null });
          }
          const entry = lines.get(key);
          if (entry.seen !== row || entry.other !== others[key]) entry.line.set(text, marks, type, by, old, added, others[key]);
          Object.assign(entry, { seen: row, other: others[key] });
          while (next?.hidden) next = next.nextElementSibling;
          if (next === entry.body) next = next.nextElementSibling;
          else table.insertBefore(entry.body, next);
        }
      },
    };
  }

  // Columns that a person resizes: name -> pixels that it may have, and whether it grows to the left.
  const RESIZED = { heading: [60, 400, 1], by: [40, 300, -1] };

  /** A divider at a column's edge; a double click restores its width, and the browser remembers it. */
  function makeColumnGrip(name, label, table) {
    const [least, most, direction] = RESIZED[name];
    const findCell = () => table.querySelector(`th.agentnb-${name}`);
    const { bar, put } = makeSash(
      { class: "agentnb-grip", "aria-orientation": "vertical", "aria-label": `width of the column ${label}`, "aria-valuemin": String(least), "aria-valuemax": String(most), title: "drag to resize; double-click to reset" },
      {
        arrows: direction > 0 ? ["ArrowLeft", "ArrowRight"] : ["ArrowRight", "ArrowLeft"],
        by: 8,
        size: () => findCell().offsetWidth,
        begin: (event) => findCell().offsetWidth - direction * event.clientX,
        at: (event, grip) => grip + direction * event.clientX,
        done: (value) => saveLayout("columns", value, name),
        set(value) {
          if (!value) table.style.removeProperty(`--a-wide-${name}`);
          const width = value ? Math.min(most, Math.max(least, value)) : 0;
          if (width) table.style.setProperty(`--a-wide-${name}`, `${width}px`);
          return width || findCell().offsetWidth || least;
        },
      },
    );
    bar.addEventListener("dblclick", () => {
      put(0);
      saveLayout("columns", 0, name);
    });
    bar.addEventListener("focus", () => { if (!Number(readLayout().columns?.[name])) bar.setAttribute("aria-valuenow", String(findCell().offsetWidth)); });
    return { bar, restore: () => put(Number(readLayout().columns?.[name]) || 0) };
  }

  const LINE_SIZE = [150, 28]; // pixels of the small line of a key's numbers

  /** The numbers of a key as a small line, oldest first. */
  function drawSparkline(numbers) {
    const space = "http://www.w3.org/2000/svg";
    const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
    const toPoint = (number, index) => `${(2 + (index / (numbers.length - 1)) * (LINE_SIZE[0] - 4)).toFixed(1)},${(LINE_SIZE[1] - 3 - ((number - least) / (most - least || 1)) * (LINE_SIZE[1] - 6)).toFixed(1)}`;
    const svg = document.createElementNS(space, "svg");
    const path = document.createElementNS(space, "polyline");
    for (const [name, value] of Object.entries({ viewBox: `0 0 ${LINE_SIZE.join(" ")}`, width: LINE_SIZE[0], height: LINE_SIZE[1], class: "agentnb-small-line", "aria-hidden": "true" })) svg.setAttribute(name, String(value));
    path.setAttribute("points", numbers.map(toPoint).join(" "));
    svg.append(path);
    return svg;
  }

  /** The card of a key under the pointer: its latest values, and in the graph who reads and writes it. */
  function addKeyTips(element, ask, choice) {
    let hoveredKey = null;
    function requestTip(key, arrived) {
      ask("query", "history", key, (result) => {
        if (!result || hoveredKey !== key) return;
        choice?.light({ reads: result.readers, writes: result.writers });
        const numbers = result.rows.map((row) => row[3]).filter((number) => number !== null).reverse();
        const rows = result.rows.map(([step, node, text]) => `${step ? `step ${step}, ${node ?? "manually"}` : "input"}: ${text}`);
        const accesses = [["written by", result.writers], ["read by", result.readers]].filter(([, nodes]) => nodes.length).map(([word, nodes]) => `${word} ${nodes.slice(0, 8).join(", ")}`);
        arrived([key, ...(numbers.length > 1 ? [drawSparkline(numbers)] : []), ...rows, ...accesses]);
      });
    }
    addTooltips(element, (target) => {
      const heading = target.closest?.("tr[data-row] .agentnb-heading");
      const key = heading?.closest("tr").dataset.row ?? null;
      if (key !== hoveredKey) choice?.light({ reads: [], writes: [] });
      hoveredKey = key;
      return key === null ? null : [heading, (arrived) => requestTip(key, arrived)];
    });
    element.addEventListener("pointerleave", () => { hoveredKey = null; choice?.light({ reads: [], writes: [] }); });
  }

  function makeBoard(ask, choice) {
    const head = make("tr", { role: "row" }, ...COLUMNS.map(([name, text]) => make("th", { role: "columnheader", scope: "col", class: `agentnb-${name}`, "aria-label": text }, make("span", { text }))));
    const table = make("table", { role: "treegrid", "aria-label": "Blackboard" }, make("thead", { role: "rowgroup" }, head));
    for (const [name, text] of COLUMNS.filter(([each]) => each in RESIZED)) {
      const grip = makeColumnGrip(name, text, table);
      head.querySelector(`.agentnb-${name}`).append(grip.bar);
      grip.restore();
    }
    const summary = make("span", {});
    const further = make("button", { type: "button", class: "agentnb-link", text: "show more", click: () => rowFilter.further(last) });
    const more = make("p", { class: "agentnb-more" }, summary, " ", further);
    let last = { board: [], more: 0, can: [] };
    let lastState = "";
    let writtenKeys = ""; // the keys that were written when the table was last scrolled to them
    const can = (verb) => last.can.includes(verb);
    const isReadOnly = () => !can("edit") && !["running", "pausing"].includes(last.status);
    const linesByRow = new WeakMap();
    const go = (step) => { choice?.set("step", step); ask("goto", step); };
    const { paint, lines } = makePainter(table, { ask, go, can, isReadOnly, known: linesByRow });
    const reach = addArrowKeys(table, linesByRow);
    const add = makeKeyForm(ask, can);
    const element = make("div", { class: "agentnb-board", tabindex: "0", role: "group", "aria-label": "Blackboard, scrolls" }, add.form, table, more);
    const filter = make("input", { type: "search", class: "agentnb-input agentnb-filter", placeholder: "filter", "aria-label": "filter the blackboard", input: () => rowFilter.find(last, filter.value) });

    function repaint() {
      const { rows, left, hidden } = rowFilter.rows(last);
      paint(rows, last.beside?.board);
      const writes = JSON.stringify([last.position, rows.filter(([, , marks]) => marks.includes("written")).map(([key]) => key)]);
      if (writes !== writtenKeys && !element.contains(document.activeElement)) element.scrollTop = 0;
      writtenKeys = writes;
      reach();
      const fresh = hidden.filter(([, , marks]) => marks.includes("written")).length;
      more.hidden = !left && rows.length > 0;
      further.hidden = !left;
      if (rows.length) setText(summary, `and ${left} more keys${fresh ? `, ${fresh} of them written by the last step` : ""}`);
      else setText(summary, rowFilter.word() ? "No key or value contains this text." : "Nothing on it yet.");
    }
    const rowFilter = makeRowFilter(ask, repaint);
    addKeyTips(element, ask, choice);
    element.addEventListener("click", ({ target }) => {
      const row = target.closest?.(".agentnb-key")?.closest("tr[data-row]");
      if (row) choice?.set("key", row.dataset.row);
    });
    return {
      name: "board",
      title: "Blackboard",
      tools: [make("small", { text: "● written  ○ read" }), filter, add.button],
      body: element,
      show(state) {
        last = state;
        repaint();
        enable(add.button, can("edit"));
        for (const { line } of lines.values()) line.able(can("edit"));
        // Expanded rows request their values again when the run has moved; not while it runs.
        const where = JSON.stringify([state.position, state.length, state.sentence, state.run]);
        if (where === lastState || ["running", "pausing"].includes(state.status)) return;
        lastState = where;
        for (const { line } of lines.values()) line.follow();
      },
    };
  }

  return { makeField, makeFields, makeBoard };
})();
