"""filters: what a template may do to a value. The filters, tests and methods that it may name, each within limits.

Jinja's own where they are harmless as they stand, with their lazy results made lists and their texts measured; ours
where Jinja's can be made to fill the memory (join, replace, indent, round, tojson, sum, and the tests that use `%`).
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable, Mapping, Sized
from functools import wraps
from numbers import Number
from typing import Any

from agentnb.expressions.sandbox import (
    MAX_TEXT,
    STOCK_FILTERS,
    STOCK_TESTS,
    Context,
    SecurityError,
    charge,
    counted,
    joined,
    listed,
    pass_context,
    settled,
    text_of,
    touch,
    weigh,
    weighed,
    within,
)

__all__ = ["FILTERS", "INNER", "METHODS", "TESTS"]

_MAX_INDENT = 100
_WORK = {"map": 3, "reject": 3, "rejectattr": 5, "select": 3, "selectattr": 5}  # for each item: Jinja asks by name
_MAX_DIGITS = 100


def _place_of_value(function: Callable[..., Any]) -> int:
    """Return where a filter takes its value: after the context, where Jinja gives it that."""
    return 1 if hasattr(function, "jinja_pass_arg") else 0


def _as_list(name: str) -> Callable[..., Any]:
    """Return Jinja's filter, giving a list where it would give something lazy."""
    function = STOCK_FILTERS[name]

    place = _place_of_value(function)
    work = _WORK.get(name, 0)

    @wraps(function)
    def filtered(*args: Any, **kwargs: Any) -> Any:
        if work and isinstance(args[place], Sized):
            charge(work * len(args[place]))
        return listed(function(*args, **kwargs))

    return filtered


