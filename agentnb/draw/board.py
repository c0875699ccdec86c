"""board: the blackboard's table in a picture: a row a key, and which nodes read and write which rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from agentnb.board.secrets import short
from agentnb.draw.text import clean, cut, cut_columns
from agentnb.draw.view import RunView
from agentnb.expressions.paths import resolve_path

if TYPE_CHECKING:
    from agentnb.recipe.model import Recipe

ROWS: Final = 24
VALUE_COLUMNS: Final = 24
KEY_WIDTH, VALUE_WIDTH, ROW_HEIGHT, HEAD_HEIGHT = 116.0, 146.0, 20.0, 24.0
KEY_SIZE, VALUE_SIZE = 9.5, 9.0


@dataclass(frozen=True, slots=True)
class Row:
    """One key of the board; `marks` are `written` and `read`."""

    key: str
    label: str
    value: str
    tip: str
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Flow:
    """Between one node and the board: all that it reads, or all that it writes. `box` is the node's box."""

    node: str
    box: str
    way: Literal["read", "write"]
    rows: tuple[int, ...]
    tip: str
    active: bool = False


@dataclass(frozen=True, slots=True)
class BoardTable:
    """The whole table; `more` is how many keys did not fit."""

    rows: tuple[Row, ...]
    flows: tuple[Flow, ...]
    more: int = 0

    @property
    def width(self) -> float:
        """Its width in points, which no value changes."""
        return KEY_WIDTH + VALUE_WIDTH

    @property
    def height(self) -> float:
        """Its height in points."""
        return HEAD_HEIGHT + ROW_HEIGHT * (max(len(self.rows), 1) + (self.more > 0))


def value_text(key: str, value: Any) -> str:
    """Return a value as its cell shows it: one line, masked, cut to a fixed width. A live view sets the same text."""
    return cut_columns(clean(short(value, key, VALUE_COLUMNS * 2)), VALUE_COLUMNS)


def board_table(recipe: Recipe, run: RunView | None, boxes: Mapping[str, str]) -> BoardTable:
    """Return the board of a recipe, with a run's values and marks; `boxes` names the box of each node."""
    view = run or RunView()
    literal: dict[str, Any] = dict.fromkeys([*recipe.init, *recipe.inputs, *recipe.outputs, *view.board])
    touched = {way: list(_touched(recipe, view, way, literal)) for way in ("read", "write")}
    keys = dict.fromkeys([*recipe.init, *recipe.inputs, *(row_of(name, literal) for name in recipe.outputs)])
    for node in recipe.nodes.values():
        keys |= dict.fromkeys(row_of(path, literal) for path in (*node.reads, *node.writes))
    keys |= dict.fromkeys([*view.board, *(key for found in touched.values() for _, names in found for key in names)])
    shown = [str(key) for key in keys][:ROWS]
    values = recipe.init if run is None else view.board
    marked = [{row_of(path, literal) for path in paths} for paths in (view.written, view.read)]
    rows = tuple(_row(key, values, recipe, touched, marked) for key in shown)
    flows = tuple(_flows(touched, {key: number for number, key in enumerate(shown)}, boxes, view))
    return BoardTable(rows, flows, len(keys) - len(shown))


def row_of(path: str, keys: Mapping[str, Any]) -> str:
    """Return the key whose row stands for this path: itself where it is a key, else its first word.

    Example:
        >>> row_of("ticket.text", {"ticket": None}), row_of("a.b", {"a.b": None})
        ('ticket', 'a.b')
    """
    return resolve_path(path, keys)[0]


def _touched(
    recipe: Recipe, view: RunView, way: str, literal: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, bool]]]:
    """Each node with the rows that it reads or writes; True where the recipe declares it, False where it was seen."""
    seen = view.seen_reads if way == "read" else view.seen_writes
    for id, node in recipe.nodes.items():
        declared = node.reads if way == "read" else node.writes
        rows = dict.fromkeys((row_of(path, literal) for path in sorted(seen.get(id, ()))), False)
        rows |= dict.fromkeys((row_of(path, literal) for path in declared), True)
        if rows:
            yield id, rows


def _row(
    key: str,
    values: Mapping[str, Any],
    recipe: Recipe,
    touched: Mapping[str, Iterable[tuple[str, dict[str, bool]]]],
    marked: list[set[str]],
) -> Row:
    said = [f"{key} = {short(values[key], key, 400)}" if key in values else key]
    said += [word for word, names in (("input", recipe.inputs), ("output", recipe.outputs)) if key in names]
    for way, word in (("read", "read by"), ("write", "written by")):
        nodes = [id for id, rows in touched[way] if key in rows]
        if nodes:
            said.append(f"{word} {', '.join(nodes)}")
    marks = tuple(mark for mark, keys in zip(("written", "read"), marked, strict=True) if key in keys)
    value = value_text(key, values[key]) if key in values else ""
    return Row(key, cut(clean(key), KEY_WIDTH - 18, KEY_SIZE) or "''", value, "\n".join(said), marks)


def _flows(
    touched: Mapping[str, Iterable[tuple[str, dict[str, bool]]]],
    numbers: Mapping[str, int],
    boxes: Mapping[str, str],
    view: RunView,
) -> Iterator[Flow]:
    for way in ("read", "write"):
        for id, rows in touched[way]:
            found = tuple(sorted(numbers[key] for key in rows if key in numbers))
            if found:
                word = "reads" if way == "read" else "writes"
                tip = f"{id} {word} {', '.join(rows)}"
                yield Flow(id, boxes[id], "read" if way == "read" else "write", found, tip, id == view.current)
