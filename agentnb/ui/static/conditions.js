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

  const quoteText = (text) => `'${text}'`;
  const makeUnsupported = (construct) => new Wrong(`An exported page cannot evaluate ${construct}. In a notebook, session.find() can.`);

  /** The tokens of a text as [kind, value, text]. */
  function tokenize(text) {
    const tokens = [];
    TOKEN.lastIndex = 0;
    const source = text.trimEnd();
    while (TOKEN.lastIndex < source.length) {
      const at = TOKEN.lastIndex;
      const match = TOKEN.exec(source);
      if (!match) {
        const rest = source.slice(at).trimStart();
        throw new Wrong(/^["']/.test(rest) ? `The quote before ${quoteText(rest.slice(1, 20))} is not closed.` : `${quoteText(rest[0])} has no meaning in a condition.`);
      }
      const [, number, name, string, sign] = match;
      if (number) tokens.push(["value", Number(number.replaceAll("_", "")), number]);
      else if (string) tokens.push(["value", unquote(string), string]);
      else if (name && WORDS.has(name)) tokens.push(["value", WORDS.get(name), name]);
      else tokens.push([name ? "name" : "sign", name ?? sign, name ?? sign]);
    }
    return tokens;
  }

  function unquote(text) {
    return text.slice(1, -1).replace(/\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)/gsu, (escape, code) => (
      /^[ux]./.test(code) ? String.fromCharCode(parseInt(code.slice(1), 16)) : ESCAPES[code] ?? escape));
  }

  // Values, as Python compares them: True is 1, texts are ordered by code points, lists by their items.

  const isNumber = (value) => typeof value === "number" || typeof value === "boolean";
  const isDict = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const has = (dict, key) => typeof key === "string" && Object.hasOwn(dict, key);

  /** Refuse what stands for a value that the page does not have. */
  function checkAvailable(value, text) {
    if (isDict(value) && has(value, "~")) throw makeUnsupported(`${quoteText(text)}: it is ${value["~"]}`);
    return value;
  }
  function isTrue(value) {
    if (Array.isArray(value)) return value.length > 0;
    return isDict(value) ? Object.keys(value).length > 0 : Boolean(value);
  }
  function areEqual(left, right, text) {
    checkAvailable(left, text);
    checkAvailable(right, text);
    if (isNumber(left) && isNumber(right)) return Number(left) === Number(right);
    if (Array.isArray(left) && Array.isArray(right)) return left.length === right.length && left.every((item, at) => areEqual(item, right[at], text));
    if (isDict(left) && isDict(right)) {
      const keys = Object.keys(left);
      return keys.length === Object.keys(right).length && keys.every((key) => has(right, key) && areEqual(left[key], right[key], text));
    }
    return left === right;
  }
  function compareTexts(one, other) {
    const [left, right] = [[...one], [...other]];
    const at = left.findIndex((letter, index) => letter !== right[index]);
    if (at < 0) return left.length - right.length;
    return at >= right.length ? 1 : left[at].codePointAt() - right[at].codePointAt();
  }
  /** Less than 0, 0, or more than 0. */
  function compareValues(left, right, text) {
    checkAvailable(left, text);
    checkAvailable(right, text);
    if (isNumber(left) && isNumber(right)) return Number(left) - Number(right);
    if (typeof left === "string" && typeof right === "string") return compareTexts(left, right);
    if (!Array.isArray(left) || !Array.isArray(right)) throw new Missing();
    const at = left.findIndex((item, index) => index >= right.length || !areEqual(item, right[index], text));
    if (at < 0) return left.length - right.length;
    return at >= right.length ? 1 : compareValues(left[at], right[at], text);
  }
  function isIn(one, other, text) {
    checkAvailable(one, text);
    checkAvailable(other, text);
    if (Array.isArray(other)) return other.some((item) => areEqual(one, item, text));
    if (typeof other === "string" && typeof one === "string") return other.includes(one);
    if (!isDict(other) || (one !== null && typeof one === "object")) throw new Missing(); // a list is no key
    return has(other, one);
  }
  function compare(sign, one, other, text) {
    if (sign === "==" || sign === "!=") return areEqual(one, other, text) === (sign === "==");
    if (sign === "in" || sign === "not in") return isIn(one, other, text) === (sign === "in");
    const result = compareValues(one, other, text);
    return { "<": result < 0, "<=": result <= 0, ">": result > 0, ">=": result >= 0 }[sign];
  }
  function getItem(value, key, text) {
    checkAvailable(value, text);
    if (isDict(value) && has(value, key)) return value[key];
    const items = typeof value === "string" ? [...value] : value;
    const at = typeof key === "boolean" ? Number(key) : key;
    if (!Array.isArray(items) || !Number.isInteger(at)) throw new Missing();
    const index = at < 0 ? at + items.length : at;
    if (index < 0 || index >= items.length) throw new Missing();
    return items[index];
  }
  function getLength(value, text) {
    checkAvailable(value, text);
    if (typeof value === "string") return [...value].length;
    if (Array.isArray(value)) return value.length;
    if (isDict(value)) return Object.keys(value).length;
    throw new Missing();
  }

  /** The value of a path of texts, whose keys may have dots in their names; undefined if there is none. */
  function getValueAt(board, path) {
    let value = board;
    for (let start = 0; start < path.length;) {
      if (Array.isArray(value)) {
        value = /^\d+$/.test(path[start]) ? value[Number(path[start])] : undefined;
        start += 1;
      } else if (isDict(value)) {
        let end = path.length;
        while (end > start && !has(value, path.slice(start, end).join("."))) end -= 1;
        value = end > start ? value[path.slice(start, end).join(".")] : undefined;
        start = end;
      } else return undefined;
      if (value === undefined) return undefined;
    }
    return value;
  }

  /**
   * A compiled condition: {answer(board), known(seen)}; it throws Wrong. `answer` throws Missing where the condition
   * cannot be evaluated, and Wrong where the page lacks the value. `known` throws Wrong if a key is not among those seen.
   *
   * A text without blanks may also be the path of a value; keys may have any name, such as "task#1" or "my-key".
   */
  function compileCondition(text) {
    if (/\s/.test(text) || /^[\p{L}_][\p{L}\p{N}_]*$/u.test(text)) return parseExpression(text);
    const path = text.split(".");
    const isThere = (keys) => path.some((_, size) => keys.has(path.slice(0, size + 1).join(".")));
    let otherwise;
    try {
      otherwise = parseExpression(text);
    } catch (error) {
      if (!(error instanceof Wrong)) throw error;
      otherwise = { evaluate() { throw new Missing(); }, checkKeys() { throw error; } };
    }
    return {
      evaluate(board) {
        const result = getValueAt(board, path);
        return result === undefined ? otherwise.evaluate(board) : result;
      },
      checkKeys(keys) { if (!isThere(keys)) otherwise.checkKeys(keys); },
    };
  }

  function parseExpression(text) {
    const tokens = tokenize(text);
    const reads = new Set();
    let at = 0;
    let depth = 0;
    const peek = () => tokens[at]?.[1];
    const isSign = (value) => tokens[at]?.[0] === "sign" && peek() === value;
    const isWord = (value) => tokens[at]?.[0] === "name" && peek() === value;
    const makeEndError = () => new Wrong(at ? `It ends after ${quoteText(tokens[at - 1][2])}. Complete it.` : "It is empty.");
    function expect(value) {
      if (at >= tokens.length) throw makeEndError();
      if (!isSign(value)) throw new Wrong(`Expected ${quoteText(value)}, found ${quoteText(tokens[at][2])}.`);
      at += 1;
    }

    function parseOr() {
      let left = parseAnd();
      while (isWord("or")) {
        at += 1;
        const [one, other] = [left, parseAnd()];
        left = (board) => { const value = one(board); return isTrue(checkAvailable(value, text)) ? value : other(board); };
      }
      return left;
    }
    function parseAnd() {
      let left = parseNot();
      while (isWord("and")) {
        at += 1;
        const [one, other] = [left, parseNot()];
        left = (board) => { const value = one(board); return isTrue(checkAvailable(value, text)) ? other(board) : value; };
      }
      return left;
    }
    function parseNot() {
      if (!isWord("not")) return parseComparison();
      at += 1;
      const inner = parseNested(parseNot);
      return (board) => !isTrue(checkAvailable(inner(board), text));
    }
    function parseComparison() {
      const first = parseValue();
      const rest = [];
      for (;;) {
        let sign = peek();
        if (isWord("not") && tokens[at + 1]?.[1] === "in") {
          at += 1;
          sign = "not in";
        } else if (!(isWord("in") || (tokens[at]?.[0] === "sign" && COMPARISONS.has(sign)))) break;
        at += 1;
        rest.push([sign, parseValue()]);
      }
      if (!rest.length) return first;
      return (board) => {
        let left = first(board);
        for (const [sign, side] of rest) {
          const right = side(board);
          if (!compare(sign, left, right, text)) return false;
          left = right;
        }
        return true;
      };
    }
    function parseNested(part) {
      depth += 1;
      if (depth > DEEPEST) throw new Wrong("It is nested too deeply.");
      const result = part();
      depth -= 1;
      return result;
    }
    function parseItems(end) {
      const result = [];
      while (!isSign(end)) {
        result.push(parseNested(parseOr));
        if (!isSign(end)) expect(",");
      }
      at += 1;
      return (board) => result.map((each) => each(board));
    }
    function parseValue() {
      if (at >= tokens.length) throw makeEndError();
      const [kind, token, word] = tokens[at];
      at += 1;
      if (kind === "value") return parseTrailers(() => token);
      if (kind === "name" && !["and", "or", "in", "is", "if", "else", "not"].includes(token)) return parseKey(token);
      if (token === "(") {
        const inner = parseNested(parseOr);
        if (isSign(",")) throw makeUnsupported("a tuple");
        expect(")");
        return parseTrailers(inner);
      }
      if (token === "[") return parseTrailers(parseItems("]"));
      if (token === "-" || token === "+") {
        const inner = parseNested(parseValue);
        return (board) => {
          const result = checkAvailable(inner(board), text);
          if (!isNumber(result)) throw new Missing();
          return token === "-" ? -result : Number(result);
        };
      }
      throw kind === "name" ? new Wrong(`Expected a key or a value, found ${quoteText(word)}.`) : makeUnsupported(quoteText(word));
    }
    /** A key of the board and what follows it, as in `order.items[0].price`. */
    function parseKey(name) {
      reads.add(name);
      return parseTrailers((board) => {
        if (!has(board, name)) throw new Missing();
        return board[name];
      });
    }
    function parseTrailers(start) {
      let result = start;
      for (;;) {
        const inner = result;
        if (isSign("[")) {
          at += 1;
          const index = parseNested(parseOr);
          if (isSign(":")) throw makeUnsupported("a slice");
          expect("]");
          result = (board) => getItem(inner(board), checkAvailable(index(board), text), text);
        } else if (isSign(".") && /^[\p{L}\p{N}_.]+$/u.test(tokens[at + 1]?.[2] ?? "")) {
          const path = tokens[at + 1][2].split("."); // the 0.1 of `items.0.1` is one token
          at += 2;
          const toKey = (holder, part) => (/^\d+$/.test(part) && !isDict(holder) ? Number(part) : part);
          result = (board) => path.reduce((holder, part) => getItem(holder, toKey(holder, part), text), inner(board));
        } else if (isSign("|")) {
          const filter = tokens[at + 1]?.[1];
          if (!["length", "count"].includes(filter)) throw makeUnsupported(`the filter ${quoteText(filter ?? "")}`);
          at += 2;
          result = (board) => getLength(inner(board), text);
        } else return inner;
      }
    }

    const evaluate = parseOr();
    if (at < tokens.length) {
      const [, token, word] = tokens[at];
      if (["=", "&", "!", "?"].includes(token)) throw new Wrong(`unexpected ${quoteText(word)}. Compare with ==, combine with and, or, not.`);
      if (["+", "-", "*", "/", "%", "**", "//", "~", "(", "is", "if"].includes(token)) throw makeUnsupported(quoteText(word));
      throw new Wrong(`unexpected ${quoteText(word)}`);
    }
    return {
      evaluate,
      checkKeys(keys) {
        const unknown = [...reads].find((name) => !keys.has(name));
        if (unknown !== undefined) throw new Wrong(`There is no key ${quoteText(unknown)} on the board, and nothing writes one. To find a text, put it in quotes.`);
      },
    };
  }

  /** Whether a condition holds on a board; one that cannot be evaluated there does not. It throws Wrong. */
  function holds(condition, board) {
    try {
      return isTrue(checkAvailable(condition.evaluate(board), "the value"));
    } catch (error) {
      if (error instanceof Missing || error instanceof RangeError) return false;
      throw error;
    }
  }

  /** Apply changes of values: [path], [path, value] or [path, items, 1]; see page_values.py. */
  function applyChanges(board, changed) {
    for (const [path, value, appended] of changed) {
      let holder = board;
      for (const part of path.slice(0, -1)) holder = holder !== null && typeof holder === "object" && Object.hasOwn(holder, part) ? holder[part] : undefined;
      const last = path.at(-1);
      if (holder === null || typeof holder !== "object" || has(holder, "~")) continue; // a part of what the page does not have
      if (value === undefined) delete holder[last];
      else if (!appended) Object.defineProperty(holder, last, { value: structuredClone(value), writable: true, enumerable: true, configurable: true });
      else if (Array.isArray(holder[last])) for (const item of structuredClone(value)) holder[last].push(item);
    }
  }

  return { Wrong, applyChanges, compileCondition, holds, getValueAt };
})();
