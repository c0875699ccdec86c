// A second run beside the shown one: its steps, where it stands, and what differs. One slider moves both.
const secondPart = (() => {
  const { make, setText } = domPart;

  const CHANGES = { differs: "differ", only_a: "only in this run", only_b: "only in the second" };
  const CHANGE_TITLES = { same: "as in the shown run", differs: "differs from the shown run", only_b: "not in the shown run" };
  const FAR = 150; // steps from the middle of what was requested until a new window is requested

  function makeCell([node, status, change, ownStep], number, currentStep, go) {
    const words = `step ${number}: ${node}, ${status}, ${CHANGE_TITLES[change]}${ownStep ? `, step ${ownStep} there` : ""}`;
    return make("button", { type: "button", class: "agentnb-step agentnb-second-step", "data-change": change === "same" ? null : change, "data-status": status === "error" ? "failed" : status,
      "aria-current": number === currentStep ? "step" : null, title: words, "aria-label": words, text: node, click: () => go(ownStep), tabindex: number === currentStep ? "0" : "-1" });
  }

  function makeSecond(ask, choice) {
    const divergence = make("p", {});
    const counts = make("p", { class: "agentnb-faint" });
    const sentence = make("p", {});
    const strip = make("div", { class: "agentnb-second-strip", role: "toolbar", "aria-label": "steps of the second run" });
    strip.addEventListener("keydown", (event) => {
      const by = { ArrowRight: "nextSibling", ArrowLeft: "previousSibling", Home: "firstChild", End: "lastChild" }[event.key];
      const next = by && (by.endsWith("Child") ? strip : document.activeElement)[by];
      if (!next || event.ctrlKey || event.metaKey || event.altKey) return;
      for (const each of strip.children) each.tabIndex = each === next ? 0 : -1;
      next.focus();
      event.preventDefault();
      event.stopPropagation();
    });
    const body = make("div", { class: "agentnb-second-run", tabindex: "-1" }, divergence, counts, strip, sentence);
    const makeTool = (text, title, click) => make("button", { type: "button", class: "agentnb-tool", text, title, "aria-label": title, click });
    const tools = [
      makeTool("First divergence", "go to the first divergence", () => { if (last?.beside?.parted) go(last.beside.parted.a ?? 0); }),
      makeTool("‹", "previous difference", () => jump(-1)), makeTool("›", "next difference", () => jump(1)),
      makeTool("×", "close the second run", () => ask("beside")),
    ];
    let [last, found, lastKey, waiting] = [null, null, "", false];
    const go = (step) => { if (step !== null) ask("goto", step); };

    /** Move to the nearest differing step of the shown run. */
    function jump(direction) {
      const steps = Object.keys(found?.steps || {}).map(Number).filter((step) => (step - last.position) * direction > 0);
      if (steps.length) go(direction > 0 ? Math.min(...steps) : Math.max(...steps));
    }
    function paint() {
      const { beside: now } = last;
      if (!now || !found) return;
      const hasFocus = strip.contains(document.activeElement);
      strip.replaceChildren(...found.rows.map((row, index) => makeCell(row, found.first + index, now.position, go)));
      const current = strip.querySelector("[aria-current]");
      if (!current && strip.firstChild) strip.firstChild.tabIndex = 0;
      if (current) {
        const [outer, inner] = [strip.getBoundingClientRect(), current.getBoundingClientRect()];
        if (inner.left < outer.left || inner.right > outer.right) strip.scrollLeft += inner.left - outer.left - outer.width / 2;
        if (hasFocus) current.focus({ preventScroll: true });
      }
      const summary = Object.entries(CHANGES).filter(([name]) => found.counts[name]).map(([name, words]) => `${found.counts[name]} ${words}`);
      setText(counts, [summary.length ? `Steps: ${summary.join(", ")}.` : "", ...found.verdict.map((text) => `${text}.`)].join(" "));
      choice.light({ second: { nodes: found.nodes, steps: found.steps, node: now.node } });
    }
    function update() {
      const { beside: now } = last;
      const middle = found ? found.first + found.rows.length / 2 : 0;
      const isNear = found && (Math.abs(now.position - middle) < FAR || found.rows.length < 2 * FAR);
      const key = JSON.stringify([now.revision, now.name, last.run?.id, isNear ? 0 : now.position]);
      if (key === lastKey || waiting) return paint();
      [lastKey, waiting] = [key, true];
      return ask("query", "second", { around: now.position }, (rows) => {
        waiting = false;
        if (!rows || !last.beside) return;
        found = rows;
        update();
      });
    }
    return {
      name: "second",
      title: "Second run",
      body,
      tools,
      getTitle: ({ beside: now }) => (now ? `Second run: ${now.name}` : "Second run"),
      isShown(state) {
        if (!state.beside && found) {
          [found, lastKey] = [null, ""];
          choice.light({ second: null });
        }
        return Boolean(state.beside);
      },
      show(state) {
        last = state;
        const { beside: now } = state;
        if (!now) return;
        setText(divergence, now.parted ? `First divergence: ${now.parted.text} (a is this run, b the second)` : "The runs do not differ.");
        tools[0].hidden = !now.parted;
        setText(sentence, `Step ${now.position} of ${now.length}. ${now.sentence.replace(/^Step \d+: /, "")}`);
        update();
      },
    };
  }

  return { makeSecond };
})();
