"""The changes that a run makes to the page's picture, step by step.

Only differences from the previous step are computed. The result equals that of `agentnb.draw.svg_patch.make_marks` and
`agentnb.draw.board_table`, which look at every node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal
from weakref import WeakKeyDictionary
from zlib import crc32

from agentnb.draw.board_table import choose_keys, get_area, list_declared_rows, list_own_keys, map_areas
from agentnb.draw.diagram import count_text, is_reactive
from agentnb.draw.drawing import Drawing
from agentnb.draw.label_text import to_safe_text
from agentnb.draw.run_view import RunView
from agentnb.draw.svg_patch import make_marks, make_table

if TYPE_CHECKING:
    from agentnb.draw.board_table import BoardTable
    from agentnb.recipe.model import Node

Access = Literal["read", "write"]
Flows = dict[tuple[Access, str], tuple[int, ...]]
Marks = dict[str, Any]
_ACCESSES: Final[tuple[Access, ...]] = ("read", "write")


class PictureMarks:
    """The marks of one drawing, updated as a run moves. Marks that were returned are not modified later."""

    def __init__(self, drawing: Drawing) -> None:
        recipe, picture = drawing.recipe, drawing.picture
        self._recipe, self._picture = recipe, picture
        self._whole = picture.folds is not None or is_reactive(recipe)  # such pictures have few boxes
        self._view = RunView()
        self._nodes: Marks = {}
        self._edges: Marks = {}
        dotted = any("." in path for node in recipe.nodes.values() for path in (*node.reads, *node.writes))
        dotted = dotted or any("." in str(path) for path in (*recipe.outputs, *recipe.inputs, *recipe.init))
        self._board = None if dotted or picture.folds is not None else _BoardMarks(drawing)
        self._names = {id: to_safe_text(id) for id in recipe.nodes}

    def of(self, view: RunView) -> Marks:
        """Return the marks of the nodes and edges, the changed rows of the board, and more changes of its drawing."""
        if self._whole:
            marks = make_marks(self._recipe, self._picture, view)
        else:
            self._move(view)
            marks = {"nodes": self._nodes, "edges": self._edges}
        board = None if self._board is None else self._board.of(view)
        if board is None:
            board = _mark_whole_board(self._recipe, self._picture, view)
        return {**marks, **board}

    def _move(self, view: RunView) -> None:
        previous_view, visited = self._view, self._view.visited
        ids = [id for id, times in view.visited.items() if visited.get(id) != times]
        changed = {*ids, *(visited.keys() - view.visited.keys()), previous_view.current, view.current}
        for name in ("next", "waiting", "failed", "breakpoints"):
            changed |= getattr(previous_view, name) ^ getattr(view, name)
        nodes = dict(self._nodes)  # the page's last state holds the one from before
        for id in changed:
            if id in self._names:
                marks = view.marks(id)
                if marks:
                    count = count_text(view.visited.get(id, 0))
                    nodes[self._names[id]] = {"classes": list(marks), "count": count}
                else:
                    nodes.pop(self._names[id], None)
        edges, size = dict(self._edges), len(self._recipe.edges)
        for index in view.taken - previous_view.taken:
            if 0 <= index < size:
                edges[str(index)] = {"classes": ["taken"]}
        for index in previous_view.taken - view.taken:
            edges.pop(str(index), None)
        self._nodes, self._edges, self._view = nodes, edges, view


def _mark_whole_board(recipe: Any, picture: Any, view: RunView) -> Marks:
    table, board = make_table(recipe, picture, view), picture.board
    if board is None or table is None:
        return {}
    flows: Flows = {(flow.direction, flow.node): flow.rows for flow in table.flows}
    shown = [row.key for row in table.rows]
    return _mark_board(
        board, shown, [row.label for row in table.rows], table.last_line, _digest(_list_drawn_flows(board), flows)
    )


def _mark_board(board: BoardTable, shown: list[str], labels: list[str], more: str, flows: int) -> Marks:
    drawn = [row.key for row in board.rows]
    rows = {str(index): [key, labels[index]] for index, key in enumerate(shown) if drawn[index : index + 1] != [key]}
    return {"rows": rows, "board": {"more": more, "flows": f"{flows:x}" if flows else ""}}


def _list_drawn_flows(board: BoardTable) -> Flows:
    return {(flow.direction, flow.node): flow.rows for flow in board.flows}


def _digest(drawn: Flows, now: Flows) -> int:
    """Return a number that depends on the flows that differ from the drawn ones, in any order; 0 if none does."""
    digest = 0
    for flow in drawn.keys() | now.keys():
        digest ^= _subtract(flow, drawn.get(flow), now.get(flow))
    return digest


def _subtract(flow: tuple[Access, str], drawn: tuple[int, ...] | None, now: tuple[int, ...] | None) -> int:
    return 0 if drawn == now else crc32(repr((flow, now)).encode()) | 1 << 32


@dataclass
class _Area:
    """The part of the board marks that belongs to the nodes whose board is shown together."""

    nodes: dict[str, Node]
    own_keys: dict[str, None]
    declared: dict[Access, dict[str, tuple[str, ...]]]
    named: set[str]  # the keys of `declared`
    seen: dict[Access, Mapping[str, Any]] = field(default_factory=lambda: {"read": {}, "write": {}})
    touched: dict[str, int] = field(default_factory=dict)  # how many nodes were seen to touch each key
    positions: dict[str, int] = field(default_factory=dict)
    is_current: bool = False  # whether `positions`, `labels` and `digest` are those of the last view
    labels: list[str] = field(default_factory=list)
    digest: int = 0


class _BoardMarks:
    """The keys of the drawn board and the flows to its rows, for a recipe that names keys only, no paths in them."""

    def __init__(self, drawing: Drawing) -> None:
        self._recipe, self._picture = drawing.recipe, drawing.picture
        self._areas_of = map_areas(drawing.recipe)
        self._areas: dict[str, _Area] = {}
        board = drawing.picture.board
        self._drawn: Flows = {} if board is None else _list_drawn_flows(board)

    def of(self, view: RunView) -> Marks | None:
        """Return the board's marks; None if they must be computed as a whole."""
        board = self._picture.board
        if board is None:
            return {}
        name = get_area(self._recipe, view, self._areas_of)
        area = self._areas.get(name)
        if area is None:
            area = self._areas[name] = self._begin(name)
        changed = [*self._follow(area, view)]
        keys = dict.fromkeys([*area.own_keys, *map(str, view.board)])
        if any("." in key for key in view.board) or not area.touched.keys() <= keys.keys():
            area.is_current = False
            return None
        room = len(board.rows) + board.spare
        shown = choose_keys(keys, room, ({*view.written, *view.read}, {*area.named, *area.touched}))
        if not area.is_current or shown != list(area.positions):
            table = make_table(self._recipe, self._picture, view)
            assert table is not None  # the picture has a board
            area.positions = {key: index for index, key in enumerate(shown)}
            area.labels, area.is_current = [row.label for row in table.rows], True
            flows = {
                flow: rows
                for access in _ACCESSES
                for id in area.nodes
                if (rows := self._select_rows(area, flow := (access, id)))
            }
            area.digest = _digest(self._drawn, flows)
        else:
            for flow, old_marks in changed:
                drawn = self._drawn.get(flow)
                area.digest ^= _subtract(flow, drawn, old_marks or None)
                area.digest ^= _subtract(flow, drawn, self._select_rows(area, flow) or None)
        more = len(keys) - len(shown)
        text = f"and {more} more" if more else "" if shown else "nothing on it yet"
        return _mark_board(board, shown, area.labels, text, area.digest)

    def _begin(self, name: str) -> _Area:
        nodes = {id: node for id, node in self._recipe.nodes.items() if self._areas_of[node.scope] == name}
        declared: dict[Access, dict[str, tuple[str, ...]]] = {
            access: {id: list_declared_rows(node, access) for id, node in nodes.items()} for access in _ACCESSES
        }
        named = {key for rows in declared.values() for keys in rows.values() for key in keys}
        return _Area(nodes, list_own_keys(self._recipe, [*nodes.values()], {}), declared, named)

    def _follow(self, area: _Area, view: RunView) -> Iterator[tuple[tuple[Access, str], tuple[int, ...]]]:
        """Record the keys that nodes have touched; yield each flow that may differ, with its previous rows."""
        for access in _ACCESSES:
            seen = view.seen_reads if access == "read" else view.seen_writes
            known = area.seen[access]
            ids = [id for id, keys in seen.items() if known.get(id) is not keys]
            for id in (*ids, *(known.keys() - seen.keys())):
                if id in area.nodes:
                    yield (access, id), self._select_rows(area, (access, id))
                    before, now = known.get(id, frozenset()), seen.get(id, frozenset())
                    _add_counts(area.touched, before - now, -1)
                    _add_counts(area.touched, now - before, 1)
            area.seen[access] = seen

    def _select_rows(self, area: _Area, flow: tuple[Access, str]) -> tuple[int, ...]:
        """Return the rows that a flow leads to, or comes from."""
        access, id = flow
        keys = {*area.declared[access][id], *area.seen[access].get(id, ())}
        return tuple(sorted(area.positions[key] for key in keys if key in area.positions))


def _add_counts(counts: dict[str, int], keys: Iterable[str], times: int) -> None:
    for key in keys:
        counts[key] = counts.get(key, 0) + times
        if not counts[key]:
            del counts[key]


_KEPT: Final[WeakKeyDictionary[Drawing, PictureMarks]] = WeakKeyDictionary()


def mark_picture(drawing: Drawing, view: RunView) -> Marks:
    """Return the changes that a run makes to the picture, in compact form; no layout is computed.

    `nodes` and `edges` are those of `agentnb.draw.svg_patch`. `rows` are the rows of the drawn board whose key differs
    from the drawn one: [key, label]; the page takes their values from the board. `board` has the text below the rows
    and, as `flows`, an id that changes when other nodes read or write other rows than drawn.
    """
    marks = _KEPT.get(drawing)
    if marks is None:
        marks = _KEPT[drawing] = PictureMarks(drawing)
    try:
        return marks.of(view)
    except BaseException:  # an interrupt may have cut it short
        del _KEPT[drawing]
        raise
