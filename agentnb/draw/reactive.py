"""Drawings of behaviors: the event types are small boxes between them.

A line leads from a type to each behavior that listens to it, labeled with its conditions on the event, and from a
behavior to each type that it emits: as declared, as named in its code, or as observed in the run. A picture is laid out
once; lines that a run may show later are part of it from the start, but hidden (`Picture.later`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentnb.draw.board_table import make_board_table
from agentnb.draw.diagram import (
    EDGE_SIZE,
    EDGE_WIDTH,
    LABEL_SIZE,
    LINE,
    START,
    Box,
    Link,
    Picture,
    count_text,
    is_reactive,
    make_box,
)
from agentnb.draw.label_text import clean, cut, measure_width, to_safe_text, wrap
from agentnb.draw.ordering import compute_order
from agentnb.draw.shapes import measure_around
from agentnb.text import safe_repr

if TYPE_CHECKING:
    from agentnb.draw.run_view import Reactions, RunView
    from agentnb.recipe.model import Edge, Node, Recipe

ANY: Final = "*"  # the type listened to by a behavior that is activated by any event
_TYPE_WIDTH: Final = 150.0
_LATER: Final = 600  # maximum number of hidden lines


class EventLine(NamedTuple):
    """A line from the type `type` to the node that `hears` it, or from the node that `tells` (emits) it.

    `sure` is True if it is declared or was observed; otherwise the node's code merely names the type.
    """

    kind: str
    node: str
    type: str
    label: str = ""
    tip: str = ""
    sure: bool = True

    @property
    def key(self) -> tuple[str, str, str]:
        """The identity of the line."""
        return self.kind, self.node, self.type


def make_reactive_picture(recipe: Recipe, *, board: bool, direction: str, run: RunView | None, spare: int) -> Picture:
    """Return the picture of a recipe of behaviors, with a run's marks if there is one."""
    event_lines = list(iter_event_lines(recipe, None if run is None else run.reactions))
    types, begin = dict.fromkeys(line.type for line in event_lines), get_event_id_prefix(recipe)
    boxes = {id: _make_behavior_box(f"n{number}", node, run) for number, (id, node) in enumerate(recipe.nodes.items())}
    boxes |= {begin + type_: _make_event_box(recipe, f"v{number}", type_, run) for number, type_ in enumerate(types)}
    links = [_make_link(recipe, number, line, boxes, run) for number, line in enumerate(event_lines)]
    later = () if run is not None else _iter_later_links(recipe, event_lines, boxes)
    emitted = {line.type for line in event_lines if line.kind == "tells"}
    outside = [boxes[begin + type_] for type_ in types if type_ not in emitted and type_ != ANY]
    starts = [_start(number, box) for number, box in enumerate(outside)]
    every = (*(link for _, link in starts), *links)
    return Picture(
        title=clean(recipe.name),
        dialect=clean(recipe.dialect),
        direction=direction,
        boxes=(*(box for box, _ in starts), *boxes.values()),
        links=every,
        areas=(),
        board=make_board_table(recipe, run, spare=spare) if board else None,
        with_run=run is not None,
        order=compute_order(recipe, boxes, every, {}),
        later=tuple(later),
    )


def get_event_id_prefix(recipe: Recipe) -> str:
    """Return the prefix of the ids of event types among a picture's nodes; no node's id begins with it."""
    begin = "event: "
    while any(id.startswith(begin) for id in recipe.nodes):
        begin = f"event{begin.removeprefix('event').strip()}: "
    return begin


def get_event_type(recipe: Recipe, id_: str) -> str | None:
    """Return the event type with this id in a recipe's picture; None if the id is a node's or unknown."""
    begin = get_event_id_prefix(recipe)
    return id_.removeprefix(begin) if is_reactive(recipe) and id_.startswith(begin) else None


def iter_event_lines(recipe: Recipe, reactions: Reactions | None = None) -> Iterator[EventLine]:
    """Yield the lines of a recipe of behaviors, including those that a run has shown."""
    lines: dict[tuple[str, str, str], EventLine] = {}
    for line in (*_iter_declared_lines(recipe), *_iter_shown_lines(recipe, reactions)):
        known = lines.get(line.key)
        if known is None or (line.sure and not known.sure):
            lines[line.key] = line
    listened = {line.type for line in lines.values() if line.kind == "hears"}
    own = recipe.meta.get("events", {}).get("own")
    for line in lines.values():
        if line.type in listened or (own is not None and not line.type.startswith(tuple(own))):
            yield line


