// Tooltips: a card beside the element under the pointer or with the focus.
import { make } from "./dom.js";

const TIP_PAUSE = 220; // milliseconds until the card is shown

/** `told(element)` returns the lines for the element under the pointer or with the focus: [element, [line, ...]], or null. */
export function tipCard(home, told) {
  const card = make("div", { class: "agentnb-tip", role: "tooltip", hidden: true });
  let timer = 0;
  let on = null;
  function hide() {
    clearTimeout(timer);
    card.hidden = true;
    on = null;
  }
  function show(element, lines) {
    const [first, ...rest] = lines;
    card.replaceChildren(make("strong", { text: first }), ...rest.map((text) => make("div", { text })));
    card.hidden = false;
    const [outer, inner, own] = [home.getBoundingClientRect(), element.getBoundingClientRect(), card.getBoundingClientRect()];
    const left = Math.min(Math.max(inner.left + inner.width / 2 - own.width / 2, outer.left + 4), Math.max(outer.right - own.width - 4, outer.left + 4));
    const below = inner.bottom + 8;
    const fits = below + own.height <= outer.bottom || inner.top - outer.top < own.height + 8;
    card.style.left = `${left - outer.left}px`;
    card.style.top = `${(fits ? below : inner.top - own.height - 8) - outer.top}px`;
  }
  function look(target, pause) {
    const found = told(target);
    if (found?.[0] === on) return;
    hide();
    if (!found) return;
    [on] = found;
    timer = setTimeout(() => { if (found[0].isConnected) show(...found); }, pause);
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
