"""The SVG of the blackboard's table beside the graph, and of the thin lines between its rows and the nodes."""

from __future__ import annotations

from typing import Final

from agentnb.draw.board_table import (
    HEAD_HEIGHT,
    KEY_SIZE,
    KEY_WIDTH,
    ROW_HEIGHT,
    VALUE_SIZE,
    WIDTH,
    BoardTable,
    Flow,
    Row,
)
from agentnb.draw.diagram import Box, Picture
from agentnb.draw.flow_routes import Bands, iter_obstacles
from agentnb.draw.geometry import Geometry
from agentnb.draw.label_text import to_attribute, to_content
from agentnb.draw.shapes import Point, format_pair, make_box_path, number, round_line
from agentnb.draw.style import COLORS, MONO

_GAP: Final = 56.0
_BUS: Final = 26.0
_LANE: Final = 13.0
_BEND: Final = 10.0
_DENSE: Final = 40
_SPARE: Final = Row("", "", "", "")
_BAR: Final = f"M0.5,0H3.5V{ROW_HEIGHT:g}H0.5Z"
_END_BAR: Final = f"M0.5,0H3.5V{ROW_HEIGHT - 1.1:g}Q1.3,{ROW_HEIGHT - 3:g} 0.5,{ROW_HEIGHT - 8:g}Z"  # along the corner
# corners of a line from a node to a joint, and the ends at the rows of the lines from there
Lines = tuple[list[Point], list[Point]]


def place_board(table: BoardTable, geometry: Geometry, direction: str) -> Point:
    """Return the table's upper left corner: right of a graph that grows down or up, otherwise centered below it."""
    if direction in ("TB", "BT"):
        return (geometry.width + _GAP if geometry.boxes else 0.0), 0.0
    return max((geometry.width - table.width) / 2, 0.0), (geometry.height + _GAP if geometry.boxes else 0.0)


def render_board_parts(picture: Picture, geometry: Geometry, origin: Point) -> tuple[str, str]:
    """Return the SVG of the flows, to be painted below everything, and that of the table."""
    table = picture.board
    if table is None:
        return "", ""
    dense = " dense" if len(table.flows) > _DENSE else ""
    lines = FlowLines(picture, geometry)
    flows = "".join(_render_flow(flow, *lines.make(flow)) for flow in table.flows)
    return f'<g class="flows{dense}">{flows}</g>', _render_table(table, origin)


def _render_flow(flow: Flow, line: str, heads: str) -> str:
    classes = " ".join(get_flow_classes(flow))
    return (
        f'<g class="{classes}" data-node="{to_attribute(flow.node)}" data-direction="{flow.direction}">'
        f'<title>{to_content(flow.tip)}</title><path class="line" d="{line}" fill="none" '
        f'stroke="{COLORS["flow"]}" stroke-width="0.8"/><path class="heads" d="{heads}" '
        f'fill="{COLORS["flow"]}"/></g>'
    )


def get_flow_classes(flow: Flow) -> list[str]:
    """Return the classes of a flow's group."""
    marks = {"seen": flow.seen, "active": flow.active}
    return ["flow", f"flow-{flow.direction}", *(mark for mark, holds in marks.items() if holds)]


class FlowLines:
    """The lines between the nodes and the board of a laid-out picture."""

    def __init__(self, picture: Picture, geometry: Geometry) -> None:
        self._geometry = geometry
        self._beside = picture.direction in ("TB", "BT")
        self._boxes = {box.id: box for box in picture.boxes if box.id or box.kind != "start"}
        self._spot = (0.0, 0.0) if picture.board is None else place_board(picture.board, geometry, picture.direction)
        self._bands = Bands(iter_obstacles(picture, geometry), across=not self._beside)

    def make(self, flow: Flow) -> tuple[str, str]:
        """Return the path data of a flow's line and of its arrow heads."""
        box = self._boxes[flow.node]
        find = _make_lines_beside if self._beside else _make_lines_below
        return _make_lines(flow, *find(flow, box, self._geometry.boxes[box.name], self._spot, self._bands))


def compute_row_middle(number: int) -> float:
    """Return the distance of the center of this row from the table's top."""
    return HEAD_HEIGHT + ROW_HEIGHT * (number + 0.5)


def _make_lines_beside(flow: Flow, box: Box, at: Point, origin: Point, bands: Bands) -> Lines:
    """Return lines for a table right of the graph: from the box's right side to a joint, and from there to the rows."""
    rows = [origin[1] + compute_row_middle(row) for row in flow.rows]
    node_end = (at[0] + box.width / 2, at[1] + _shift(flow))
    joint = (origin[0] - _BUS, sum(rows) / len(rows))
    corners = bands.corners(node_end, joint[0] - _LANE + _shift(flow), joint[1])
    return [node_end, *corners, joint], [(origin[0], y) for y in rows]


def _make_lines_below(flow: Flow, box: Box, at: Point, origin: Point, bands: Bands) -> Lines:
    """Return lines for a table below the graph: to its rows from the box's side, or into its upper edge."""
    node_end = (at[0] + _shift(flow), at[1] + box.height / 2)
    lane = origin[1] - _BUS - _LANE + _shift(flow)
    sides = {1.0: origin[0] + WIDTH, -1.0: origin[0]}
    for side, edge in sides.items():
        if (at[0] - edge) * side > _BUS:
            rows = [origin[1] + compute_row_middle(row) for row in flow.rows]
            joint = (edge + side * _BUS, sum(rows) / len(rows))
            return [node_end, *bands.corners(node_end, lane, joint[0]), joint], [(edge, y) for y in rows]
    joint = (min(max(node_end[0], origin[0] + 14), origin[0] + WIDTH - 14), origin[1])
    return [node_end, *bands.corners(node_end, lane, joint[0]), joint], []


