"""Small answers: JSON of bounded size, masked, that says how to ask for the rest."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Final

from agentnb.board.masking import mask_value
from agentnb.secrets import mask_text
from agentnb.text import safe_repr, safe_str

LONGEST: Final = 12_000  # characters of one answer
ROWS: Final = 6_000  # characters of the rows of a list
_VALUE: Final = 400  # characters of a value among others
_DEEPEST: Final = 20


def shorten_value(value: Any, longest: int = _VALUE, *, key: object = None) -> Any:
    """Return a value as JSON if it is short, else the beginning of its text, as {"cut": ...}.

    Args:
        longest: the most characters of its text.
        key: its name; the value of a secret's name is masked.
    """
    text = safe_repr(value, longest + 1, key=key)
    if len(text) > longest:
        return {"cut": text}
    return _to_short_json(mask_value(value, key))


def _to_short_json(value: Any, depth: int = 0) -> Any:
    """Return a short masked value as JSON; what JSON lacks becomes text."""
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is int:
        return value if value.bit_length() < 64 else hex(value)
    if kind is float:
        return value if math.isfinite(value) else repr(value)
    if depth < _DEEPEST and issubclass(kind, dict):
        return {safe_str(key): _to_short_json(item, depth + 1) for key, item in dict.items(value)}
    if depth < _DEEPEST and kind in (list, tuple):
        return [_to_short_json(item, depth + 1) for item in value]
    return safe_repr(value, _VALUE)


def to_line(text: object, longest: int = _VALUE) -> str:
    """Return a text, masked and cut."""
    return safe_str(text, longest)


def shorten_error(text: str, longest: int = 300) -> str:
    """Return the text of a failure, masked and cut before its end, which names the line of the user's code."""
    masked, end = mask_text(text), longest // 2
    return masked if len(masked) <= longest else f"{masked[: longest - end - 1]}…{masked[-end:]}"


def list_rows(rows: Iterable[Any], more: Callable[[int], str], *, start: int = 0, limit: int = 50) -> dict[str, Any]:
    """Return the first rows that fit into an answer, and how to ask for the rest.

    Args:
        more: returns that, given the number of the first row that is left out, counted from `start`.
    """
    shown: list[Any] = []
    used = 0
    rows = iter(rows)
    for row in rows:
        used += len(json.dumps(row, ensure_ascii=False))
        if len(shown) == limit or (shown and used > ROWS):
            return {"rows": shown, "more": more(start + len(shown))}
        shown.append(row)
    return {"rows": shown}


def shorten_items(values: Mapping[str, Any], limit: int = 40, longest: int = 200) -> dict[str, Any]:
    """Return the first items of a mapping, each cut; `…` says how many are left out."""
    shortened: dict[str, Any] = {}
    used = 0
    for key, value in islice(values.items(), limit):
        shortened[to_line(key, 100)] = item = shorten_value(value, longest, key=key)
        used += len(json.dumps(item))
        if used > ROWS // 2:
            break
    if len(values) > len(shortened):
        shortened["…"] = f"{len(values) - len(shortened)} more keys: request one of them from `board` by its path"
    return shortened


def to_json_text(answer: Any) -> str:
    """Return an answer as JSON text, masked; one that is too long is cut, and says so."""
    text = mask_text(json.dumps(answer, ensure_ascii=False, allow_nan=False))
    if len(text) <= LONGEST:
        return text
    return json.dumps({"cut": text[:LONGEST], "more": "this answer is too long: request less"}, ensure_ascii=False)


__all__ = ["LONGEST", "list_rows", "shorten_items", "shorten_value", "to_json_text", "to_line"]
