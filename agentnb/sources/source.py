"""The Source: plain values (or a passed object) with a position for every part."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentnb.errors import Place, Problem

Path = tuple[str | int, ...]
Position = tuple[int, int]  # line and column, from 1

TEXT = "<text>"
_PLAIN_WORD = re.compile(r"[^\W\d][\w-]*$")


@dataclass(frozen=True)
class Source:
    """A source as plain values, or a passed object, with a position for every part of it.

    `texts` has, by path, the original text of values that YAML reads as a number, a boolean or null (`yes`, `012`);
    `odd_keys` are the unquoted keys (`yes`, `on`, `null`) that YAML 1.1 does not read as strings.
    `blocks` has the position of the first line of each text written as a block (`|`).
    `allow` is what the user allows the recipe besides its own folder.
    """

    content: Any
    file: str = TEXT
    text: str | None = None
    values: Mapping[Path, Position] = field(default_factory=dict)
    keys: Mapping[Path, Position] = field(default_factory=dict)
    texts: Mapping[Path, str] = field(default_factory=dict)
    odd_keys: Mapping[Path, str] = field(default_factory=dict)
    blocks: Mapping[Path, Position] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    allow: tuple[str, ...] = ()

    def locate(self, path: Path = (), *, key: bool = False) -> Place:
        """Return the place of a value, or with `key` of its key; if unknown, of the nearest part around it."""
        position = self.keys.get(path) if key else self.values.get(path)
        ancestor = path
        while position is None and ancestor:
            position = self.keys.get(ancestor) or self.values.get(ancestor)
            ancestor = ancestor[:-1]
        block = None if key else self.blocks.get(path)
        return Place(self.file, *(position or self.values.get((), (0, 0))), format_path(path), block)


def format_path(path: Path) -> str:
    """Return a path in the usual notation.

    Example:
        >>> format_path(("nodes", 3, "routes", "a b"))
        "nodes[3].routes['a b']"
    """
    text = ""
    for key in path:
        if isinstance(key, int) or not _PLAIN_WORD.match(key):
            text += f"[{key!r}]"
        else:
            text += f".{key}" if text else key
    return text


class Lines:
    """Converts an offset in a text into a line and a column."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", text))]

    def get_position(self, offset: int) -> Position:
        """Return the line and the column, both from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1
