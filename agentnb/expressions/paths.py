"""paths: dotted text to a path of keys. Texts are parsed at the surface only; inside, a path is a tuple."""

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


def path_text(path: Path) -> str:
    """Return the dotted text of a path."""
    return ".".join(map(str, path))


def resolve_path(text: str, board: Mapping[str, object]) -> tuple[str, ...]:
    """Return the path that `text` means on this board: a literal key with a dot wins over the dotted reading.

    At each mapping on the way the longest part that is a key there is taken; where none is, the first word.
    """
    if "." not in text or text in board:
        return (text,)
    words, path, here = text.split("."), [], board
    while words:
        size = 1
        if isinstance(here, Mapping):
            size = next((n for n in range(len(words), 0, -1) if ".".join(words[:n]) in here), 1)
        key = ".".join(words[:size])
        path.append(key)
        here = here.get(key) if isinstance(here, Mapping) else None  # type: ignore[assignment]  # any value may come
        words = words[size:]
    return tuple(path)
