import itertools
import re
import xml.etree.ElementTree as ET
from functools import partial

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentnb as nb
from agentnb.draw.board_table import BoardTable, Flow, Row, make_board_table
from agentnb.draw.diagram import EDGE_SIZE, TITLE_SIZE
from agentnb.draw.flow_routes import Bands, Obstacle
from agentnb.draw.label_text import measure_width
from agentnb.draw.plain_layout import compute_plain_layout
from agentnb.draw.render import VARIABLE, lay_out
from agentnb.draw.svg import write_svg
from agentnb.draw.svg_board import (
    FlowLines,
    compute_row_middle,
    get_flow_classes,
    get_row_classes,
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
    recipes,
    support,
    support_run,
    texts,
)


def size_and_rows(direction, **more):
    shown = picture(support(), support_run(), direction=direction, **more)
    root = ET.fromstring(write_svg(shown, compute_plain_layout(shown)))
    return root, groups(root, "row")


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_table_is_beside_the_graph_and_inside_the_picture(direction):
    shown = picture(support(), direction=direction)
    geometry = compute_plain_layout(shown)
    left, top = place_board(shown.board, geometry, direction)
    _, _, width, height = map(float, ET.fromstring(write_svg(shown, geometry)).get("viewBox").split())
    assert left >= geometry.width or top >= geometry.height
    assert left + shown.board.width <= width
    assert top + shown.board.height <= height


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_every_flow_has_a_line_with_an_arrowhead_and_ends_at_its_node(direction):
    shown = picture(support(), support_run(), direction=direction)
    geometry = compute_plain_layout(shown)
    boxes = {box.id: box for box in shown.boxes}
    lines = FlowLines(shown, geometry)
    for flow in shown.board.flows:
        line, heads = lines.make(flow)
        x, y = map(float, re.match(r"M(-?[\d.]+),(-?[\d.]+)L", line).groups())
        box, (at_x, at_y) = boxes[flow.node], geometry.boxes[boxes[flow.node].name]
        assert abs(x - at_x) <= box.width / 2 + 0.1
        assert abs(y - at_y) <= box.height / 2 + 0.1
        assert heads.startswith("M")
        if flow.direction == "write" and direction in ("TB", "BT"):
            assert heads.count("Z") == len(flow.rows)


def test_a_flow_ends_at_the_middle_of_its_rows():
    shown = picture(diamond())
    geometry = compute_plain_layout(shown)
    origin = place_board(shown.board, geometry, "TB")
    flow = next(flow for flow in shown.board.flows if flow.node == "load")
    line, _ = FlowLines(shown, geometry).make(flow)
    for row in flow.rows:
        assert f"{origin[0]:g},{origin[1] + compute_row_middle(row):g}" in line


def points_of(line):
    """Return the points of a line's first part, from the node to where it splits; corners as they are cut."""
    return [tuple(map(float, each.split(","))) for each in re.split("[LQ ]", re.split("[MC]", line)[1])]


def list_parts(shown, geometry):
    """Return what lines must not cross, as (name, left, top, right, bottom): nodes, labels, titles of regions."""
    parts = []
    for box in shown.boxes:
        x, y = geometry.boxes[box.name]
        parts.append((box.id, x - box.width / 2, y - box.height / 2, x + box.width / 2, y + box.height / 2))
    for link in shown.links:
        if link.label and (route := geometry.routes.get(link.name)):
            (x, y), half = route.label, measure_width(link.label, EDGE_SIZE) / 2
            parts.append((f"label {link.label}", x - half, y - EDGE_SIZE * 0.6, x + half, y + EDGE_SIZE * 0.55))
    for area in shown.areas:
        if area.name in geometry.areas:
            left, top, *_ = geometry.areas[area.name]
            end = left + 12 + measure_width(area.title, TITLE_SIZE)
            parts.append((f"title {area.title}", left + 12, top + 8, end, top + 18))
    return parts


def find_crossings(shown, geometry):
    """Return each flow that crosses something besides its own node, with what it crosses."""
    lines, parts, results = FlowLines(shown, geometry), list_parts(shown, geometry), []
    for flow in shown.board.flows:
        for (x, y), (to_x, to_y) in itertools.pairwise(points_of(lines.make(flow)[0])):
            for name, left, top, right, bottom in parts:
                is_beside = max(x, to_x) < left + 0.2 or min(x, to_x) > right - 0.2
                is_above = max(y, to_y) < top + 0.2 or min(y, to_y) > bottom - 0.2
                if not (is_beside or is_above) and name != flow.node:
                    results.append((flow.direction, flow.node, name))
    return results


def wide(branches):
    nodes = [Node("root", "noop", reads=("a",), writes=("b",)), Node("end", "noop", reads=("b",), writes=("c",))]
    middle = [Node(f"n{number}", "noop", reads=("a",), writes=(f"k{number}",)) for number in range(branches)]
    edges = [edge for node in middle for edge in (Edge("root", node.id), Edge(node.id, "end"))]
    return recipe([*nodes, *middle], edges)


