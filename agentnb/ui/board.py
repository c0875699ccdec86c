"""board: the blackboard as a page shows it: a row a key, and all of one value with its type and who wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.secrets import short
from agentnb.board.values import ABSENT, thaw
from agentnb.draw.board import row_of
from agentnb.draw.text import clean
from agentnb.errors import AgentNbError
from agentnb.ui.fields import field_of

if TYPE_CHECKING:
    from agentnb.draw.view import RunView
    from agentnb.recipe.model import Recipe
    from agentnb.session import Session

ROWS: Final = 200  # keys of the board that are shown
VALUE_WIDTH: Final = 400  # characters of a value; the page cuts it further and shows the rest on demand


def rows_of(recipe: Recipe, view: RunView) -> tuple[list[list[Any]], int]:
    """Return the rows (key, text or None where there is no value, marks), and how many more there are."""
    board = view.board
    literal = dict.fromkeys([*recipe.init, *recipe.inputs, *recipe.outputs, *board])
    keys = dict.fromkeys(_keys(recipe, view, literal))
    marked = [{row_of(path, literal) for path in paths} for paths in (view.written, view.read)]
    rows = [
        [
            key,
            text_of(key, board[key], VALUE_WIDTH) if key in board else None,
            [word for word, found in zip(("written", "read"), marked, strict=True) if key in found],
        ]
        for key in list(keys)[:ROWS]
    ]
    return rows, max(len(keys) - ROWS, 0)


def _keys(recipe: Recipe, view: RunView, literal: Mapping[str, Any]) -> Iterator[str]:
    """The keys in an order that no step changes: those that the recipe names, then what the run brought."""
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


def looked(session: Session, key: str) -> dict[str, Any]:
    """Return all of one value on the board, to be read or edited, with its type and the step that wrote it."""
    value = session.view().board.get(key, ABSENT)
    writer = None
    if value is not ABSENT:
        with suppress(AgentNbError):  # a key that no path can name
            writer = session.who_wrote(key)
    step = session.trace.steps[writer - 1] if writer else None
    return {
        "key": key,
        "type": "" if value is ABSENT else type(thaw(value)).__name__,
        "writer": writer,
        "by": step.node_id if step else "",
        "field": _field(value, key),
    }


def _field(value: Any, key: str) -> dict[str, Any]:
    try:
        return field_of(thaw(value), [], key)
    except Exception as error:  # noqa: BLE001  (a value's own repr may raise anything)
        text = f"<{type(thaw(value)).__name__} that cannot be shown: {type(error).__name__}>"
        return {"path": [], "label": key, "text": text, "as": "fixed", "note": ""}
