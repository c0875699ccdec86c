"""The blackboard table of a drawing: one row per key, and the rows that each node reads and writes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

from agentnb.draw.label_text import clean, cut, cut_columns
from agentnb.draw.run_view import RunView
from agentnb.expressions.paths import resolve_path
from agentnb.recipe.model import ROOT
from agentnb.text import safe_repr

if TYPE_CHECKING:
    from agentnb.recipe.model import Node, Recipe

ROWS: Final = 24
VALUE_COLUMNS: Final = 24
KEY_WIDTH, VALUE_WIDTH, ROW_HEIGHT, HEAD_HEIGHT = 116.0, 146.0, 20.0, 24.0
WIDTH = KEY_WIDTH + VALUE_WIDTH
KEY_SIZE, VALUE_SIZE = 9.5, 9.0
_TIP, _NAMES = 400, 12
Access = Literal["read", "write"]
Touched = Mapping[str, Mapping[str, bool]]


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
    """The connection of a node to the board: all that it reads, or all that it writes; `rows` are row numbers.

    `seen` is True if some of it was observed in the run rather than declared by the recipe. `active`: the node is
    current.
    """

    node: str
    direction: Access
    rows: tuple[int, ...]
    tip: str
    active: bool = False
    seen: bool = False


@dataclass(frozen=True, slots=True)
class BoardTable:
    """The whole table; `more` is the number of keys that did not fit, `spare` the number of rows for future keys."""

    rows: tuple[Row, ...]
    flows: tuple[Flow, ...]
    hidden_count: int = 0
    spare: int = 0
    foot: bool = False

    @property
    def width(self) -> float:
        """Its width in points, independent of the values."""
        return WIDTH

    @property
    def height(self) -> float:
        """Its height in points; `foot` reserves a line below the rows for what did not fit."""
        return HEAD_HEIGHT + ROW_HEIGHT * (len(self.rows) + self.spare + self.foot)

    @property
    def last_line(self) -> str:
        """The text of its foot."""
        return f"and {self.hidden_count} more" if self.hidden_count else "" if self.rows else "nothing on it yet"


def format_value(key: str, value: Any) -> str:
    """Return a value as its cell shows it: one line, masked, truncated to a fixed width."""
    return cut_columns(clean(safe_repr(value, VALUE_COLUMNS * 2, key=key)), VALUE_COLUMNS)


def make_board_table(recipe: Recipe, run: RunView | None, *, spare: int = 0, room: int | None = None) -> BoardTable:
    """Return the board of a recipe, with a run's values and marks.

    With `spare` the number of rows depends on the recipe alone: its own keys, and this many for future ones; `room`
    sets the number of rows itself.
    """
    view = run or RunView()
    areas = map_areas(recipe)
    area_of = get_area(recipe, view, areas)
    nodes = [node for node in recipe.nodes.values() if areas[node.scope] == area_of]
    literal: dict[str, Any] = dict.fromkeys([*recipe.init, *recipe.inputs, *recipe.outputs, *view.board])
    touched: dict[Access, Touched] = {"read": {}, "write": {}}
    for access in touched:
        touched[access] = dict(_iter_touched(nodes, view, access, literal))
    own = list_own_keys(recipe, nodes, literal)
    keys = dict.fromkeys([*own, *map(str, view.board)])
    keys |= dict.fromkeys(key for rows_by_node in touched.values() for rows in rows_by_node.values() for key in rows)
    if room is None:
        room = min(ROWS, _count_most_keys(recipe, areas) + spare if spare else len(keys))
    values = recipe.init if run is None else view.board
    marked = [{find_row(path, literal) for path in paths} for paths in (view.written, view.read)]
    used = {key for rows_by_node in touched.values() for rows in rows_by_node.values() for key in rows}
    shown_keys = choose_keys(keys, room, (marked[0] | marked[1], used))
    users = {access: _map_users(rows_by_node) for access, rows_by_node in touched.items()}
    rows = tuple(_make_row(key, values, recipe, users, marked) for key in shown_keys)
    flows = tuple(_make_flows(touched, {key: number for number, key in enumerate(shown_keys)}, view))
    more = len(keys) - len(rows)
    return BoardTable(rows, flows, more, room - len(rows), foot=bool(more or spare or not rows))


def choose_keys(keys: Mapping[str, None], room: int, preferred: Sequence[Collection[str]]) -> list[str]:
    """Return as many keys as there is room for, in order: those of the first set, those of the next, then others.

    Example:
        >>> choose_keys(dict.fromkeys("abcdef"), 3, [{"e"}, {"c", "e"}])
        ['a', 'c', 'e']
    """
    if len(keys) <= room:
        return list(keys)
    ranked = [key for group in (*preferred, keys) for key in keys if key in group]
    chosen = set(islice(dict.fromkeys(ranked), room))
    return [key for key in keys if key in chosen]


def find_row(path: str, keys: Mapping[str, Any]) -> str:
    """Return the key whose row represents this path: the path itself if it is a key, otherwise its first word.

    Example:
        >>> find_row("ticket.text", {"ticket": None}), find_row("a.b", {"a.b": None})
        ('ticket', 'a.b')
    """
    return resolve_path(path, keys)[0]


def map_areas(recipe: Recipe) -> dict[str, str]:
    """Return for each region the one whose blackboard it uses: itself if it is isolated, otherwise an outer one."""
    areas = {ROOT: ROOT}

    def find_area(region: str) -> str:
        if region not in areas:
            areas[region] = ROOT  # an owner is missing or contains itself
            part = recipe.regions.get(region)
            owner = None if part is None else recipe.nodes.get(part.owner)
            if part is not None and part.isolated:
                areas[region] = region
            elif owner is not None:
                areas[region] = find_area(owner.scope)
        return areas[region]

    for region in (*recipe.regions, *(node.scope for node in recipe.nodes.values())):
        find_area(region)
    return areas


def get_area(recipe: Recipe, view: RunView, areas: Mapping[str, str]) -> str:
    """Return the area of the run's current node."""
    node = None if view.current is None else recipe.nodes.get(view.current)
    return ROOT if node is None else areas[node.scope]


