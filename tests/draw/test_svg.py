import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from hypothesis import given

from agentnb.draw.diagram import make_picture
from agentnb.draw.geometry import Route
from agentnb.draw.label_text import to_safe_text
from agentnb.draw.plain_layout import compute_plain_layout
from agentnb.draw.run_view import RunView
from agentnb.draw.svg import format_arrow_head, format_curve, write_svg
from agentnb.recipe.model import Node
from tests.draw.drawn_recipes import (
    DIRECTIONS,
    HOSTILE,
    SVG,
    diamond,
    groups,
    hostile,
    hostile_run,
    long,
    picture,
    recipe,
    recipes,
    support,
    support_run,
    texts,
)

TAGS = {"svg", "style", "g", "rect", "path", "text", "tspan", "title", "polygon", "circle"}


def draw_svg(given, run=None, **more):
    shown = picture(given, run, **more)
    return write_svg(shown, compute_plain_layout(shown))


def tree(given, run=None, **more):
    return ET.fromstring(draw_svg(given, run, **more))


def test_each_part_can_be_found_by_its_own_name():
    root = tree(support(), support_run())
    assert [group.get("data-node") for group in groups(root, "node")] == list(support().nodes)
    edges = [
        (group.get("data-edge"), group.get("data-source"), group.get("data-target")) for group in groups(root, "edge")
    ]
    assert edges == [(str(at), edge.source, edge.target) for at, edge in enumerate(support().edges)]
    assert [group.get("data-scope") for group in groups(root, "cluster")] == ["body", "oncall"]
    rows = groups(root, "row")
    assert [group.get("data-index") for group in rows] == [str(at) for at in range(len(rows))]
    assert [group.find(f"{SVG}text[@data-key]").get("data-key") for group in rows] == [g.get("data-row") for g in rows]
    assert {"ticket", "late", "api_key"} <= {group.get("data-row") for group in rows}
    directions = {(group.get("data-node"), group.get("data-direction")) for group in groups(root, "flow")}
    assert {("critic", "read"), ("critic", "write"), ("send", "read")} <= directions


def test_titles_of_areas_have_a_background_above_the_lines():
    root = tree(support(), support_run())
    order = [group.get("class").split()[0] for group in root.iter(f"{SVG}g") if group.get("class")]
    titles = groups(root, "cluster-title")
    assert len(titles) == 2
    assert max(at for at, name in enumerate(order) if name == "edge") < order.index("cluster-title")
    for title in titles:
        ground, text = title
        left, width = float(ground.get("x")), float(ground.get("width"))
        assert left < float(text.get("x")) < left + width
        assert float(ground.get("y")) < float(text.get("y")) < float(ground.get("y")) + float(ground.get("height"))


def test_shape_and_color_depend_on_the_kind_of_node_and_lines_on_that_of_the_edge():
    root = tree(support())
    classes = {group.get("data-node"): group.get("class") for group in groups(root, "node")}
    assert classes["route"] == "node kind-router family-choose"
    assert classes["approve"] == "node kind-human family-person"
    kinds = {edge.kind for edge in support().outgoing_edges}
    drawn = {group.get("class") for group in groups(root, "edge")}
    assert drawn == {f"edge edge-{kind}" for kind in kinds} | {"edge enter edge-enter"}


def test_a_run_is_drawn_by_css_classes_and_text():
    root = tree(support(), support_run())
    assert "has-run" in root.get("class")
    nodes = {group.get("data-node"): group for group in groups(root, "node")}
    assert "current" in nodes["critic"].get("class")
    assert "failed" in nodes["refund"].get("class")
    assert texts(nodes["write"].find(f".//{SVG}tspan")) == "×2"
    rows = {group.get("data-row"): group for group in groups(root, "row")}
    assert rows["late"].get("class") == "row written"
    assert rows["draft"].get("class") == "row read"
    assert [group.get("data-edge") for group in groups(root, "taken")] == ["0", "2"]
    assert "has-run" not in tree(support()).get("class")


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_no_run_moves_or_resizes_anything(direction):
    def places(root):
        return [
            (element.tag, element.get("transform"), element.get("d"))
            for name in ("node", "edge", "cluster")
            for group in groups(root, name)
            for element in group.iter()
        ] + [root.get("viewBox")]

    run = replace(support_run(), board={}, seen_writes={})
    assert places(tree(support(), direction=direction)) == places(tree(support(), run, direction=direction))


@pytest.mark.parametrize("run", [None, hostile_run()])
def test_hostile_text_remains_text(run):
    svg = draw_svg(hostile(), run)
    root = ET.fromstring(svg)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} == TAGS
    names = {name for element in root.iter() for name in element.attrib}
    assert not [name for name in names if name.startswith("on") or "href" in name or name == "id"]
    assert {group.get("data-node") for group in groups(root, "node")} == set(map(to_safe_text, HOSTILE))
    assert svg.count("</svg>") == 1
    assert "<script" not in svg
    assert "\u202e" not in "".join(texts(title) for title in root.iter(f"{SVG}title"))


@given(recipes())
def test_any_recipe_gives_well_formed_svg(given):
    shown = make_picture(given, board=True, direction="TB", run=RunView(board={"key": given.name}))
    root = ET.fromstring(write_svg(shown, compute_plain_layout(shown)))
    assert len(groups(root, "node")) == len(given.nodes)
    assert len(groups(root, "edge")) == len(given.edges)


def test_drawings_on_a_page_have_distinct_ids_and_load_nothing():
    svg = draw_svg(support(), support_run())
    assert ' id="' not in svg
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", svg)


def test_every_drawing_has_its_own_background_and_title():
    root = tree(diamond())
    assert root.get("role") == "img"
    assert root.get("aria-label") == "recipe sample"
    assert root.find(f"{SVG}rect").get("class") == "paper"


def test_a_page_may_provide_the_style_sheet():
    shown = picture(diamond())
    bare = write_svg(shown, compute_plain_layout(shown), styled=False)
    assert "<style>" not in bare
    assert "data-static" not in bare
    assert ET.fromstring(bare).get("viewBox") == tree(diamond()).get("viewBox")


def test_a_drawing_fits_the_page_while_it_stays_legible():
    assert "max-width:100%" in tree(support()).get("style")
    assert tree(long(300), direction="LR").get("style") is None


def test_an_empty_recipe_is_drawn_as_its_empty_board():
    root = tree(recipe([]))
    assert groups(root, "node") == []
    assert "nothing on it yet" in texts(groups(root, "board")[0])
    assert ET.fromstring(draw_svg(recipe([]), board=False)).get("viewBox") == "0 0 24 24"


def test_a_recipe_of_300_nodes_can_be_drawn():
    assert len(groups(tree(long(300)), "node")) == 300


def test_a_node_without_a_name_is_drawn():
    assert "(no name)" in texts(groups(tree(recipe([Node("", "tool")])), "node")[0])


def test_a_curve_ends_with_an_arrowhead():
    route = Route(((0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (0.0, 3.0)), (0.0, 10.0))
    assert format_curve(route.points) == "M0,0C0,1 0,2 0,3"
    assert format_curve(((1.0, 2.0),)) == "M1,2"
    assert format_arrow_head(route.points, route.tip, "#000") == '<polygon points="-2.8,3 0,10 2.8,3" fill="#000"/>'
    assert format_arrow_head(route.points, (0.0, 3.0), "#000") == ""
