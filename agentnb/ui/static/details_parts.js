// The values, calls, conditions and events of a step, each as an element; all content is set as text.
import { make, say } from "./dom.js";

const LONG = 64; // characters; longer or multi-line text is in a box below its name

/** 0.00042 -> "0.42 ms". */
export function lasted(seconds) {
  if (seconds >= 60) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return seconds >= 1 ? `${seconds.toFixed(2)} s` : `${(seconds * 1000).toPrecision(2).replace(/e.*/, "")} ms`;
}

export const faintly = (text) => make("span", { class: "agentnb-faint", text });
export const linkTo = (text, title, click) => make("button", { type: "button", class: "agentnb-link", text, title, click });

/** The text of a value; if truncated, with a button that requests all of it. `whole` stores the full values. */
export function valueOf(cell, pull, whole) {
  const box = make("code", { class: "agentnb-cell-value" });
  const element = make("div", { class: "agentnb-cell" }, box);
  const id = `${cell.at} ${cell.text}`;
  const long = cell.text.length > LONG || cell.text.includes("\n");
  const button = make("button", { type: "button", class: "agentnb-link", "data-at": `all ${cell.at}` });
  function show() {
    const all = whole.get(id);
    const cut = all ? all.cut : cell.cut;
    say(box, (all || cell).text + (cut ? " …" : ""));
    box.classList.toggle("agentnb-long", long || Boolean(all));
    if (all) box.setAttribute("tabindex", "0");
    else box.removeAttribute("tabindex");
    say(button, all ? "show less" : "show all");
  }
  button.addEventListener("click", () => {
    if (whole.delete(id)) show();
    else pull(cell.at, (all) => { whole.set(id, all); show(); });
  });
  if (cell.cut) element.append(button);
  show();
  return element;
}

/** Named values, one below the other. */
export function rowsOf(cells, tell) {
  return make("dl", { class: "agentnb-values" }, ...cells.flatMap((cell) => [
    make("dt", {}, cell.name, ...(cell.type ? [" ", make("small", { class: "agentnb-faint", text: cell.type })] : [])),
    make("dd", {}, tell(cell)),
  ]));
}

/** The changes of a step: before and after. */
export function changesOf(rows, tell) {
  return make("dl", { class: "agentnb-values" }, ...rows.flatMap((row) => {
    const about = [row.op === "append" ? "one item more" : "", row.note].filter(Boolean).join(", ");
    const after = row.new ? tell(row.new) : faintly("deleted");
    const before = row.old && row.op !== "append"
      ? make("div", { class: "agentnb-before" }, make("span", { class: "agentnb-hidden", text: "before: " }), tell(row.old))
      : row.op === "append" ? "" : make("div", { class: "agentnb-before" }, faintly("new"));
    return [
      make("dt", {}, row.key, ...(about ? [" ", make("small", { class: "agentnb-faint", text: about })] : [])),
      make("dd", { class: "agentnb-change" }, before, make("span", { class: "agentnb-arrow", "aria-hidden": "true", text: row.op === "append" ? "+" : "→" }), after),
    ];
  }));
}

const SAID = { system: "system", user: "user", assistant: "assistant", tool: "tool" };

/** One attempt of a call: the request, the response, time and cost. */
export function callOf(call, tell) {
  const [sent, back] = call.tokens || [];
  const count = (number, word) => (number === null || number === undefined ? "" : `${number} ${word}`);
  const took = [
    call.attempt > 1 ? `attempt ${call.attempt}${call.wait ? ` after ${lasted(call.wait)}` : ""}` : "",
    lasted(call.seconds), count(sent, "tokens in"), count(back, "tokens out"), call.cost ? `${call.cost} USD` : "",
  ].filter(Boolean);
  const said = call.messages.map((cell) => make("div", { class: "agentnb-message", "data-role": SAID[cell.name] || "other" },
    make("small", { class: "agentnb-faint", text: cell.name }), tell(cell)));
  const answer = call.error
    ? [make("div", { class: "agentnb-message agentnb-bad" }, make("small", { text: "failed" }), tell(call.error))]
    : call.result ? [make("div", { class: "agentnb-message agentnb-answer" }, make("small", { class: "agentnb-faint", text: `answer${call.result.type ? `, ${call.result.type}` : ""}` }), tell(call.result))] : [];
  return make("article", { class: "agentnb-call", "aria-label": `call ${call.call}, ${call.name}` },
    make("p", {}, make("span", { class: "agentnb-chip", text: call.kind }), " ", make("strong", { text: call.name }), " ", faintly(took.join(", "))),
    ...(call.arguments.length ? [rowsOf(call.arguments, tell)] : []), ...said, ...answer);
}

/** The evaluated conditions, each with its result and what it read. */
export function whyOf(asked) {
  return make("ul", { class: "agentnb-why" }, ...asked.map((one) => make("li", { class: one.taken ? "agentnb-taken" : "" },
    make("span", { class: "agentnb-arrow", "aria-hidden": "true", text: one.taken ? "→" : "·" }),
    make("div", {},
      ...(one.target ? [make("strong", { text: one.target }), one.taken ? ", taken: " : ": "] : []),
      make("code", { text: one.condition }), " is ", make("code", { text: one.value }),
      ...one.operands.map(([text, value]) => make("div", { class: "agentnb-faint" }, make("code", { text }), " = ", make("code", { text: value }))),
      ...(one.warning ? [make("div", { class: "agentnb-odd", text: `odd: ${one.warning}` })] : [])))));
}

/** What ran inside a node: its rounds or its branches. */
export function insideOf({ parts, more }, { step, node }) {
  const rounds = parts.some((part) => part.round > 1);
  const items = parts.map((part) => {
    const branch = part.branch === null ? "" : `branch ${part.branch + 1}`;
    const name = [branch, part.title === branch ? "" : part.title, rounds ? `round ${part.round}` : ""];
    const one = part.first === part.last;
    return make("li", {}, make("span", {}, name.filter(Boolean).join(", "), ": ", step(part.first), ...(one ? [] : [" to ", step(part.last)])),
      make("small", { class: "agentnb-faint" }, "ended with ", node(part.node), `, ${part.status}`));
  });
  return make("div", {}, make("ol", { class: "agentnb-rows" }, ...items), ...(more ? [faintly(`and ${more} more`)] : []));
}

/** Events: each expands to its payload. */
export function eventsOf(events, tell) {
  return make("div", {}, ...events.map((event) => make("details", { class: "agentnb-event" },
    make("summary", {}, make("strong", { text: event.type }), faintly(` ${event.id}, by ${event.actor}`)), tell(event.payload))));
}

/** Interventions while the step was the current one. */
export function actsOf(acts, tell) {
  return make("ul", { class: "agentnb-rows" }, ...acts.map((act) => make("li", {},
    make("span", {}, make("strong", { text: act.act }), ` ${act.target}`, faintly(` by ${act.actor}, ${new Date(act.time).toLocaleTimeString()}`)),
    ...(act.new ? [tell(act.new)] : []))));
}
