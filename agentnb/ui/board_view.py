"""The blackboard table of the page: one row per key, sent when it changes; further rows are sent on request.

A row is [key, text, marks, type, by]; `text` is None if the key has no value. `type` ends with the number of items if
the value can be expanded: `dict[2]`. `by` is [step, node] of the last writer, in the terms of Session.writers. If the
last step replaced a value, its text follows as a sixth item; if it only appended items to a list, None follows, and the
text of these items.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from agentnb.board.masking import mask_value
from agentnb.board.values import ABSENT, FrozenList, FrozenRecord, get_class
from agentnb.draw.board_table import find_row
from agentnb.draw.label_text import clean
from agentnb.engine.core.reducers import find_added_items
from agentnb.secrets import get_version, is_secret
from agentnb.session.parts import get_parts
from agentnb.text import safe_repr
from agentnb.ui.view_changes import mask_content

if TYPE_CHECKING:
    from agentnb.draw.run_view import RunView
    from agentnb.recipe.model import Recipe
    from agentnb.session import Session

ROWS: Final = 2000  # keys of the board that are sent; the page requests others
PAGE: Final = 200  # rows per response to a request
VALUE_WIDTH: Final = 160  # characters of a value; the page requests the rest
_BEFORE_WIDTH: Final = 48
_MOST_COMPARED: Final = 10_000  # items of a list that are compared with those of the new one, in less than 0.1 ms
_MOST_ADDED: Final = 3  # appended items that are shown
Row = list[Any]


class _BoardTexts:
    """The texts of one session's values, cached per value; rebuilt when more values become masked."""

    __slots__ = ("masks", "rows", "texts")

    def __init__(self) -> None:
        self.masks: tuple[object, ...] = ()
        self.texts: dict[str, tuple[Any, str, str]] = {}
        self.rows: dict[str, tuple[Row, Row]] = {}

    def refresh(self) -> None:
        """Forget everything if other values are masked than before."""
        version = get_version()
        if self.masks != version:
            self.masks = version
            self.texts.clear()
            self.rows.clear()

    def of(self, key: str, value: Any) -> tuple[str, str]:
        """Return the text and type of a key's value."""
        known = self.texts.get(key)
        if known is None or known[0] is not value:
            known = self.texts[key] = (value, format_value(key, value, VALUE_WIDTH), get_type_name(value, key))
        return known[1], known[2]

    def row(self, key: str, row: Row) -> Row:
        """Return a row without secrets: the same list as before, if it is the same row."""
        known = self.rows.get(key)
        if known is None or known[0] != row:
            known = self.rows[key] = (row, mask_content(row))
        return known[1]


_SHOWN: Final[WeakKeyDictionary[Session, _BoardTexts]] = WeakKeyDictionary()


def make_rows(session: Session, view: RunView) -> tuple[list[Row], int]:
    """Return the rows sent to every page and the number of rows left out."""
    keys = _order_keys(session.recipe, view)
    return _make_rows(session, view, keys[:ROWS]), max(len(keys) - ROWS, 0)


def search_rows(session: Session, request: Any) -> dict[str, Any]:
    """Return the rows whose key or value contains a text: {rows, total}, one page beginning at row `start`."""
    query = request if isinstance(request, dict) else {}
    word, start = str(query.get("word") or "").casefold(), max(int(query.get("start") or 0), 0)
    view = get_parts(session).pictures.view()
    rows = _make_rows(session, view, _order_keys(session.recipe, view))
    fit = [row for row in rows if word in row[0].casefold() or word in (row[1] or "").casefold()] if word else rows
    return {"rows": fit[start : start + PAGE], "total": len(fit)}


def _make_rows(session: Session, view: RunView, keys: list[str]) -> list[Row]:
    board = view.board
    writers = get_parts(session).explanations.writers([key for key in keys if key in board])
    shown = _SHOWN.setdefault(session, _BoardTexts())
    shown.refresh()
    literal = _list_literal_values(session.recipe, view)
    marked = [{find_row(path, literal) for path in paths} for paths in (view.written, view.read)]
    replaced = get_replaced_values(session, session.position)
    rows = []
    for key in keys:
        text, kind = shown.of(key, board[key]) if key in board else (None, "")
        marks = [word for word, keys in zip(("written", "read"), marked, strict=True) if key in keys]
        by = list(writers[key]) if key in writers and text is not None else None
        change = _describe_change(key, replaced[key], board.get(key)) if key in replaced else []
        rows.append(shown.row(key, [mask_value(key), text, marks, kind, by, *change]))
    return rows  # masked text is what the search matches


