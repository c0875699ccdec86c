"""Collapsed areas of a picture: one box represents the content of an area and combines its marks.

A line into or out of a collapsed area leads to its box; lines that then have the same ends and kind are merged. What a
run does to a node inside, it does to the box: the box is current, failed or waiting if any node inside is, and its
count is the sum of the steps inside.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agentnb.draw.diagram import (
    KIND_LINE,
    KIND_SIZE,
    LABEL_SIZE,
    LINE,
    Area,
    Box,
    Link,
    Picture,
    count_text,
    get_edge_marks,
)
from agentnb.draw.label_text import clean, measure_width, wrap
from agentnb.draw.run_view import RunView
from agentnb.draw.shapes import measure_around
from agentnb.draw.style import get_family
from agentnb.errors import AgentNbError, Problem, did_you_mean

if TYPE_CHECKING:
    from agentnb.draw.board_table import BoardTable, Flow

KIND: Final = "region"
_SHAPE: Final = "folder"
_WIDTH: Final = 150.0
_NAMES: Final = 12  # nodes inside listed in a tooltip; and edges listed for one merged line
_NOWHERE: Final = -1


@dataclass(frozen=True, slots=True)
class Folds:
    """What the collapsed areas of a picture represent.

    `regions` maps the boxes, by id, to the region that each represents; `nodes` maps each node inside to its box,
    `edges` each edge without a line of its own to the edge whose line represents it (-1: none, it is inside).
    """

    regions: Mapping[str, str]
    nodes: Mapping[str, str]
    edges: Mapping[int, int]

    def view(self, view: RunView) -> RunView:
        """Return the state of a run with boxes in place of the nodes inside them."""
        home = self.nodes
        visited: dict[str, int] = {}
        for id, times in view.visited.items():
            box = home.get(id, id)
            visited[box] = visited.get(box, 0) + times
        taken = {self.edges.get(index, index) for index in view.taken} - {_NOWHERE}
        current = None if view.current is None else home.get(view.current, view.current)
        soon = {home.get(id, id) for id in view.next} - ({current} if current in self.regions else set())
        failed, waiting, stops = (
            frozenset(home.get(id, id) for id in ids) for ids in (view.failed, view.waiting, view.breakpoints)
        )
        return replace(
            view, current=current, next=frozenset(soon), visited=visited, taken=frozenset(taken),
            failed=failed, waiting=waiting, breakpoints=stops,
        )  # fmt: skip

    def table(self, table: BoardTable) -> BoardTable:
        """Return the board with the flows of the nodes inside a box as flows of the box."""
        known: dict[tuple[str, str], list[Flow]] = {}
        for flow in table.flows:
            known.setdefault((flow.direction, self.nodes.get(flow.node, flow.node)), []).append(flow)
        flows = tuple(
            flows[0] if flows[0].node == node else _join(node, flows, table) for (_, node), flows in known.items()
        )
        return replace(table, flows=flows)


def _join(node: str, flows: list[Flow], table: BoardTable) -> Flow:
    rows = tuple(sorted({row for flow in flows for row in flow.rows}))
    keys = ", ".join(table.rows[row].key for row in rows)
    word = "read" if flows[0].direction == "read" else "write"
    return replace(
        flows[0], node=node, rows=rows, tip=f"the nodes inside {word} {keys}",
        active=any(flow.active for flow in flows), seen=any(flow.seen for flow in flows),
    )  # fmt: skip


def fold(picture: Picture, closed: Collection[str], run: RunView | None) -> Picture:
    """Return a picture with these regions collapsed, including the regions inside them.

    Raises:
        AgentNbError: U206, the picture has no such region.
    """
    if not closed:
        return picture
    _check(picture, closed)
    representatives = _choose_representatives(picture.areas, closed)
    inside: dict[str, list[Box]] = {}
    for box in picture.boxes:
        if box.area in representatives:
            inside.setdefault(representatives[box.area].name, []).append(box)
    ids = {box.id for box in picture.boxes}
    box_ids = {area.name: _make_id(area, ids) for area in representatives.values() if area.name in inside}
    nodes = {box.id: box_ids[name] for name, boxes in inside.items() for box in boxes if not _is_start(box)}
    names = {box.name: f"c{name}" for name, boxes in inside.items() for box in boxes}
    lost = {box.name for boxes in inside.values() for box in boxes if _is_start(box)}
    links, edges = _make_links(picture, names, nodes, lost)
    scopes = {area.name: area.scope for area in representatives.values()}
    folds = Folds({id: scopes[name] for name, id in box_ids.items()}, nodes, edges)
    view = None if run is None else folds.view(run)
    areas = {area.name: area for area in picture.areas}
    boxes = [_make_box(areas[name], id, inside[name], view) for name, id in box_ids.items()]
    pairs = ((names.get(above, above), names.get(below, below)) for above, below in picture.order)
    return replace(
        picture,
        boxes=(*(box for box in picture.boxes if box.area not in representatives), *boxes),
        links=tuple(replace(link, marks=_merge_marks(link, view)) for link in links),
        areas=tuple(area for area in picture.areas if area.name not in representatives),
        board=folds.table(picture.board) if picture.board else None,
        order=tuple(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1] and not lost & set(pair))),
        folds=folds,
    )


def _check(picture: Picture, closed: Collection[str]) -> None:
    known = [area.scope for area in picture.areas]
    for scope in closed:
        if scope not in known:
            raise AgentNbError(
                Problem(
                    code="U206",
                    what=f"there is no region {scope!r} to close",
                    where="draw(collapsed=...)",
                    why=f"the regions of this drawing are: {', '.join(known) or 'none'}",
                    do=did_you_mean(str(scope), known, "pass ids of regions, as in `recipe.regions`"),
                )
            )


def _choose_representatives(areas: tuple[Area, ...], closed: Collection[str]) -> dict[str, Area]:
    """Return for each hidden area the one whose box represents it: the outermost collapsed one around it."""
    representatives: dict[str, Area] = {}
    for area in areas:  # outer ones come first
        if area.parent in representatives:
            representatives[area.name] = representatives[area.parent]
        elif area.scope in closed:
            representatives[area.name] = area
    return representatives


def _is_start(box: Box) -> bool:
    return box.kind == "start" and not box.id


def _make_id(area: Area, taken: set[str]) -> str:
    """Return the id of an area's box: `region: ID`, which no node is called."""
    id = f"region: {area.scope}"
    while id in taken:
        id = f"region: {id}"
    return id


