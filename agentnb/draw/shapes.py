"""The outlines of shapes as SVG path data, and the room for text inside them."""

from __future__ import annotations

from collections.abc import Callable
from math import hypot
from typing import Final, NamedTuple

Point = tuple[float, float]


class Fit(NamedTuple):
    """How a shape grows around its text: width times `across` plus `side`, height times `down` plus `boundary`."""

    across: float
    side: float
    down: float
    boundary: float


_PLAIN: Final = Fit(1, 28, 1, 16)
_FITS: Final[dict[str, Fit]] = {
    "diamond": Fit(1.3, 44, 1.3, 26),
    "ellipse": Fit(1.25, 24, 1.25, 12),
    "hexagon": Fit(1, 48, 1, 16),
    "octagon": Fit(1, 40, 1, 16),
    "parallelogram": Fit(1, 52, 1, 16),
    "trapezium": Fit(1, 60, 1, 16),
    "invtrapezium": Fit(1, 60, 1, 16),
    "house": Fit(1, 28, 1, 30),
    "invhouse": Fit(1, 28, 1, 30),
    "cylinder": Fit(1, 28, 1, 30),
    "component": Fit(1, 40, 1, 16),
    "tab": Fit(1, 28, 1, 26),
    "folder": Fit(1, 28, 1, 26),
    "note": Fit(1, 36, 1, 16),
    "pill": Fit(1, 22, 1, 10),
}
_SAME: Final = {"oval": "ellipse", "circle": "ellipse", "doublecircle": "ellipse", "rect": "box", "rectangle": "box"}
_POLYGONS: Final[dict[str, tuple[Point, ...]]] = {
    "diamond": ((0, -1), (1, 0), (0, 1), (-1, 0)),
    "house": ((0, -1), (1, -0.45), (1, 1), (-1, 1), (-1, -0.45)),
    "invhouse": ((-1, -1), (1, -1), (1, 0.45), (0, 1), (-1, 0.45)),
}


def choose_shape(shape: str) -> str:
    """Return the shape drawn for this Graphviz name: the same, a similar one, or a box."""
    name = _SAME.get(shape, shape)
    return name if name in _FITS else "box"


def measure_around(shape: str, width: float, height: float) -> tuple[float, float]:
    """Return the size in whole points of this shape around a text of this size."""
    fit = _FITS.get(shape, _PLAIN)
    return float(round(width * fit.across + fit.side)), float(round(height * fit.down + fit.boundary))


def make_outline(shape: str, width: float, height: float) -> str:
    """Return the path data of a shape of this size around the point 0, 0."""
    w, h = width / 2, height / 2
    if shape in _POLYGONS:
        return round_corners([(x * w, y * h) for x, y in _POLYGONS[shape]], 5)
    draw = _DRAWN.get(shape)
    return draw(w, h) if draw else make_box_path(w, h, 8)


def make_box_path(w: float, h: float, radius: float) -> str:
    """Return the path data of a rounded rectangle of half width `w` and half height `h`."""
    return round_corners([(-w, -h), (w, -h), (w, h), (-w, h)], min(radius, w, h))


def round_corners(corners: list[Point], radius: float) -> str:
    """Return the closed path through these corners, with rounded corners."""
    parts: list[str] = []
    for index, corner in enumerate(corners):
        start = _move_towards(corner, corners[index - 1], radius)
        end = _move_towards(corner, corners[(index + 1) % len(corners)], radius)
        parts.append(f"{'L' if parts else 'M'}{format_pair(start)}Q{format_pair(corner)} {format_pair(end)}")
    return "".join(parts) + "Z"


def round_line(points: list[Point], radius: float) -> str:
    """Return the open path through these points, with rounded corners."""
    parts = [f"M{format_pair(points[0])}"]
    for previous, corner, following in zip(points, points[1:], points[2:], strict=False):
        first, last = _move_towards(corner, previous, radius), _move_towards(corner, following, radius)
        parts.append(f"L{format_pair(first)}Q{format_pair(corner)} {format_pair(last)}")
    return "".join([*parts, f"L{format_pair(points[-1])}"])


