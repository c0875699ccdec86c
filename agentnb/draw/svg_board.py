"""svg_board: the blackboard's table beside the graph, and the thin lines between its rows and the nodes."""

from __future__ import annotations

from typing import Final

from agentnb.draw.board import (
    HEAD_HEIGHT,
    KEY_SIZE,
    KEY_WIDTH,
    ROW_HEIGHT,
    VALUE_SIZE,
    BoardTable,
    Flow,
    Row,
)
from agentnb.draw.geometry import Geometry
from agentnb.draw.look import COLOURS, MONO
from agentnb.draw.picture import Box, Picture
from agentnb.draw.shapes import Point, box, number, pair
from agentnb.draw.text import attribute, content

_GAP: Final = 56.0
_BUS: Final = 26.0
_DENSE: Final = 40


def board_place(table: BoardTable, geometry: Geometry, direction: str) -> Point:
    """Return the table's left upper corner: right of a graph that grows down or up, else below it."""
    return (geometry.width + _GAP, 0.0) if direction in ("TB", "BT") else (0.0, geometry.height + _GAP)


def board_parts(picture: Picture, geometry: Geometry, spot: Point) -> tuple[str, str]:
    """Return the SVG of the flows, to be painted below everything, and that of the table."""
    table = picture.board
    if table is None:
        return "", ""
    boxes = {box.name: box for box in picture.boxes}
    beside = picture.direction in ("TB", "BT")
    dense = " dense" if len(table.flows) > _DENSE else ""
    lines = [
        _flow(flow, boxes[flow.box], geometry.boxes[flow.box], table, spot, beside=beside) for flow in table.flows
    ]
    return f'<g class="flows{dense}">{"".join(lines)}</g>', _table(table, spot)


def row_middle(number: int) -> float:
    """Return how far below the table's top the middle of this row is."""
    return HEAD_HEIGHT + ROW_HEIGHT * (number + 0.5)


def _flow(flow: Flow, box: Box, at: Point, table: BoardTable, spot: Point, *, beside: bool) -> str:
    shift = -5.0 if flow.way == "read" else 5.0
    rows = [spot[1] + row_middle(row) for row in flow.rows]
    if beside:
        near, joint = (at[0] + box.width / 2, at[1] + shift), (spot[0] - _BUS, sum(rows) / len(rows))
        bend = max((joint[0] - near[0]) / 2, 20.0)
        trunk, ends = ((near[0] + bend, near[1]), (joint[0] - bend, joint[1])), [(spot[0], y) for y in rows]
    elif at[0] > spot[0] + table.width + _BUS:
        near = (at[0] + shift, at[1] + box.height / 2)
        joint = (spot[0] + table.width + _BUS, sum(rows) / len(rows))
        bend = max(abs(joint[1] - near[1]) / 2, 20.0)
        trunk, ends = ((near[0], near[1] + bend), (near[0], joint[1])), [(spot[0] + table.width, y) for y in rows]
    else:
        near = (at[0] + shift, at[1] + box.height / 2)
        joint = (min(max(near[0], spot[0] + 14), spot[0] + table.width - 14), spot[1])
        bend = (joint[1] - near[1]) / 2
        trunk, ends = ((near[0], near[1] + bend), (joint[0], joint[1] - bend)), []
    return _flow_group(flow, near, trunk, joint, ends)


def _flow_group(flow: Flow, near: Point, trunk: tuple[Point, Point], joint: Point, ends: list[Point]) -> str:
    colour = COLOURS["flow"]
    curve = f"M{pair(near)}C{pair(trunk[0])} {pair(trunk[1])} {pair(joint)}"
    for end in ends:
        middle = (joint[0] + end[0]) / 2
        curve += f"M{pair(joint)}C{pair((middle, joint[1]))} {pair((middle, end[1]))} {pair(end)}"
    if flow.way == "read":
        heads = _head(near, trunk[0])
    else:
        heads = "".join(_head(end, (joint[0], end[1])) for end in ends) or _head(joint, trunk[1])
    active = " active" if flow.active else ""
    return (
        f'<g class="flow flow-{flow.way}{active}" data-node="{attribute(flow.node)}" data-way="{flow.way}">'
        f'<title>{content(flow.tip)}</title><path d="{curve}" fill="none" stroke="{colour}" stroke-width="0.8"/>'
        f'<g fill="{colour}">{heads}</g></g>'
    )


def _head(tip: Point, back: Point) -> str:
    """Return a small arrow head at `tip` for a line that comes from `back`, straight across or straight down."""
    x, y = tip
    if abs(back[0] - x) >= abs(back[1] - y):
        way = 4.5 if back[0] > x else -4.5
        corners = [tip, (x + way, y - 2), (x + way, y + 2)]
    else:
        way = 4.5 if back[1] > y else -4.5
        corners = [tip, (x - 2, y + way), (x + 2, y + way)]
    return f'<polygon points="{" ".join(map(pair, corners))}"/>'


def _table(table: BoardTable, spot: Point) -> str:
    width, height = table.width, table.height
    frame = f'transform="translate({number(width / 2)},{number(height / 2)})" d="{box(width / 2, height / 2, 8)}"'
    bottom = (
        _line("more", height - 7, f"and {table.more} more") if table.more
        else "" if table.rows else _line("more", height - 7, "nothing on it yet")
    )  # fmt: skip
    return "".join(
        [
            f'<g class="board" transform="translate({number(spot[0])},{number(spot[1])})">',
            f'<path class="back" {frame} fill="{COLOURS["board"]}"/>',
            f'<path class="head" d="M0,{HEAD_HEIGHT:g}V8Q0,0 8,0H{number(width - 8)}Q{number(width)},0 '
            f'{number(width)},8V{HEAD_HEIGHT:g}Z" fill="{COLOURS["board-head"]}"/>',
            _line("title", 16, "Blackboard"),
            *(_row(row, number_, width) for number_, row in enumerate(table.rows)),
            bottom,
            f'<path class="frame" {frame} fill="none" stroke="{COLOURS["board-line"]}"/></g>',
        ]
    )


def _line(name: str, y: float, text: str) -> str:
    colour = COLOURS["faint" if name == "more" else "ink"]
    weight = ' font-weight="bold"' if name == "title" else ""
    return (
        f'<text class="{name}" x="10" y="{number(y)}" font-size="{KEY_SIZE}"{weight} fill="{colour}">'
        f"{content(text)}</text>"
    )


def _row(row: Row, index: int, width: float) -> str:
    marks = "".join(f" {mark}" for mark in row.marks)
    top = HEAD_HEIGHT + ROW_HEIGHT * index
    key = attribute(row.key)
    return (
        f'<g class="row{marks}" data-row="{key}" transform="translate(0,{number(top)})">'
        f"<title>{content(row.tip)}</title>"
        f'<rect class="cell" x="0.5" width="{number(width - 1)}" height="{ROW_HEIGHT:g}" fill="{COLOURS["board"]}"/>'
        f'<path class="rule" d="M0.5,0H{number(width - 0.5)}" stroke="{COLOURS["rule"]}"/>'
        f'<rect class="bar" x="0.5" width="3" height="{ROW_HEIGHT:g}" fill="none"/>'
        f'<text class="key" x="10" y="13.5" font-size="{KEY_SIZE}" fill="{COLOURS["ink"]}">{content(row.label)}</text>'
        f'<text class="value" data-key="{key}" x="{number(KEY_WIDTH)}" y="13.5" font-size="{VALUE_SIZE:g}" '
        f'font-family="{MONO}" fill="{COLOURS["ink"]}">{content(row.value)}</text></g>'
    )
