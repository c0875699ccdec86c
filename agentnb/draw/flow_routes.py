"""Routes of reads and writes: from a node to the corridor beside the board, around nodes, labels and titles.

A band is a stretch across the drawing that obstacles occupy; between two bands a line is free all the way. So a line
has to find its way inside one band at most: out of it, or through it to the corridor.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple

from agentnb.draw.diagram import EDGE_SIZE
from agentnb.draw.geometry import measure_title
from agentnb.draw.label_text import measure_width
from agentnb.draw.shapes import Point

if TYPE_CHECKING:
    from agentnb.draw.diagram import Picture
    from agentnb.draw.geometry import Geometry

_NODE_SPACE: Final = 5.0  # points between a line and a node that it passes
_TEXT_SPACE: Final = 2.5  # points between a line and a label or title
_TEXT_RISE: Final = 5.5  # points of a label above and below the center of its route's label
_LEAVE: Final = 8.0  # points from a node to its line's first corner
_CORNER: Final = 20.0  # points of a detour that a line takes to save a corner
_TRIES: Final = 200  # corners that are looked at; a line that needs more runs across what is left
_NEAR: Final = 0.01


class Obstacle(NamedTuple):
    """A rectangle that lines avoid, with the space to keep free around it."""

    left: float
    top: float
    right: float
    bottom: float


def iter_obstacles(picture: Picture, geometry: Geometry) -> Iterator[Obstacle]:
    """Yield what lines between nodes and board avoid: nodes, labels of edges, titles of areas."""
    for box in picture.boxes:
        x, y = geometry.boxes[box.name]
        yield _surround(x - box.width / 2, y - box.height / 2, x + box.width / 2, y + box.height / 2, _NODE_SPACE)
    for link in picture.links:
        route = geometry.routes.get(link.name)
        if link.label and route is not None and route.label is not None:
            (x, y), half = route.label, measure_width(link.label, EDGE_SIZE) / 2
            yield _surround(x - half, y - _TEXT_RISE, x + half, y + _TEXT_RISE, _TEXT_SPACE)
    for area in picture.areas:
        if area.name in geometry.areas:
            left, top, *_ = geometry.areas[area.name]
            yield _surround(left + 12, top + 8, left + 12 + measure_title(area), top + 18, _TEXT_SPACE)


def _surround(left: float, top: float, right: float, bottom: float, space: float) -> Obstacle:
    return Obstacle(left - space, top - space, right + space, bottom + space)


class Band(NamedTuple):
    """A stretch across the drawing, from `low` to `high`, and the obstacles in it."""

    low: float
    high: float
    obstacles: list[Obstacle]


class Bands:
    """The bands of a drawing, which tell where a line to the board is free.

    Lines run along one axis, to the right if `across` is False, else downwards; bands are measured along the other one.
    """

    def __init__(self, obstacles: Iterable[Obstacle], *, across: bool) -> None:
        turned = (Obstacle(top, left, bottom, right) for left, top, right, bottom in obstacles) if across else obstacles
        merged: list[Band] = []
        for area in sorted(turned, key=lambda area: area.top):
            if merged and area.top < merged[-1].high:
                low, high, others = merged[-1]
                others.append(area)
                merged[-1] = Band(low, max(high, area.bottom), others)
            else:
                merged.append(Band(area.top, area.bottom, [area]))
        self._bands, self._lows = merged, [band.low for band in merged]
        self._across = across

    def corners(self, node_end: Point, corridor: float, end: float) -> list[Point]:
        """Return the corners of a line from a node's side `node_end` to the corridor, and in it to `end`."""
        start = self._make_turn(node_end)
        index = bisect_right(self._lows, start[1]) - 1
        band = self._bands[index] if index >= 0 else None
        inside = [] if band is None or start[1] >= band.high else _find_way(band, start, corridor, end)
        points = [*inside, (corridor, inside[-1][1] if inside else start[1]), (corridor, end)]
        return [self._make_turn(corner) for corner in points]

    def _make_turn(self, point: Point) -> Point:
        return (point[1], point[0]) if self._across else point


def _find_way(band: Band, start: Point, corridor: float, end: float) -> list[Point]:
    """Return the corners of the shortest line with few corners from `start` to where nothing lies before the corridor.

    It runs towards the corridor and across in turns, never back.
    """
    around = (area.right for area in band.obstacles if area.left < start[0] < area.right and _spans(area, start[1]))
    own = min(around, default=start[0])  # the right side of its own node
    ahead = [area for area in band.obstacles if area.right > own + _NEAR]
    queue: list[tuple[float, int, Point, list[Point]]] = [(0.0, 0, start, [])]
    seen: set[Point] = set()
    tries = 0
    while queue:
        cost, _, (x, y), corners = heappop(queue)
        reach = min((area.left for area in ahead if area.right > x + _NEAR and _spans(area, y)), default=corridor)
        if reach >= corridor:
            return corners
        if (x, y) in seen or tries > _TRIES:
            continue
        seen.add((x, y))
        room = reach - x if reach > x else _LEAVE  # less if a label lies on the node itself
        for turn in {x + min(_LEAVE, room / 2), x + room}:
            for side in _iter_sides(band, ahead, turn, y):
                tries += 1
                # where the line then ends is the same for all; what counts is the way that it makes across
                length = cost + _CORNER + abs(side - y) + abs(end - side) - abs(end - y)
                heappush(queue, (length, tries, (turn, side), [*corners, (turn, y), (turn, side)]))
    first, side = start[0] + _LEAVE, band.low if end < start[1] else band.high
    return [(first, start[1]), (first, side)]


def _spans(area: Obstacle, side: float) -> bool:
    return area.top + _NEAR < side < area.bottom - _NEAR


def _iter_sides(band: Band, ahead: list[Obstacle], along: float, side: float) -> Iterator[float]:
    """Yield where a line across at `along` may turn: at the edges of the obstacles that it can reach from `side`."""
    reachable = [area for area in ahead if area.left + _NEAR < along < area.right - _NEAR]
    low = max((area.bottom for area in reachable if area.bottom <= side + _NEAR), default=band.low)
    high = min((area.top for area in reachable if area.top >= side - _NEAR), default=band.high)
    edges = {band.low, band.high, *(edge for area in ahead if area.right > along for edge in (area.top, area.bottom))}
    return (edge for edge in edges if low <= edge <= high and edge != side)