def _move_towards(start: Point, end: Point, distance: float) -> Point:
    length = hypot(end[0] - start[0], end[1] - start[1]) or 1.0
    part = min(distance / length, 0.5)
    return start[0] + (end[0] - start[0]) * part, start[1] + (end[1] - start[1]) * part


def number(value: float) -> str:
    """Return a number with at most one decimal, because a tenth of a point is finer than a screen."""
    text = f"{value:.1f}"
    return "0" if text in ("-0.0", "0.0") else text.removesuffix(".0")


def format_pair(point: Point) -> str:
    """Return `x,y`."""
    return f"{number(point[0])},{number(point[1])}"


def _draw_ellipse(w: float, h: float) -> str:
    arc = f"A{number(w)},{number(h)} 0 1 1 "
    return f"M{format_pair((-w, 0))}{arc}{format_pair((w, 0))}{arc}{format_pair((-w, 0))}Z"


def _draw_hexagon(w: float, h: float) -> str:
    s = min(16.0, w / 2)
    return round_corners([(-w + s, -h), (w - s, -h), (w, 0), (w - s, h), (-w + s, h), (-w, 0)], 5)


def _draw_octagon(w: float, h: float) -> str:
    s = min(11.0, w / 2, h / 2)
    right = [(w - s, -h), (w, -h + s), (w, h - s), (w - s, h)]
    return round_corners([*right, *[(-x, -y) for x, y in right]], 4)


def _draw_parallelogram(w: float, h: float) -> str:
    s = min(14.0, w / 2)
    return round_corners([(-w + s, -h), (w, -h), (w - s, h), (-w, h)], 5)


def _draw_trapezium(w: float, h: float) -> str:
    s = min(14.0, w / 2)
    return round_corners([(-w + s, -h), (w - s, -h), (w, h), (-w, h)], 5)


def _draw_invtrapezium(w: float, h: float) -> str:
    s = min(14.0, w / 2)
    return round_corners([(-w, -h), (w, -h), (w - s, h), (-w + s, h)], 5)


def _draw_cylinder(w: float, h: float) -> str:
    top, arc = -h + 7, f"A{number(w)},7 0 0 "
    left, right = format_pair((-w, top)), format_pair((w, top))
    body = f"M{left}{arc}1 {right}L{format_pair((w, h - 7))}{arc}1 {format_pair((-w, h - 7))}Z"
    return f"{body}M{left}{arc}0 {right}"


def _draw_component(w: float, h: float) -> str:
    lugs = "".join(f"M{format_pair((-w - 4, y))}h8v6h-8Z" for y in (-h + 9, h - 15))
    return make_box_path(w, h, 6) + lugs


def _draw_tab(w: float, h: float) -> str:
    ear = min(44.0, w)
    top = -h + 10
    return round_corners([(-w, -h), (-w + ear, -h), (-w + ear + 7, top), (w, top), (w, h), (-w, h)], 5)


def _draw_pill(w: float, h: float) -> str:
    return make_box_path(w, h, h)


def _note(w: float, h: float) -> str:
    s = min(11.0, w, h)
    fold = f"M{format_pair((w - s, -h))}v{number(s)}h{number(s)}"
    return round_corners([(-w, -h), (w - s, -h), (w, -h + s), (w, h), (-w, h)], 3) + fold


_DRAWN: Final[dict[str, Callable[[float, float], str]]] = {
    "ellipse": _draw_ellipse,
    "hexagon": _draw_hexagon,
    "octagon": _draw_octagon,
    "parallelogram": _draw_parallelogram,
    "trapezium": _draw_trapezium,
    "invtrapezium": _draw_invtrapezium,
    "cylinder": _draw_cylinder,
    "component": _draw_component,
    "tab": _draw_tab,
    "folder": _draw_tab,
    "note": _note,
    "pill": _draw_pill,
}