def _on_text(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return Jinja's filter or test, given its value as text of a bounded length."""
    place = _place_of_value(function)

    @wraps(function)
    def filtered(*args: Any, **kwargs: Any) -> Any:
        found = list(args)
        found[place] = text_of(found[place])
        within(len(found[place]), MAX_TEXT, "characters of text")
        return function(*found, **kwargs)

    return filtered


def _on_number(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return Jinja's test, refused on anything but numbers: text % value would write texts of any length."""

    @wraps(function)
    def tested(*args: Any) -> Any:
        for value in args:
            _number(value)
        return function(*args)

    return tested


def _number(value: Any) -> Any:
    touch(value)
    if not isinstance(value, Number):
        raise TypeError(f"a number is wanted, not {type(value).__name__}")
    return value


def _reversed(value: Any) -> Any:
    return value[::-1] if isinstance(value, str) else listed(reversed(value))


@pass_context
def _join(context: Context, value: Iterable[Any], d: Any = "", attribute: str | int | None = None) -> str:
    if attribute is not None:
        value = STOCK_FILTERS["map"](context, value, attribute=attribute)
    return joined(value, text_of(d))


def _replace(value: Any, old: Any, new: Any, count: int | None = None) -> str:
    text, old, new = text_of(value), text_of(old), text_of(new)
    times = text.count(old) if count is None or count < 0 else min(count, text.count(old))
    within(len(text) + times * max(0, len(new) - len(old)), MAX_TEXT, "characters of text")
    return text.replace(old, new, times)


def _indent(value: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    pad = width if isinstance(width, str) else " " * min(width, _MAX_INDENT)
    within(len(pad), _MAX_INDENT, "characters of indent")
    lines = text_of(value).splitlines() or [""]
    within(sum(map(len, lines)) + len(lines) * (len(pad) + 1), MAX_TEXT, "characters of text")
    padded = [pad + line if line or blank else line for line in lines]
    return "\n".join([(pad + lines[0]) if first else lines[0], *padded[1:]])


def _round(value: Any, precision: int = 0, method: str = "common") -> Any:
    within(abs(precision), _MAX_DIGITS, "digits of precision")
    return STOCK_FILTERS["round"](_number(value), precision, method)


def _tojson(value: Any, indent: int | None = None) -> str:
    weigh(value)  # as JSON it is about as long as its text
    within(indent or 0, _MAX_INDENT, "characters of indent")
    return joined(json.JSONEncoder(indent=indent, sort_keys=True, ensure_ascii=False).iterencode(settled(value)))


@pass_context
def _sum(context: Context, value: Iterable[Any], attribute: str | int | None = None, start: Any = 0) -> Any:
    if isinstance(value, Sized):
        charge(5 * len(value))  # each is looked at twice
    items = value if attribute is None else STOCK_FILTERS["map"](context, value, attribute=attribute)
    return sum(map(_number, items), _number(start))


def _escape(value: Any) -> str:
    text = text_of(value)
    within(len(text), MAX_TEXT // 6, "characters of text to escape")
    return html.escape(text)


_AS_THEY_ARE = ("abs", "count", "d", "default", "first", "float", "int", "last", "length", "max", "min")
_LISTS = ("dictsort", "groupby", "items", "list", "map", "sort", "unique")
_CHOICES = ("reject", "rejectattr", "select", "selectattr")
_TEXTS = ("capitalize", "lower", "title", "trim", "truncate", "upper", "wordcount")

FILTERS: Mapping[str, Callable[..., Any]] = {
    **{name: STOCK_FILTERS[name] for name in _AS_THEY_ARE},
    **{name: _as_list(name) for name in _LISTS + _CHOICES},
    **{name: _on_text(STOCK_FILTERS[name]) for name in _TEXTS},
    "e": _escape,
    "escape": _escape,
    "indent": _indent,
    "join": _join,
    "replace": _replace,
    "reverse": _reversed,
    "round": _round,
    "string": text_of,
    "sum": _sum,
    "tojson": _tojson,
}

_NOT_FOR_TEMPLATES = {"callable", "escaped", "filter", "test"}
_BY_REMAINDER = ("divisibleby", "even", "odd")
_BY_TEXT = ("lower", "upper")

_STOCK: Mapping[str, Any] = STOCK_TESTS

TESTS: Mapping[str, Callable[..., Any]] = {
    **{name: test for name, test in _STOCK.items() if name not in _NOT_FOR_TEMPLATES},
    **{name: _on_number(_STOCK[name]) for name in _BY_REMAINDER},
    **{name: _on_text(_STOCK[name]) for name in _BY_TEXT},
}


# -------------------------------------------------------------------------------------------------------------- methods


def _get(mapping: Mapping[Any, Any], key: Any, default: Any = None) -> Any:
    return mapping[key] if key in mapping else default  # noqa: SIM401 - the mapping's own `get` is never called


def _join_to(between: str, items: Iterable[Any]) -> str:
    parts = listed(items)
    if not all(isinstance(part, str) for part in parts):
        raise TypeError("join() takes texts; |join takes anything")
    return joined(parts, between)


_OF_TEXT: Mapping[str, Callable[..., Any]] = {
    "upper": str.upper,
    "lower": str.lower,
    "strip": str.strip,
    "split": lambda text, sep=None, maxsplit=-1: listed(str.split(text, sep, maxsplit)),
    "join": _join_to,
    "startswith": str.startswith,
    "endswith": str.endswith,
    "replace": _replace,
}
_OF_MAPPING: Mapping[str, Callable[..., Any]] = {
    "get": _get,
    "items": lambda mapping: listed((key, mapping[key]) for key in mapping),
    "keys": listed,
    "values": lambda mapping: listed(mapping[key] for key in mapping),
}
METHODS = tuple(sorted({*_OF_TEXT, *_OF_MAPPING}))


def _called(value: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
    """Call one of the safe methods by our own function, so that no class of the value's has a say in it."""
    touch(value)
    table = _OF_TEXT if isinstance(value, str) else _OF_MAPPING if isinstance(value, Mapping) else {}
    if name not in table:
        usual = f"it has {', '.join(sorted(table))}" if table else "texts and mappings have methods"
        raise SecurityError(f"a {type(value).__name__} has no method {name}() that a template may use; {usual}")
    return table[name](value, *args, **kwargs)


def _concatenated(parts: Iterable[Any]) -> str:
    return joined(parts)


# What the checked tree is rewritten to; a template cannot name them.
INNER: Mapping[str, Callable[..., Any]] = {
    "_called": _called,
    "_concatenated": _concatenated,
    "_counted": counted,
    "_weighed": weighed,
}
