// Runs driven by events: emit an event from outside, and show the latest ones.
import { enable, make, say } from "./dom.js";
import { field } from "./fields.js";

const PAYLOAD = "{}";
const RATE = 700; // milliseconds between two requests while a run moves
let forms = 0;

function eventRow([seq, id, type, actor, cause, step, at], choice) {
  const about = [`by ${actor}`, cause && `from ${cause}`].filter(Boolean).join(", ");
  const where = step === null
    ? make("span", { class: "agentnb-faint", text: at ? `after step ${at}` : "at the start" })
    : make("button", { type: "button", class: "agentnb-link", text: `step ${step}`, title: `show step ${step}, which told it`, click: () => choice.set("step", step) });
  return make("li", { "data-event": id }, make("span", {}, make("span", { class: "agentnb-faint", text: `${seq} ` }), make("strong", { text: type }),
    make("span", { class: "agentnb-faint", text: ` ${about}` })), where);
}

/** The form: a type, listened to or not, and a payload. */
function emitter(ask) {
  forms += 1;
  const types = make("datalist", { id: `agentnb-types-${forms}-${Math.random().toString(36).slice(2)}` });
  const type = make("input", { type: "text", class: "agentnb-input", list: types.id, "aria-label": "type of the event", autocomplete: "off", spellcheck: "false" });
  const payload = field({ label: "payload, as JSON", text: PAYLOAD, as: "json" }, { named: false });
  const send = make("button", { type: "submit", class: "agentnb-button agentnb-main", text: "Emit", title: "emit this event from outside: who listens to its type has work to do" });
  const wrong = make("p", { class: "agentnb-wrong", role: "alert" });
  const form = make("form", { class: "agentnb-emit" }, make("div", { class: "agentnb-line" }, type, send), wrong, types, payload.element);
  const missing = (text) => {
    say(wrong, text);
    if (text) type.setAttribute("aria-invalid", "true");
    else type.removeAttribute("aria-invalid");
  };
  type.addEventListener("input", () => missing(""));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    missing(type.value.trim() ? "" : "Name a type: nodes listen to events by their type.");
    const faulty = payload.fault();
    if (!type.value.trim()) type.focus();
    else if (faulty) payload.box.focus();
    else ask("emit", payload.now().text, type.value.trim());
  });
  let offered = "";
  return {
    form,
    able: (can) => enable(send, can),
    offer(names) {
      const told = JSON.stringify(names);
      if (told === offered) return;
      offered = told;
      types.replaceChildren(...names.map((name) => make("option", { value: name })));
      type.placeholder = names.length ? `type, as ${names[0]}` : "type";
    },
  };
}

export function events(ask, choice) {
  const emit = emitter(ask);
  const list = make("ol", { class: "agentnb-rows", "aria-label": "latest events, the last one first" });
  const none = make("p", { class: "agentnb-faint", text: "No event yet. Emit one, and those that listen to its type have work to do." });
  const later = make("p", { class: "agentnb-faint" });
  const body = make("div", { class: "agentnb-events", tabindex: "-1" }, emit.form, list, none, later);
  let [asked, shown, waiting, next, now] = ["", "", false, 0, null];

  function paint({ types, rows, more }) {
    emit.offer(types);
    const told = JSON.stringify([rows, more]);
    if (told === shown) return;
    shown = told;
    const held = list.contains(document.activeElement);
    list.replaceChildren(...rows.map((row) => eventRow(row, choice)));
    none.hidden = rows.length > 0;
    later.hidden = !more;
    say(later, `and ${more} before`);
    if (held) body.focus({ preventScroll: true });
  }
  /** Requests never repeat for the same state, do not overlap, and are rate-limited while a run moves. */
  function look() {
    const { number, position, length, status, run } = now;
    const key = JSON.stringify([number, position, length, status, run?.id]);
    if (key === asked || waiting || (status === "running" && Date.now() < next)) return;
    [asked, waiting, next] = [key, true, Date.now() + RATE];
    ask("look", "events", null, (found) => {
      waiting = false;
      if (found) paint(found);
      look();
    });
  }
  return {
    name: "events",
    title: "Events",
    body,
    wanted: ({ reactive }) => Boolean(reactive),
    show(state) {
      now = state;
      emit.able(state.can.includes("emit"));
      look();
    },
  };
}
