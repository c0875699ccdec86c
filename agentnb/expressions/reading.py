"""reading: what lies at a path of a context, and the board's values as JSON for those who know nothing else."""

from __future__ import annotations

import json
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

__all__ = ["NOTHING", "found_at", "nearest", "plain", "to_json"]

NOTHING = object()  # what is found where nothing lies; None is a value like any other


def found_at(context: Any, path: Sequence[str]) -> Any:
    """Return what lies at a path of keys, NOTHING where nothing does. Attributes of objects are not looked at.

    A key that is the path's dotted text wins over the path.
    """
    if len(path) > 1 and isinstance(context, Mapping) and (text := ".".join(path)) in context:
        return context[text]
    here = context
    for key in path:
        if isinstance(here, Mapping):
            here = _value_of(here, key)
        elif isinstance(here, Sequence) and not isinstance(here, str | bytes) and _is_index(key, here):
            here = here[int(key)]
        else:
            return NOTHING
        if here is NOTHING:
            return NOTHING
    return here


def _value_of(mapping: Mapping[Any, Any], key: str) -> Any:
    if key in mapping:  # asked first: a defaultdict would grow
        return mapping[key]
    number = int(key) if key.isdecimal() and len(key) < 20 else None
    return mapping[number] if number is not None and number in mapping else NOTHING


def _is_index(key: str, items: Sequence[Any]) -> bool:
    return key.isdecimal() and len(key) < 20 and int(key) < len(items)


def nearest(context: Any, path: Sequence[str]) -> tuple[tuple[str, ...], list[str]] | None:
    """Return the shortest part of a path that is not there, and the keys that are there in its place."""
    for size in range(1, len(path) + 1):
        if found_at(context, path[:size]) is NOTHING:
            holder = found_at(context, path[: size - 1])
            return tuple(path[:size]), [str(key) for key in holder] if isinstance(holder, Mapping) else []
    return None


def to_json(value: Any) -> str:
    """Return `value` as JSON text.

    Raises: TypeError, ValueError, RecursionError: it holds what JSON does not have, such as NaN, or is nested too deep
    """
    return json.dumps(value, allow_nan=False, default=plain)


def plain(value: Any) -> Any:
    """Return what stands in JSON for one value that JSON does not have: times as ISO text, records as objects."""
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
    for name in ("model_dump", "item"):  # a pydantic object, a numpy number
        if callable(found := getattr(value, name, None)) and not isinstance(value, type):
            return found()
    raise TypeError(f"a {type(value).__name__} has no form in JSON")
