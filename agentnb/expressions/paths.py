"""Dotted paths: text to a tuple of keys. Text is parsed only at the API boundary; internally, a path is a tuple."""

from __future__ import annotations

import re
from collections.abc import Mapping

Path = tuple[str | int, ...]


_INDEX = re.compile(r"\[(-?\d+)\]")


def parse_path(text: str) -> tuple[str, ...]:
    """Return the keys of a dotted path; an index may also be written in brackets.

    Example:
        >>> parse_path("order.lines.0"), parse_path("order.lines[0].price")
        (('order', 'lines', '0'), ('order', 'lines', '0', 'price'))
    """
    return tuple((_INDEX.sub(r".\1", text) if "[" in text else text).split("."))


def format_path(path: Path) -> str:
    """Return the dotted text of a path."""
    return ".".join(map(str, path))


def resolve_path(text: str, board: Mapping[str, object]) -> tuple[str, ...]:
    """Return the path that `text` means on this board: a literal key with a dot takes precedence over the dotted path.

    At each mapping along the path, the longest part that is a key is used; if there is none, the first word.
    """
    if text in board:
        return (text,)
    parts = parse_path(text)
    if len(parts) == 1:
        return parts
    path: list[str] = []
    current: object = board
    start, size = 0, len(parts)
    while start < size:
        if not isinstance(current, dict | Mapping):
            return (*path, *parts[start:])
        end = size
        while (key := ".".join(parts[start:end])) not in current and end > start + 1:
            end -= 1
        path.append(key)
        current, start = current.get(key), end
    return tuple(path)
