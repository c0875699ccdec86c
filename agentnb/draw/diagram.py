"""The elements of a recipe's drawing before layout: boxes, links, areas, the board.

Every element has a generated name (n0, e3, r1). Only these names and sizes go to a layout engine, so Graphviz never
reads any text of a recipe while the SVG is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentnb.draw.board_table import BoardTable, make_board_table
from agentnb.draw.fan_out import add_groups
from agentnb.draw.label_text import clean, cut, measure_width, wrap
from agentnb.draw.ordering import compute_order
from agentnb.draw.run_view import RunView
from agentnb.draw.shapes import measure_around
from agentnb.draw.style import BEHAVIORS, get_family, get_shape
from agentnb.recipe.control_flow import ORDINARY
from agentnb.recipe.descriptions import END, list_choices
from agentnb.recipe.model import ROOT

if TYPE_CHECKING:
    from agentnb.draw.folding import Folds
    from agentnb.recipe.model import Edge, Node, Recipe

LABEL_SIZE, KIND_SIZE, EDGE_SIZE, TITLE_SIZE = 11.0, 8.5, 9.0, 9.0
LINE, KIND_LINE = 14.0, 11.0
NOTE_SIZE, NOTE_LINE = 8.5, 11.0
_LABEL_WIDTH, EDGE_WIDTH, _TITLE_WIDTH = 150.0, 130.0, 220.0
START = 12.0
_NO_RUN = RunView()


@dataclass(frozen=True, slots=True)
class Box:
    """A node of the drawing; kind `start` is the mark before an entry node.

    `count` is shown beside the caption; without a caption, beside the last line. `notes` are small lines below these.
    """

    name: str
    id: str
    kind: str
    shape: str
    family: str
    lines: tuple[str, ...]
    caption: str
    tip: str
    width: float
    height: float
    area: str = ""
    marks: tuple[str, ...] = ()
    count: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """A line between two boxes: an edge of the recipe, or one of kind `start`, `enter` or `leave`.

    `enter` leads from a composite node to its region's entry, `leave` from a branch's end to where the branches meet.
    """

    name: str
    source: str
    target: str
    kind: str
    ends: tuple[str, str]
    index: int = -1
    label: str = ""
    tip: str = ""
    marks: tuple[str, ...] = ()

    @property
    def label_width(self) -> float:
        """The maximum width of the label in points; 0 without one."""
        return measure_width(self.label, EDGE_SIZE) + 6 if self.label else 0.0


@dataclass(frozen=True, slots=True)
class Area:
    """The frame around the nodes of a region; `parent` is the name of the enclosing area, empty at the top.

    `is_group` is True for the frame around a wide fan-out, which is not a region of the recipe.
    """

    name: str
    scope: str
    title: str
    tip: str
    parent: str = ""
    is_group: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """A recipe ready to be drawn; `with_run` is True if it shows a run.

    `order` are pairs of boxes of which the second is below the first, where no link implies it. `later` are lines that
    a run may show: they are drawn over the rest, hidden until a patch marks them `taken`. `folds` lists what boxes of
    collapsed regions represent; `what` describes the drawing before the title.
    """

    title: str
    dialect: str
    direction: str
    boxes: tuple[Box, ...]
    links: tuple[Link, ...]
    areas: tuple[Area, ...]
    board: BoardTable | None
    with_run: bool = False
    order: tuple[tuple[str, str], ...] = ()
    later: tuple[Link, ...] = ()
    folds: Folds | None = None
    what: str = "recipe"


def make_picture(recipe: Recipe, *, board: bool, direction: str, run: RunView | None, spare: int = 0) -> Picture:
    """Return the picture of a recipe, with a run's marks if there is one; the run never moves a box.

    `spare` is the number of rows on the board for future keys; with 0 it has only the rows that it needs.
    """
    if is_reactive(recipe):
        from agentnb.draw.reactive import make_reactive_picture

        return make_reactive_picture(recipe, board=board, direction=direction, run=run, spare=spare)
    view = run or _NO_RUN
    homes = _map_nodes_to_areas(recipe)
    areas = _make_areas(recipe, homes)
    names = {scope: area.name for scope, area in areas.items()}
    boxes = {
        id: make_box(f"n{number}", node, names.get(homes.get(id, node.scope), ""), view)
        for number, (id, node) in enumerate(_collect_nodes(recipe).items())
    }
    edges = [_make_link(index, edge, boxes, view) for index, edge in enumerate(recipe.edges)]
    starts, start_links = _make_starts(recipe, boxes, names)
    links = (*start_links, *edges, *_join_links(recipe, boxes))
    picture = Picture(
        title=clean(recipe.name),
        dialect=clean(recipe.dialect),
        direction=direction,
        boxes=(*starts, *boxes.values()),
        links=links,
        areas=tuple(areas.values()),
        board=make_board_table(recipe, run, spare=spare) if board else None,
        with_run=run is not None,
        order=compute_order(recipe, boxes, links, areas),
    )
    return add_groups(picture)


def is_reactive(recipe: Recipe) -> bool:
    """Return True if a recipe consists of behaviors, drawn with the event types between them."""
    behaviors = bool(recipe.nodes) and all(node.kind in BEHAVIORS for node in recipe.nodes.values())
    return behaviors and all(edge.kind == "event" for edge in recipe.edges)


def _collect_nodes(recipe: Recipe) -> dict[str, Node]:
    """Return the recipe's nodes, and one of kind `missing` for each end of an edge that names none of them."""
    from agentnb.recipe.model import Node

    ends = [end for edge in recipe.edges for end in (edge.source, edge.target) if end not in recipe.nodes]
    return {**recipe.nodes, **{end: Node(end, "missing") for end in ends}}


