// The buttons, the slider and the speed.
const barPart = (() => {
  const { enable, make, setText, makeIcon } = domPart;
  const { makeRail } = timelinePart;

  // The number of steps per second of Run; stored by the kernel.

  const SPEEDS = [null, 10, 3, 1]; // steps per second; null: unlimited

  const describeSpeed = (steps) => (steps === null ? "full speed" : `${steps} a second`);

  /** The next choice, faster or slower; unchanged at the end. */
  function findNextSpeed(now, more) {
    const order = [...SPEEDS].reverse();
    const getRank = (steps) => (steps === null ? Infinity : steps);
    if (more) return order.find((steps) => getRank(steps) > getRank(now)) ?? null;
    return SPEEDS.find((steps) => getRank(steps) < getRank(now)) ?? SPEEDS.at(-1);
  }

  /** A selection beside the buttons. */
  function makeSpeedMenu(ask) {
    const choice = make("select", {
      class: "agentnb-speed", "aria-label": "speed of Run", title: "how many steps a second Run makes (+ and -)", "aria-keyshortcuts": "+ -",
      change: () => ask("speed", choice.value === "" ? null : Number(choice.value)),
    });
    let listedSpeeds = "";
    return {
      element: choice,
      show({ speed: steps = null }) {
        const all = SPEEDS.includes(steps) ? SPEEDS : [...SPEEDS, steps]; // a cell may have set another one
        if (all.join() !== listedSpeeds) {
          listedSpeeds = all.join();
          choice.replaceChildren(...all.map((one) => make("option", { value: one === null ? "" : String(one), text: describeSpeed(one) })));
        }
        const value = steps === null ? "" : String(steps);
        if (choice.value !== value) choice.value = value;
      },
    };
  }

  // The buttons and the slider.

  /** A key as a person reads it: ArrowRight is Right. */
  const formatKey = (key) => key.replace("Arrow", "");

  function makeBar(ask, stepCache, commands) {
    const buttons = new Map(commands.filter(({ icon }) => icon).map(({ name, label, tip, icon, keys }) => [
      name,
      make("button", {
        type: "button", class: "agentnb-button", "data-do": name, title: `${label}: ${tip} (${formatKey(keys[0])})`, "aria-keyshortcuts": keys.join(" "), click: () => ask(name),
      }, makeIcon(icon), label),
    ]));
    buttons.get("step").classList.add("agentnb-main");
    const where = make("output", { class: "agentnb-where" });
    const slider = make("input", { type: "range", min: "0", max: "0", step: "1", value: "0", "aria-label": "step" });
    let dragging = false;
    slider.addEventListener("input", () => {
      dragging = true;
      setText(where, `step ${slider.value} of ${slider.max}`);
      ask("goto", Number(slider.value));
    });
    for (const name of ["change", "pointerup", "blur"]) slider.addEventListener(name, () => { dragging = false; });

    const pace = makeSpeedMenu(ask);
    const element = make("div", { class: "agentnb-bar" },
      make("div", { class: "agentnb-buttons", role: "toolbar", "aria-label": "steer the run" }, ...buttons.values(), pace.element),
      make("label", { class: "agentnb-slide" }, makeRail(slider, stepCache, ask), where));
    return {
      element,
      focus: () => buttons.get("step").focus({ preventScroll: true }),
      /** `travelling`: a requested step has not been reached yet, so the slider does not move from where it was dragged. */
      show(state, travelling) {
        for (const [verb, button] of buttons) enable(button, state.can.includes(verb));
        pace.show(state);
        slider.disabled = !state.can.includes("goto");
        slider.max = String(state.length);
        slider.setAttribute("aria-valuetext", `step ${state.position} of ${state.length}`);
        if (dragging || travelling) return;
        slider.value = String(state.position);
        setText(where, `step ${state.position} of ${state.length}`);
      },
    };
  }

  return { findNextSpeed, makeBar, formatKey };
})();