def _make_box(area: Area, id: str, inside: list[Box], view: RunView | None) -> Box:
    names = [box.id for box in inside if not _is_start(box)]
    lines = wrap(area.tip, _WIDTH, LABEL_SIZE) or ("(no name)",)
    caption = f"{len(names)} node{'s' if len(names) != 1 else ''}"
    room = max(measure_width(f"{caption} ×9999", KIND_SIZE), 56.0, *(measure_width(line, LABEL_SIZE) for line in lines))
    width, height = measure_around(_SHAPE, room, LINE * len(lines) + KIND_LINE)
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    tip = f"{area.tip or area.scope}\n{caption} inside: {', '.join(names[:_NAMES])}{more}"
    marks = () if view is None else view.marks(id)
    count = "" if view is None else count_text(view.visited.get(id, 0))
    return Box(f"c{area.name}", id, KIND, _SHAPE, get_family("subgraph"), lines, clean(caption), tip, max(width, 84.0),
               height, area.parent, marks, count)  # fmt: skip


def _make_links(
    picture: Picture, names: Mapping[str, str], nodes: Mapping[str, str], lost: Collection[str]
) -> tuple[list[Link], dict[int, int]]:
    """Return the lines between visible boxes, and a replacement for each edge without a line of its own."""
    groups: dict[tuple[str, str, str], list[Link]] = {}
    edges: dict[int, int] = {}
    for link in picture.links:
        ends = names.get(link.source, link.source), names.get(link.target, link.target)
        if (link.source in names and ends[0] == ends[1]) or link.source in lost:
            if link.index >= 0:
                edges[link.index] = _NOWHERE
        elif link.source in names or link.target in names:
            groups.setdefault((*ends, link.kind), []).append(link)
        else:
            groups[link.name, "", ""] = [link]
    joined = []
    for (source, target, _), links in groups.items():
        edges |= {link.index: links[0].index for link in links[1:] if link.index >= 0}
        first = links[0]
        if target:
            label = first.label if len({link.label for link in links}) == 1 else ""
            shown = (nodes.get(first.ends[0], first.ends[0]), nodes.get(first.ends[1], first.ends[1]))
            tip = "\n".join(link.tip for link in links[:_NAMES])
            first = replace(first, source=source, target=target, ends=shown, label=label, tip=tip)
        joined.append(first)
    return joined, edges


def _merge_marks(link: Link, view: RunView | None) -> tuple[str, ...]:
    return link.marks if view is None or link.index < 0 else get_edge_marks(link.index, view)
