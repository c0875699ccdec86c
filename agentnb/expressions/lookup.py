"""Lookup of paths in a context, and conversion of the board's values to JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Any
from uuid import UUID

from agentnb.bounds import find_excess
from agentnb.errors import with_article

__all__ = [
    "NOTHING",
    "find_missing_prefix",
    "get_value",
    "has_json",
    "is_number",
    "is_simple",
    "put",
    "to_finite",
    "to_json",
    "to_plain",
]

_WIDE = 2**63  # many JSON readers turn integers from here on into floats
_MOST = 1.7976931348623157e308  # the largest float: JSON has no infinity, and this compares the same way
NOTHING = object()  # the result of a lookup that finds no value; None is a value like any other


def get_value(context: Any, path: Sequence[str]) -> Any:
    """Return the value at a path of keys, NOTHING if there is none. Attributes of objects are not looked up.

    As on the board, a literal key with dots takes precedence over the path with the same text; at each mapping, the
    longest such key is used.
    """
    current, start, size = context, 0, len(path)
    while start < size:
        if type(current) is dict or isinstance(current, Mapping):
            end = size
            value = _get_item(current, ".".join(path[start:end]))
            while value is NOTHING and end > start + 1:
                end -= 1
                value = _get_item(current, ".".join(path[start:end]))
            current, start = value, end
        elif isinstance(current, Sequence) and not isinstance(current, str | bytes) and _is_index(path[start], current):
            current, start = current[int(path[start])], start + 1
        else:
            return NOTHING
    return current


def _get_item(mapping: Mapping[Any, Any], key: str) -> Any:
    value = mapping.get(key, NOTHING)  # not mapping[key], which would add the key to a defaultdict
    if value is NOTHING and key.isdecimal() and len(key) < 20:
        return mapping.get(int(key), NOTHING)
    return value


def _is_index(key: str, items: Sequence[Any]) -> bool:
    return key.isdecimal() and len(key) < 20 and int(key) < len(items)


def find_missing_prefix(context: Any, path: Sequence[str]) -> tuple[tuple[str, ...], list[str]] | None:
    """Return the shortest missing prefix of a path, and the keys that exist in its place."""
    for size in range(1, len(path) + 1):
        if get_value(context, path[:size]) is NOTHING:
            holder = get_value(context, path[: size - 1])
            return tuple(path[:size]), [str(key) for key in holder] if isinstance(holder, Mapping) else []
    return None


def to_json(value: Any) -> str:
    """Return `value` as JSON text.

    Raises:
        TypeError, ValueError: it contains values that JSON does not have, such as NaN, or is too deep or too large
    """
    why = find_excess(value)
    if why:
        raise ValueError(why)
    return json.dumps(value, allow_nan=False, default=to_plain)


def to_plain(value: Any) -> Any:
    """Return the JSON form of one value that JSON does not have: times as ISO strings, records as objects."""
    match value:
        case None | bool() | str() | int() | float() | dict() | list():
            return value
        case Enum():
            return value.value
        case Mapping():
            return dict(value)
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Decimal() | Fraction():
            return float(value)
        case UUID() | PurePath():
            return str(value)
        case Sequence() | AbstractSet() if not isinstance(value, bytes):
            return list(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    for name in ("model_dump", "tolist"):  # a pydantic object, a numpy number or array
        if callable(found := getattr(value, name, None)) and not isinstance(value, type):
            return found()
    raise TypeError(f"{with_article(type(value).__name__)} has no JSON form")


def put(context: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Write `value` at a path of dicts, which are created as needed."""
    *parents, last = path
    for key in parents:
        context = context.setdefault(key, {})
    context[last] = value


def is_simple(value: Any) -> bool:
    """Return True if a value is an atom that means the same in JSON: a string, a finite number, true, false or null."""
    cls = type(value)
    if cls is int:
        return bool(-_WIDE <= value < _WIDE)
    return cls is str or cls is bool or value is None or (cls is float and math.isfinite(value))


def is_number(value: Any) -> bool:
    """Return True if a value is a number; True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def to_finite(value: Any) -> Any:
    """Return `value` with infinite numbers, and whole numbers too large for a float, replaced by finite floats.

    Raises:
        ValueError: it is too deep or too large
    """
    why = find_excess(value)
    if why:
        raise ValueError(why)
    return _to_finite_within(value)


def _to_finite_within(value: Any) -> Any:
    if isinstance(value, float) and math.isinf(value):
        return math.copysign(_MOST, value)
    if isinstance(value, int) and value.bit_length() > 1023:
        return _MOST if value > 0 else -_MOST
    if isinstance(value, dict):
        return {key: _to_finite_within(item) for key, item in value.items()}
    return [_to_finite_within(item) for item in value] if isinstance(value, list | tuple) else value


def has_json(value: Any) -> bool:
    """Return True if `to_finite` and `to_json` can convert a value to JSON."""
    try:
        to_json(to_finite(value))
    except (TypeError, ValueError, RecursionError):  # RecursionError: from an object's own `model_dump` or items
        return False
    return True
