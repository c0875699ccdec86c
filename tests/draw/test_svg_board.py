import itertools
import re
import xml.etree.ElementTree as ET

import pytest

from agentnb.draw.board_table import BoardTable, Flow, Row, make_board_table
from agentnb.draw.plain_layout import compute_plain_layout
from agentnb.draw.render import VARIABLE, lay_out
from agentnb.draw.svg import write_svg
from agentnb.draw.svg_board import (
    compute_row_middle,
    get_flow_classes,
    get_row_classes,
    iter_flow_lines,
    place_board,
    render_board_parts,
)
from agentnb.recipe.model import Edge, Node
from tests.draw.drawn_recipes import (
    DIRECTIONS,
    SVG,
    diamond,
    groups,
    long,
    picture,
    recipe,
    support,
    support_run,
    texts,
)


def size_and_rows(direction, **more):
    shown = picture(support(), support_run(), direction=direction, **more)
    root = ET.fromstring(write_svg(shown, compute_plain_layout(shown)))
    return root, groups(root, "row")


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_table_stands_beside_the_graph_and_inside_the_picture(direction):
    shown = picture(support(), direction=direction)
    geometry = compute_plain_layout(shown)
    left, top = place_board(shown.board, geometry, direction)
    _, _, width, height = map(float, ET.fromstring(write_svg(shown, geometry)).get("viewBox").split())
    assert left >= geometry.width or top >= geometry.height
    assert left + shown.board.width <= width
    assert top + shown.board.height <= height


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_every_flow_has_a_line_and_a_head_and_ends_at_its_node(direction):
    shown = picture(support(), support_run(), direction=direction)
    geometry = compute_plain_layout(shown)
    boxes = {box.id: box for box in shown.boxes}
    spot = place_board(shown.board, geometry, direction)
    for flow, (line, heads) in zip(shown.board.flows, iter_flow_lines(shown, shown.board, geometry, spot), strict=True):
        x, y = map(float, re.match(r"M(-?[\d.]+),(-?[\d.]+)L", line).groups())
        box, (at_x, at_y) = boxes[flow.node], geometry.boxes[boxes[flow.node].name]
        assert abs(x - at_x) <= box.width / 2 + 0.1
        assert abs(y - at_y) <= box.height / 2 + 0.1
        assert heads.startswith("M")
        if flow.direction == "write" and direction in ("TB", "BT"):
            assert heads.count("Z") == len(flow.rows)


def test_a_flow_ends_at_the_middle_of_its_rows():
    shown = picture(diamond())
    spot = place_board(shown.board, compute_plain_layout(shown), "TB")
    lines = dict(
        zip(shown.board.flows, iter_flow_lines(shown, shown.board, compute_plain_layout(shown), spot), strict=True)
    )
    flow = next(flow for flow in lines if flow.node == "load")
    for row in flow.rows:
        assert f"{spot[0]:g},{spot[1] + compute_row_middle(row):g}" in lines[flow][0]


def points_of(line):
    """Return the points of a line's first part, from the node to where it splits; corners as they are cut."""
    return [tuple(map(float, each.split(","))) for each in re.split("[LQ ]", re.split("[MC]", line)[1])]


def crossed(flow, line, shown, geometry):
    """Return the nodes through which a flow runs, besides its own."""
    found = []
    for (x, y), (to_x, to_y) in itertools.pairwise(points_of(line)):
        for box in shown.boxes:
            (at_x, at_y), reach, depth = geometry.boxes[box.name], box.width / 2 - 1, box.height / 2 - 1
            beside = max(min(x, to_x) - at_x, at_x - max(x, to_x)) > reach
            above = max(min(y, to_y) - at_y, at_y - max(y, to_y)) > depth
            if not (beside or above) and box.id != flow.node:
                found.append(box.id)
    return found


def wide(branches):
    nodes = [Node("root", "noop", reads=("a",), writes=("b",)), Node("end", "noop", reads=("b",), writes=("c",))]
    middle = [Node(f"n{number}", "noop", reads=("a",), writes=(f"k{number}",)) for number in range(branches)]
    edges = [edge for node in middle for edge in (Edge("root", node.id), Edge(node.id, "end"))]
    return recipe([*nodes, *middle], edges)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("layout", ["plain", pytest.param("dot", marks=pytest.mark.needs_dot)])
@pytest.mark.parametrize(
    "given", [support(), diamond(), wide(3), wide(9), long(12)], ids=["support", "diamond", "three", "nine", "long"]
)
def test_flows_run_around_the_nodes_between_them_and_the_board(given, layout, direction, monkeypatch):
    shown = picture(given, direction=direction)
    monkeypatch.setenv(VARIABLE, layout)
    geometry = lay_out(shown)
    assert geometry.layout == layout
    spot = place_board(shown.board, geometry, direction)
    lines = zip(shown.board.flows, iter_flow_lines(shown, shown.board, geometry, spot), strict=True)
    found = [(flow.node, crossed(flow, line, shown, geometry)) for flow, (line, _) in lines]
    assert found
    assert [each for each in found if each[1]] == []


def test_spare_rows_are_there_and_empty():
    _, rows = size_and_rows("TB", spare=5)
    spare = [row for row in rows if "spare" in row.get("class")]
    assert len(spare) == 3
    assert [(row.get("data-row"), texts(row)) for row in spare] == [("", "")] * 3
    assert [row.get("data-index") for row in rows] == [str(at) for at in range(len(rows))]


def test_a_picture_without_a_board_has_none():
    shown = picture(diamond(), board=False)
    assert render_board_parts(shown, compute_plain_layout(shown), (0.0, 0.0)) == ("", "")
    assert groups(write_svg(shown, compute_plain_layout(shown)), "board") == []


def test_many_flows_are_faint():
    shown = picture(long(40))
    assert groups(write_svg(shown, compute_plain_layout(shown)), "dense")


def test_the_table_of_an_empty_recipe_stands_at_the_corner():
    for direction in ("TB", "LR"):
        assert place_board(BoardTable((), ()), compute_plain_layout(picture(recipe([]))), direction) == (0.0, 0.0)


def test_classes():
    assert get_flow_classes(Flow("a", "read", (0,), "", active=True, seen=True)) == [
        "flow",
        "flow-read",
        "seen",
        "active",
    ]
    assert get_row_classes(Row("a", "a", "", "", ("written",))) == ["row", "written"]
    assert [get_row_classes(row) for row in make_board_table(diamond(), None).rows] == [["row"]] * 5


def test_values_carry_their_key_and_full_texts_are_tips():
    root, _ = size_and_rows("TB")
    value = root.find(f".//{SVG}text[@data-key='amount']")
    assert texts(value) == "12.5"
    row = next(row for row in groups(root, "row") if row.get("data-row") == "ticket")
    assert "read by classify, write" in texts(row.find(f"{SVG}title"))
