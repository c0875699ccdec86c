"""Dotted paths: text to a tuple of keys. Text is parsed only at the API boundary; internally, a path is a tuple."""

from __future__ import annotations

from collections.abc import Mapping

Path = tuple[str | int, ...]


def parse_path(text: str) -> tuple[str, ...]:
    """Return the keys of a dotted path.

    Example:
        >>> parse_path("order.lines.0")
        ('order', 'lines', '0')
    """
    return tuple(text.split("."))


def format_path(path: Path) -> str:
    """Return the dotted text of a path."""
    return ".".join(map(str, path))


def resolve_path(text: str, board: Mapping[str, object]) -> tuple[str, ...]:
    """Return the path that `text` means on this board: a literal key with a dot takes precedence over the dotted path.

    At each mapping along the path, the longest part that is a key is used; if there is none, the first word.
    """
    if "." not in text or text in board:
        return (text,)
    parts = text.split(".")
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
