"""The filters, tests and methods that a template may use, each within limits.

Jinja's own filters are used where they are harmless, with lazy results converted to lists and string sizes checked. Our
own replace those that could exhaust the memory (join, replace, indent, round, tojson, sum, and the tests that use `%`).
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sized
from functools import wraps
from itertools import pairwise
from numbers import Number
from pprint import pformat
from string import Formatter
from textwrap import TextWrapper
from typing import Any

from agentnb.errors import with_article
from agentnb.expressions.sandbox import (
    MAX_ITEMS,
    MAX_TEXT,
    STOCK_FILTERS,
    STOCK_TESTS,
    Context,
    Limit,
    SecurityError,
    charge,
    charge_length,
    check_number,
    check_size,
    iter_counted,
    join_texts,
    pass_context,
    settle,
    to_list,
    to_text,
    touch,
    weigh,
)

__all__ = ["FILTERS", "INNER", "METHODS", "TESTS"]

_MAX_INDENT = 100
_MAX_WIDTH = 1_000  # characters to which a format may pad, and maximum number of digits
_MAX_LAID_OUT = 50_000  # characters wrapped into lines, which takes more than linear time
_WORK = {"map": 3, "reject": 3, "rejectattr": 5, "select": 3, "selectattr": 5}  # per item: Jinja looks them up by name
_MAX_DIGITS = 100


def _find_value_argument(function: Callable[..., Any]) -> int:
    """Return the index of a filter's value argument: after the context, if Jinja passes it."""
    return 1 if hasattr(function, "jinja_pass_arg") else 0


def _wrap_as_list(name: str) -> Callable[..., Any]:
    """Return Jinja's filter with lazy results converted to lists."""
    function = STOCK_FILTERS[name]

    work = _WORK.get(name, 0)

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if work and isinstance(args[1], Sized):  # the context is the first argument of these
            charge(work * len(args[1]))
        return to_list(function(*args, **kwargs))

    return wrapper


