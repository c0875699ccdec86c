"""The layout of a picture, independent of the backend; exchange with Graphviz, limited to names and numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentnb.draw.diagram import EDGE_SIZE, TITLE_SIZE, Area, Link, Picture
from agentnb.draw.label_text import measure_width
from agentnb.draw.shapes import Point

Rectangle = tuple[float, float, float, float]
_INCH = 72.0
FOLD = 14.0  # room beside a title for the page's button
_CHEAP = "splines=line nslimit=2 nslimit1=2 mclimit=0.3"
MANY = 300  # above this number of lines a faster, less careful layout is requested


@dataclass(frozen=True, slots=True)
class Route:
    """The route of a line: points of a cubic Bezier curve (1 + 3n of them), its tip, and the center of its label."""

    points: tuple[Point, ...]
    tip: Point
    label: Point | None = None


@dataclass(frozen=True, slots=True)
class Geometry:
    """A finished layout in points, y downwards; `layout` is the backend that computed it."""

    width: float
    height: float
    boxes: Mapping[str, Point]
    areas: Mapping[str, Rectangle] = field(default_factory=dict)
    routes: Mapping[str, Route] = field(default_factory=dict)
    layout: str = "plain"


def make_skeleton(picture: Picture, *, cheap: bool = False) -> str:
    """Return the DOT text for a layout engine: generated names and sizes, no text of the recipe."""
    many = "nslimit=4 nslimit1=4 mclimit=0.5" if len(picture.links) > MANY else ""
    lines = [
        f"digraph {{ graph [rankdir={picture.direction} nodesep=0.3 ranksep=0.42 {_CHEAP if cheap else many}]",
        'node [shape=box fixedsize=true label=""] edge [arrowsize=0.7]',
        *_nest(picture, ""),
        *(_format_line(link) for link in picture.links),
        *(f"{above} -> {below} [name=h{index} style=invis]" for index, (above, below) in enumerate(picture.order)),
    ]
    return "\n".join([*lines, "}"])


def _nest(picture: Picture, parent: str) -> Iterator[str]:
    for box in picture.boxes:
        if box.area == parent:
            width, height = box.width / _INCH, box.height / _INCH
            yield f"{box.name} [width={width:.4f} height={height:.4f}]"
    for area in picture.areas:
        if area.parent == parent:
            yield f"subgraph cluster_{area.name} {{ margin=12 labeljust=l label={_format_room(measure_title(area), 12)}"
            yield from _nest(picture, area.name)
            yield "}"


def measure_title(area: Area) -> float:
    """Return the maximum width of an area's title, in points."""
    return measure_width(area.title, TITLE_SIZE) + 6 + FOLD


def _format_line(link: Link) -> str:
    parts = [f"name={link.name}"]
    if link.label:
        parts.append(f"label={_format_room(link.label_width, EDGE_SIZE + 5)}")
    if link.kind == "loop_back":
        parts.append("constraint=false")
    if link.kind in ("start", "enter"):
        parts.append("weight=3")
    return f"{link.source} -> {link.target} [{' '.join(parts)}]"


def _format_room(width: float, height: float) -> str:
    """Return a label of exactly this size without any letters, so that no font affects the layout."""
    size = f'FIXEDSIZE="TRUE" WIDTH="{width:.0f}" HEIGHT="{height:.0f}"'
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0" {size}><TR><TD></TD></TR></TABLE>>'


def read_geometry(text: str, layout: str) -> Geometry:
    """Return the layout that Graphviz wrote as JSON.

    Raises:
        ValueError: the text is not a finished layout (a box or a line has no position).
    """
    try:
        document: dict[str, Any] = json.loads(text)
        _, _, width, height = map(float, document["bb"].split(","))
        boxes, areas, routes = {}, {}, {}
        for item in document.get("objects", ()):
            name = item["name"]
            if name.startswith("cluster_"):
                left, low, right, high = map(float, item["bb"].split(","))
                areas[name.removeprefix("cluster_")] = (left, height - high, right, height - low)
            elif "pos" in item:
                boxes[name] = _parse_point(item["pos"], height)
        for item in document.get("edges", ()):
            label = _parse_point(item["lp"], height) if "lp" in item else None
            routes[item["name"]] = _parse_route(item["pos"], height, label)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no layout in what Graphviz wrote: {error!r}") from error
    return Geometry(width, height, boxes, areas, routes, layout)


def _parse_point(text: str, height: float) -> Point:
    x, y = text.split(",")[:2]
    return float(x), height - float(y)


def _parse_route(text: str, height: float, label: Point | None) -> Route:
    tip, points = None, []
    for word in text.split(";", 1)[0].split():
        if word.startswith("e,"):
            tip = _parse_point(word[2:], height)
        elif not word.startswith("s,"):
            points.append(_parse_point(word, height))
    return Route(tuple(points), tip or points[-1], label)