def make_box(name: str, node: Node, area: str, view: RunView | None, label: str = "") -> Box:
    """Return the box of a node, with a run's marks; `label` replaces the node's own."""
    view = view or _NO_RUN
    shape = get_shape(node.kind)
    lines = wrap(label or node.label or node.id, _LABEL_WIDTH, LABEL_SIZE) or ("(no name)",)
    caption = cut(clean(node.kind), _LABEL_WIDTH, KIND_SIZE)
    text = max(measure_width(f"{caption} ×999", KIND_SIZE), 40.0, *(measure_width(line, LABEL_SIZE) for line in lines))
    width, height = measure_around(shape, text, LINE * len(lines) + KIND_LINE)
    return Box(
        name,
        node.id,
        node.kind,
        shape,
        get_family(node.kind),
        lines,
        caption,
        _make_tip(node),
        max(width, 84.0),
        height,
        area,
        view.marks(node.id),
        count_text(view.visited.get(node.id, 0)),
    )


def _make_tip(node: Node) -> str:
    lines = [node.id if node.label in ("", node.id) else f"{node.label} ({node.id})", node.kind]
    for word, keys in (("reads", node.reads), ("writes", node.writes), ("on", node.on)):
        if keys:
            lines.append(f"{word} {', '.join(keys)}")
    return "\n".join([*lines, *([str(node.place)] if node.place else [])])


def _make_link(index: int, edge: Edge, boxes: Mapping[str, Box], view: RunView) -> Link:
    ends, kind = (edge.source, edge.target), edge.kind
    if edge.inner and kind != "loop_back":  # a light line: the frame around the region has the label
        label, shown = "", "enter"
    else:
        label, shown = format_edge(edge), kind
    tip = f"{edge.source} → {edge.target}\n{edge.kind} {edge.condition}".strip()
    return Link(
        f"e{index}", boxes[edge.source].name, boxes[edge.target].name, shown, ends, index,
        cut(clean(label), EDGE_WIDTH, EDGE_SIZE), tip, get_edge_marks(index, view),
    )  # fmt: skip


def get_edge_marks(index: int, view: RunView) -> tuple[str, ...]:
    """Return the classes of an edge for a run."""
    return ("taken",) if index in view.taken else ()


def count_text(visits: int) -> str:
    """Return how often a node ran, as shown beside its kind."""
    return f"×{visits}" if visits > 0 else ""