def _iter_declared_lines(recipe: Recipe) -> Iterator[EventLine]:
    """Yield the lines known without a run: declared listeners, declared events, and types named in code."""
    declared = recipe.meta.get("events", {})
    own = tuple(declared.get("own", ()))
    for node in recipe.nodes.values():
        asks = tuple(_iter_clauses(node))
        for type_ in node.on:
            label, tip = ", ".join(asks), "\n".join([f"{node.id} listens to {_format_any(type_)}", *asks])
            yield EventLine("hears", node.id, type_, label, tip)
    for node, types in declared.get("tells", {}).items():
        for type_, what in types.items():
            yield EventLine("tells", node, type_, what, f"{node} declares that it emits {type_}: {what}")
    for edge in recipe.edges:
        for type_ in list_types(recipe, edge) if edge.source in recipe.nodes else ():
            tip = f"{edge.source} emits {type_}, and {edge.target} listens to it"
            yield EventLine("tells", edge.source, type_, "", tip, sure=not (own and type_.startswith(own)))
    for node, types in declared.get("may", {}).items():
        for type_ in types:
            yield EventLine("tells", node, type_, "", f"{node} may tell of {type_}: its code names it", sure=False)


def list_types(recipe: Recipe, edge: Edge) -> tuple[str, ...]:
    """Return the event types of an edge between two behaviors: one, or several separated by commas."""
    target = recipe.nodes.get(edge.target)
    if target is not None and edge.condition in target.on:
        return (edge.condition,)
    return tuple(filter(None, edge.condition.split(", ")))


def _iter_shown_lines(recipe: Recipe, reactions: Reactions | None) -> Iterator[EventLine]:
    if reactions is None:
        return
    for node, type_ in reactions.emissions:
        if node in recipe.nodes:
            yield EventLine("tells", node, type_, "", f"{node} has emitted {type_}")
    for type_, node in reactions.deliveries:
        if node in recipe.nodes and type_ not in recipe.nodes[node].on and ANY not in recipe.nodes[node].on:
            yield EventLine("hears", node, type_, "", f"{node} was triggered by {type_}")


def _iter_clauses(node: Node) -> Iterator[str]:
    """Yield a node's conditions on an event, one clause each."""
    for path, expected in (node.params.get("where") or {}).items():
        operators = expected.items() if isinstance(expected, Mapping) else [("=", expected)]
        yield from (f"{path} {word} {safe_repr(value, key=path)}" for word, value in operators)
    if node.params.get("relation_type"):
        yield f"-[{node.params['relation_type']}]-"
    if node.params.get("pattern"):
        yield str(node.params["pattern"])
    if node.params.get("activate_after"):
        yield f"after {node.params['activate_after']} events"


def _format_any(type_: str) -> str:
    return "any event but the run's own" if type_ == ANY else type_


# -- boxes and lines -------------------------------------------------------------------------------------------------


def _make_behavior_box(name: str, node: Node, run: RunView | None) -> Box:
    """Return the box of a behavior with only its name, because the types that it listens to precede it."""
    return make_box(name, node, "", run, label=node.label.split("\n", 1)[0] or node.id)


def _make_event_box(recipe: Recipe, name: str, type_: str, run: RunView | None) -> Box:
    """Return the box of an event type."""
    lines = wrap("any event" if type_ == ANY else type_, _TYPE_WIDTH, LABEL_SIZE) or ("(no name)",)
    room = measure_width(" ×999", LABEL_SIZE) + max(measure_width(line, LABEL_SIZE) for line in lines)
    width, height = measure_around("pill", room, LINE * len(lines))
    marks, count = get_event_marks(recipe, type_, run)
    id_, tip = get_event_id_prefix(recipe) + type_, f"events: {_format_any(type_)}"
    return Box(name, id_, "event", "pill", "event", lines, "", tip, width, height, marks=marks, count=count)


def get_event_marks(recipe: Recipe, type_: str, run: RunView | None) -> tuple[tuple[str, ...], str]:
    """Return the marks of an event type for a run, and the text with its number of events."""
    reactions = None if run is None else run.reactions
    if reactions is None:
        return (), ""
    count = reactions.counts.get(type_, 0)
    if type_ == ANY:
        own = tuple(recipe.meta.get("events", {}).get("own", ()))
        count = sum(number for each, number in reactions.counts.items() if not (own and each.startswith(own)))
    last = reactions.last_delivery is not None and type_ in (
        reactions.last_delivery[0],
        _find_matched_type(recipe, *reactions.last_delivery),
    )
    stops = run is not None and type_ in run.stops_at
    marks = {"visited": count > 0, "breakpoint": stops, "last": last or type_ in reactions.last_emitted}
    return tuple(mark for mark, holds in marks.items() if holds), count_text(count)


def _make_link(recipe: Recipe, number: int, line: EventLine, boxes: Mapping[str, Box], run: RunView | None) -> Link:
    event = get_event_id_prefix(recipe) + line.type
    ends = (event, line.node) if line.kind == "hears" else (line.node, event)
    source, target = (boxes[end].name for end in ends)
    label = cut(clean(line.label), EDGE_WIDTH, EDGE_SIZE)
    marks = (*(() if line.sure else ("may",)), *get_way_marks(recipe, line, run))
    return Link(f"e{number}", source, target, line.kind, ends, number, label, line.tip, marks)