def _count_most_keys(recipe: Recipe, areas: Mapping[str, str]) -> int:
    """Return the largest number of keys that the recipe names in one area."""
    inside: dict[str, list[Node]] = {ROOT: []}
    for node in recipe.nodes.values():
        inside.setdefault(areas[node.scope], []).append(node)
    return max(len(list_own_keys(recipe, nodes, {})) for nodes in inside.values())


def list_own_keys(recipe: Recipe, nodes: Iterable[Node], literal: Mapping[str, Any]) -> dict[str, None]:
    """Return the keys that these nodes name, in order; at the top level, inputs and outputs come first.

    Keys that have only an initial value come last: a drawing has room for some rows. `literal` are texts known to be
    keys rather than paths.
    """
    inner = any(node.scope != ROOT for node in nodes) and not any(node.scope == ROOT for node in nodes)
    initial = [] if inner else [*map(str, recipe.init)]
    keys = {} if inner else dict.fromkeys(map(str, recipe.inputs))
    known = literal or keys | dict.fromkeys(initial)
    paths = [*(() if inner else recipe.outputs), *(path for node in nodes for path in (*node.reads, *node.writes))]
    return keys | dict.fromkeys(find_row(path, known) for path in paths) | dict.fromkeys(initial)


def list_declared_rows(node: Node, access: Access) -> tuple[str, ...]:
    """Return the paths that the recipe says a node reads, or writes."""
    return tuple(node.reads if access == "read" else node.writes)


def _iter_touched(
    nodes: Iterable[Node], view: RunView, access: Access, literal: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, bool]]]:
    """Return each node with the rows that it reads or writes; True if declared by the recipe, False if observed."""
    seen = view.seen_reads if access == "read" else view.seen_writes
    for node in nodes:
        id = node.id
        rows = dict.fromkeys((find_row(path, literal) for path in list_declared_rows(node, access)), True)
        rows |= {row: rows.get(row, False) for row in (find_row(path, literal) for path in sorted(seen.get(id, ())))}
        if rows:
            yield id, rows


def _map_users(touched: Touched) -> dict[str, list[str]]:
    """Return the nodes that read, or write, each key."""
    users: dict[str, list[str]] = {}
    for id, rows in touched.items():
        for key in rows:
            users.setdefault(key, []).append(id)
    return users


def _make_row(
    key: str,
    values: Mapping[str, Any],
    recipe: Recipe,
    users: Mapping[Access, Mapping[str, list[str]]],
    marked: list[set[str]],
) -> Row:
    lines = [f"{key} = {safe_repr(values[key], _TIP, key=key)}" if key in values else key]
    lines += [word for word, names in (("input", recipe.inputs), ("output", recipe.outputs)) if key in names]
    for word, using in (("read by", users["read"]), ("written by", users["write"])):
        if nodes := using.get(key):
            lines.append(f"{word} {_join_names(nodes)}")
    marks = tuple(mark for mark, keys in zip(("written", "read"), marked, strict=True) if key in keys)
    value = format_value(key, values[key]) if key in values else ""
    room = KEY_WIDTH - 28  # a written key is bold, and its value is preceded by a space
    return Row(key, cut(clean(key), room, KEY_SIZE) or "''", value, "\n".join(lines), marks)


def _join_names(names: Collection[str]) -> str:
    shown_names = list(names)[:_NAMES]
    return ", ".join(shown_names) + (
        f" and {len(names) - len(shown_names)} more" if len(names) > len(shown_names) else ""
    )


def _make_flows(touched: Mapping[Access, Touched], numbers: Mapping[str, int], view: RunView) -> Iterable[Flow]:
    for access, keys in touched.items():
        for id, rows in keys.items():
            places = tuple(sorted(numbers[key] for key in rows if key in numbers))
            if places:
                tip = f"{id} {'reads' if access == 'read' else 'writes'} {_join_names(rows)}"
                yield Flow(id, access, places, tip, id == view.current, not all(rows.values()))