def beside_labels():
    """Return a recipe with labels in the rows of nodes: a loop's at its node, and one of a line past three rows."""
    nodes = [Node(f"n{number}", "noop", reads=("a",), writes=(f"k{number}",)) for number in range(5)]
    edges = [*(Edge(f"n{number}", f"n{number + 1}") for number in range(4)), Edge("n1", "n1", condition="again == 1")]
    return recipe(nodes, [*edges, Edge("n0", "n4", condition="n > 3 and n < 5"), Edge("n2", "n4", condition="else")])


DRAWN = {
    "support": support,
    "diamond": diamond,
    "three": lambda: wide(3),
    "nine": lambda: wide(9),
    "long": lambda: long(12),
    "labels": beside_labels,
} | {
    sample.name: partial(nb.samples, sample.name)
    for sample in nb.samples()
    if sample.dialect not in ("langgraph", "burr")
}


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("layout", ["plain", pytest.param("dot", marks=pytest.mark.needs_dot)])
@pytest.mark.parametrize("name", DRAWN)
def test_flows_avoid_nodes_labels_and_titles(name, layout, direction, monkeypatch):
    shown = picture(DRAWN[name](), direction=direction)
    if shown.board is None:
        assert name in ("team", "incident", "feedback")  # a reactive recipe without a board
        return
    monkeypatch.setenv(VARIABLE, layout)
    geometry = lay_out(shown)
    assert geometry.layout == layout
    assert find_crossings(shown, geometry) == []


@given(recipes(keys=("a", "b", "c")), st.sampled_from(DIRECTIONS))
def test_flows_of_any_recipe_avoid_nodes_labels_and_titles(given, direction):
    shown = picture(given, direction=direction)
    if shown.board is not None:
        assert find_crossings(shown, compute_plain_layout(shown)) == []


def test_an_enclosed_flow_reaches_its_node():
    walls = [Obstacle(0, 0, 10, 10), Obstacle(12, -5, 14, 15), Obstacle(-5, -9, 14, -4), Obstacle(-5, 14, 14, 19)]
    corners = Bands(walls, across=False).corners((5, 5), 100, 50)
    assert corners[-1] == (100, 50)
    assert corners[-2] == (100, 19)


def test_spare_rows_are_empty():
    _, rows = size_and_rows("TB", spare=5)
    spare = [row for row in rows if "spare" in row.get("class")]
    assert len(spare) == 3
    assert [(row.get("data-row"), texts(row)) for row in spare] == [("", "")] * 3
    assert [row.get("data-index") for row in rows] == [str(at) for at in range(len(rows))]


def test_a_drawing_without_a_board_has_no_table():
    shown = picture(diamond(), board=False)
    assert render_board_parts(shown, compute_plain_layout(shown), (0.0, 0.0)) == ("", "")
    assert groups(write_svg(shown, compute_plain_layout(shown)), "board") == []


def test_many_flows_are_faint():
    shown = picture(long(40))
    assert groups(write_svg(shown, compute_plain_layout(shown)), "dense")


def test_the_table_of_an_empty_recipe_is_in_the_corner():
    for direction in ("TB", "LR"):
        assert place_board(BoardTable((), ()), compute_plain_layout(picture(recipe([]))), direction) == (0.0, 0.0)


def test_rows_have_css_classes():
    assert get_flow_classes(Flow("a", "read", (0,), "", active=True, seen=True)) == [
        "flow",
        "flow-read",
        "seen",
        "active",
    ]
    assert get_row_classes(Row("a", "a", "", "", ("written",))) == ["row", "written"]
    assert [get_row_classes(row) for row in make_board_table(diamond(), None).rows] == [["row"]] * 5


def test_values_have_their_key_and_full_texts_are_tooltips():
    root, _ = size_and_rows("TB")
    value = root.find(f".//{SVG}text[@data-key='amount']")
    assert texts(value) == "12.5"
    row = next(row for row in groups(root, "row") if row.get("data-row") == "ticket")
    assert "read by classify, write" in texts(row.find(f"{SVG}title"))


def test_a_row_that_ends_the_table_has_its_round_corners():
    session = nb.Session(nb.samples("triage"))
    session.step(4)
    for drawing in (session.draw(), nb.Session(nb.load(fan_of_keys())).draw()):
        grounds = re.findall(r'<(?:path|rect) class="cell"[^>]*>', drawing.svg)
        assert ["Q" in ground for ground in grounds[:-1]] == [False] * (len(grounds) - 1)
        assert ("Q" in grounds[-1]) is ('class="more"' not in drawing.svg)


def fan_of_keys():
    """Return a graph with more keys than its drawing shows, so that a line of text ends the table."""
    graph = nx.DiGraph(name="many", init={f"key_{number:03}": number for number in range(200)})
    graph.add_node("count", function=lambda board: {"i": 1})
    return graph
