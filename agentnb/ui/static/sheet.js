// A drawing from the kernel as part of this page: the allowed elements, and the description of each.

const SHEET_PARTS = new Set(["svg", "g", "path", "rect", "circle", "ellipse", "line", "polygon", "polyline", "text", "tspan", "title"]);
const SVG_POINT = 4 / 3; // pixels
const SVG_SPACE = "http://www.w3.org/2000/svg";

/** Create an SVG element. */
export function svgPart(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG_SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Remove everything that loads, links, listens or runs; the kernel's drawings contain none of it. */
function harmless(root) {
  for (const element of [...root.querySelectorAll("*")]) {
    if (!SHEET_PARTS.has(element.localName) || element.namespaceURI !== SVG_SPACE) element.remove();
  }
  for (const element of [root, ...root.querySelectorAll("*")]) {
    for (const { name, value } of [...element.attributes]) {
      if (/^on|href$|^style$/i.test(name) || (/url\(|javascript:/i.test(value) && !/^(data-|aria-)/.test(name))) element.removeAttribute(name);
    }
  }
}

const pixelsOf = (text) => text.split(" ").slice(-2).map((points) => Number(points) * SVG_POINT);

/** Return {svg, size, alone, tips} of an SVG text, or null. `alone` is the size without the board; `tips` describe each group. */
export function sheetOf(text) {
  if (!text) return null;
  const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (root.nodeName !== "svg") return null;
  harmless(root); // before it is attached: an image would load at once
  const svg = document.importNode(root, true);
  for (const name of ["width", "height", "data-static"]) svg.removeAttribute(name);
  svg.classList.add("has-run");
  svg.setAttribute("role", "group"); // its nodes are buttons
  const tips = new WeakMap();
  for (const title of svg.querySelectorAll("g > title")) { // our tooltip shows it without delay
    tips.set(title.parentNode, title.textContent);
    title.remove();
  }
  const viewBox = svg.getAttribute("viewBox") || "0 0 400 300";
  const size = pixelsOf(viewBox);
  return { svg, tips, viewBox, size, alone: svg.dataset.graph ? pixelsOf(svg.dataset.graph) : size };
}