def _shift(flow: Flow) -> float:
    return -5.0 if flow.direction == "read" else 5.0


def _make_lines(flow: Flow, corners: list[Point], ends: list[Point]) -> tuple[str, str]:
    near, joint = corners[0], corners[-1]
    curve = round_line(corners, _BEND)
    for end in ends:
        middle = (joint[0] + end[0]) / 2
        bends = f"{format_pair((middle, joint[1]))} {format_pair((middle, end[1]))}"
        curve += f"M{format_pair(joint)}C{bends} {format_pair(end)}"
    if flow.direction == "read":
        return curve, _make_head(near, corners[1])
    return curve, "".join(_make_head(end, (joint[0], end[1])) for end in ends) or _make_head(joint, corners[-2])


def _make_head(tip: Point, back: Point) -> str:
    """Return a small arrow head at `tip` for a line from `back`, horizontal or vertical."""
    x, y = tip
    if abs(back[0] - x) >= abs(back[1] - y):
        offset = 4.5 if back[0] > x else -4.5
        corners = [tip, (x + offset, y - 2), (x + offset, y + 2)]
    else:
        offset = 4.5 if back[1] > y else -4.5
        corners = [tip, (x - 2, y + offset), (x + 2, y + offset)]
    return f"M{'L'.join(map(format_pair, corners))}Z"


def _render_table(table: BoardTable, origin: Point) -> str:
    width, height = table.width, table.height
    transform = f'transform="translate({number(origin[0])},{number(origin[1])})"'
    rim = f"M0,{HEAD_HEIGHT:g}V8Q0,0 8,0H{number(width - 8)}Q{number(width)},0 {number(width)},8V{HEAD_HEIGHT:g}Z"
    frame = (
        f'transform="translate({number(width / 2)},{number(height / 2)})" d="{make_box_path(width / 2, height / 2, 8)}"'
    )
    rows = [*table.rows, *[_SPARE] * table.spare]
    end = -1 if table.foot else len(rows) - 1  # the row with the table's lower corners
    return "".join(
        [
            f'<g class="board" {transform}>',
            f'<path class="back" {frame} fill="{COLORS["board"]}"/>',
            f'<path class="head" d="{rim}" fill="{COLORS["board-head"]}"/>',
            _render_line("title", 16, "Blackboard"),
            *(_render_row(row, index, width, is_end=index == end) for index, row in enumerate(rows)),
            _render_line("more", height - 7, table.last_line) if table.foot else "",
            f'<path class="frame" {frame} fill="none" stroke="{COLORS["board-line"]}"/></g>',
        ]
    )


def _make_cell(width: float, is_end: bool) -> str:
    """Return the path of a row's ground; the last row has the lower corners of the table."""
    right, height = number(width - 0.5), f"{ROW_HEIGHT:g}"
    if not is_end:
        return f"M0.5,0H{right}V{height}H0.5Z"
    above = f"{ROW_HEIGHT - 8:g}"
    return f"M0.5,0H{right}V{above}Q{right},{height} {number(width - 8)},{height}H8Q0.5,{height} 0.5,{above}Z"


def _render_line(name: str, y: float, text: str) -> str:
    color = COLORS["faint" if name == "more" else "ink"]
    weight = ' font-weight="bold"' if name == "title" else ""
    return (
        f'<text class="{name}" x="10" y="{number(y)}" font-size="{KEY_SIZE}"{weight} fill="{color}">'
        f"{to_content(text)}</text>"
    )


def _render_row(row: Row, index: int, width: float, *, is_end: bool) -> str:
    classes = " ".join(get_row_classes(row))
    top = HEAD_HEIGHT + ROW_HEIGHT * index
    key = to_attribute(row.key)
    return (
        f'<g class="{classes}" data-row="{key}" data-index="{index}" transform="translate(0,{number(top)})">'
        f"<title>{to_content(row.tip)}</title>"
        f'<path class="cell" d="{_make_cell(width, is_end)}" fill="{COLORS["board"]}"/>'
        f'<path class="rule" d="M0.5,0H{number(width - 0.5)}" stroke="{COLORS["rule"]}"/>'
        f'<path class="bar" d="{_END_BAR if is_end else _BAR}" fill="none"/>'
        f'<text class="key" x="10" y="13.5" font-size="{KEY_SIZE}" fill="{COLORS["ink"]}">'
        f"{to_content(row.label)}</text>"
        f'<text class="value" data-key="{key}" x="{number(KEY_WIDTH)}" y="13.5" font-size="{VALUE_SIZE:g}" '
        f'font-family="{MONO}" fill="{COLORS["ink"]}">{to_content(row.value)}</text></g>'
    )


def get_row_classes(row: Row) -> list[str]:
    """Return the classes of a row's group; a row without a key is `spare`."""
    return ["row", *(["spare"] if row is _SPARE else []), *row.marks]
