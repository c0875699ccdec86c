// Conditions that an exported page evaluates without a kernel, as Python does: comparisons of keys of the board with
// each other and with constants, `in`, `and`, `or`, `not`, and the length of a value.
const conditionsPart = (() => {
  const WORDS = new Map([["true", true], ["True", true], ["false", false], ["False", false], ["none", null], ["None", null]]);
  const COMPARISONS = new Set(["==", "!=", "<", "<=", ">", ">=", "in", "not in"]);
  const TOKEN = /\s*(?:(\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)|([\p{L}_][\p{L}\p{N}_]*)|("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(==|!=|<=|>=|\*\*|\/\/|[-+*/%~<>()[\]{}.,|:=?&!]))/suy;
  const ESCAPES = { n: "\n", t: "\t", r: "\r", "\\": "\\", "'": "'", '"': '"' };
  const DEEPEST = 40;

  /** What is wrong with a condition, in its own terms. */
  class Wrong extends Error {}
  /** A condition that cannot be evaluated at a step, as where it reads a missing key: it does not hold there. */
  class Missing extends Error {}

  const shown = (text) => `'${text}'`;
  const noPage = (what) => new Wrong(`An exported page cannot evaluate ${what}. In a notebook, session.find() can.`);

  /** The tokens of a text as [sort, value, text]. */
  function tokensOf(text) {
    const found = [];
    TOKEN.lastIndex = 0;
    const source = text.trimEnd();
    while (TOKEN.lastIndex < source.length) {
      const at = TOKEN.lastIndex;
      const match = TOKEN.exec(source);
      if (!match) {
        const rest = source.slice(at).trimStart();
        throw new Wrong(/^["']/.test(rest) ? `The quote before ${shown(rest.slice(1, 20))} is not closed.` : `${shown(rest[0])} has no meaning in a condition.`);
      }
      const [, number, name, quoted, sign] = match;
      if (number) found.push(["value", Number(number.replaceAll("_", "")), number]);
      else if (quoted) found.push(["value", unquoted(quoted), quoted]);
      else if (name && WORDS.has(name)) found.push(["value", WORDS.get(name), name]);
      else found.push([name ? "name" : "sign", name ?? sign, name ?? sign]);
    }
    return found;
  }

  function unquoted(text) {
    return text.slice(1, -1).replace(/\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)/gsu, (whole, code) => (
      /^[ux]./.test(code) ? String.fromCharCode(parseInt(code.slice(1), 16)) : ESCAPES[code] ?? whole));
  }

  // Values, as Python compares them: True is 1, texts are ordered by code points, lists by their items.

  const isNumber = (value) => typeof value === "number" || typeof value === "boolean";
  const isDict = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const has = (dict, key) => typeof key === "string" && Object.hasOwn(dict, key);

  /** Refuse what stands for a value that the page does not have. */
  function known(value, text) {
    if (isDict(value) && has(value, "~")) throw noPage(`${shown(text)}: it is ${value["~"]}`);
    return value;
  }
  function isTrue(value) {
    if (Array.isArray(value)) return value.length > 0;
    return isDict(value) ? Object.keys(value).length > 0 : Boolean(value);
  }
  function equal(one, other, text) {
    known(one, text);
    known(other, text);
    if (isNumber(one) && isNumber(other)) return Number(one) === Number(other);
    if (Array.isArray(one) && Array.isArray(other)) return one.length === other.length && one.every((item, at) => equal(item, other[at], text));
    if (isDict(one) && isDict(other)) {
      const keys = Object.keys(one);
      return keys.length === Object.keys(other).length && keys.every((key) => has(other, key) && equal(one[key], other[key], text));
    }
    return one === other;
  }
  function compareTexts(one, other) {
    const [left, right] = [[...one], [...other]];
    const at = left.findIndex((letter, place) => letter !== right[place]);
    if (at < 0) return left.length - right.length;
    return at >= right.length ? 1 : left[at].codePointAt() - right[at].codePointAt();
  }
  /** Less than 0, 0, or more than 0. */
  function order(one, other, text) {
    known(one, text);
    known(other, text);
    if (isNumber(one) && isNumber(other)) return Number(one) - Number(other);
    if (typeof one === "string" && typeof other === "string") return compareTexts(one, other);
    if (!Array.isArray(one) || !Array.isArray(other)) throw new Missing();
    const at = one.findIndex((item, place) => place >= other.length || !equal(item, other[place], text));
    if (at < 0) return one.length - other.length;
    return at >= other.length ? 1 : order(one[at], other[at], text);
  }
  function isIn(one, other, text) {
    known(one, text);
    known(other, text);
    if (Array.isArray(other)) return other.some((item) => equal(one, item, text));
    if (typeof other === "string" && typeof one === "string") return other.includes(one);
    if (!isDict(other) || (one !== null && typeof one === "object")) throw new Missing(); // a list is no key
    return has(other, one);
  }
  function compared(sign, one, other, text) {
    if (sign === "==" || sign === "!=") return equal(one, other, text) === (sign === "==");
    if (sign === "in" || sign === "not in") return isIn(one, other, text) === (sign === "in");
    const found = order(one, other, text);
    return { "<": found < 0, "<=": found <= 0, ">": found > 0, ">=": found >= 0 }[sign];
  }
  function itemOf(value, key, text) {
    known(value, text);
    if (isDict(value) && has(value, key)) return value[key];
    const items = typeof value === "string" ? [...value] : value;
    const at = typeof key === "boolean" ? Number(key) : key;
    if (!Array.isArray(items) || !Number.isInteger(at)) throw new Missing();
    const place = at < 0 ? at + items.length : at;
    if (place < 0 || place >= items.length) throw new Missing();
    return items[place];
  }
  function lengthOf(value, text) {
    known(value, text);
    if (typeof value === "string") return [...value].length;
    if (Array.isArray(value)) return value.length;
    if (isDict(value)) return Object.keys(value).length;
    throw new Missing();
  }

  /** The value of a path of texts, whose keys may have dots in their names; undefined if there is none. */
  function valueAt(board, path) {
    let here = board;
    for (let start = 0; start < path.length;) {
      if (Array.isArray(here)) {
        here = /^\d+$/.test(path[start]) ? here[Number(path[start])] : undefined;
        start += 1;
      } else if (isDict(here)) {
        let end = path.length;
        while (end > start && !has(here, path.slice(start, end).join("."))) end -= 1;
        here = end > start ? here[path.slice(start, end).join(".")] : undefined;
        start = end;
      } else return undefined;
      if (here === undefined) return undefined;
    }
    return here;
  }

  /**
   * A compiled condition: {answer(board), known(seen)}; it throws Wrong. `answer` throws Missing where the condition
   * cannot be evaluated, and Wrong where the page lacks the value. `known` throws Wrong if a key is not among those seen.
   *
   * A text without blanks may also be the path of a value; keys may have any name, such as "task#1" or "my-key".
   */
  function compiled(text) {
    if (/\s/.test(text) || /^[\p{L}_][\p{L}\p{N}_]*$/u.test(text)) return expression(text);
    const path = text.split(".");
    const isThere = (seen) => path.some((_, size) => seen.has(path.slice(0, size + 1).join(".")));
    let otherwise;
    try {
      otherwise = expression(text);
    } catch (error) {
      if (!(error instanceof Wrong)) throw error;
      otherwise = { answer() { throw new Missing(); }, known() { throw error; } };
    }
    return {
      answer(board) {
        const found = valueAt(board, path);
        return found === undefined ? otherwise.answer(board) : found;
      },
      known(seen) { if (!isThere(seen)) otherwise.known(seen); },
    };
  }

  function expression(text) {
    const tokens = tokensOf(text);
    const reads = new Set();
    let at = 0;
    let depth = 0;
    const next = () => tokens[at]?.[1];
    const isSign = (value) => tokens[at]?.[0] === "sign" && next() === value;
    const isWord = (value) => tokens[at]?.[0] === "name" && next() === value;
    const ends = () => new Wrong(at ? `It ends after ${shown(tokens[at - 1][2])}. Complete it.` : "It is empty.");
    function expect(value) {
      if (at >= tokens.length) throw ends();
      if (!isSign(value)) throw new Wrong(`${shown(tokens[at][2])} stands where ${shown(value)} is expected.`);
      at += 1;
    }

    function either() {
      let left = both();
      while (isWord("or")) {
        at += 1;
        const [one, other] = [left, both()];
        left = (board) => { const value = one(board); return isTrue(known(value, text)) ? value : other(board); };
      }
      return left;
    }
    function both() {
      let left = negated();
      while (isWord("and")) {
        at += 1;
        const [one, other] = [left, negated()];
        left = (board) => { const value = one(board); return isTrue(known(value, text)) ? other(board) : value; };
      }
      return left;
    }
    function negated() {
      if (!isWord("not")) return comparison();
      at += 1;
      const inner = nested(negated);
      return (board) => !isTrue(known(inner(board), text));
    }
    function comparison() {
      const first = value();
      const rest = [];
      for (;;) {
        let sign = next();
        if (isWord("not") && tokens[at + 1]?.[1] === "in") {
          at += 1;
          sign = "not in";
        } else if (!(isWord("in") || (tokens[at]?.[0] === "sign" && COMPARISONS.has(sign)))) break;
        at += 1;
        rest.push([sign, value()]);
      }
      if (!rest.length) return first;
      return (board) => {
        let left = first(board);
        for (const [sign, side] of rest) {
          const right = side(board);
          if (!compared(sign, left, right, text)) return false;
          left = right;
        }
        return true;
      };
    }
    function nested(part) {
      depth += 1;
      if (depth > DEEPEST) throw new Wrong("It is nested too deep.");
      const found = part();
      depth -= 1;
      return found;
    }
    function items(end) {
      const found = [];
      while (!isSign(end)) {
        found.push(nested(either));
        if (!isSign(end)) expect(",");
      }
      at += 1;
      return (board) => found.map((each) => each(board));
    }
    function value() {
      if (at >= tokens.length) throw ends();
      const [sort, token, word] = tokens[at];
      at += 1;
      if (sort === "value") return followed(() => token);
      if (sort === "name" && !["and", "or", "in", "is", "if", "else", "not"].includes(token)) return key(token);
      if (token === "(") {
        const inner = nested(either);
        if (isSign(",")) throw noPage("a tuple");
        expect(")");
        return followed(inner);
      }
      if (token === "[") return followed(items("]"));
      if (token === "-" || token === "+") {
        const inner = nested(value);
        return (board) => {
          const found = known(inner(board), text);
          if (!isNumber(found)) throw new Missing();
          return token === "-" ? -found : Number(found);
        };
      }
      throw sort === "name" ? new Wrong(`${shown(word)} stands where a key or a value is expected.`) : noPage(shown(word));
    }
    /** A key of the board and what follows it, as in `order.items[0].price`. */
    function key(name) {
      reads.add(name);
      return followed((board) => {
        if (!has(board, name)) throw new Missing();
        return board[name];
      });
    }
    function followed(start) {
      let found = start;
      for (;;) {
        const inner = found;
        if (isSign("[")) {
          at += 1;
          const index = nested(either);
          if (isSign(":")) throw noPage("a slice");
          expect("]");
          found = (board) => itemOf(inner(board), known(index(board), text), text);
        } else if (isSign(".") && /^[\p{L}\p{N}_.]+$/u.test(tokens[at + 1]?.[2] ?? "")) {
          const path = tokens[at + 1][2].split("."); // the 0.1 of `items.0.1` is one token
          at += 2;
          const keyIn = (holder, part) => (/^\d+$/.test(part) && !isDict(holder) ? Number(part) : part);
          found = (board) => path.reduce((holder, part) => itemOf(holder, keyIn(holder, part), text), inner(board));
        } else if (isSign("|")) {
          const filter = tokens[at + 1]?.[1];
          if (!["length", "count"].includes(filter)) throw noPage(`the filter ${shown(filter ?? "")}`);
          at += 2;
          found = (board) => lengthOf(inner(board), text);
        } else return inner;
      }
    }

    const answer = either();
    if (at < tokens.length) {
      const [, token, word] = tokens[at];
      if (["=", "&", "!", "?"].includes(token)) throw new Wrong(`${shown(word)} is one word too many. Compare with ==, combine with and, or, not.`);
      if (["+", "-", "*", "/", "%", "**", "//", "~", "(", "is", "if"].includes(token)) throw noPage(shown(word));
      throw new Wrong(`${shown(word)} is one word too many.`);
    }
    return {
      answer,
      known(seen) {
        const unknown = [...reads].find((name) => !seen.has(name));
        if (unknown !== undefined) throw new Wrong(`There is no key ${shown(unknown)} on the board, and nothing writes one. To find a text, put it in quotes.`);
      },
    };
  }

  /** Whether a condition holds on a board; one that cannot be evaluated there does not. It throws Wrong. */
  function holds(condition, board) {
    try {
      return isTrue(known(condition.answer(board), "the value"));
    } catch (error) {
      if (error instanceof Missing || error instanceof RangeError) return false;
      throw error;
    }
  }

  /** Apply changes of values: [path], [path, value] or [path, items, 1]; see page_values.py. */
  function apply(board, changed) {
    for (const [path, value, appended] of changed) {
      let here = board;
      for (const part of path.slice(0, -1)) here = here !== null && typeof here === "object" && Object.hasOwn(here, part) ? here[part] : undefined;
      const last = path.at(-1);
      if (here === null || typeof here !== "object" || has(here, "~")) continue; // a part of what the page does not have
      if (value === undefined) delete here[last];
      else if (!appended) Object.defineProperty(here, last, { value: structuredClone(value), writable: true, enumerable: true, configurable: true });
      else if (Array.isArray(here[last])) for (const item of structuredClone(value)) here[last].push(item);
    }
  }

  return { Wrong, apply, compiled, holds, valueAt };
})();
