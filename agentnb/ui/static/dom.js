// DOM helpers: create an element, draw an icon, detect the theme.

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

/** Return an icon of 16 by 16 from path data, in the colour of the surrounding text. */
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

/** Set a text only if it differs, so that an unchanged page is not touched. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Enable or disable a button without `disabled`, which would move its focus to the notebook. */
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

/** Synchronize `data-theme` of an element with the page's theme; returns a function that stops it. */
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
