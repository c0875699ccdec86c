"""Values as text for a model and for comparisons: a string unchanged, anything else as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentnb.errors import with_article


def to_text(value: Any) -> str:
    """Return a value as text for a model: a string unchanged, anything else as JSON."""
    return value if isinstance(value, str) else to_json_text(value)


def to_json_text(value: Any, *, ordered: bool = False) -> str:
    """Return a value as JSON, optionally with sorted keys; values that are not JSON-serializable become strings.

    Keys that are not JSON-serializable are left out.

    Raises:
        TypeError: its keys cannot be sorted.
        ValueError: it contains itself.

    Example:
        >>> to_json_text({"b": {2, 1}, "a": "é"}, ordered=True)
        '{"a": "é", "b": ["1", "2"]}'
    """
    return json.dumps(value, ensure_ascii=False, skipkeys=True, sort_keys=ordered, default=_encode_other)


def _encode_other(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return list(value)
    return sorted(map(_to_text, value)) if isinstance(value, set | frozenset) else _to_text(value)


def _to_text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001  (its own code fails; the rest is still shown)
        return f"{with_article(type(value).__name__)} without a text form"
