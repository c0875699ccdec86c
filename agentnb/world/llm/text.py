"""Values as text for a model and for comparisons: a string unchanged, anything else as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentnb.bounds import find_excess
from agentnb.errors import with_article
from agentnb.text import to_json_integer


def to_text(value: Any) -> str:
    """Return a value as text for a model: a string unchanged, anything else as JSON."""
    return value if isinstance(value, str) else to_json_text(value)


def to_json_text(value: Any, *, ordered: bool = False) -> str:
    """Return a value as JSON, optionally with sorted keys; values that are not JSON-serializable become strings.

    Keys that are not JSON-serializable are left out. An integer with too many digits for Python is in hexadecimal.

    Raises:
        TypeError: its keys cannot be sorted.
        ValueError: it contains itself.

    Example:
        >>> to_json_text({"b": {2, 1}, "a": "é"}, ordered=True)
        '{"a": "é", "b": ["1", "2"]}'
    """
    try:
        return json.dumps(value, ensure_ascii=False, skipkeys=True, sort_keys=ordered, default=_encode_other)
    except ValueError:
        if find_excess(value):
            raise
        value = _convert_integers(value)
    return json.dumps(value, ensure_ascii=False, skipkeys=True, sort_keys=ordered, default=_encode_other)


def _convert_integers(value: Any) -> Any:
    """Return a value in which integers with too many digits are hexadecimal text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return to_json_integer(value)
    if isinstance(value, Mapping):
        return {_convert_integers(key): _convert_integers(item) for key, item in value.items()}
    return [*map(_convert_integers, value)] if isinstance(value, list | tuple) else value


def _encode_other(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return list(value)
    return sorted(map(_to_text, value)) if isinstance(value, set | frozenset) else _to_text(value)


def _to_text(value: Any) -> str:
    try:
        return str(_convert_integers(value))
    except Exception:  # noqa: BLE001  (its own code fails; the rest is still shown)
        return f"{with_article(type(value).__name__)} without a text form"
