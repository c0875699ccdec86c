"""Routes of lines added after layout: slightly bent, from outline to outline of two placed boxes."""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING, Final

from agentnb.draw.edge_routes import PlacedBox, make_loop_route
from agentnb.draw.geometry import Geometry, Route

if TYPE_CHECKING:
    from agentnb.draw.diagram import Box, Link, Picture
    from agentnb.draw.shapes import Point

_BEND: Final = 0.14  # its deflection as a fraction of its length
_HEAD: Final = 7.0


def make_direct_route(picture: Picture, link: Link, geometry: Geometry) -> Route:
    """Return the route of a link between two boxes of a picture that was laid out without it."""
    boxes = {box.name: box for box in picture.boxes}
    ends = [(boxes[name], geometry.boxes[name]) for name in (link.source, link.target)]
    return route_between(*ends[0], *ends[1])


def route_between(source: Box, start: Point, target: Box, end: Point) -> Route:
    """Return a bent route from one box to another; to the same box, at its right side."""
    if source.name == target.name:
        return make_loop_route(PlacedBox(*start, source.width, source.height, source.shape), 0.0, labelled=False)
    dx, dy = end[0] - start[0], end[1] - start[1]
    bow = (-dy * _BEND, dx * _BEND)
    first = (start[0] + dx / 3 + bow[0], start[1] + dy / 3 + bow[1])
    second = (start[0] + dx * 2 / 3 + bow[0], start[1] + dy * 2 / 3 + bow[1])
    out, tip = _find_rim(source, start, first), _find_rim(target, end, second)
    back = (second[0] - tip[0], second[1] - tip[1])
    part = _HEAD / (hypot(*back) or 1.0)
    return Route((out, first, second, (tip[0] + back[0] * part, tip[1] + back[1] * part)), tip)


def _find_rim(box: Box, middle: Point, towards: Point) -> Point:
    """Return the point where the line from a box's centre to a point crosses its outline."""
    dx, dy = towards[0] - middle[0], towards[1] - middle[1]
    part = min(
        (box.width / 2) / abs(dx) if dx else float("inf"), (box.height / 2) / abs(dy) if dy else float("inf"), 1.0
    )
    return middle[0] + dx * part, middle[1] + dy * part


__all__ = ["make_direct_route", "route_between"]
