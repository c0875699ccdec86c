// Cards above the blackboard: problems, questions, approvals, calls, partial texts of models.
const cardsPart = (() => {
  const { enable, make, setText } = domPart;
  const { makeField, makeFields } = boardPart;
  const { renderArtifact, isRich } = artifactsPart;

  // Error cards.

  const ANSWERS = [["where", "where"], ["why", "why"], ["do", "do"]];

  /** Where the user's code raised: the place, which a click selects, the lines around it, and the traceback on demand. */
  function renderSource({ place, line, lines, traceback }) {
    return [
      make("p", {}, make("code", { class: "agentnb-place", title: "click to select", text: place })),
      make("pre", { class: "agentnb-source", tabindex: "0", "aria-label": `source around ${place}` }, ...lines.map(([number, text]) => (
        make("span", number === line ? { class: "agentnb-raised", "aria-current": "true" } : {}, make("i", { "aria-hidden": "true", text: String(number) }), text, "\n")))),
      make("details", { class: "agentnb-sent" }, make("summary", { text: "Full traceback" }), make("pre", { class: "agentnb-source", tabindex: "0", text: traceback })),
    ];
  }

  function renderProblem(problem) {
    const title = make("p", { class: "agentnb-what" }, ...(problem.code ? [make("code", { text: problem.code }), " "] : []), problem.what);
    const answers = make("dl", {}, ...ANSWERS.filter(([name]) => problem[name]).flatMap(([name, label]) => [make("dt", { text: label }), make("dd", { text: problem[name] })]));
    const kind = problem.severity === "warning" ? "warning" : "error";
    return make("div", { class: "agentnb-problem", "data-severity": kind, "data-code": problem.code }, title, ...(problem.source ? renderSource(problem.source) : []), answers);
  }

  /** `remedies` are the actions on the card of a failure, and a card of their own. */
  function makeProblems(remedies) {
    const element = make("div", { class: "agentnb-problems", role: "alert" });
    let lastProblems = "";
    return {
      element,
      show(state) {
        const problemsKey = JSON.stringify([state.problems, remedies.names(state)]);
        if (problemsKey !== lastProblems) {
          lastProblems = problemsKey;
          element.replaceChildren(...remedies.cards(state, state.problems.map(renderProblem)));
        }
        remedies.show(state);
      },
    };
  }

  // A question and its input: a text, a number, yes or no, one of several options, JSON.

  const FEW = 6; // up to this many options are buttons; more are a list

  /** " for role reviewer, 29 s left": counts down. */
  function renderTerms(pending) {
    const role = pending.role ? ` for role ${pending.role}` : "";
    const element = make("span", { class: "agentnb-terms", text: role });
    if (pending.seconds_left === null) return element;
    const end = Date.now() + pending.seconds_left * 1000;
    const updateTime = () => {
      const left = Math.max(0, Math.ceil((end - Date.now()) / 1000));
      setText(element, `${role}, ${left} s left`);
      if (left > 0 && (element.isConnected || !element.dataset.shown)) setTimeout(updateTime, 1000);
      element.dataset.shown = "yes";
    };
    updateTime();
    return element;
  }

  const makeButton = (text, click, main = false) =>
    make("button", { type: click ? "button" : "submit", class: `agentnb-button${main ? " agentnb-main" : ""}`, text, ...(click ? { click } : {}) });
  const makeLine = (...parts) => make("div", { class: "agentnb-line" }, ...parts);
  const renderStrong = (text) => make("strong", { text });

  function makeForm(pending, submit, ...children) {
    const form = make("form", { class: "agentnb-ask", "data-node": pending.node, "data-kind": pending.kind }, ...children);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      submit();
    });
    return form;
  }

  /** Enter sends, Shift+Enter begins a new line. */
  function sendOnEnter(input, send) {
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      send();
    });
  }

  /** A link and the content that it expands: `[link, content]`. */
  function makeFold(text, part, first) {
    const link = make("button", { type: "button", class: "agentnb-link", text, "aria-expanded": "false" });
    part.hidden = true;
    link.addEventListener("click", () => {
      part.hidden = !part.hidden;
      link.setAttribute("aria-expanded", String(!part.hidden));
      if (!part.hidden) first.focus();
    });
    return [link, part];
  }

  /** Few options are a row of buttons, many a list; a different answer can be typed if allowed. */
  function makeChoice(pending, sendAnswer) {
    const { options } = pending;
    const input = make("textarea", { class: "agentnb-input", rows: "1", "aria-label": `another answer for ${pending.node}` });
    const [link, other] = makeFold("Another answer", makeLine(input, makeButton("Answer", () => sendAnswer(input.value))), input);
    sendOnEnter(input, () => sendAnswer(input.value));
    if (options.length <= FEW) {
      const all = options.map((text, index) => makeButton(text, () => sendAnswer(text), index === 0 && pending.input === "confirm"));
      return { first: all[0], parts: [make("div", { class: "agentnb-line", role: "group", "aria-label": pending.prompt }, ...all, link), other] };
    }
    const list = make("select", { class: "agentnb-input", "aria-label": pending.prompt }, ...options.map((text) => make("option", { value: text, text })));
    return { first: list, send: () => sendAnswer(list.value), parts: [makeLine(list, makeButton("Answer", null, true), link), other] };
  }

  function makeYesNo(pending, sendAnswer) {
    const all = [makeButton("yes", () => sendAnswer("yes"), true), makeButton("no", () => sendAnswer("no"))];
    return { first: all[0], parts: [make("div", { class: "agentnb-line", role: "group", "aria-label": pending.prompt }, ...all)] };
  }

  function makeInput(pending, sendAnswer) {
    const one = makeField({ label: pending.prompt, text: "", as: pending.input }, { named: false });
    const input = one.box;
    input.placeholder = pending.input === "secret" ? "type the value" : `answer for ${pending.node}`;
    const send = () => { if (!one.check(pending.input === "text" || pending.input === "secret" ? "" : undefined)) sendAnswer(input.value); };
    if (pending.input !== "json") sendOnEnter(input, send);
    return { first: input, send, parts: [one.element, makeLine(makeButton("Answer", null, true))] };
  }

  function makeQuestion(pending, ask) {
    const sendAnswer = (value) => ask("answer", value, pending.node);
    const inputs = { choice: makeChoice, confirm: pending.options.length ? makeChoice : makeYesNo };
    const { first, parts, send = () => {} } = (inputs[pending.input] || makeInput)({ input: "text", ...pending }, sendAnswer);
    const values = (pending.about || []).map((value) => make("details", { class: "agentnb-artifact", open: true }, make("summary", { text: value.key }), renderArtifact(value, value.key)));
    const element = makeForm(pending, send,
      make("p", { class: "agentnb-prompt" }, renderStrong(pending.node), " asks", renderTerms(pending), ": ", make("span", { class: "agentnb-told-prompt", text: pending.prompt })), ...values, ...parts);
    return { element, first };
  }

  // Remedies for a run that cannot continue: retry or skip a failed node, raise a limit.

  const NOTHING = "{}"; // a node that wrote nothing

  /** Move the focus to the cockpit before its button is removed, so that keyboard shortcuts continue to work. */
  function keepFocus(element) {
    if (element.contains(document.activeElement)) element.closest(".agentnb-cockpit")?.focus({ preventScroll: true });
  }

  /** A failed node: retry it, or skip it with the values that it would have written. */
  function makeFailedPart(ask) {
    const again = makeButton("Try again", () => ask("retry"), true);
    again.title = "run the failed node again, as a new step";
    const skip = makeButton("Skip", () => ask("skip"));
    skip.title = "continue as if the failed node had written nothing";
    const writes = makeField({ label: "what it would have written, as JSON", text: NOTHING, as: "json" });
    const use = makeButton("Skip with this", () => {
      if (writes.check()) writes.box.focus();
      else ask("skip", writes.readContent().text);
    });
    const [link, part] = makeFold("Skip, and write …", make("div", { class: "agentnb-reply" }, writes.element, makeLine(use)),
      { focus: () => writes.box.focus() });
    const element = make("div", { class: "agentnb-remedy" }, makeLine(again, skip, link), part);
    return {
      element,
      able(can) {
        enable(again, can.includes("retry"));
        for (const each of [skip, use]) enable(each, can.includes("skip"));
        link.hidden = !can.includes("skip");
        if (link.hidden) part.hidden = true;
      },
      fresh: () => { writes.reset(); part.hidden = true; link.setAttribute("aria-expanded", "false"); },
    };
  }

  /** An exhausted limit: its value, and an input for a larger one. */
  function makeLimitPart(ask) {
    const title = make("p", { class: "agentnb-what" });
    const usage = make("p", { class: "agentnb-faint" });
    const number = make("input", { type: "text", inputmode: "decimal", class: "agentnb-input agentnb-code agentnb-limit", autocomplete: "off" });
    const raise = makeButton("Raise the limit", null, true);
    const lift = makeButton("No limit", () => { if (limit) ask("set_budget", null, limit.name); });
    lift.title = "continue this run without this limit";
    const form = make("form", { class: "agentnb-problem", "data-severity": "warning" }, title, usage, makeLine(number, raise, lift));
    let limit = null;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (limit) ask("set_budget", number.value, limit.name);
    });
    return {
      element: form,
      show(now, can) {
        for (const each of [raise, lift]) enable(each, can.includes("set_budget"));
        if (!now || JSON.stringify(now) === JSON.stringify(limit)) return;
        limit = now;
        title.replaceChildren("The limit ", renderStrong(now.name), ` = ${now.value} is used up.`);
        setText(usage, now.used === "" ? "" : `Used: ${now.used}. Completed steps stay; with a larger limit the run continues from here.`);
        number.value = now.more;
        number.setAttribute("aria-label", `new ${now.name}`);
      },
      forget: () => { limit = null; },
    };
  }

  /** The actions on the cards of a run that cannot continue: `cards(state, cards)` adds them, `show(state)` updates them. */
  function makeRemedies(ask) {
    const [failed, limit] = [makeFailedPart(ask), makeLimitPart(ask)];
    const hasFailed = (state) => state.status === "failed" && state.problems.length > 0;
    return {
      names: (state) => [hasFailed(state), state.limit ?? null, state.position],
      cards(state, cards) {
        const [before] = cards;
        if (hasFailed(state)) {
          failed.fresh();
          before.append(failed.element);
        } else keepFocus(failed.element);
        if (!state.limit) {
          keepFocus(limit.element);
          limit.forget();
        }
        return state.limit ? [...cards, limit.element] : cards;
      },
      show(state) {
        failed.able(state.can);
        limit.show(state.limit, state.can);
      },
    };
  }

  // What waits for a person: questions, approvals, and pending calls before they are sent or after they were answered.

  /** Fields edited in place, and applied before the run continues; `changed` is called after each change. */
  function makeEditable(rows, save, changed = () => {}) {
    const keep = makeButton("Keep changes", () => { if (open.validate()) saveChanges(); });
    const drop = makeButton("Undo changes", () => { open.reset(); updateButtons(); });
    const open = makeFields(rows, { onInput: () => updateButtons() });
    function updateButtons() {
      for (const each of [keep, drop]) each.hidden = open.changes().length === 0;
      changed();
    }
    const saveChanges = () => { if (open.changes().length) save(open.changes()); };
    updateButtons();
    return { element: open.element, validate: open.validate, save: saveChanges, buttons: [keep, drop] };
  }

  /** Show a field that is more than plain text rendered, and its input on demand; returns how the view follows the input. */
  function addPreview(row, element) {
    const label = row.label || "value";
    let [preview, text] = [renderArtifact(row, label), row.text];
    if (row.as === "fixed") {
      element.querySelector(".agentnb-space").replaceChildren(preview);
      return () => {};
    }
    const place = make("div", { class: "agentnb-previewed" });
    const name = make("span", { class: "agentnb-label", text: label });
    element.replaceWith(place);
    place.append(name, preview, make("details", { class: "agentnb-sent" }, make("summary", { text: "Edit" }), element));
    return () => {
      const now = element.querySelector(".agentnb-space > :is(textarea, input, select)");
      if (!now || now.value === text) return;
      text = now.value;
      const next = renderArtifact(text === row.text ? row : { text, as: row.as }, label);
      preview.replaceWith(next);
      preview = next;
    };
  }

  function makeApproval(pending, ask) {
    const reason = make("textarea", { class: "agentnb-input", rows: "1", placeholder: "reason (sent to the agent)", "aria-label": "reason for denying it" });
    const deny = () => ask("deny", reason.value, pending.id);
    sendOnEnter(reason, deny);
    const previews = [];
    const open = makeEditable(pending.arguments, (changes) => ask("change", { arguments: changes }, pending.id), () => { for (const follow of previews) follow(); });
    const lines = [...open.element.children];
    for (const [index, row] of pending.arguments.entries()) if (isRich(row)) previews.push(addPreview(row, lines[index]));
    const approve = () => {
      if (!open.validate()) return;
      open.save();
      ask("approve", null, pending.id);
    };
    const element = makeForm(pending, () => {},
      make("p", { class: "agentnb-prompt" }, renderStrong(pending.node), " requests approval for ", renderStrong(pending.name), renderTerms(pending),
        pending.arguments.length ? " with:" : ", which takes no arguments."),
      ...(pending.prompt !== pending.name ? [make("p", { class: "agentnb-prompt", text: pending.prompt })] : []),
      open.element,
      makeLine(makeButton("Approve", approve, true), ...open.buttons, makeButton("Deny", deny), reason));
    return { element };
  }

  /** The messages of a conversation, one below the other; with messages, other arguments are collapsed. */
  function renderSent(rows, open) {
    if (!rows.some((row) => row.role)) return [open.element];
    const rest = [...open.element.children].filter((_, index) => !rows[index].role);
    if (!rest.length) return [open.element];
    const words = `${rest.length} ${rest.length === 1 ? "setting" : "settings"}`;
    const more = make("details", { class: "agentnb-sent" }, make("summary", { text: words }),
      make("div", { class: open.element.className }, ...rest));
    return [open.element, more];
  }

  /** A form that answers a call before it is sent. */
  function makeReplyForm(pending, ask) {
    const field = makeField({ label: `answer in place of ${pending.name}`, text: "", as: pending.model ? "text" : "json" }, { kinds: true });
    const use = makeButton("Use this answer", () => {
      if (field.check(field.readChange() || pending.model ? undefined : "Type an answer.")) return field.box.focus();
      ask("change", { reply: field.readContent() }, pending.id);
      return ask("into");
    });
    const part = make("div", { class: "agentnb-reply" }, field.element, makeLine(use));
    return makeFold("Answer it myself", part, field.box);
  }

  function makeCall(pending, ask) {
    const back = pending.answer !== null;
    const rows = back ? pending.answer : pending.arguments;
    const open = makeEditable(rows, (changes) => ask("change", { [back ? "answer" : "arguments"]: changes }, pending.id));
    const goOn = () => { if (open.validate()) ask("into"); };
    const title = back
      ? [renderStrong(pending.name), " has answered ", renderStrong(pending.node), ". It can be changed before the node reads it."]
      : [renderStrong(pending.node), " is about to call ", renderStrong(pending.name), ". What it sends can be changed."];
    const sentDetails = back && pending.arguments.length
      ? [make("details", { class: "agentnb-sent" }, make("summary", { text: "What was sent" }), makeFields(pending.arguments, { changeable: false }).element)]
      : [];
    const [link, part] = back ? [null, null] : makeReplyForm(pending, ask);
    const element = makeForm(pending, goOn, make("p", { class: "agentnb-prompt" }, ...title), ...renderSent(rows, open), ...sentDetails,
      makeLine(makeButton(back ? "Accept the answer" : "Send it", null, true), ...open.buttons, ...(link ? [link] : [])), ...(part ? [part] : []));
    return { element, save: open.save, validate: open.validate };
  }

  const CARDS = { answer: makeQuestion, approval: makeApproval, call: makeCall };

  /** What was pending when a record ended: the question or the request, without inputs. */
  function makeRecordedCard(pending) {
    const { node, name, prompt, options = [] } = pending;
    const sentences = {
      answer: () => [renderStrong(node), " asks", renderTerms(pending), ": ", make("span", { class: "agentnb-told-prompt", text: prompt })],
      approval: () => [renderStrong(node), " requests approval for ", renderStrong(name), renderTerms(pending), prompt === name ? "" : `: ${prompt}`],
      call: () => [renderStrong(node), " has called ", renderStrong(name), "."],
    };
    const rows = pending.arguments || [];
    const parts = [
      ...(pending.kind === "answer" && options.length ? [make("p", { class: "agentnb-faint", text: `The options are: ${options.join(", ")}` })] : []),
      ...(rows.length ? [makeFields(rows, { changeable: false }).element] : []),
      ...(pending.about || []).map((value) => make("details", { class: "agentnb-artifact", open: true }, make("summary", { text: value.key }), renderArtifact(value, value.key))),
      make("p", { class: "agentnb-faint", text: "There was no answer when this was recorded." }),
    ];
    const element = make("div", { class: "agentnb-ask", "data-node": node, "data-kind": pending.kind }, make("p", { class: "agentnb-prompt" }, ...sentences[pending.kind]()), ...parts);
    return { element };
  }
  const FOLLOWS = new Set(["step", "into", "over", "out", "run"]);

  /** A new question takes the focus if it is in the cockpit and not in an input. */
  function mayTakeFocus(home) {
    const at = document.activeElement;
    return home.contains(at) && !at.closest("input, textarea, select");
  }

  /** The pending items. A card lives as long as its item, so an update never discards input. */
  function makePeople(ask, home) {
    const element = make("div", { class: "agentnb-asks" });
    const note = make("p", { class: "agentnb-quiet", hidden: true });
    const cards = new Map();
    const getKey = (pending) => JSON.stringify([pending.kind, pending.id, pending.prompt, pending.arguments, pending.answer]);
    const remove = (key, card) => {
      if (card.element.contains(document.activeElement)) home.focus({ preventScroll: true });
      card.element.remove();
      cards.delete(key);
    };
    return {
      element,
      note,
      quiet(text) {
        note.hidden = !text;
        setText(note, text);
      },
      /** Before the run continues: send the edits of pending calls. Returns false if one is invalid. */
      ready(verb) {
        if (!FOLLOWS.has(verb)) return true;
        const open = [...cards.values()].filter((card) => card.save);
        if (!open.every((card) => card.validate())) return false;
        for (const card of open) card.save();
        return true;
      },
      show(state) {
        const keys = new Set(state.pending.map(getKey));
        for (const [key, card] of cards) if (!keys.has(key)) remove(key, card);
        for (const pending of state.pending) {
          const key = getKey(pending);
          if (!cards.has(key)) {
            const card = pending.recorded ? makeRecordedCard(pending) : CARDS[pending.kind](pending, ask);
            cards.set(key, card);
            element.append(card.element);
            if (card.first && mayTakeFocus(home)) card.first.focus({ preventScroll: true });
          }
          const verb = pending.kind === "call" ? "change" : "answer";
          for (const each of pending.recorded ? [] : cards.get(key).element.querySelectorAll("button")) enable(each, state.can.includes(verb));
        }
      },
    };
  }

  // Partial texts of models, one card per call. Not announced to screen readers: the step reports the answer.

  const NEAR_END = 30; // pixels from its end within which a growing text scrolls along

  /** "1,204 characters in 38 pieces": how much has arrived, and whether all of it is shown. */
  function describeAmount({ size, pieces }, shownCount) {
    const cut = shownCount < size ? `, the first ${shownCount.toLocaleString("en")} are shown` : "";
    return `${size.toLocaleString("en")} characters in ${pieces} ${pieces === 1 ? "piece" : "pieces"}${cut}`;
  }

  function makeStreamCard() {
    const nodeName = make("strong", {});
    const model = make("span", { class: "agentnb-faint" });
    const amount = make("small", { class: "agentnb-faint" });
    const text = document.createTextNode("");
    const body = make("div", { class: "agentnb-stream-text", tabindex: "0", role: "group" }, text);
    const element = make("section", { class: "agentnb-stream", "aria-busy": "true" }, make("p", { class: "agentnb-stream-head" }, nodeName, model, amount), body);
    let [attempt, count] = [0, 0]; // characters as the kernel counts them: some are two code units in JavaScript
    return {
      element,
      over: null,
      /** Insert a piece; false if one before it is missing. */
      put(row) {
        if (row.attempt !== attempt || row.at === 0) [text.data, count] = ["", 0];
        attempt = row.attempt;
        if (row.at !== count) return row.at < count;
        const follows = body.scrollHeight - body.scrollTop - body.clientHeight < NEAR_END;
        text.appendData(row.text);
        count += [...row.text].length;
        if (follows) body.scrollTop = body.scrollHeight;
        const ended = row.over !== null;
        setText(nodeName, row.node);
        element.setAttribute("aria-label", `the model's text for ${row.node}`);
        body.setAttribute("aria-label", `text so far, for ${row.node}`);
        setText(model, `${row.model ? `${row.model} ` : "its model "}${ended ? "has said" : "is saying"}${attempt > 1 ? `, attempt ${attempt}` : ""}`);
        setText(amount, describeAmount(row, count));
        element.setAttribute("aria-busy", String(!ended));
        this.over = row.over;
        return true;
      },
    };
  }

  /** `missed(id)` requests a text in full if a piece was lost, or arrived before this page was opened. */
  function makeStreams(missed) {
    const element = make("div", { class: "agentnb-streams" });
    const cards = new Map();
    function drop(id) {
      cards.get(id)?.element.remove();
      cards.delete(id);
    }
    return {
      element,
      hear(rows, state) {
        for (const row of rows) {
          if (!cards.has(row.id) && row.over === null) {
            const card = makeStreamCard();
            cards.set(row.id, card);
            element.append(card.element);
          }
          const card = cards.get(row.id);
          if (card && !card.put(row)) missed(row.id);
        }
        this.show(state);
      },
      /** The texts remain until the run moves on. */
      show(state) {
        for (const [id, { over }] of cards) if (over !== null && over !== state.position) drop(id);
      },
    };
  }

  return { renderProblem, makeProblems, makeRemedies, makePeople, makeStreams };
})();
