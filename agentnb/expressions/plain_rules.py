"""JsonLogic in pure Python, for platforms without a datalogic-py wheel: WebAssembly (Pyodide, JupyterLite).

`Engine` has the part of datalogic-py's interface that `conditions` uses and returns the same values and errors; only
the date operators are missing. Each operator is a function in one of two tables: a function of its values or, if it
decides what is evaluated, of its arguments.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import cmp_to_key
from itertools import pairwise
from typing import Any, Final, NamedTuple

_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WIDE: Final = 2**63
_GONE: Final = object()  # the result for a path that leads nowhere
_PER_OPERATION: Final = 16  # how many characters cost as much as one operation


class RuleError(Exception):
    """A rule failed: `error_type` is the kind of error, `path` ends with the JSON pointer of the failed part."""

    def __init__(self, error_type: str, message: str, thrown: Any = None) -> None:
        self.error_type, self.thrown = error_type, {"type": message} if thrown is None else thrown
        self.path: list[dict[str, str]] = []
        text = _parse_json(_sort_keys(self.thrown), "+") if error_type == "Thrown" else message
        super().__init__(f"{error_type}: {text}")


class Scope(NamedTuple):
    """What paths are relative to: an item of a list or a mapping, with its position, or the whole context."""

    value: Any
    position: Mapping[str, Any] = {}


class Engine:
    """Compiles rules, with a budget of operations for each evaluation."""

    def __init__(self, operations: int) -> None:
        self._operations = operations

    def operators(self) -> list[dict[str, Any]]:
        """Return the name, aliases, and minimum and maximum number of arguments of each operator."""
        return [{"name": name, "aliases": aliases, "min_args": least, "max_args": most}
                for name, (least, most, *aliases) in _ARITY.items()]  # fmt: skip

    def compile(self, rule: Any) -> Compiled:
        """Return a rule, ready to be evaluated.

        Raises:
            ValueError: it contains a number or a string that no JSON reader accepts.
        """
        return Compiled(rule, self._operations)

    def evaluate_with_trace(self, rule: str, context: str) -> str:
        """Return the value of each operator of a rule, in order, as JSON: `steps` and the `pointers` of the nodes."""
        steps: list[dict[str, Any]] = []
        pointers: dict[str, str] = {}

        def note(pointer: str, value: Any) -> None:
            pointers[pointer] = pointer
            steps.append({"node_id": pointer, "result": value, "error": None})

        with suppress(RuleError):  # the steps so far are the result
            Evaluation(self._operations, note).evaluate(json.loads(rule), [Scope(json.loads(context))], "")
        return json.dumps({"steps": steps, "pointers": pointers})


class Compiled:
    """A rule that can be evaluated."""

    def __init__(self, rule: Any, operations: int) -> None:
        _check_literals(rule)
        self._rule, self._operations = json.loads(json.dumps(rule), parse_int=_read_integer), operations

    def facts(self) -> dict[str, Any]:
        """Return the paths of the context that the rule reads, and whether they are complete (`reads_complete`)."""
        read_paths: list[list[str]] = []
        paths = list(_reads(self._rule, 0))
        for path in paths:
            if path is not None and path not in read_paths:
                read_paths.append(path)
        return {"reads": read_paths, "reads_complete": None not in paths}

    def evaluate(self, context: Mapping[str, Any] | str) -> Any:
        """Return the rule's value on a context: a mapping of simple values, or JSON text.

        Raises:
            RuleError: it fails, or exceeds its budget.
        """
        if isinstance(context, str):
            context = json.loads(context, parse_int=_read_integer)
        try:
            json.dumps(context, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise RuleError("ParseError", f"a string is not valid Unicode: {error.reason}") from None
        return _sort_keys(Evaluation(self._operations).evaluate(self._rule, [Scope(context)], ""))


class Evaluation:
    """One evaluation of a rule: the remaining budget, and the listener that receives each operator's value."""

    def __init__(self, operations: int, note: Callable[[str, Any], None] | None = None) -> None:
        self._left, self._note = operations, note

    def evaluate(self, node: Any, scopes: Sequence[Scope], pointer: str) -> Any:
        """Return the value of the part of a rule at `pointer`."""
        if isinstance(node, list):
            return [self.evaluate(item, scopes, f"{pointer}/{at}") for at, item in enumerate(node)]
        if not isinstance(node, dict):
            return node
        ((name, operand),) = node.items()
        arguments = operand if isinstance(operand, list) else [operand]
        inner = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
        try:
            if name in _LAZY:
                value = _LAZY[name](self, arguments, scopes, inner)
            else:
                values = self._evaluate_all(name, arguments, scopes, inner)
                if name in _SPREAD and len(arguments) == 1 and isinstance(arguments[0], dict):
                    values = _spread(name, values[0]) if isinstance(values[0], list) else values
                value = _EAGER[name](*values) if name in _FIXED else _EAGER[name](values)
            self.pay(value)
        except RuleError as error:
            if not error.path:
                error.path.append({"json_pointer": pointer})
            raise
        if self._note is not None:
            self._note(pointer, value)
        return value

    def _evaluate_all(self, name: str, arguments: list[Any], scopes: Sequence[Scope], pointer: str) -> list[Any]:
        """Return the values of arguments.

        Arithmetic with several arguments checks each before it evaluates the next.
        """
        least, check = _CHECKED.get(name, (0, None))
        values = []
        for at, item in enumerate(arguments):
            values.append(self.evaluate(item, scopes, f"{pointer}/{at}"))
            if check is not None and len(arguments) >= least:
                check(values)
        return values

    def pay(self, value: Any) -> None:
        """Charge one operation, plus the size of its result.

        Raises:
            RuleError: the budget is used up.
        """
        self._left -= 1
        if isinstance(value, str):
            self._left -= len(value) // _PER_OPERATION
        elif isinstance(value, list | dict):
            self._left -= len(value)
        if self._left < 0:
            raise RuleError("BudgetExceeded", "too many operations")


