"""board: the blackboard as a page shows it: a row a key, sent where it has changed; the rest is asked for.

A row is [key, text, marks, type, by]. `text` is None where there is no value; `type` ends with how many parts it has,
`dict[2]`, where it opens to them; `by` is [step, node] of who wrote it, with the words of Session.writers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from agentnb.board.secrets import hidden, how_many, is_secret, masked, short
from agentnb.board.values import ABSENT, FrozenArray, FrozenDict, FrozenList, FrozenRecord, FrozenSet, Opaque
from agentnb.draw.board import row_of
from agentnb.draw.text import clean

if TYPE_CHECKING:
    from agentnb.draw.view import RunView
    from agentnb.recipe.model import Recipe
    from agentnb.session import Session

ROWS: Final = 2000  # keys of the board that are sent; who looks for others asks for them
PAGE: Final = 200  # rows of one answer to who asks
VALUE_WIDTH: Final = 160  # characters of a value; the page shows the rest on demand
_NAMES: Final = {FrozenDict: "dict", FrozenList: "list", FrozenSet: "set", type(None): "None"}
Row = list[Any]


class _Shown:
    """The texts of one session's values, made once a value; when more is to be masked, they are made anew."""

    __slots__ = ("masks", "texts")

    def __init__(self) -> None:
        self.masks = -1
        self.texts: dict[str, tuple[Any, str, str]] = {}

    def of(self, key: str, value: Any) -> tuple[str, str]:
        """Return the text and the type of a key's value."""
        if self.masks != how_many():
            self.masks = how_many()
            self.texts.clear()
        known = self.texts.get(key)
        if known is None or known[0] is not value:
            known = self.texts[key] = (value, text_of(key, value, VALUE_WIDTH), type_of(value, key))
        return known[1], known[2]


_SHOWN: Final[WeakKeyDictionary[Session, _Shown]] = WeakKeyDictionary()


def rows_of(session: Session, view: RunView) -> tuple[list[Row], int]:
    """Return the rows that every page is sent, and how many more there are."""
    keys = _keys(session.recipe, view)
    return _rows(session, view, keys[:ROWS]), max(len(keys) - ROWS, 0)


def found_rows(session: Session, which: Any) -> dict[str, Any]:
    """Return the rows that have a word in their key or value: {rows, total}, one page from the row `start` on."""
    asked = which if isinstance(which, dict) else {}
    word, start = str(asked.get("word") or "").casefold(), max(int(asked.get("start") or 0), 0)
    view = session.view()
    rows = _rows(session, view, _keys(session.recipe, view))
    fit = [row for row in rows if word in row[0].casefold() or word in (row[1] or "").casefold()] if word else rows
    return {"rows": fit[start : start + PAGE], "total": len(fit)}


def _rows(session: Session, view: RunView, keys: list[str]) -> list[Row]:
    board, writers = view.board, session.writers()
    shown = _SHOWN.setdefault(session, _Shown())
    literal = _literal(session.recipe, view)
    marked = [{row_of(path, literal) for path in paths} for paths in (view.written, view.read)]
    rows = []
    for key in keys:
        text, kind = shown.of(key, board[key]) if key in board else (None, "")
        marks = [word for word, found in zip(("written", "read"), marked, strict=True) if key in found]
        by = list(writers[key]) if key in writers and text is not None else None
        rows.append([hidden(key), text, marks, kind, by])
    return rows


def _literal(recipe: Recipe, view: RunView) -> dict[str, Any]:
    return dict.fromkeys([*recipe.init, *recipe.inputs, *recipe.outputs, *view.board])


def _keys(recipe: Recipe, view: RunView) -> list[str]:
    """The keys in an order that no step changes: those that the recipe names, then what the run brought."""
    return list(dict.fromkeys(_named(recipe, view, _literal(recipe, view))))


def _named(recipe: Recipe, view: RunView, literal: Mapping[str, Any]) -> Iterator[str]:
    yield from recipe.init
    yield from recipe.inputs
    for node in recipe.nodes.values():
        yield from (row_of(path, literal) for path in (*node.reads, *node.writes))
    yield from (row_of(path, literal) for path in recipe.outputs)
    yield from view.board
    yield from (row_of(path, literal) for path in sorted(view.written))


def text_of(key: str, value: Any, width: int) -> str:
    """Return a value as a short text, masked; one whose own repr fails is said to be so."""
    try:
        return clean(short(value, key, width))
    except Exception as error:  # noqa: BLE001  (a value's own repr may raise anything)
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"


def type_of(value: Any, key: object = None) -> str:
    """Return the name of a frozen value's type as it was written, with how many parts it opens to.

    What stands under a secret's name does not open.
    """
    if value is ABSENT:
        return ""
    held = {FrozenRecord: "template", FrozenArray: "held", Opaque: "value"}.get(value.__class__)
    cls = value.__class__ if held is None else type(getattr(value, held))
    name = clean(_NAMES.get(cls, cls.__name__))
    parts = 0 if is_secret(key) else len(parts_of(value))
    return f"{name}[{parts}]" if parts else name


def parts_of(value: Any) -> Mapping[Any, Any] | list[Any] | tuple[Any, ...] | FrozenList:
    """Return what a frozen value opens to: the mapping or the items that it is, or an object's fields; else nothing."""
    if isinstance(value, FrozenRecord):
        from agentnb.board.revived import fields_of

        return fields_of(value) or value.parts
    return value if isinstance(value, dict | FrozenList | list | tuple) else ()


def is_masked(value: Any, key: object = None) -> bool:
    """Say whether something in a frozen value is masked."""
    try:
        return bool(masked(value, key) != value)
    except Exception:  # noqa: BLE001  (a value's own == may raise anything)
        return True
