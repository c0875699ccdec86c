// Values that a person decides about, rendered: Markdown, JSON, the changes to an earlier version. Only elements and texts are
// created, never markup from a value; a link is text with its address, and an image is not loaded.
const artifactsPart = (() => {
  const { make } = domPart;

  const DEEPEST = 6; // nested quotes, lists and emphasis; deeper ones are plain text
  const INVISIBLE = /[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/; // they could make a text look like another one

  /** A text as nodes, in which invisible characters are shown by their number. */
  function renderText(text) {
    return text.split(new RegExp(`(${INVISIBLE.source})`)).filter(Boolean).map((part) => (INVISIBLE.test(part)
      ? make("span", { class: "agentnb-invisible", title: "an invisible character", text: `U+${part.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}` }) : part));
  }
  const removeEscapes = (text) => text.replace(/\\([!-/:-@[-`{-~])/g, "$1"); // escaped punctuation

  // Markdown: a subset that covers what models write. Each pattern looks at a bounded number of characters.

  const SPANS = [
    [/^\\([!-/:-@[-`{-~])/, ([, char]) => renderText(char)],
    [/^(`{1,3})(?!`)([\s\S]{1,2000}?[^`])\1(?!`)/, ([, , code]) => [make("code", {}, ...renderText(code))]],
    [/^(\*\*|__)(?=\S)([\s\S]{0,2000}?\S)\1/, ([, , text], depth) => [make("strong", {}, ...renderSpans(text, depth))]],
    [/^~~(?=\S)([\s\S]{0,2000}?\S)~~/, ([, text], depth) => [make("s", {}, ...renderSpans(text, depth))]],
    [/^([*_])(?![\s*_])([\s\S]{0,2000}?[^\s*_\\])\1(?![\w*])/, ([, , text], depth) => [make("em", {}, ...renderSpans(text, depth))]],
    [/^(!?)\[([^[\]]{0,500})\]\(<?((?:[^\s()<>]|\([^\s()<>]{0,200}\)){0,1000})>?(?:\s+"[^"]{0,200}")?\)/, ([, image, text, address], depth) => renderLink(text, address, Boolean(image), depth)],
    [/^<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/i, ([, address]) => renderText(address)],
  ];
  const STARTS = /[\\`*_~![<]/;

  /** A link or an image as its text with the address: what a link says and where it leads may differ. */
  function renderLink(text, address, image, depth) {
    const addressPart = make("span", { class: "agentnb-address" }, ...renderText(address));
    const textPart = text && text !== address ? [make("span", { class: "agentnb-linked" }, ...renderSpans(text, depth)), " "] : [];
    return [...(image ? [make("span", { class: "agentnb-faint", text: "image: " })] : []), ...textPart, addressPart];
  }

  /** The inline parts of a paragraph. */
  function renderSpans(text, depth = 0) {
    if (depth > DEEPEST) return renderText(text);
    const nodes = [];
    let [rest, loose] = [text, ""];
    while (rest) {
      const at = rest.search(STARTS);
      loose += at < 0 ? rest : rest.slice(0, at);
      rest = at < 0 ? "" : rest.slice(at);
      if (!rest) break;
      const inWord = rest[0] === "_" && /\w$/.test(loose); // snake_case is no emphasis
      const [match, render] = (inWord ? [] : SPANS).map(([pattern, renderer]) => [pattern.exec(rest), renderer]).find(([each]) => each) ?? [null];
      if (match) {
        nodes.push(...renderText(loose), ...render(match, depth + 1));
        loose = "";
      } else loose += rest[0];
      rest = rest.slice(match ? match[0].length : 1);
    }
    return [...nodes, ...renderText(loose)];
  }

  const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$/;
  const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
  const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
  const QUOTE = /^ {0,3}>\s?(.*)$/;
  const ITEM = /^( *)([-*+]|\d{1,9}[.)])\s+(.*)$/;
  const TASK = /^\[([ xX])\]\s+/;
  const DIVIDER = /^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
  const splitCells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => removeEscapes(cell.trim()));

  function parseCode(lines, at) {
    const [, fence, name] = FENCE.exec(lines[at]);
    const rest = lines.slice(at + 1);
    const end = rest.findIndex((line) => line.trim().startsWith(fence) && !line.trim().replaceAll(fence[0], ""));
    const code = (end < 0 ? rest : rest.slice(0, end)).join("\n");
    return [make("pre", { tabindex: "0", "aria-label": name ? `code, ${name}` : "code" }, ...(name === "json" ? highlightJson(code) : renderText(code))), at + 1 + (end < 0 ? rest.length : end + 1)];
  }

  function parseQuote(lines, at, depth) {
    let end = at;
    while (end < lines.length && QUOTE.test(lines[end])) end += 1;
    return [make("blockquote", {}, ...parseBlocks(lines.slice(at, end).map((line) => QUOTE.exec(line)[1]), depth)), end];
  }

  /** A list: its items, and whatever is indented below one of them. */
  function parseList(lines, at, depth) {
    const [, indent, sign] = ITEM.exec(lines[at]);
    const ordered = /\d/.test(sign);
    const items = [];
    let end = at;
    while (end < lines.length) {
      const match = ITEM.exec(lines[end]);
      if (match && match[1].length <= indent.length + 1 && /\d/.test(match[2]) === ordered && !RULE.test(lines[end])) items.push([match[3]]);
      else if (lines[end].trim() && /^\s/.test(lines[end]) && lines[end].search(/\S/) > indent.length) items.at(-1).push(lines[end].slice(Math.min(lines[end].search(/\S/), indent.length + sign.length + 1)));
      else if (!lines[end].trim() && /^\s+\S/.test(lines[end + 1] ?? "") && lines[end + 1].search(/\S/) > indent.length) items.at(-1).push("");
      else if (!lines[end].trim() && ITEM.exec(lines[end + 1] ?? "")?.[1].length <= indent.length + 1) items.at(-1).push("");
      else break;
      end += 1;
    }
    const elements = items.map(([first, ...more]) => {
      const task = TASK.exec(first);
      const head = task ? [make("span", { role: "img", "aria-label": task[1] === " " ? "not done" : "done", text: task[1] === " " ? "☐ " : "☑ " })] : [];
      return make("li", task ? { class: "agentnb-task" } : {}, ...head, ...renderSpans(task ? first.slice(task[0].length) : first), ...parseBlocks(more, depth));
    });
    return [make(ordered ? "ol" : "ul", ordered && sign.slice(0, -1) !== "1" ? { start: String(Number(sign.slice(0, -1))) } : {}, ...elements), end];
  }

  function parseTable(lines, at) {
    const heads = splitCells(lines[at]);
    let end = at + 2;
    while (end < lines.length && lines[end].includes("|") && lines[end].trim()) end += 1;
    const makeRow = (cells, tag) => make("tr", {}, ...heads.map((_, index) => make(tag, tag === "th" ? { scope: "col" } : {}, ...renderSpans(cells[index] ?? ""))));
    const body = lines.slice(at + 2, end).map((line) => makeRow(splitCells(line), "td"));
    return [make("table", {}, make("thead", {}, makeRow(heads, "th")), make("tbody", {}, ...body)), end];
  }

  const isTable = (lines, at) => lines[at].includes("|") && DIVIDER.test(lines[at + 1] ?? "") && splitCells(lines[at]).length === splitCells(lines[at + 1]).length;
  const startsBlock = (lines, at) => [FENCE, HEADING, RULE, QUOTE, ITEM].some((pattern) => pattern.test(lines[at])) || isTable(lines, at);

  function parseParagraph(lines, at) {
    let end = at + 1;
    while (end < lines.length && lines[end].trim() && !startsBlock(lines, end)) end += 1;
    const parts = lines.slice(at, end).map((line) => renderSpans(line.trim().replace(/\\$/, "")));
    return [make("p", {}, ...parts.flatMap((part, index) => (index ? [make("br"), ...part] : part))), end];
  }

  /** The blocks of a document, or of an item or a quote in it. */
  function parseBlocks(lines, depth = 0) {
    const elements = [];
    let at = 0;
    while (at < lines.length) {
      const line = lines[at];
      let block = null;
      const heading = HEADING.exec(line);
      if (!line.trim()) at += 1;
      else if (FENCE.test(line)) [block, at] = parseCode(lines, at);
      else if (heading) [block, at] = [make("p", { class: "agentnb-heading", "data-level": String(heading[1].length) }, ...renderSpans(heading[2])), at + 1];
      else if (RULE.test(line)) [block, at] = [make("hr"), at + 1];
      else if (depth < DEEPEST && QUOTE.test(line)) [block, at] = parseQuote(lines, at, depth + 1);
      else if (depth < DEEPEST && ITEM.test(line)) [block, at] = parseList(lines, at, depth + 1);
      else if (isTable(lines, at)) [block, at] = parseTable(lines, at);
      else [block, at] = parseParagraph(lines, at);
      if (block) elements.push(block);
    }
    return elements;
  }

  const SIGNS = [HEADING, FENCE, QUOTE, ITEM, /(\*\*|__)(?=\S).*?\S\1/, /`[^`]+`/, /\[[^\]]+\]\([^)\s]+\)/];

  /** Whether a text uses Markdown: one sign that starts a line, or one that encloses a part of it. */
  function isMarkdown(text) {
    const lines = text.split("\n", 400).map((line) => line.slice(0, 400));
    return lines.some((line, at) => SIGNS.some((sign) => sign.test(line)) || isTable(lines, at));
  }

  // JSON, with names, texts, numbers and words in colors.

  const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|\b(true|false|null)\b/g;

  function highlightJson(text) {
    const nodes = [];
    let last = 0;
    for (const match of text.matchAll(TOKENS)) {
      const [whole, string, colon, number] = match;
      const kind = colon ? "name" : string ? "string" : number ? "number" : "word";
      nodes.push(...renderText(text.slice(last, match.index)), make("span", { class: `agentnb-json-${kind}` }, ...renderText(string ?? whole)), ...(colon ? [colon] : []));
      last = match.index + whole.length;
    }
    return [...nodes, ...renderText(text.slice(last))];
  }

  function isJson(text) {
    if (!/^\s*[[{]/.test(text)) return false;
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false;
    }
  }

  /** A JSON text with one part per line; numbers that JavaScript would round stay as they are. */
  const formatJson = (text) => (text.includes("\n") || /\d{16}/.test(text) ? text : JSON.stringify(JSON.parse(text), null, 2));

  // The changes to an earlier version, line by line; in a line, the changed words are marked.

  const WORDS = { "-": "removed: ", "+": "added: ", " ": "" };

  function renderChanges(rows, since) {
    const lines = rows.map(([sign, parts]) => make("div", { class: "agentnb-diff-line", "data-sign": sign },
      make("span", { class: "agentnb-diff-sign", "aria-hidden": "true", text: sign }), ...(WORDS[sign] ? [make("span", { class: "agentnb-hidden", text: WORDS[sign] })] : []),
      make("span", { class: "agentnb-diff-text" }, ...parts.flatMap(([text, changed]) => (changed ? [make("mark", {}, ...renderText(text))] : renderText(text))))));
    const countLines = (sign) => rows.filter(([each]) => each === sign).length;
    const describeLines = (number) => `${number} ${number === 1 ? "line" : "lines"}`;
    const summary = make("p", { class: "agentnb-faint agentnb-diff-head", text: `${describeLines(countLines("+"))} added, ${countLines("-")} removed, compared with ${since}` });
    return [summary, make("div", { class: "agentnb-diff" }, ...lines)];
  }

  const NAMES = { changes: "Changes", rendered: "Rendered", source: "Text" };

  function renderBody(view, { text, as, diff, since }, label) {
    const asJson = as === "json" || isJson(text);
    const [kind, parts] = view === "changes" ? ["changes", renderChanges(diff, since)]
      : view === "source" ? ["source", renderText(text)]
        : asJson ? ["json", highlightJson(formatJson(text))] : ["markdown", parseBlocks(text.split(/\r?\n/))];
    return make("div", { class: `agentnb-fixed agentnb-${kind}`, tabindex: "0", role: "group", "aria-label": label }, ...parts);
  }

  /**
   * Render `{text, as, diff, since}`, a value named `label`: its changes to an earlier version if there are any, otherwise
   * rendered as its type; other views are offered.
   */
  function renderArtifact(one, label) {
    const rich = one.as === "json" || isJson(one.text) || isMarkdown(one.text);
    const views = [...(one.diff ? ["changes"] : []), ...(rich ? ["rendered"] : []), ...(rich && one.as === "json" ? [] : ["source"])];
    let body = renderBody(views[0], one, label);
    const tabs = views.map((view, index) => make("button", { type: "button", class: "agentnb-tab", "aria-pressed": String(index === 0), text: NAMES[view], click: () => choose(view) }));
    function choose(view) {
      const next = renderBody(view, one, label);
      body.replaceWith(next);
      body = next;
      for (const [index, tab] of tabs.entries()) tab.setAttribute("aria-pressed", String(views[index] === view));
    }
    return make("div", { class: "agentnb-rendered" }, ...(views.length > 1 ? [make("div", { class: "agentnb-tabs", role: "group", "aria-label": `views of ${label}` }, ...tabs)] : []), body);
  }

  /** Whether a field shows more when it is rendered: changes, Markdown, or a text that is JSON. */
  const isRich = ({ text, as, diff }) => Boolean(diff) || (["text", "fixed"].includes(as) && (isMarkdown(text) || isJson(text)));

  return { renderArtifact, isRich };
})();