# -- values -----------------------------------------------------------------------------------------------------------


def _parse_json(value: Any, plus: str = "") -> str:
    """Return a value as JSON text; with `plus`, positive exponents have a sign."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_parse_json(key)}:{_parse_json(item, plus)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_parse_json(item, plus) for item in value) + "]"
    if isinstance(value, float) and "e" in (text := repr(value)):
        digits, exponent = text.split("e")
        return (
            format(Decimal(text), "f")
            if exponent == "-05"
            else f"{digits}e{plus * (exponent[0] == '+')}{int(exponent)}"
        )
    return json.dumps(value, ensure_ascii=False)


def _sort_keys(value: Any) -> Any:
    """Return a value with the keys of its mappings in order."""
    if isinstance(value, list):
        return [_sort_keys(item) for item in value]
    return {key: _sort_keys(value[key]) for key in sorted(value)} if isinstance(value, dict) else value


def _read_integer(text: str) -> int | float:
    return number if -_WIDE <= (number := int(text)) < _WIDE else float(text)


def _check_literals(node: Any) -> None:
    if isinstance(node, dict | list):
        for item in node.values() if isinstance(node, dict) else node:
            _check_literals(item)
    elif isinstance(node, str):
        node.encode()
    elif isinstance(node, int) and not -_WIDE <= node < 2 * _WIDE:
        raise ValueError("an integer has at most 64 bits")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _make_invalid_error() -> RuleError:
    return RuleError("InvalidArguments", "Invalid Arguments")


def _make_nan_error() -> RuleError:
    return RuleError("Thrown", "NaN")


def _parse_number(text: str) -> int | float | None:
    """Return the number that a string represents; None if it is not a number."""
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    if not math.isfinite(number):
        return None
    return exact if text.lstrip("+-").isdigit() and -_WIDE <= (exact := int(text)) < _WIDE else number


def _number(value: Any) -> int | float:
    """Convert a value to a number, as arithmetic does."""
    if value is None or value == "":
        return 0
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() and -_WIDE <= value < _WIDE else value
    number = _parse_number(value) if isinstance(value, str) else value if _is_number(value) else None
    if number is None:
        raise _make_nan_error()
    return number


def _normalize(value: float) -> Any:
    """Return a result of arithmetic: integers as int, or as float if too wide for 64 bits; infinity as null."""
    if isinstance(value, int):
        return value if -_WIDE <= value < _WIDE else _normalize(float(value))
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and -_WIDE <= value < _WIDE else value


def _format_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return _format_float(value)
    return value if isinstance(value, str) else _parse_json(value)


def _format_float(value: float) -> str:
    text = repr(value or 0.0)
    if "e-" in text:
        return format(Decimal(text), "f")
    return text.replace("e+", "e") if "e" not in text or not -_WIDE <= value < _WIDE else f"{value:.1f}"


def _is_same(left: Any, right: Any) -> bool:
    """Return True if two values are equal without conversion, part by part."""
    if _is_number(left) and _is_number(right):
        return bool(left == right)
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_is_same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_is_same(item, right[key]) for key, item in left.items())
    return bool(left == right)


def _is_equal(left: Any, right: Any) -> bool:
    """Return True if two values are equal after conversion; objects never are."""
    if isinstance(left, dict) or isinstance(right, dict):
        return False
    if type(left) is type(right) or (_is_number(left) and _is_number(right)):
        return _is_same(left, right)
    if isinstance(left, list) or isinstance(right, list):
        return False
    if isinstance(right, str) or left is None:
        left, right = right, left
    if right is None:
        return left == "" if isinstance(left, str) else not left
    if isinstance(left, str):
        return left == str(right).lower() if isinstance(right, bool) else _parse_number(left) == right
    return bool(left == right)


def _is_less(one: Any, other: Any, *, equal: bool) -> bool:
    """Return True if one value precedes another; strings by their characters, everything else as numbers."""
    if isinstance(one, str) and isinstance(other, str):
        return one <= other if equal else one < other
    if (_has_no_number(one) and not _is_number(other)) or (_has_no_number(other) and not _is_number(one)):
        if isinstance(one, list | dict) or isinstance(other, list | dict):
            raise _make_nan_error()
        return False
    left, right = _number(one), _number(other)
    return left <= right if equal else left < right


def _has_no_number(value: Any) -> bool:
    return isinstance(value, str) and value != "" and _parse_number(value) is None


def _look_up(value: Any, keys: Sequence[Any]) -> Any:
    """Return the value that a path leads to; _GONE if there is none."""
    for key in keys:
        if isinstance(value, dict):
            value = value.get(str(key), _GONE)
        elif isinstance(value, list) and (digits := str(key)).isdecimal() and int(digits) < len(value):
            value = value[int(digits)]
        else:
            return _GONE
        if value is _GONE:
            break
    return value


def _parse_keys(path: Any) -> list[Any] | None:
    """Return the keys of a path as `var` accepts it; None if it is not a path."""
    if path is None or path == "":
        return []
    if isinstance(path, str):
        return path.split(".")
    if isinstance(path, list):
        return path
    return [path] if isinstance(path, int) and not isinstance(path, bool) else None


# -- operators of their values ----------------------------------------------------------------------------------------


def _sum(values: list[Any]) -> Any:
    return _make_fold(sum, map(_number, values))


def _multiply(values: list[Any]) -> Any:
    return _make_fold(math.prod, map(_number, values))


def _make_fold(combine: Callable[[Iterable[Any]], Any], numbers: Iterable[int | float]) -> Any:
    """Return a sum or a product: exact if it is a 64-bit integer, otherwise computed in floats."""
    parts = list(numbers)
    exact = combine(parts)
    return _normalize(exact if isinstance(exact, int) and -_WIDE <= exact < _WIDE else combine(map(float, parts)))


def _subtract(values: list[Any]) -> Any:
    if not values:
        raise _make_invalid_error()
    first, *rest = map(_number, values)
    if rest:
        return _normalize(first - sum(rest))
    return _normalize(-float(first) if isinstance(values[0], str) else -first)


def _divide(values: list[Any]) -> Any:
    if not values:
        raise _make_invalid_error()
    result, divisors = (_number(values[0]), values[1:]) if len(values) > 1 else (1, values)
    are_integers = isinstance(result, int)
    for at, value in enumerate(divisors, 1):
        divisor = _number(value)
        if not divisor:
            return _divide_by_zero(values, at, result)
        are_integers = are_integers and isinstance(divisor, int)
        whole = isinstance(result, int) and isinstance(divisor, int) and result % divisor == 0
        result = result // divisor if whole else float(result) / float(divisor)
    return result if are_integers and isinstance(result, float) else _normalize(result)


def _compute_remainder(values: list[Any]) -> Any:
    if len(values) < 2:
        raise _make_invalid_error()
    result = _number(values[0])
    for at, value in enumerate(values[1:], 1):
        divisor = _number(value)
        if not divisor:
            return _divide_by_zero(values, at, result)
        whole = isinstance(result, int) and isinstance(divisor, int)
        sign = -1 if result < 0 else 1
        result = sign * (abs(result) % abs(divisor)) if whole else math.fmod(result, divisor)
    return _normalize(result)


def _divide_by_zero(values: list[Any], at: int, result: float) -> Any:
    """Return the largest number, or zero of zero, as the division of floats does.

    Raises:
        RuleError: an integer is divided by a number; the value that is divided first is no string, boolean or null.
    """
    is_number = len(values) == 1 or (_is_number(values[at]) and (at > 1 or _is_number(values[0])))
    if is_number and isinstance(_number(result), int):
        raise _make_nan_error()
    return math.copysign(sys.float_info.max, result) if result else 0


def _check_number(values: list[Any]) -> None:
    _number(values[-1])


def _make_division_check(divide: Callable[[list[Any]], Any]) -> Callable[[list[Any]], None]:
    def check(values: list[Any]) -> None:
        if len(values) == 1:
            _number(values[0])
        else:
            divide(values)

    return check


def _check_extreme(values: list[Any]) -> None:
    if not _is_number(values[-1]):
        raise _make_invalid_error()


def _make_extreme(choose: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    def compute(values: list[Any]) -> Any:
        if not values or not all(map(_is_number, values)):
            raise _make_invalid_error()
        return choose(values)

    return compute


def _make_rounding(function: Callable[[Any], Any]) -> Callable[[list[Any]], Any]:
    def compute(values: list[Any]) -> Any:
        numbers: list[Any] = [_parse_number(value) if isinstance(value, str) else value for value in values]
        if not all(map(_is_number, numbers)):
            raise _make_invalid_error()
        results = [_normalize(float(function(float(number)))) for number in numbers]
        return results[0] if len(results) == 1 else results

    return compute


def _concatenate(values: list[Any]) -> str:
    return "".join(_format_text(part) for value in values for part in (value if isinstance(value, list) else [value]))


def _take_substring(text: Any, start: Any = None, length: Any = None) -> str:
    text, start, length = _format_text(text), _to_index(start), _to_index(length)
    begin = start if _is_int(start) else 0
    begin = max(begin + len(text), 0) if begin < 0 else begin
    end = len(text) if not _is_int(length) else begin + length if length >= 0 else len(text) + length
    return str(text[begin : max(end, begin)])


def _to_index(value: Any) -> Any:
    """Return an integer that is written as a float."""
    return int(value) if isinstance(value, float) and value.is_integer() and -_WIDE <= value < _WIDE else value


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _contains(left: Any, right: Any = None) -> bool:
    if isinstance(right, list):
        return any(_is_same(left, item) for item in right)
    return isinstance(left, str) and isinstance(right, str) and left in right


def _merge(values: list[Any]) -> list[Any]:
    if values == [None]:
        return []
    return [part for value in values for part in (value if isinstance(value, list) else [value]) if value is not None]


def _split(text: Any, separator: Any) -> list[str]:
    text, separator = _format_text(text), _format_text(separator)
    return text.split(separator) if separator else list(text) or [""]


def _measure_length(value: Any) -> int:
    if not isinstance(value, str | list):
        raise _make_invalid_error()
    return len(value)


def _slice(values: list[Any]) -> Any:
    whole, bounds = values[0], [_to_index(bound) for bound in values[1:]]
    if whole is None:
        return None
    if not isinstance(whole, str | list) or not all(bound is None or _is_int(bound) for bound in bounds):
        raise _make_invalid_error()
    if bounds[2:] == [0]:
        raise _make_invalid_error()
    return whole[slice(*[*bounds, None, None, None][:3])]


def _make_text_operator(form: Callable[[str, Any], Any]) -> Callable[[Any], list[Any]]:
    def convert(value: Any) -> list[Any]:
        if value is None:
            return []
        if not isinstance(value, dict):
            raise _make_invalid_error()
        return [form(key, item) for key, item in value.items()]

    return convert


def _get_type(value: Any) -> str:
    names = {bool: "boolean", str: "string", list: "array", dict: "object", type(None): "null"}
    return names.get(type(value), "number")


def _throw(values: list[Any]) -> Any:
    value = values[0] if values else None
    raise RuleError(
        "Thrown", value if isinstance(value, str) else _get_type(value), value if isinstance(value, dict) else None
    )


_EAGER: Final[dict[str, Callable[..., Any]]] = {
    "+": _sum, "-": _subtract, "*": _multiply, "/": _divide, "%": _compute_remainder,
    "max": _make_extreme(max), "min": _make_extreme(min), "abs": _make_rounding(abs), "ceil": _make_rounding(math.ceil),
    "floor": _make_rounding(math.floor),
    "!": lambda values: not any(values[:1]), "!!": lambda values: any(values[:1]),
    "cat": _concatenate, "substr": _take_substring, "in": _contains, "merge": _merge, "length": _measure_length,
    "starts_with": lambda text, start: _format_text(text).startswith(_format_text(start)),
    "ends_with": lambda text, end: _format_text(text).endswith(_format_text(end)),
    "upper": lambda text: _format_text(text).upper(), "lower": lambda text: _format_text(text).lower(),
    "trim": lambda text: _format_text(text).strip(), "split": _split, "slice": _slice,
    "keys": _make_text_operator(lambda key, _: key), "values": _make_text_operator(lambda _, item: item),
    "entries": _make_text_operator(lambda key, item: {"key": key, "value": item}),
    "type": lambda values: _get_type(values[0] if values else None), "throw": _throw,
}  # fmt: skip
# operators that check each value before the next is evaluated, with at least this many arguments
_CHECKED: Final[dict[str, tuple[int, Callable[[list[Any]], None]]]] = {
    "+": (3, _check_number), "-": (3, _check_number), "*": (3, _check_number),
    "/": (3, _make_division_check(_divide)), "%": (3, _make_division_check(_compute_remainder)),
    "max": (2, _check_extreme), "min": (2, _check_extreme),
}  # fmt: skip
# with a single computed list, these operate on its items
_SPREAD: Final = frozenset({"+", "-", "*", "/", "%", "max", "min"})
_NEUTRAL: Final = {"-": 0, "/": 1}


def _spread(name: str, items: list[Any]) -> list[Any]:
    """Return the arguments of an operator that operates on a computed list; of one item, the result is its number."""
    return [*items, _NEUTRAL[name]] if len(items) == 1 and name in _NEUTRAL else items


# operators that take their arguments one by one
_FIXED: Final = frozenset(
    {
        "substr",
        "in",
        "length",
        "starts_with",
        "ends_with",
        "upper",
        "lower",
        "trim",
        "split",
        "keys",
        "values",
        "entries",
    }
)


# -- operators that decide what is evaluated --------------------------------------------------------------------------

Lazy = Callable[[Evaluation, list[Any], Sequence[Scope], str], Any]


def _evaluate_var(run: Evaluation, arguments: list[Any], scopes: Sequence[Scope], pointer: str) -> Any:
    values = [run.evaluate(item, scopes, f"{pointer}/{at}") for at, item in enumerate(arguments[:1])]
    keys = _parse_keys(values[0] if values else None)
    value = _GONE if keys is None else _evaluate_here(scopes, keys)
    if value is not _GONE:
        return value
    return run.evaluate(arguments[1], scopes, f"{pointer}/1") if len(arguments) > 1 else None


def _evaluate_here(scopes: Sequence[Scope], keys: Sequence[Any]) -> Any:
    scope = scopes[-1]
    if keys and keys[0] in ("current", "accumulator") and "current" in scope.position:  # inside a reduce
        return _look_up(scope.position, keys)
    return _look_up(scope.value, keys)


def _evaluate_val(run: Evaluation, arguments: list[Any], scopes: Sequence[Scope], pointer: str) -> Any:
    values = run.evaluate(arguments, scopes, pointer)
    level = _parse_level(values)
    if level is None:
        keys = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        if keys == [None]:
            keys = []
        elif len(arguments) == 1 or any(isinstance(item, dict | list) for item in arguments):
            keys = [key for key in keys if key != ""]  # an empty key counts only in a path that is not computed
        value = _evaluate_here(scopes, keys)
    else:
        keys, up = values[1:], (level + 1) // 2
        if _is_place(level, keys):
            up = max(up, 1)
            return scopes[-up].position.get(keys[0]) if len(scopes) > up else None
        value = _look_up(scopes[max(len(scopes) - 1 - up, 0)].value, keys)
    return None if value is _GONE else value


def _parse_level(values: list[Any]) -> int | None:
    """Return the number of levels up from which `val` starts: [[1], "x"]; None if it does not state it."""
    first = values[0] if values else None
    is_level = isinstance(first, list) and len(first) == 1 and _is_int(first[0])
    return abs(first[0]) if is_level and first is not None else None


def _is_place(level: int, keys: list[Any]) -> bool:
    """Return True if `val` asks for the position of an item in its list or mapping, not for a part of the data."""
    return keys in (["index"], ["key"]) and (level == 0 or level % 2 == 1)


def _exists(run: Evaluation, arguments: list[Any], scopes: Sequence[Scope], pointer: str) -> bool:
    keys = run.evaluate(arguments, scopes, pointer)
    return all(isinstance(key, str) for key in keys) and _look_up(scopes[-1].value, keys) is not _GONE


def _find_missing(names: Sequence[Any], scopes: Sequence[Scope]) -> list[str]:
    """Return those names that lead nowhere in the innermost scope."""
    value = scopes[-1].value
    return [name for name in names if isinstance(name, str) and _look_up(value, _parse_keys(name) or []) is _GONE]


def _evaluate_missing(run: Evaluation, arguments: list[Any], scopes: Sequence[Scope], pointer: str) -> list[str]:
    return _find_missing(_merge(run.evaluate(arguments, scopes, pointer)), scopes)


def _evaluate_missing_some(run: Evaluation, arguments: list[Any], scopes: Sequence[Scope], pointer: str) -> list[str]:
    least, names = run.evaluate(arguments, scopes, pointer)
    if not isinstance(names, list):
        return []
    missing = _find_missing(names, scopes)
    return missing if missing and len(names) - len(missing) < (least if _is_number(least) else 1) else []


def _make_chain(holds: Callable[[Any, Any], bool]) -> Lazy:
    """Return an operator that is true if each argument is related to the next; it stops at the first that is not."""

    def evaluate(run: Evaluation, arguments: list[Any], scopes: Sequence[Scope], pointer: str) -> bool:
        if len(arguments) < 2:
            raise _make_invalid_error()
        parts = (run.evaluate(item, scopes, f"{pointer}/{at}") for at, item in enumerate(arguments))
        return all(holds(left, right) for left, right in pairwise(parts))

    return evaluate


def _make_first_where(stops: Callable[[Any], bool]) -> Lazy:
    """Return an operator whose value is the first argument for which `stops` is true, else the last one."""

    def evaluate(run: Evaluation, arguments: list[Any], scopes: Sequence[Scope], pointer: str) -> Any:
        value = None
        for at, item in enumerate(arguments):
            value = run.evaluate(item, scopes, f"{pointer}/{at}")
            if stops(value):
                break
        return value

    return evaluate


def _evaluate_if(run: Evaluation, arguments: list[Any], scopes: Sequence[Scope], pointer: str) -> Any:
    for at in range(0, len(arguments) - 1, 2):
        if run.evaluate(arguments[at], scopes, f"{pointer}/{at}"):
            return run.evaluate(arguments[at + 1], scopes, f"{pointer}/{at + 1}")
    last = len(arguments) - 1
    return run.evaluate(arguments[last], scopes, f"{pointer}/{last}") if len(arguments) % 2 else None


def _switch(run: Evaluation, arguments: list[Any], scopes: Sequence[Scope], pointer: str) -> Any:
    value, cases = run.evaluate(arguments[0], scopes, f"{pointer}/0"), arguments[1]
    for at, case in enumerate(cases if isinstance(cases, list) else []):
        case_pointer = f"{pointer}/1/{at}"
        if (
            isinstance(case, list)
            and len(case) == 2
            and _is_same(value, run.evaluate(case[0], scopes, f"{case_pointer}/0"))
        ):
            return run.evaluate(case[1], scopes, f"{case_pointer}/1")
    return run.evaluate(arguments[2], scopes, f"{pointer}/2") if len(arguments) > 2 else None


def _try(run: Evaluation, arguments: list[Any], scopes: Sequence[Scope], pointer: str) -> Any:
    failed: RuleError | None = None
    for at, item in enumerate(arguments):
        last = at == len(arguments) - 1  # only this one sees the error that was thrown
        inside = [*scopes, Scope(failed.thrown)] if last and failed is not None else scopes
        try:
            return run.evaluate(item, inside, f"{pointer}/{at}")
        except RuleError as error:
            if error.error_type == "BudgetExceeded":
                raise
            failed = error
    if failed is not None:
        raise failed
    return None


def _iter_items(value: Any) -> Iterator[Scope]:
    """Yield each item of a list, and each value of a mapping, as a scope."""
    if isinstance(value, dict):
        yield from (Scope(value[key], {"index": at, "key": key}) for at, key in enumerate(value))
    else:
        yield from (Scope(item, {"index": at}) for at, item in enumerate(value))


def _iter_each(
    run: Evaluation, body: Any, value: Any, scopes: Sequence[Scope], pointer: str
) -> Iterator[tuple[Scope, Any]]:
    for item in _iter_items(value):
        run.pay(None)
        yield item, run.evaluate(body, [*scopes, item], pointer)


def _evaluate_map(run: Evaluation, arguments: list[Any], scopes: Sequence[Scope], pointer: str) -> list[Any]:
    value = run.evaluate(arguments[0], scopes, f"{pointer}/0")
    value = [] if value is None else value if isinstance(value, list | dict) else [value]
    return [result for _, result in _iter_each(run, arguments[1], value, scopes, f"{pointer}/1")]


def _filter(run: Evaluation, arguments: list[Any], scopes: Sequence[Scope], pointer: str) -> Any:
    value = run.evaluate(arguments[0], scopes, f"{pointer}/0")
    value = [] if value is None else value
    if not isinstance(value, list | dict):
        raise _make_invalid_error()
    matching = [item for item, result in _iter_each(run, arguments[1], value, scopes, f"{pointer}/1") if result]
    return (
        {item.position["key"]: item.value for item in matching}
        if isinstance(value, dict)
        else [item.value for item in matching]
    )


def _reduce(run: Evaluation, arguments: list[Any], scopes: Sequence[Scope], pointer: str) -> Any:
    value = run.evaluate(arguments[0], scopes, f"{pointer}/0")
    result = run.evaluate(arguments[2], scopes, f"{pointer}/2") if len(arguments) > 2 else None
    for item in _iter_items(value) if isinstance(value, list | dict) else ():
        run.pay(None)
        inner = Scope(item.value, {"current": item.value, "accumulator": result})
        result = run.evaluate(arguments[1], [*scopes, inner], f"{pointer}/1")
    return result


def _make_quantifier(name: str) -> Lazy:
    def evaluate(run: Evaluation, arguments: list[Any], scopes: Sequence[Scope], pointer: str) -> bool:
        value = run.evaluate(arguments[0], scopes, f"{pointer}/0")
        if not isinstance(value, list | dict) or not value:
            return name == "none"
        held = (bool(result) for _, result in _iter_each(run, arguments[1], value, scopes, f"{pointer}/1"))
        return all(held) if name == "all" else any(held) is (name == "some")

    return evaluate


def _sort(run: Evaluation, arguments: list[Any], scopes: Sequence[Scope], pointer: str) -> list[Any] | None:
    value = run.evaluate(arguments[0], scopes, f"{pointer}/0")
    if value is None and arguments[0] is not None:
        return None
    if not isinstance(value, list):
        raise _make_invalid_error()
    upwards = run.evaluate(arguments[1], scopes, f"{pointer}/1") if len(arguments) > 1 else True
    keys: list[Any] = value
    if len(arguments) > 2:
        keys = [result for _, result in _iter_each(run, arguments[2], value, scopes, f"{pointer}/2")]

    def compare(left: int, right: int) -> int:
        return _rank(keys[left], keys[right])

    order = sorted(range(len(value)), key=cmp_to_key(compare), reverse=upwards is False)
    return [value[at] for at in order]


def _rank(one: Any, other: Any) -> int:
    """Return the relative order of two values: null, false, true, numbers, strings, lists, objects."""
    ranks = {"null": 0, "boolean": 1, "number": 2, "string": 3, "array": 4, "object": 5}
    left, right = ranks[_get_type(one)], ranks[_get_type(other)]
    if left != right or left in (0, 4, 5):
        return left - right
    return int(one > other) - int(one < other)


def _group_by(run: Evaluation, arguments: list[Any], scopes: Sequence[Scope], pointer: str) -> list[Any]:
    value = run.evaluate(arguments[0], scopes, f"{pointer}/0")
    value = [] if value is None else value
    if not isinstance(value, list):
        raise _make_invalid_error()
    groups: list[dict[str, Any]] = []
    for item, key in _iter_each(run, arguments[1], value, scopes, f"{pointer}/1"):
        run.pay(groups)
        group = next((group for group in groups if _is_same(group["key"], key)), None)
        if group is None:
            groups.append({"key": key, "items": [item.value]})
        else:
            group["items"].append(item.value)
    return groups


def _concatenate_within_budget(run: Evaluation, arguments: list[Any], scopes: Sequence[Scope], pointer: str) -> str:
    """Join strings; each is charged before all are joined."""
    parts = []
    for at, item in enumerate(arguments):
        parts.append(_concatenate([run.evaluate(item, scopes, f"{pointer}/{at}")]))
        run.pay(parts[-1])
    return "".join(parts)


_LAZY: Final[dict[str, Lazy]] = {
    "var": _evaluate_var,
    "val": _evaluate_val,
    "exists": _exists,
    "missing": _evaluate_missing,
    "missing_some": _evaluate_missing_some,
    "==": _make_chain(_is_equal),
    "!=": _make_chain(lambda left, right: not _is_equal(left, right)),
    "===": _make_chain(_is_same),
    "!==": _make_chain(lambda left, right: not _is_same(left, right)),
    "<": _make_chain(lambda left, right: _is_less(left, right, equal=False)),
    "<=": _make_chain(lambda left, right: _is_less(left, right, equal=True)),
    ">": _make_chain(lambda left, right: _is_less(right, left, equal=False)),
    ">=": _make_chain(lambda left, right: _is_less(right, left, equal=True)),
    "and": _make_first_where(lambda value: not value),
    "or": _make_first_where(bool),
    "??": _make_first_where(lambda value: value is not None),
    "if": _evaluate_if,
    "?:": _evaluate_if,
    "switch": _switch,
    "match": _switch,
    "try": _try,
    "cat": _concatenate_within_budget,
    "map": _evaluate_map,
    "filter": _filter,
    "reduce": _reduce,
    "all": _make_quantifier("all"),
    "some": _make_quantifier("some"),
    "none": _make_quantifier("none"),
    "sort": _sort,
    "group_by": _group_by,
}
# name -> minimum and maximum number of arguments, aliases
_ARITY: Final[dict[str, tuple[Any, ...]]] = {
    "val": (0, None, "var"), "==": (2, None), "===": (2, None), "!=": (2, 2), "!==": (2, 2), ">": (2, None),
    ">=": (2, None), "<": (2, None), "<=": (2, None), "!": (0, 1), "!!": (0, 1), "and": (1, None), "or": (1, None),
    "if": (1, None, "?:"), "+": (0, None), "-": (1, None), "*": (0, None), "/": (1, None), "%": (1, None),
    "max": (1, None), "min": (1, None), "cat": (0, None), "substr": (1, 3), "in": (2, 2), "merge": (0, None),
    "filter": (2, 2), "map": (2, 2), "reduce": (2, 3), "all": (2, 2), "some": (2, 2), "none": (2, 2),
    "missing": (0, None), "missing_some": (2, 2), "length": (1, 1), "starts_with": (2, 2), "ends_with": (2, 2),
    "upper": (1, 1), "lower": (1, 1), "trim": (1, 1), "split": (2, 2), "sort": (1, 3), "slice": (1, 4),
    "group_by": (2, 2), "keys": (1, 1), "values": (1, 1), "entries": (1, 1), "exists": (1, None), "??": (0, None),
    "switch": (2, 3, "match"), "type": (1, 1), "try": (1, None), "throw": (0, None), "abs": (1, None),
    "ceil": (1, None), "floor": (1, None),
}  # fmt: skip


# -- what a rule reads ------------------------------------------------------------------------------------------------

_SCOPED: Final = {"map": 1, "filter": 1, "reduce": 1, "all": 1, "some": 1, "none": 1, "group_by": 1, "sort": 2}


def _reads(node: Any, depth: int) -> Iterator[list[str] | None]:
    """Yield each path of the context read by a part of a rule, `depth` scopes deep; None for an unknown path."""
    if isinstance(node, list):
        for item in node:
            yield from _reads(item, depth)
    if not isinstance(node, dict):
        return
    ((name, operand),) = node.items()
    arguments = operand if isinstance(operand, list) else [operand]
    inner = {_SCOPED[name]} if name in _SCOPED else {len(arguments) - 1 or None} if name == "try" else set()
    for at, item in enumerate(arguments):
        yield from _reads(item, depth + (at in inner))
    if name in ("var", "val", "exists", "missing", "missing_some"):
        yield from _iter_paths(name, arguments, depth)


def _iter_paths(name: str, arguments: list[Any], depth: int) -> Iterator[list[str] | None]:
    level = _parse_level(arguments) if name == "val" else None
    if depth and (level is None or (level + 1) // 2 < depth):
        return  # inside an item
    if level is not None and _is_place(level, arguments[1:]):
        return
    if name == "var":
        keys = [_parse_keys(arguments[0] if arguments else None)]
        arguments = arguments[:1]
    elif name == "missing":
        keys = [_parse_keys(each) for each in _flatten(arguments)]
    elif name == "missing_some":
        keys = [_parse_keys(each) for each in _flatten(arguments[1:])]
    else:
        rest = arguments if level is None else arguments[1:]
        keys = [[] if rest == [""] else rest]
    named = arguments if level is None else arguments[1:]
    if any(part is None or not (isinstance(part, str) or _is_index(part)) for part in _flatten(named)):
        yield None
        return
    yield from ([str(key) for key in each] for each in keys if each is not None)


def _is_index(value: Any) -> bool:
    return _is_int(value) and value >= 0


def _flatten(values: list[Any]) -> list[Any]:
    return [part for value in values for part in (value if isinstance(value, list) else [value])]


__all__ = ["Engine", "RuleError"]