def get_way_marks(recipe: Recipe, line: EventLine, run: RunView | None) -> tuple[str, ...]:
    """Return the marks of a line for a run: whether it was used, and whether by the last step."""
    reactions = None if run is None else run.reactions
    if reactions is None:
        return ()
    last = reactions.last_delivery
    if line.kind == "tells":
        marks = {
            "taken": (line.node, line.type) in reactions.emissions,
            "last": last is not None and last[1] == line.node and line.type in reactions.last_emitted,
        }
    else:
        counts = [
            pair
            for pair in reactions.deliveries
            if pair[1] == line.node and _find_matched_type(recipe, *pair) == line.type
        ]
        marks = {"taken": bool(counts), "last": last in counts}
    return tuple(mark for mark, holds in marks.items() if holds)


def _find_matched_type(recipe: Recipe, type_: str, node: str) -> str:
    """Return the type whose line a delivery used: its own, or that of any event."""
    hears = recipe.nodes.get(node)
    return ANY if hears is not None and ANY in hears.on and type_ not in hears.on else type_


def _iter_later_links(recipe: Recipe, event_lines: Iterable[EventLine], boxes: Mapping[str, Box]) -> Iterator[Link]:
    """Yield the lines that a run may still show: from each behavior to each type that it is not known to emit."""
    known = list(event_lines)
    types = [type_ for type_ in dict.fromkeys(line.type for line in known) if type_ != ANY]
    keys = {line.key for line in known}
    new = (EventLine("tells", node, type_) for node in recipe.nodes for type_ in types)
    for number, line in enumerate([line for line in new if line.key not in keys][:_LATER], len(known)):
        tip = f"{line.node} has emitted {line.type}"
        yield replace(_make_link(recipe, number, line._replace(tip=tip), boxes, None), marks=("later",))


def _start(number: int, box: Box) -> tuple[Box, Link]:
    """Return the mark before an event type that no node emits, and its line."""
    tip = "comes from outside, as far as known"
    mark = Box(f"s{number}", "", "start", "ellipse", "plain", (), "", tip, START, START)
    return mark, Link(f"t{number}", mark.name, box.name, "start", ("", box.id))


# -- changes by a run ------------------------------------------------------------------------------------------------


def make_reactive_patch(recipe: Recipe, picture: Picture, view: RunView) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a run changes in event types and lines: the parts `nodes` and `edges` of a patch."""
    begin = get_event_id_prefix(recipe)
    nodes: dict[str, Any] = {}
    for box in picture.boxes:
        if box.kind == "event":
            marks, count = get_event_marks(recipe, box.id.removeprefix(begin), view)
            if marks:
                nodes[to_safe_text(box.id)] = {"classes": list(marks), "count": count}
    edges = {}
    for link in (*picture.links, *picture.later):
        if link.index >= 0:
            node, event = link.ends if link.kind == "tells" else link.ends[::-1]
            marks = get_way_marks(recipe, EventLine(link.kind, node, event.removeprefix(begin)), view)
            if marks:
                edges[str(link.index)] = {"classes": list(marks)}
    return nodes, edges


# -- as text ---------------------------------------------------------------------------------------------------------


def iter_reactive_lines(recipe: Recipe, picture: Picture) -> Iterator[str]:
    """Yield the picture as text: each event type with the nodes it activates, each behavior with what it emits."""
    types = [box for box in picture.boxes if box.kind == "event"]
    yield f"{picture.title} ({picture.dialect}): {len(recipe.nodes)} behaviors, {len(types)} types of events"
    ends: dict[str, list[str]] = {}
    names = {box.id: clean(_format_plain(box, get_event_id_prefix(recipe))) for box in picture.boxes}
    for link in picture.links:
        if link.index >= 0:
            label = f" [{link.label}]" if link.label else ""
            sure = " (its code names it)" if "may" in link.marks and "taken" not in link.marks else ""
            ends.setdefault(link.ends[0], []).append(f"      -> {names[link.ends[1]]}{label}{sure}")
    for box in picture.boxes:
        if box.kind == "start":
            continue
        kind = "event" if box.kind == "event" else clean(box.kind)
        marks = ", ".join((*(mark for mark in box.marks if mark != "visited"), *([box.count] if box.count else [])))
        marker = "> " if "current" in box.marks else "  "
        yield f"{marker}{names[box.id]} ({kind}){f'  <{marks}>' if marks else ''}"
        yield from ends.get(box.id, ())


def _format_plain(box: Box, begin: str) -> str:
    return box.id.removeprefix(begin) if box.kind == "event" else box.id


__all__ = [
    "ANY",
    "EventLine",
    "get_event_id_prefix",
    "get_event_marks",
    "get_event_type",
    "get_way_marks",
    "iter_event_lines",
    "iter_reactive_lines",
    "list_types",
    "make_reactive_patch",
    "make_reactive_picture",
]
