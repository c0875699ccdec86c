"""Bounds of walks over users' values: how deep and how large a value may be, and why one is refused.

A value may contain itself, or share its parts so that it unfolds to more than any memory holds. Python's recursion
limit does not help: it comes too late for the second, and depends on the version and on the caller.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

DEPTH_LIMIT: Final = 200  # levels
SIZE_LIMIT: Final = 1_000_000  # lists, mappings and objects, each occurrence counted


_SUSPICIOUS: Final = 10_000  # parts; a value with more of them is measured as a whole before the walk continues


class Walk:
    """How deep a walk over a value is, and how many lists, mappings and objects it has entered."""

    __slots__ = ("depth", "included", "size", "value")

    def __init__(self, value: Any) -> None:
        self.value, self.depth, self.size, self.included = value, 0, 0, 0

    def enter(self) -> str:
        """Count a part that is entered; return why the walk must stop, "" if it may continue.

        The caller decrements `depth` when it leaves the part.
        """
        self.depth += 1
        self.size += 1
        if self.depth > DEPTH_LIMIT:
            return TOO_DEEP
        if self.size > SIZE_LIMIT:
            return TOO_LARGE
        return find_excess(self.value) if self.size - self.included == _SUSPICIOUS else ""

    def include(self, levels: int, total: int) -> str:
        """Count a part that was measured before; return why the walk must stop, "" if it may continue."""
        self.size += total
        self.included += total
        if self.depth + levels > DEPTH_LIMIT:
            return TOO_DEEP
        return TOO_LARGE if self.size > SIZE_LIMIT else ""


def find_excess(value: Any) -> str:
    """Return why a value is too deep or too large to be walked, "" for any other; runs no code of its parts.

    The caller may then recurse over the dicts, lists, tuples and sets in it; other objects are not entered. A part
    that occurs several times is measured once, and counts each time.

    Example:
        >>> loop = []; loop.append(loop); find_excess(loop)
        'it has more than 200 levels, or it contains itself'
        >>> find_excess([{"a": (1, 2)}])
        ''
    """
    known: dict[int, tuple[int, int]] = {}  # of each finished part: its size, its levels
    around = [_Part(0, iter((value,)))]
    while around:
        part = around[-1]
        for item in part.items:
            if type(item) in _ATOMS:
                continue
            excess = known.get(id(item))
            if excess is None:
                items = _iter_items(item)
                if items is None:
                    continue
                if len(around) > DEPTH_LIMIT:
                    return TOO_DEEP
                around.append(_Part(id(item), items))
                break
            part.add(*excess)
            if part.size > SIZE_LIMIT:
                return TOO_LARGE
            if len(around) + excess[1] > DEPTH_LIMIT + 1:
                return TOO_DEEP
        else:
            around.pop()
            known[part.id] = (part.size, part.levels)
            if around:
                around[-1].add(part.size, part.levels)
                if around[-1].size > SIZE_LIMIT:
                    return TOO_LARGE
    return ""


class _Part:
    """A list or mapping that is being measured."""

    __slots__ = ("id", "items", "levels", "size")

    def __init__(self, id: int, items: Iterator[Any]) -> None:
        self.id, self.items, self.size, self.levels = id, items, 1, 1

    def add(self, size: int, levels: int) -> None:
        self.size += size
        self.levels = max(self.levels, levels + 1)


def _iter_items(value: Any) -> Iterator[Any] | None:
    kind = type(value)
    if issubclass(kind, dict):
        keys = [key for key in dict.keys(value) if type(key) not in _ATOMS]
        return iter([*keys, *dict.values(value)])
    for base in (list, tuple, set, frozenset):
        if issubclass(kind, base):
            return iter([*base.__iter__(value)])
    return None


TOO_DEEP: Final = f"it has more than {DEPTH_LIMIT} levels, or it contains itself"
TOO_LARGE: Final = f"it has more than {SIZE_LIMIT:,} lists, mappings and objects in it"
_ATOMS: Final = frozenset({str, int, float, bool, type(None), bytes})

__all__ = ["DEPTH_LIMIT", "SIZE_LIMIT", "TOO_DEEP", "TOO_LARGE", "Walk", "find_excess"]
