// Partial texts of models, one card per call. Not announced to screen readers: the step reports the answer.
import { make, say } from "./dom.js";

const NEAR_END = 30; // pixels from its end within which a growing text scrolls along

/** "1,204 characters in 38 pieces": how much has arrived, and whether all of it is shown. */
function amount({ size, pieces }, shown) {
  const cut = shown < size ? `, the first ${shown.toLocaleString("en")} are shown` : "";
  return `${size.toLocaleString("en")} characters in ${pieces} ${pieces === 1 ? "piece" : "pieces"}${cut}`;
}

function streamCard() {
  const who = make("strong", {});
  const model = make("span", { class: "agentnb-faint" });
  const much = make("small", { class: "agentnb-faint" });
  const text = document.createTextNode("");
  const body = make("div", { class: "agentnb-stream-text", tabindex: "0", role: "group" }, text);
  const element = make("section", { class: "agentnb-stream", "aria-busy": "true" }, make("p", { class: "agentnb-stream-head" }, who, model, much), body);
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
      say(who, row.node);
      element.setAttribute("aria-label", `what a model tells ${row.node}`);
      body.setAttribute("aria-label", `text so far, for ${row.node}`);
      say(model, `${row.model ? `${row.model} ` : "its model "}${ended ? "has said" : "is saying"}${attempt > 1 ? `, attempt ${attempt}` : ""}`);
      say(much, amount(row, count));
      element.setAttribute("aria-busy", String(!ended));
      this.over = row.over;
      return true;
    },
  };
}

/** `missed(id)` requests a text in full if a piece was lost, or arrived before this page was opened. */
export function streams(missed) {
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
          const card = streamCard();
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
