"""Comparisons of board keys with literals, which are the conditions of most edges, compiled to functions.

JsonLogic and the template language agree on them as long as each value has the type of its literal. Any other value (a
missing one, a number compared with a string) is left to the interpreter of the language, which knows its rules and its
errors.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Final, Protocol

from agentnb.expressions.lookup import NOTHING

__all__ = ["compile_comparison"]

Evaluate = Callable[[Mapping[str, Any]], Any]
Test = Callable[[list[Any]], Any]
_LOW, _HIGH = -(2**63), 2**63 - 1  # the integers that JsonLogic compares exactly; NaN and infinity are outside
_NUMBERS: Final = frozenset({int, float})
_EQUAL: Final = {"==": operator.eq, "===": operator.eq, "!=": operator.ne, "!==": operator.ne}
_ORDERED: Final = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ALONE: Final = frozenset({*_EQUAL, *_ORDERED})


class ConditionEvaluator(Protocol):
    """The general evaluator of the rule, and its warning about the last evaluation."""

    warning: str


class _Unsupported(Exception):
    """The rule contains more than comparisons of keys with literals."""


def compile_comparison(rule: Any, evaluate: Evaluate, interpreter: ConditionEvaluator) -> Evaluate:
    """Return a function like `evaluate`, faster if the (JsonLogic) rule contains only comparisons.

    Like `evaluate`, it reads every key of the rule and leaves the interpreter without a warning.
    """
    kinds: dict[str, type] = {}
    try:
        test = _compile(rule, kinds)
        return (
            _compile_one(*_split_comparison(rule), evaluate, interpreter)
            if rule.keys() <= _ALONE
            else _compile_many(kinds, test, evaluate, interpreter)
        )
    except _Unsupported:
        return evaluate


def _compile_one(
    key: str, compare: Callable[[Any, Any], Any], literal: Any, evaluate: Evaluate, interpreter: ConditionEvaluator
) -> Evaluate:
    """Return the function for one comparison."""
    kind = type(literal)
    bounded = kind in _NUMBERS

    def call(board: Mapping[str, Any]) -> Any:
        try:
            value = board.get(key, NOTHING)
        except Exception:  # noqa: BLE001  (the interpreter reports it)
            return evaluate(board)
        if type(value) is not kind or (bounded and not _LOW <= value <= _HIGH):
            return evaluate(board)
        interpreter.warning = ""
        return compare(value, literal)

    return call


def _compile_many(kinds: dict[str, type], test: Test, evaluate: Evaluate, interpreter: ConditionEvaluator) -> Evaluate:
    """Return the function for several comparisons."""
    keys, types = [*kinds], [*kinds.values()]
    bounded = [at for at, kind in enumerate(types) if kind in _NUMBERS]

    def call(board: Mapping[str, Any]) -> Any:
        try:
            get = board.get
            values = [get(key, NOTHING) for key in keys]
        except Exception:  # noqa: BLE001  (the interpreter reports it)
            return evaluate(board)
        if [*map(type, values)] != types:
            return evaluate(board)
        for at in bounded:
            if not _LOW <= values[at] <= _HIGH:
                return evaluate(board)
        interpreter.warning = ""
        return test(values)

    return call


def _compile(rule: Any, kinds: dict[str, type]) -> Test:
    """Return a function of the keys' values; add the required type of each key to `kinds`."""
    match rule:
        case {"and": [first, *others]} if others and len(rule) == 1:
            return reduce(_join_all, [_compile(part, kinds) for part in (first, *others)])
        case {"or": [first, *others]} if others and len(rule) == 1:
            return reduce(_join_any, [_compile(part, kinds) for part in (first, *others)])
        case {"!": inner} if len(rule) == 1:
            test = _compile(inner[0] if isinstance(inner, list) and len(inner) == 1 else inner, kinds)
            return lambda values: not test(values)
        case {"var": _} if len(rule) == 1:
            return operator.itemgetter(_find_place(kinds, _get_key(rule), bool))
    key, compare, literal = _split_comparison(rule)
    at = _find_place(kinds, key, type(literal))
    return lambda values: compare(values[at], literal)


def _join_all(left: Test, right: Test) -> Test:
    return lambda values: left(values) and right(values)


def _join_any(left: Test, right: Test) -> Test:
    return lambda values: left(values) or right(values)


def _find_place(kinds: dict[str, type], key: str, kind: type) -> int:
    """Return the position of a key among the values."""
    if kinds.setdefault(key, kind) is not kind:
        raise _Unsupported
    return [*kinds].index(key)


def _split_comparison(rule: Any) -> tuple[str, Callable[[Any, Any], Any], Any]:
    """Return the key, the operator and the literal of one comparison."""
    if type(rule) is not dict or len(rule) != 1:
        raise _Unsupported
    ((name, sides),) = rule.items()
    if not isinstance(sides, list) or len(sides) != 2:
        raise _Unsupported
    left, right = sides
    if not isinstance(left, dict):
        left, right, name = right, left, _TURNED.get(name, name)
    compare = _EQUAL.get(name) or (_ORDERED.get(name) if type(right) in _NUMBERS else None)
    if compare is None or not _is_literal(right):
        raise _Unsupported
    return _get_key(left), compare, right


def _get_key(part: Any) -> str:
    match part:
        case {"var": str(key)} | {"var": [str(key)]} if len(part) == 1 and key and "." not in key and "{" not in key:
            return key
    raise _Unsupported


def _is_literal(value: Any) -> bool:
    cls = type(value)
    if cls is str:
        return "{" not in value  # it may be a template
    return cls is bool or (cls is int and _LOW <= value <= _HIGH) or (cls is float and math.isfinite(value))
