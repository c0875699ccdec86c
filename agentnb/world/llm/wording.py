"""wording: values as a model is told them, and as texts are compared: a text as it is, anything else as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def in_words(value: Any) -> str:
    """Return a value as a model is told it: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json_text(value)


def json_text(value: Any, *, ordered: bool = False) -> str:
    """Return a value as JSON, its keys in order where that is asked for; what JSON does not have is told as text.

    Keys that JSON does not have are left out.

    Raises:
        TypeError: its keys cannot be put in order.
        ValueError: it contains itself.

    Example:
        >>> json_text({"b": {2, 1}, "a": "é"}, ordered=True)
        '{"a": "é", "b": ["1", "2"]}'
    """
    return json.dumps(value, ensure_ascii=False, skipkeys=True, sort_keys=ordered, default=_other)


def _other(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return list(value)
    return sorted(map(_named, value)) if isinstance(value, set | frozenset) else _named(value)


def _named(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001  (its own code fails, and what there is can be told all the same)
        return f"a {type(value).__name__} that cannot be told"
