"""Routes of lines: in the plain layout, through the bends of a line; after any layout, directly from box to box."""

from __future__ import annotations

from itertools import pairwise
from math import hypot, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from agentnb.draw.geometry import Geometry, Route
from agentnb.draw.shapes import Point

if TYPE_CHECKING:
    from agentnb.draw.diagram import Box, Link, Picture

_BEND: Final = 0.14  # deflection of a direct line as a fraction of its length
LOOP: Final = 26.0
_HEAD: Final = 7.0
_SPREAD: Final = 0.3
_LABELS: Final = 18.0
Band = tuple[float, float]


class PlacedBox(NamedTuple):
    """A box after layout: its center, size and shape."""

    x: float
    y: float
    width: float
    height: float
    shape: str

    def compute_boundary(self, x: float) -> float:
        """Return the distance of its outline above and below its center at this x."""
        part = min(abs(x - self.x) / (self.width / 2), 1.0)
        if self.shape == "diamond":
            return self.height / 2 * (1 - part)
        if self.shape == "ellipse":
            return self.height / 2 * sqrt(1 - part * part)
        return self.height / 2


def make_route(
    source: PlacedBox,
    target: PlacedBox,
    first: Band,
    bends: list[tuple[float, Band]],
    last: Band,
    label: Point | None,
    *,
    bare: bool,
) -> Route:
    """Return the route from one box to another through `bends` (each an x and the band of its layer).

    `first` and `last` are the bands of the boxes' own layers: a line leaves its band vertically, so that it does not
    run through a taller neighbor. A line without bends that has a label (`bare`) has it half-way.
    """
    sign = 1.0 if first[0] <= last[0] else -1.0
    xs = [x for x, _ in bends] or [target.x]
    out, into = _find_port(source, xs[0]), _find_port(target, bends[-1][0] if bends else source.x)
    points = [(out, source.y + sign * source.compute_boundary(out)), (out, first[1] if sign > 0 else first[0])]
    for x, (top, bottom) in bends:
        # Past a row of boxes a line runs vertically; past a row of labels it runs through the middle.
        ends = [(top + bottom) / 2] * 2 if bottom - top < _LABELS else [top, bottom]
        points += [(x, y) for y in (ends if sign > 0 else reversed(ends))]
    points += [(into, last[0] if sign > 0 else last[1]), (into, target.y - sign * target.compute_boundary(into))]
    points = _drop_repeats(points)
    if any((after[1] - before[1]) * sign <= 0 for before, after in pairwise(points)):
        points = [points[0], points[-1]]
    tip, back = points[-1], points[-2]
    part = _HEAD / (hypot(tip[0] - back[0], tip[1] - back[1]) or 1.0)
    points[-1] = (tip[0] - (tip[0] - back[0]) * part, tip[1] - (tip[1] - back[1]) * part)
    return Route(_smooth(points), tip, _find_midpoint(points) if bare else label)


def _find_port(box: PlacedBox, towards: float) -> float:
    """Return the point on its outline where a line leaves a box: shifted towards the target, so that lines diverge."""
    offset = (towards - box.x) * _SPREAD
    limit = box.width * _SPREAD
    return box.x + max(-limit, min(limit, offset))


def _drop_repeats(points: list[Point]) -> list[Point]:
    """Return the points without inner ones closer than a line's width to the one before or to the end."""
    result = [points[0]]
    for point in points[1:-1]:
        if abs(point[1] - result[-1][1]) > 2 and abs(points[-1][1] - point[1]) > _HEAD + 2:
            result.append(point)
    return [*result, points[-1]]


def _find_midpoint(points: list[Point]) -> Point:
    (x1, y1), (x2, y2) = points[0], points[-1]
    return (x1 + x2) / 2, (y1 + y2) / 2


def _smooth(points: list[Point]) -> tuple[Point, ...]:
    """Return a cubic Bezier curve through these points that never overshoots them."""
    steps = [(x2 - x1) / (y2 - y1) for (x1, y1), (x2, y2) in pairwise(points)]
    slopes = [steps[0]]
    slopes += [0.0 if a * b <= 0 else 2 * a * b / (a + b) for a, b in pairwise(steps)]
    slopes.append(steps[-1])
    curve = [points[0]]
    for ((x1, y1), (x2, y2)), (out, into) in zip(pairwise(points), pairwise(slopes), strict=True):
        third = (y2 - y1) / 3
        curve += [(x1 + out * third, y1 + third), (x2 - into * third, y2 - third), (x2, y2)]
    return tuple(curve)


def make_loop_route(box: PlacedBox, room: float, *, labeled: bool) -> Route:
    """Return the route of a line from a box to itself, at its right side."""
    right, reach = box.x + box.width / 2, LOOP
    if box.shape in ("diamond", "ellipse"):
        right, reach = right - 8, reach + 8
    tip = (right, box.y + 7)
    points = ((right, box.y - 7), (right + reach, box.y - 12), (right + reach, box.y + 9), (right + _HEAD, box.y + 8))
    return Route(points, tip, (right + reach * 0.8 + room / 2, box.y) if labeled else None)


def make_direct_route(picture: Picture, link: Link, geometry: Geometry) -> Route:
    """Return the route of a link between two boxes of a picture that was laid out without it."""
    boxes = {box.name: box for box in picture.boxes}
    ends = [(boxes[name], geometry.boxes[name]) for name in (link.source, link.target)]
    return route_between(*ends[0], *ends[1])


def route_between(source: Box, start: Point, target: Box, end: Point) -> Route:
    """Return a bent route from one box to another; to the same box, at its right side."""
    if source.name == target.name:
        return make_loop_route(PlacedBox(*start, source.width, source.height, source.shape), 0.0, labeled=False)
    dx, dy = end[0] - start[0], end[1] - start[1]
    bow = (-dy * _BEND, dx * _BEND)
    first = (start[0] + dx / 3 + bow[0], start[1] + dy / 3 + bow[1])
    second = (start[0] + dx * 2 / 3 + bow[0], start[1] + dy * 2 / 3 + bow[1])
    out, tip = _find_rim(source, start, first), _find_rim(target, end, second)
    back = (second[0] - tip[0], second[1] - tip[1])
    part = _HEAD / (hypot(*back) or 1.0)
    return Route((out, first, second, (tip[0] + back[0] * part, tip[1] + back[1] * part)), tip)


def _find_rim(box: Box, middle: Point, towards: Point) -> Point:
    """Return the point where the line from a box's center to a point crosses its outline."""
    dx, dy = towards[0] - middle[0], towards[1] - middle[1]
    part = min(
        (box.width / 2) / abs(dx) if dx else float("inf"), (box.height / 2) / abs(dy) if dy else float("inf"), 1.0
    )
    return middle[0] + dx * part, middle[1] + dy * part
