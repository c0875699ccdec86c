"""A laid-out picture as SVG text: classes for style, data attributes for a live view, nothing else.

The interface for front ends, independent of the backend: `g.node[data-node]`, `g.edge[data-source][data-target]
[data-edge]`, `g.cluster[data-scope]`, `g.row[data-row][data-index]` with `text.value[data-key]`, `g.flow[data-node]
[data-direction]`. `svg_patch.py` defines how a live view uses them. `svg[data-graph]` is the size without the board.
No ids (two pictures may share a page), no scripts, no links, no external resources.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot
from typing import Final

from agentnb.draw.diagram import (
    EDGE_SIZE,
    KIND_LINE,
    KIND_SIZE,
    LABEL_SIZE,
    LINE,
    NOTE_LINE,
    NOTE_SIZE,
    TITLE_SIZE,
    Area,
    Box,
    Link,
    Picture,
)
from agentnb.draw.edge_routes import make_direct_route
from agentnb.draw.geometry import Geometry, Rectangle, Route, measure_title
from agentnb.draw.label_text import to_attribute, to_content
from agentnb.draw.shapes import Point, format_pair, make_box_path, make_outline, number
from agentnb.draw.style import COLORS, FONT, make_class, make_own_sheet
from agentnb.draw.svg_board import place_board, render_board_parts

MARGIN: Final = 12.0
_FITS: Final = 2000.0
_LINES: Final = {
    "enter": "area-line",
    "leave": "area-line",
    "error": "failed",
    "timeout": "waiting",
    "event": "react-line",
    "hears": "event-line",
    "tells": "event-line",
}
_LOWERED: Final = {"house": 5.0, "tab": 4.0, "folder": 4.0, "cylinder": 3.0, "invhouse": -5.0}


def write_svg(picture: Picture, geometry: Geometry, *, styled: bool = True) -> str:
    """Return the complete SVG; coordinates are points, its width and height the natural size.

    Without `styled` it has no style sheet, for a page that already includes `style.make_stylesheet()`.
    """
    width, height, origin = geometry.width, geometry.height, None
    alone_size = f"{number(width + 2 * MARGIN)} {number(height + 2 * MARGIN)}"
    if picture.board:
        origin = place_board(picture.board, geometry, picture.direction)
        width, height = (
            max(width, origin[0] + picture.board.width),
            max(height, origin[1] + picture.board.height),
        )
    width, height = width + 2 * MARGIN, height + 2 * MARGIN
    flows, table = render_board_parts(picture, geometry, origin) if origin else ("", "")
    classes = " ".join(["agentnb", *(["has-run"] if picture.with_run else [])])
    areas = [(area, geometry.areas[area.name]) for area in picture.areas if area.name in geometry.areas]
    # A page shrinks it to its own width as long as it remains legible.
    fit = ' style="max-width:100%;height:auto"' if width <= _FITS else ""
    alone = f' data-static=""{fit}' if styled else ""
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{classes}"{alone} '
        f'data-layout="{geometry.layout}" data-graph="{alone_size}" '
        f'width="{number(width)}pt" height="{number(height)}pt" '
        f'viewBox="0 0 {number(width)} {number(height)}" role="img" '
        f'aria-label="{to_attribute(f"{picture.what} {picture.title}")}" font-family="{FONT}">'
    )
    return "\n".join(
        [
            opening,
            *([f"<style>{make_own_sheet()}</style>"] if styled else []),
            f'<rect class="paper" width="{number(width)}" height="{number(height)}" rx="8" fill="{COLORS["paper"]}"/>',
            f'<g transform="translate({number(MARGIN)},{number(MARGIN)})">',
            *(_render_area(area, place) for area, place in areas),
            flows,
            *(_render_link(link, geometry.routes[link.name]) for link in picture.links if link.name in geometry.routes),
            *(_render_link(link, make_direct_route(picture, link, geometry)) for link in picture.later),
            *(_render_area_title(area, place) for area, place in areas),  # above the lines that enter the area
            *(_render_box(box, geometry.boxes[box.name]) for box in picture.boxes),
            table,
            "</g>\n</svg>",
        ]
    )


def _render_area(area: Area, rectangle: Rectangle) -> str:
    left, top, right, bottom = rectangle
    middle = f"translate({number((left + right) / 2)},{number((top + bottom) / 2)})"
    frame = make_box_path((right - left) / 2, (bottom - top) / 2, 10)
    return (
        f'<g class="cluster" data-scope="{to_attribute(area.scope)}"><title>{to_content(area.tip)}</title>'
        f'<path transform="{middle}" d="{frame}" fill="{COLORS["area"]}" stroke="{COLORS["area-line"]}"/></g>'
    )


def _render_area_title(area: Area, rectangle: Rectangle) -> str:
    """Return a title on its own background, so that a line that enters the area passes behind it."""
    left, top, *_ = rectangle
    return (
        f'<g class="cluster-title" data-scope="{to_attribute(area.scope)}">'
        f'<rect x="{number(left + 8)}" y="{number(top + 4)}" width="{number(measure_title(area))}" height="17" '
        f'fill="{COLORS["area"]}"/>'
        f'<text x="{number(left + 12)}" y="{number(top + 16)}" font-size="{TITLE_SIZE}" fill="{COLORS["faint"]}">'
        f"{to_content(area.title)}</text></g>"
    )


def _render_link(link: Link, route: Route) -> str:
    color = COLORS[_LINES.get(link.kind, "edge")]
    if link.index < 0:
        opening = f'<g class="enter" data-target="{to_attribute(link.ends[1])}">'
    else:
        source, target = map(to_attribute, link.ends)
        light = ["enter"] if link.kind == "enter" else []
        classes = " ".join(["edge", *light, make_class("edge", link.kind), *link.marks])
        hidden = ' display="none"' if "later" in link.marks else ""
        opening = (
            f'<g class="{classes}" data-source="{source}" data-target="{target}" '
            f'data-edge="{link.index}"{hidden}><title>{to_content(link.tip)}</title>'
        )
    label = ""
    if link.label and route.label:
        x, y = route.label
        label = (
            f'<text x="{number(x)}" y="{number(y + 3)}" text-anchor="middle" font-size="{EDGE_SIZE}" '
            f'fill="{COLORS["edge-text"]}">{to_content(link.label)}</text>'
        )
    curve = f'<path d="{format_curve(route.points)}" fill="none" stroke="{color}"/>'
    return f"{opening}{curve}{format_arrow_head(route.points, route.tip, color)}{label}</g>"


def format_curve(points: tuple[Point, ...]) -> str:
    """Return the path data of a cubic Bezier curve of 1 + 3n points."""
    return f"M{format_pair(points[0])}" + (f"C{' '.join(map(format_pair, points[1:]))}" if len(points) > 1 else "")


def format_arrow_head(points: tuple[Point, ...], tip: Point, color: str, half: float = 2.8) -> str:
    """Return the polygon from the end of a curve to its tip; empty if there is no room for one."""
    base = points[-1]
    dx, dy = tip[0] - base[0], tip[1] - base[1]
    length = hypot(dx, dy)
    if length < 0.5:
        return ""
    x, y = -dy / length * half, dx / length * half
    corners = f"{format_pair((base[0] + x, base[1] + y))} {format_pair(tip)} {format_pair((base[0] - x, base[1] - y))}"
    return f'<polygon points="{corners}" fill="{color}"/>'


def _render_box(box: Box, position: Point) -> str:
    at = f'transform="translate({number(position[0])},{number(position[1])})"'
    shape = make_outline(box.shape, box.width, box.height)
    if box.kind == "start" and not box.id:
        return (
            f'<g class="start" {at}><title>{to_content(box.tip)}</title>'
            f'<path class="shape" d="{shape}" fill="{COLORS["edge"]}"/></g>'
        )
    classes = " ".join(["node", make_class("kind", box.kind), f"family-{box.family}", *box.marks])
    opening = f'<g class="{classes}" data-node="{to_attribute(box.id)}" {at}><title>{to_content(box.tip)}</title>'
    center = f'cx="{number(3 - box.width / 2)}" cy="{number(3 - box.height / 2)}"'
    fill, line = COLORS[box.family], COLORS[f"{box.family}-line"]
    return "".join(
        [
            opening,
            f'<path class="shape" d="{shape}" fill="{fill}" stroke="{line}"/>',
            *_iter_words(box),
            f'<circle class="dot" {center} r="5" display="none"/></g>',
        ]
    )


def _iter_words(box: Box) -> Iterator[str]:
    head = KIND_LINE if box.caption else 0.0
    top = -(head + LINE * len(box.lines) + NOTE_LINE * len(box.notes)) / 2 + _LOWERED.get(box.shape, 0.0)
    color = COLORS[f"{box.family}-text"]
    size = "" if box.caption else f' font-size="{EDGE_SIZE:g}"'
    count = f'<tspan class="count" dx="3"{size}>{to_content(box.count)}</tspan>'
    if box.caption:
        yield _render_word("kind", top + 8, KIND_SIZE, color, box.caption, count)
    for number_, line in enumerate(box.lines):
        more = count if not box.caption and number_ == len(box.lines) - 1 else ""
        yield _render_word("label", top + head + LINE * number_ + 10.5, LABEL_SIZE, COLORS["ink"], line, more)
    for number_, line in enumerate(box.notes):
        below = top + head + LINE * len(box.lines) + NOTE_LINE * number_
        yield _render_word("note", below + 8.5, NOTE_SIZE, COLORS["edge-text"], line)


def _render_word(name: str, y: float, size: float, color: str, text: str, more: str = "") -> str:
    return (
        f'<text class="{name}" y="{number(y)}" text-anchor="middle" font-size="{size:g}" fill="{color}">'
        f"{to_content(text)}{more}</text>"
    )
