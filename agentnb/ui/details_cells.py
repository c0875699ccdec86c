"""details_cells: values as texts of the details pane: masked, set in lines and cut; one of them whole, on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from agentnb.board.scopes import Mark
from agentnb.board.secrets import MASK, hidden, is_secret
from agentnb.board.values import ABSENT, FrozenArray, FrozenDict, FrozenList, FrozenRecord, FrozenSet, Opaque
from agentnb.draw.text import is_xml

CUT: Final = 420  # characters of a value that are shown at first
LINES: Final = 9  # and lines of it
WHOLE: Final = 100_000  # characters that are shown on demand
TOTAL: Final = 30_000  # characters of all cells of one look; once they are used up, cells are cut to a few words
ROWS: Final = 40  # values of one part; how many more there are is said
_FEW: Final = 60
_WIDE: Final = 72  # what is no longer than this stands in one line
_DEEP: Final = 40  # levels that are shown; the board takes deeper ones
_NAMES: Final[dict[type, str]] = {FrozenDict: "dict", FrozenList: "list", FrozenSet: "set"}
_BRACKETS: Final[tuple[tuple[tuple[type, ...], str, str], ...]] = (
    ((list, FrozenList), "[", "]"),
    ((tuple,), "(", ")"),
    ((set, frozenset), "{", "}"),
)
# What would turn the text around it, so that a value could lie about what stands beside it.
_BIDI: Final = dict.fromkeys(map(ord, "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"))
Cell = dict[str, Any]


class Cells:
    """Makes the cells of one look: `{at, name, type, text, cut}`, where `at` is what a cell is asked for by.

    Every cell is cut but the one that is `wanted`, which is then in `found`.
    """

    def __init__(self, wanted: str | None = None) -> None:
        self.wanted, self.found, self._left = wanted, Cell(), TOTAL

    def of(self, at: str, name: str, value: Any) -> Cell:
        """Return the cell of a value; the words of its name say whether it is a secret."""
        key = next(filter(is_secret, str(name).split(".")), None)
        room = self._room(at)
        return self._cell(at, name, type_of(value), told(value, key, room), room, LINES)

    def text(self, at: str, name: str, text: str) -> Cell:
        """Return the cell of a text that is no value: a definition, a prompt."""
        return self._cell(at, name, "", hidden(text), 2 * self._room(at), 2 * LINES)

    def rows(self, at: str, values: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> list[Cell]:
        """Return a cell for each of some named values; the last one says how many more there are."""
        pairs = list(values.items() if isinstance(values, Mapping) else values)
        found = [self.of(f"{at}/{number}", str(name), value) for number, (name, value) in enumerate(pairs[:ROWS])]
        return found + ([more(len(pairs) - ROWS)] if len(pairs) > ROWS else [])

    def _room(self, at: str) -> int:
        return WHOLE if at == self.wanted else min(CUT, max(self._left, _FEW))

    def _cell(self, at: str, name: str, kind: str, text: str, room: int, most: int) -> Cell:
        lines = text.split("\n")
        kept = "\n".join(lines if at == self.wanted else lines[:most])[:room]
        self._left -= len(kept)
        cell = {"at": at, "name": line(name), "type": kind, "text": sendable(kept), "cut": len(kept) < len(text)}
        if at == self.wanted:
            self.found = cell
        return cell


def more(number: int) -> Cell:
    """Return the cell that says how many more there are."""
    return {"at": "", "name": "…", "type": "", "text": f"and {number} more", "cut": False}


def line(text: object) -> str:
    """Return a name or a word as one line, masked."""
    return " ".join(sendable(hidden(str(text))).split())


def sendable(text: str) -> str:
    """Return a text as it may go over the wire: without half characters, and without what turns the text around it."""
    shown = text.translate(_BIDI)
    if not shown.isprintable():
        shown = "".join(char if is_xml(char) else "\ufffd" for char in shown)
    return shown


def type_of(value: Any) -> str:
    """Return what a frozen value is, in a word, and of a collection how many are in it."""
    cls = value.__class__
    if cls is FrozenRecord:
        return type(value.template).__qualname__
    if cls is FrozenArray:
        return f"{type(value.held).__name__} {'×'.join(map(str, value.held.shape))}"
    if cls is Opaque:
        return f"{type(value.value).__qualname__}, by reference"
    name = _NAMES.get(cls, cls.__name__)
    return f"{name}, {len(value)}" if isinstance(value, dict | list | FrozenList | tuple | set | frozenset) else name


def told(value: Any, key: object = None, room: int = CUT) -> str:
    """Return a value as text, masked: a text as it is, all else as Python writes it, in lines where it is long.

    It is longer than `room` where not all of it is told, so that a value of any size costs the same.
    """
    if key is not None and is_secret(key) and value is not None:
        return MASK
    if isinstance(value, str) and not isinstance(value, Enum):
        return hidden(value)[: WHOLE + 1]
    return hidden(_lines(value, None, 0, room + 1))


def _lines(value: Any, key: object, depth: int, room: int) -> str:
    """Return a value in one line, or its parts in a line each; it stops behind `room` characters."""
    short = _one_line(value, key)
    if short is not None:
        return short
    marks, parts = _opened(value)
    if parts is None or depth >= _DEEP:
        return _leaf(value)
    pad, out, used = "  " * (depth + 1), [marks[0]], 0
    for name, item in parts:
        label = "" if name is ABSENT else f"{name}=" if marks[1] == ")" and marks[0] != "(" else f"{_leaf(name)}: "
        text = f"{pad}{label}{_lines(item, None if name is ABSENT else name, depth + 1, room - used)},"
        out.append(text)
        used += len(text) + 1
        if used > room:
            break
    return "\n".join([*out, f"{pad[2:]}{marks[1]}"])


def _one_line(value: Any, key: object = None) -> str | None:
    """Return a value as one line, or None where that would be too long."""
    found, used = list[str](), 0
    for piece in _pieces(value, key, 0):
        used += len(piece)
        if used > _WIDE or "\n" in piece:
            return None
        found.append(piece)
    return "".join(found)


def _pieces(value: Any, key: object, depth: int) -> Iterator[str]:
    if key is not None and is_secret(key) and value is not None:
        yield MASK
        return
    marks, parts = _opened(value)
    if parts is None or depth >= _DEEP:
        yield _leaf(value)
        return
    yield marks[0]
    for number, (name, item) in enumerate(parts):
        yield ", " if number else ""
        if name is not ABSENT:
            yield f"{name}=" if marks[1] == ")" else f"{_leaf(name)}: "
        yield from _pieces(item, None if name is ABSENT else name, depth + 1)
    yield ",)" if marks[0] == "(" and len(value) == 1 else marks[1]


def _opened(value: Any) -> tuple[tuple[str, str], Iterable[tuple[Any, Any]] | None]:
    """Return the brackets of a collection and its parts: (name, or ABSENT, and the part); None for what has none."""
    if value.__class__ is FrozenRecord:
        return (f"{type(value.template).__qualname__}(", ")"), value.parts.items()
    if isinstance(value, dict):
        return ("{", "}"), value.items()
    items: Any = value
    for types, first, last in _BRACKETS:
        if isinstance(value, types):
            return ("set(", ")") if first == "{" and not items else (first, last), ((ABSENT, item) for item in items)
    return ("", ""), None


def _leaf(value: Any) -> str:
    """Return a value that has no parts, as Python writes it; one whose own repr fails is said to be so."""
    if isinstance(value, str) and not isinstance(value, Enum):
        return repr(hidden(value)[: WHOLE + 1])
    if value is ABSENT or value.__class__ is Mark:
        return "nothing"
    if isinstance(value, datetime | date | time | timedelta | Decimal | bool | int | float):
        return str(value)
    if isinstance(value, type):
        return value.__qualname__
    held = value.held if value.__class__ is FrozenArray else value.value if value.__class__ is Opaque else value
    try:
        return hidden(str(held) if value.__class__ is FrozenArray else repr(held))
    except Exception as error:  # noqa: BLE001  (a value's own repr may raise anything)
        return f"<{type(held).__name__} that cannot be shown: {type(error).__name__}>"
