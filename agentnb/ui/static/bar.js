// The buttons, the slider and the speed.
const barPart = (() => {
  const { enable, make, say, sign } = domPart;
  const { rail } = timelinePart;

  // The number of steps per second of Run; stored by the kernel.

  const SPEEDS = [null, 10, 3, 1]; // steps per second; null: unlimited

  const named = (steps) => (steps === null ? "full speed" : `${steps} a second`);

  /** The next choice, faster or slower; unchanged at the end. */
  function faster(now, more) {
    const order = [...SPEEDS].reverse();
    const rank = (steps) => (steps === null ? Infinity : steps);
    if (more) return order.find((steps) => rank(steps) > rank(now)) ?? null;
    return SPEEDS.find((steps) => rank(steps) < rank(now)) ?? SPEEDS.at(-1);
  }

  /** A selection beside the buttons. */
  function speed(ask) {
    const choice = make("select", {
      class: "agentnb-speed", "aria-label": "speed of Run", title: "how many steps a second Run makes (+ and -)", "aria-keyshortcuts": "+ -",
      change: () => ask("speed", choice.value === "" ? null : Number(choice.value)),
    });
    let offered = "";
    return {
      element: choice,
      show({ speed: steps = null }) {
        const all = SPEEDS.includes(steps) ? SPEEDS : [...SPEEDS, steps]; // a cell may have set another one
        if (all.join() !== offered) {
          offered = all.join();
          choice.replaceChildren(...all.map((one) => make("option", { value: one === null ? "" : String(one), text: named(one) })));
        }
        const value = steps === null ? "" : String(steps);
        if (choice.value !== value) choice.value = value;
      },
    };
  }

  // The buttons and the slider.

  /** A key as a person reads it: ArrowRight is Right. */
  const keyName = (key) => key.replace("Arrow", "");

  function bar(ask, tape, commands) {
    const buttons = new Map(commands.filter(({ icon }) => icon).map(({ name, label, tip, icon, keys }) => [
      name,
      make("button", {
        type: "button", class: "agentnb-button", "data-do": name, title: `${label}: ${tip} (${keyName(keys[0])})`, "aria-keyshortcuts": keys.join(" "), click: () => ask(name),
      }, sign(icon), label),
    ]));
    buttons.get("step").classList.add("agentnb-main");
    const where = make("output", { class: "agentnb-where" });
    const slider = make("input", { type: "range", min: "0", max: "0", step: "1", value: "0", "aria-label": "step" });
    let dragging = false;
    slider.addEventListener("input", () => {
      dragging = true;
      say(where, `step ${slider.value} of ${slider.max}`);
      ask("goto", Number(slider.value));
    });
    for (const name of ["change", "pointerup", "blur"]) slider.addEventListener(name, () => { dragging = false; });

    const pace = speed(ask);
    const element = make("div", { class: "agentnb-bar" },
      make("div", { class: "agentnb-buttons", role: "toolbar", "aria-label": "steer the run" }, ...buttons.values(), pace.element),
      make("label", { class: "agentnb-slide" }, rail(slider, tape, ask), where));
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
        say(where, `step ${state.position} of ${state.length}`);
      },
    };
  }

  return { faster, bar, keyName };
})();