def format_edge(edge: Edge) -> str:
    """Return the label of an edge: its condition or value, with a mark for errors and timeouts."""
    condition = edge.condition.strip()
    match edge.kind:
        case "error":
            return f"error: {condition}" if condition else "error"
        case "timeout":
            return f"◷ {condition or 'timeout'}"
        case _:
            return condition


def _map_nodes_to_areas(recipe: Recipe) -> dict[str, str]:
    """Return the area of each node: that of its handler if it belongs to one, otherwise its region's."""
    return {id: node.scope for id, node in recipe.nodes.items()} | dict(recipe.meta.get("area_of", {}))


def _make_areas(recipe: Recipe, homes: Mapping[str, str]) -> dict[str, Area]:
    """Return the regions and handlers that hold a node, outermost first; one inside itself is put at the top."""
    regions = {**recipe.regions, **recipe.meta.get("areas", {})}
    parents = {}
    for region in regions.values():
        around = homes.get(region.owner, ROOT)
        parents[region.id] = around if around in regions else ROOT
    ancestors = {scope: _list_ancestors(scope, parents) for scope in parents if scope != ROOT}
    enclosing_scopes = {scope for home in homes.values() for scope in ancestors.get(home, ())}
    order = sorted((scope for scope in ancestors if scope in enclosing_scopes), key=lambda scope: len(ancestors[scope]))
    names = {scope: f"r{number}" for number, scope in enumerate(order)}
    areas = {}
    for scope in order:
        region, parent = regions[scope], ancestors[scope][1:2]
        title = cut(clean(region.title or region.id), _TITLE_WIDTH, TITLE_SIZE)
        tip = region.title or region.id
        areas[scope] = Area(names[scope], scope, title, tip, names[parent[0]] if parent else "")
    return areas


def _list_ancestors(scope: str, parents: Mapping[str, str]) -> tuple[str, ...]:
    ancestors: list[str] = []
    while scope != ROOT and scope in parents:
        if scope in ancestors:
            return tuple(ancestors[:1])
        ancestors.append(scope)
        scope = parents[scope]
    return tuple(ancestors)


def _make_starts(recipe: Recipe, boxes: Mapping[str, Box], names: Mapping[str, str]) -> tuple[list[Box], list[Link]]:
    """Return a mark and its link for each entry node: of the recipe, and of regions without an owner."""
    entries = [(id, "") for id in recipe.entry if id in boxes]
    for region in recipe.regions.values():
        if region.id in names and region.owner not in boxes:
            entries += [(id, names[region.id]) for id in region.entry if id in boxes]
    marks, links = [], []
    for number, (id, area) in enumerate(dict.fromkeys(entries)):
        marks.append(Box(f"s{number}", "", "start", "ellipse", "plain", (), "", f"starts at {id}", START, START, area))
        links.append(Link(f"t{number}", f"s{number}", boxes[id].name, "start", ("", id)))
    return marks, links


def _join_links(recipe: Recipe, boxes: Mapping[str, Box]) -> list[Link]:
    """Return a light line from each end of a parallel branch to the join: the targets of the parallel node."""
    leading = {edge.source for edge in recipe.outgoing_edges if edge.kind in ORDINARY or edge.kind == "route"}
    inside: dict[str, list[Node]] = {}
    for node in recipe.nodes.values():
        inside.setdefault(node.scope, []).append(node)
        leading -= {node.id} if any(target == END for _, target in list_choices(node)) else set()

    def find_ends(region: str) -> list[str]:
        last = [node for node in inside.pop(region, ()) if node.id not in leading]  # each region is visited only once
        return [end for node in last for end in (_bodies_ends(node) or [node.id])]

    def _bodies_ends(node: Node) -> list[str]:
        return [end for body in node.bodies for end in find_ends(body)] if node.kind == "parallel" else []

    links = [
        (end, edge.target) for edge in recipe.outgoing_edges
        if edge.kind in ORDINARY and (owner := recipe.nodes.get(edge.source)) and edge.target in boxes
        for end in _bodies_ends(owner)
    ]  # fmt: skip
    return [
        Link(f"l{number}", boxes[end].name, boxes[meets].name, "leave", (end, meets))
        for number, (end, meets) in enumerate(links)
    ]