def get_replaced_values(session: Session, step: int) -> dict[str, Any]:
    """Return the values that a step, and the edits after it, replaced, by key."""
    reading = session.trace.reading()
    replaced: dict[str, Any] = {}
    for history, row, _ in reading.rows(step) if step else ():
        key, old = str(reading.tables.codes[history.write_codes[row] >> 2][1][0]), history.old_values[row]
        replaced.setdefault(key, old)
    return {key: old for key, old in replaced.items() if old is not ABSENT}


def _describe_change(key: str, old: Any, new: Any) -> list[Any]:
    """Return what a row says about the last change: the text of the old value, or None and that of appended items."""
    if isinstance(old, FrozenList) and len(old) <= _MOST_COMPARED:
        added = find_added_items(old, new)
        if added:
            return [None, ", ".join(format_value(key, item, VALUE_WIDTH) for item in added[:_MOST_ADDED])]
    return [format_value(key, old, _BEFORE_WIDTH)]


def _list_literal_values(recipe: Recipe, view: RunView) -> dict[str, Any]:
    return dict.fromkeys([*recipe.init, *recipe.inputs, *recipe.outputs, *view.board])


def _order_keys(recipe: Recipe, view: RunView) -> list[str]:
    """Return the keys in an order that no step changes: those named by the recipe, then those added by the run.

    Of more keys than are sent, those that were just written come first, wherever they would have been.
    """
    known = _NAMED.get(id(recipe))
    if known is None or known.recipe is not recipe:
        known = _NAMED[id(recipe)] = _NamedPaths.of(recipe)
        while len(_NAMED) > _RECIPES:
            del _NAMED[next(iter(_NAMED))]
    literal = _list_literal_values(recipe, view) if known.dotted or any("." in path for path in view.written) else {}
    named = dict.fromkeys(find_row(path, literal) for path in known.paths) if known.dotted else known.paths
    written = [find_row(path, literal) for path in sorted(view.written)]
    keys = dict.fromkeys([*named, *recipe.init, *view.board, *written])
    return list(keys if len(keys) <= ROWS else dict.fromkeys([*written, *keys]))


class _NamedPaths(NamedTuple):
    """The paths that a recipe names, in order, and the longer ones among them, whose keys depend on the board."""

    recipe: Recipe
    paths: dict[str, None]
    dotted: bool

    @classmethod
    def of(cls, recipe: Recipe) -> _NamedPaths:
        """Return the paths of a recipe."""
        named = [path for node in recipe.nodes.values() for path in (*node.reads, *node.writes)]
        paths = dict.fromkeys([*recipe.inputs, *recipe.outputs, *named])
        return cls(recipe, paths, any("." in path for path in paths))


_NAMED: Final[dict[int, _NamedPaths]] = {}  # the recipes shown last, by id
_RECIPES: Final = 8


def format_value(key: str, value: Any, width: int) -> str:
    """Return a value as a short masked text."""
    return clean(safe_repr(value, width, key=key))


def get_type_name(value: Any, key: object = None) -> str:
    """Return the type name of a frozen value as it was written, with its number of items if it can be expanded.

    A value under a secret's name cannot be expanded.
    """
    if value is ABSENT:
        return ""
    name = "None" if value is None else clean(get_class(value).__name__)
    parts = 0 if is_secret(key) else len(list_items(value))
    return f"{name}[{parts}]" if parts else name


def list_items(value: Any) -> Mapping[Any, Any] | list[Any] | tuple[Any, ...] | FrozenList:
    """Return the items of a frozen value: its mapping or sequence, or an object's fields; empty if it has none."""
    if isinstance(value, FrozenRecord):
        from agentnb.board.decoders import get_fields

        return get_fields(value) or value.parts
    return value if isinstance(value, dict | FrozenList | list | tuple) else ()


def is_masked(value: Any, key: object = None) -> bool:
    """Return True if a frozen value contains something masked."""
    try:
        return bool(mask_value(value, key) != value)
    except Exception:  # noqa: BLE001  (a value's own == may raise anything)
        return True
