// dom: small words for the page: make an element, draw a sign, know the theme.

const SVG = "http://www.w3.org/2000/svg";

/** Return a new element; `text` is its text, a function is a listener, everything else an attribute. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/** Return a sign of 16 by 16 from path data; it wears the colour of the text beside it. */
export function sign(data) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "agentnb-sign");
  path.setAttribute("d", data);
  svg.append(path);
  return svg;
}

/** Set a text only where it differs, so that a page at rest stays at rest. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Able or not, a button keeps its focus: a disabled one would lose it to the notebook. */
export function enable(button, able) {
  button.setAttribute("aria-disabled", String(!able));
}

function isDark() {
  const { body, documentElement: page } = document;
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false";
  if (body.dataset.vscodeThemeKind) return /dark|high-contrast$/.test(body.dataset.vscodeThemeKind);
  const named = page.dataset.theme || page.getAttribute("theme") || body.dataset.theme || "";
  if (/dark|light/.test(named)) return named.includes("dark");
  return window.matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Keep `data-theme` of an element as the page's theme is; returns the function that ends it. */
export function followTheme(element) {
  const set = () => { element.dataset.theme = isDark() ? "dark" : "light"; };
  const watcher = new MutationObserver(set);
  const wish = window.matchMedia("(prefers-color-scheme: dark)");
  for (const target of [document.body, document.documentElement]) {
    watcher.observe(target, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind", "data-theme", "theme"] });
  }
  wish.addEventListener("change", set);
  set();
  return () => { watcher.disconnect(); wish.removeEventListener("change", set); };
}