def _wrap_text_filter(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return Jinja's filter or test, called with its value as a string of limited length."""
    index = _find_value_argument(function)

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        arguments = list(args)
        arguments[index] = to_text(arguments[index])
        check_size(len(arguments[index]), MAX_TEXT, "characters of text")
        return function(*arguments, **kwargs)

    return wrapper


def _wrap_number_test(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return Jinja's test, restricted to numbers: text % value could build strings of any length."""

    @wraps(function)
    def wrapper(*args: Any) -> Any:
        for value in args:
            _number(value)
        return function(*args)

    return wrapper


def _wrap_number_filter(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that returns a number of limited size."""

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return check_number(function(*args, **kwargs))

    return wrapper


def _number(value: Any) -> Any:
    touch(value)
    if not isinstance(value, Number):
        raise TypeError(f"expected a number, not {type(value).__name__}")
    return value


def _reverse(value: Any) -> Any:
    return value[::-1] if isinstance(value, str) else to_list(reversed(value))


@pass_context
def _join(context: Context, value: Iterable[Any], d: Any = "", attribute: str | int | None = None) -> str:
    if attribute is not None:
        value = STOCK_FILTERS["map"](context, value, attribute=attribute)
    return join_texts(value, to_text(d))


def _replace(value: Any, old: Any, new: Any, count: int | None = None) -> str:
    text, old, new = to_text(value), to_text(old), to_text(new)
    times = text.count(old) if count is None or count < 0 else min(count, text.count(old))
    check_size(len(text) + times * max(0, len(new) - len(old)), MAX_TEXT, "characters of text")
    return text.replace(old, new, times)


def _indent(value: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    pad = width if isinstance(width, str) else " " * min(width, _MAX_INDENT + 1)  # one more is rejected
    check_size(len(pad), _MAX_INDENT, "characters of indent")
    lines = to_text(value).splitlines() or [""]
    check_size(sum(map(len, lines)) + len(lines) * (len(pad) + 1), MAX_TEXT, "characters of text")
    padded = [pad + line if line or blank else line for line in lines]
    return "\n".join([(pad + lines[0]) if first else lines[0], *padded[1:]])


def _round(value: Any, precision: int = 0, method: str = "common") -> Any:
    check_size(abs(precision), _MAX_DIGITS, "digits of precision")
    return STOCK_FILTERS["round"](_number(value), precision, method)


def _filter_tojson(value: Any, indent: int | None = None) -> str:
    weigh(value)  # the length of its JSON is about that of its text
    check_size(indent or 0, _MAX_INDENT, "characters of indent")
    return join_texts(json.JSONEncoder(indent=indent, sort_keys=True, ensure_ascii=False).iterencode(settle(value)))


@pass_context
def _sum(context: Context, value: Iterable[Any], attribute: str | int | None = None, start: Any = 0) -> Any:
    if isinstance(value, Sized):
        charge(5 * len(value))  # each is visited twice
    items = value if attribute is None else STOCK_FILTERS["map"](context, value, attribute=attribute)
    return sum(map(_number, items), _number(start))


def _escape(value: Any) -> str:
    text = to_text(value)
    check_size(len(text), MAX_TEXT // 6, "characters of text to escape")
    return html.escape(text)


def _filter_batch(value: Iterable[Any], linecount: int, fill_with: Any = None) -> list[Any]:
    check_size(linecount, MAX_ITEMS, "items in a list")
    return to_list(STOCK_FILTERS["batch"](to_list(value), max(linecount, 1), fill_with))


def _slice(value: Iterable[Any], slices: int, fill_with: Any = None) -> list[Any]:
    check_size(slices, MAX_ITEMS, "items in a list")
    items = to_list(value)
    least, longer = divmod(len(items), slices)
    ends = [least * number + min(number, longer) for number in range(slices + 1)]
    parts = [items[start:end] for start, end in pairwise(ends)]
    filled = [] if fill_with is None else [fill_with]
    return parts[:longer] + [part + filled for part in parts[longer:]]


def _filter_striptags(value: Any) -> str:
    text = to_text(value)
    check_size(len(text), MAX_TEXT, "characters of text")
    pieces: list[str] = []
    at = 0
    while (start := text.find("<", at)) >= 0:  # a single pass; Jinja's own implementation is quadratic
        close = "-->" if text.startswith("<!--", start) else ">"
        end = text.find(close, start)
        if end < 0:
            break
        pieces.append(text[at:start])
        at = end + len(close)
    return " ".join(html.unescape("".join([*pieces, text[at:]])).split())


def _filter_urlencode(value: Any) -> str:
    check_size(weigh(value), MAX_TEXT // 12, "characters of text to encode")
    return str(STOCK_FILTERS["urlencode"](settle(value)))


@pass_context
def _filter_xmlattr(context: Context, value: Mapping[str, Any], autospace: bool = True) -> str:
    check_size(weigh(value), MAX_TEXT // 6, "characters of text to escape")
    return str(STOCK_FILTERS["xmlattr"](context.eval_ctx, settle(value), autospace))


def _filter_pprint(value: Any) -> str:
    check_size(weigh(value), _MAX_LAID_OUT, "characters of text to lay out")
    return pformat(settle(value))


def _filter_wordwrap(
    value: Any,
    width: int = 79,
    break_long_words: bool = True,
    wrapstring: str | None = None,
    break_on_hyphens: bool = True,
) -> str:
    text = to_text(value)
    check_size(len(text), _MAX_LAID_OUT, "characters of text to lay out")
    wrapper = TextWrapper(
        width=width,
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=break_long_words,
        break_on_hyphens=break_on_hyphens,
    )
    between = "\n" if wrapstring is None else to_text(wrapstring)
    return join_texts((join_texts(wrapper.wrap(row), between) for row in text.splitlines()), between)


def _format_percent(value: Any, *args: Any, **kwargs: Any) -> str:
    """Return `text % values`, with limits on widths and digits; Jinja's `format`."""
    text = to_text(value)
    if args and kwargs:
        raise TypeError("format accepts positional or named values, not both")
    marks = _PERCENT.findall(text)
    for mark, width, precision, kind in marks:
        if kind not in _KINDS or "*" in (width, precision):
            raise TypeError(f"{mark!r} is not a supported format")
        _check_widths(f"{width} {precision}")
    named, placed = {name: _to_plain(item) for name, item in kwargs.items()}, [_to_plain(item) for item in args]
    longest = max((weigh(item) for item in (*named.values(), *placed)), default=0)
    check_size(len(text) + len(marks) * (longest + 2 * _MAX_WIDTH), MAX_TEXT, "characters of text")
    return text % (named or tuple(placed))


def _format_braces(text: str, /, *args: Any, **kwargs: Any) -> str:
    """Return `text.format(...)` for whole values; their attributes and items are not accessible."""
    pieces: list[str] = []
    number = 0
    for literal, field, spec, conversion in Formatter().parse(text):
        pieces.append(literal)
        if field is None:
            continue
        if (
            conversion not in (None, "s")
            or "{" in (spec or "")
            or not (field == "" or field.isidentifier() or _is_number(field))
        ):
            raise TypeError("format supports only {}, {0}, {name} and {name:spec}")
        value = kwargs[field] if field.isidentifier() else args[int(field or number)]
        number += field == ""
        _check_widths(spec or "")
        pieces.append(format(to_text(value) if conversion else _to_plain(value), spec or ""))
    return join_texts(pieces)


def _is_number(field: str) -> bool:
    return field.isascii() and field.isdigit() and len(field) <= 3


def _check_widths(spec: str) -> None:
    for size in _DIGITS.findall(spec):
        if len(size) > len(str(_MAX_WIDTH)) or int(size) > _MAX_WIDTH:
            raise Limit(f"more than {_MAX_WIDTH:,} characters of width")


def _to_plain(value: Any) -> Any:
    """Return a value that may be formatted: a number as it is, anything else as text."""
    touch(value)
    return value if type(value) in (int, float, bool) else to_text(value)


def _make_range(args: list[Any]) -> list[int]:
    numbers = range(*map(_number, args))
    if numbers:
        check_size((numbers[-1] - numbers[0]) // numbers.step + 1, MAX_ITEMS, "items in a list")  # len() would overflow
    return to_list(numbers)


def _make_dict(args: list[Any], **kwargs: Any) -> dict[Any, Any]:
    mapping = dict(*args, **kwargs)
    charge(len(mapping))
    return mapping


_KINDS = frozenset("sdiouxXeEfFgGc%")
_PERCENT = re.compile(r"(%(?:\([^)]*\))?[-#0 +]*(\*|\d*)(?:\.(\*|\d*))?[hlL]?(.|$))", re.DOTALL)
_DIGITS = re.compile(r"\d+")
_AS_THEY_ARE = ("count", "d", "default", "first", "last", "length", "max", "min")
_NUMBERS = ("abs", "float", "int")
_LISTS = ("dictsort", "groupby", "items", "list", "map", "sort", "unique")
_CHOICES = ("reject", "rejectattr", "select", "selectattr")
_TEXTS = ("capitalize", "lower", "title", "trim", "truncate", "upper", "wordcount")

FILTERS: Mapping[str, Callable[..., Any]] = {
    **{name: STOCK_FILTERS[name] for name in _AS_THEY_ARE},
    **{name: _wrap_number_filter(STOCK_FILTERS[name]) for name in _NUMBERS},
    **{name: _wrap_as_list(name) for name in _LISTS + _CHOICES},
    **{name: _wrap_text_filter(STOCK_FILTERS[name]) for name in _TEXTS},
    "batch": _filter_batch,
    "e": _escape,
    "escape": _escape,
    "format": _format_percent,
    "indent": _indent,
    "join": _join,
    "pprint": _filter_pprint,
    "replace": _replace,
    "reverse": _reverse,
    "round": _wrap_number_filter(_round),
    "safe": to_text,  # there is no automatic escaping to exempt it from
    "slice": _slice,
    "string": to_text,
    "striptags": _filter_striptags,
    "sum": _wrap_number_filter(_sum),
    "tojson": _filter_tojson,
    "urlencode": _filter_urlencode,
    "wordwrap": _filter_wordwrap,
    "xmlattr": _filter_xmlattr,
}

_NOT_FOR_TEMPLATES = {"callable", "escaped", "filter", "test"}
_BY_REMAINDER = ("divisibleby", "even", "odd")
_BY_TEXT = ("lower", "upper")

_STOCK: Mapping[str, Any] = STOCK_TESTS

TESTS: Mapping[str, Callable[..., Any]] = {
    **{name: test for name, test in _STOCK.items() if name not in _NOT_FOR_TEMPLATES},
    **{name: _wrap_number_test(_STOCK[name]) for name in _BY_REMAINDER},
    **{name: _wrap_text_filter(_STOCK[name]) for name in _BY_TEXT},
}


# -------------------------------------------------------------------------------------------------------------- methods


def _get(mapping: Mapping[Any, Any], key: Any, default: Any = None) -> Any:
    return mapping[key] if key in mapping else default  # noqa: SIM401 - the mapping's own `get` is never called


def _join_to(between: str, items: Iterable[Any]) -> str:
    parts = to_list(items)
    if not all(isinstance(part, str) for part in parts):
        raise TypeError("join() accepts only strings; use the filter |join")
    return join_texts(parts, between)


def _fill_zeros(text: str, width: int) -> str:
    _check_widths(str(width))
    return str.zfill(text, width)


_OF_TEXT: Mapping[str, Callable[..., Any]] = {
    "upper": str.upper,
    "lower": str.lower,
    "strip": str.strip,
    "split": lambda text, sep=None, maxsplit=-1: to_list(str.split(text, sep, maxsplit)),
    "join": _join_to,
    "startswith": str.startswith,
    "endswith": str.endswith,
    "replace": _replace,
    "count": str.count,
    "format": _format_braces,
    "splitlines": lambda text, keepends=False: to_list(str.splitlines(text, keepends)),
    "title": str.title,
    "zfill": _fill_zeros,
}
_OF_MAPPING: Mapping[str, Callable[..., Any]] = {
    "get": _get,
    "items": lambda mapping: to_list((key, mapping[key]) for key in mapping),
    "keys": to_list,
    "values": lambda mapping: to_list(mapping[key] for key in mapping),
}
METHODS = tuple(sorted({*_OF_TEXT, *_OF_MAPPING}))


def _call_method(value: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
    """Call a safe method through our own function, so that the value's class has no influence."""
    touch(value)
    table = _OF_TEXT if isinstance(value, str) else _OF_MAPPING if isinstance(value, Mapping) else {}
    if name not in table:
        usual = f"allowed: {', '.join(sorted(table))}" if table else "only strings and mappings have methods"
        raise SecurityError(
            f"{with_article(type(value).__name__)} has no method {name}() that a template may use; {usual}"
        )
    return table[name](value, *args, **kwargs)


def _concatenate(parts: Iterable[Any]) -> str:
    return join_texts(parts)


# What the checked tree is rewritten to use; a template cannot name them.
INNER: Mapping[str, Callable[..., Any]] = {
    "_called": _call_method,
    "_concatenated": _concatenate,
    "_counted": iter_counted,
    "_dict": _make_dict,
    "_range": _make_range,
    "_weighed": charge_length,
}
