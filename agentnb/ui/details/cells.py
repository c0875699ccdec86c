"""Cells: values as texts for the details pane, masked, split into lines and truncated; one in full on request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from agentnb.board.masking import mask_value
from agentnb.board.scopes import Sentinel
from agentnb.board.values import ABSENT, FrozenArray, FrozenList, FrozenRecord, Opaque, get_class
from agentnb.draw.label_text import is_xml
from agentnb.secrets import MASK, is_secret
from agentnb.text import mask_head, safe_repr, safe_str

CUT: Final = 420  # characters of a value shown at first
LINES: Final = 9  # lines of a value shown at first
WHOLE: Final = 100_000  # characters shown on request
TOTAL: Final = 30_000  # characters of all cells of one response; beyond that, cells are cut to a few words
ROWS: Final = 40  # values of one section; a last cell states how many more there are
_FEW: Final = 60
_WIDE: Final = 72  # a value up to this length is shown on one line
_DEEP: Final = 40  # nesting levels shown; the board accepts deeper values
_BRACKETS: Final[tuple[tuple[tuple[type, ...], str, str], ...]] = (
    ((list, FrozenList), "[", "]"),
    ((tuple,), "(", ")"),
    ((set, frozenset), "{", "}"),
)
# Characters that change the direction of the text around them, by which a value could disguise its surroundings.
_BIDI: Final = dict.fromkeys(map(ord, "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"))
Cell = dict[str, Any]


class Cells:
    """Creates the cells of one response: `{at, name, type, text, cut}`; the page requests a cell by its `at`.

    Every cell is truncated, to `cut` characters and `lines` lines, except the `wanted` one, stored in `wanted_cell`.
    """

    def __init__(self, requested: str | None = None, *, cut: int = CUT, lines: int = LINES) -> None:
        self.wanted, self.wanted_cell, self._left = requested, Cell(), TOTAL
        self._cut, self._lines = cut, lines

    def of(self, at: str, name: str, value: Any) -> Cell:
        """Return the cell of a value; its name determines whether it is a secret."""
        key = next(filter(is_secret, str(name).split(".")), None)
        room = self._get_room(at)
        return self._make_cell(at, name, get_type_name(value), display_text(value, key, room), room, self._lines)

    def text(self, at: str, name: str, text: str) -> Cell:
        """Return the cell of a text that is not a value: a definition, a prompt."""
        return self._make_cell(at, name, "", mask_head(text, WHOLE + 1), 2 * self._get_room(at), 2 * self._lines)

    def rows(self, at: str, values: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> list[Cell]:
        """Return one cell per named value; the last one states how many were left out."""
        pairs = list(values.items() if isinstance(values, Mapping) else values)
        cells = [self.of(f"{at}/{number}", str(name), value) for number, (name, value) in enumerate(pairs[:ROWS])]
        return cells + ([make_more_cell(len(pairs) - ROWS)] if len(pairs) > ROWS else [])

    def _get_room(self, at: str) -> int:
        return WHOLE if at == self.wanted else min(self._cut, max(self._left, _FEW))

    def _make_cell(self, at: str, name: str, kind: str, text: str, room: int, limit: int) -> Cell:
        lines = text.split("\n")
        shown = "\n".join(lines if at == self.wanted else lines[:limit])[:room]
        self._left -= len(shown)
        cell = {
            "at": at,
            "name": to_line(name),
            "type": kind,
            "text": to_sendable(shown),
            "cut": len(shown) < len(text),
        }
        if at == self.wanted:
            self.wanted_cell = cell
        return cell


def make_more_cell(number: int) -> Cell:
    """Return the cell that states how many values were left out."""
    return {"at": "", "name": "…", "type": "", "text": f"and {number} more", "cut": False}


def to_line(text: object) -> str:
    """Return a name or word on one line, masked."""
    return " ".join(to_sendable(safe_str(text)).split())


def to_sendable(text: str) -> str:
    """Return a text that can be sent: without lone surrogates and without direction-changing characters."""
    shown = text.translate(_BIDI)
    if not shown.isprintable():
        shown = "".join(char if is_xml(char) else "\ufffd" for char in shown)
    return shown


def get_type_name(value: Any) -> str:
    """Return the type of a frozen value in one word, with the number of items of a collection."""
    cls, name = type(value), get_class(value).__qualname__
    if cls is FrozenArray:
        return f"{name} {'×'.join(map(str, value.array.shape))}"
    if cls is Opaque:
        return f"{name}, by reference"
    return f"{name}, {len(value)}" if isinstance(value, dict | list | FrozenList | tuple | set | frozenset) else name


def display_text(value: Any, key: object = None, room: int = CUT) -> str:
    """Return a value as masked text: a string as it is, anything else as its repr, split into lines if long.

    The text is longer than `room` if the value does not fit in it, so that formatting takes bounded time for any value.
    """
    if key is not None and is_secret(key) and value is not None:
        return MASK
    if isinstance(value, str) and not isinstance(value, Enum):
        return mask_head(value, WHOLE + 1)
    return _format_lines(value, None, 0, room + 1)


def _format_lines(value: Any, key: object, depth: int, room: int) -> str:
    """Return a value on one line, or one line per item; stop after `room` characters."""
    short = _format_one_line(value, key)
    if short is not None:
        return short
    marks, parts = _open(value)
    if parts is None or depth >= _DEEP:
        return _format_leaf(value)
    pad, out, used = "  " * (depth + 1), [marks[0]], 0
    for name, item in parts:
        label = (
            "" if name is ABSENT else f"{name}=" if marks[1] == ")" and marks[0] != "(" else f"{_format_leaf(name)}: "
        )
        text = f"{pad}{label}{_format_lines(item, None if name is ABSENT else name, depth + 1, room - used)},"
        out.append(text)
        used += len(text) + 1
        if used > room:
            break
    return "\n".join([*out, f"{pad[2:]}{marks[1]}"])


def _format_one_line(value: Any, key: object = None) -> str | None:
    """Return a value as one line, or None if it would be too long."""
    parts, used = list[str](), 0
    for piece in _iter_pieces(value, key, 0):
        used += len(piece)
        if used > _WIDE or "\n" in piece:
            return None
        parts.append(piece)
    return "".join(parts)


def _iter_pieces(value: Any, key: object, depth: int) -> Iterator[str]:
    if key is not None and is_secret(key) and value is not None:
        yield repr(str(MASK))
        return
    marks, parts = _open(value)
    if parts is None or depth >= _DEEP:
        yield _format_leaf(value)
        return
    yield marks[0]
    for number, (name, item) in enumerate(parts):
        yield ", " if number else ""
        if name is not ABSENT:
            yield f"{name}=" if marks[1] == ")" else f"{_format_leaf(name)}: "
        yield from _iter_pieces(item, None if name is ABSENT else name, depth + 1)
    yield ",)" if marks[0] == "(" and len(value) == 1 else marks[1]


def _open(value: Any) -> tuple[tuple[str, str], Iterable[tuple[Any, Any]] | None]:
    """Return the brackets of a collection and its items as (name or ABSENT, item); None if it has no items."""
    if type(value) is FrozenRecord:
        return (f"{type(value.template).__qualname__}(", ")"), value.parts.items()
    if isinstance(value, dict):
        return ("{", "}"), value.items()
    items: Any = value
    for types, first, last in _BRACKETS:
        if isinstance(value, types):
            return ("set(", ")") if first == "{" and not items else (first, last), ((ABSENT, item) for item in items)
    return ("", ""), None


def _format_leaf(value: Any) -> str:
    """Return the repr of a value without items, or a note if its repr fails."""
    if isinstance(value, str) and not isinstance(value, Enum):
        return repr(str(mask_head(value, WHOLE + 1)))
    if value is ABSENT or type(value) is Sentinel:
        return "nothing"
    if isinstance(value, datetime | date | time | timedelta | Decimal | bool | int | float):
        return safe_str(value)
    if isinstance(value, type):
        return value.__qualname__
    if type(value) is FrozenArray:
        return safe_str(mask_value(value), WHOLE + 1)
    return safe_repr(value.value if type(value) is Opaque else value, WHOLE + 1)
