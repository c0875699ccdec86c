from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentnb as nb
from agentnb.draw.dot import draw_recipe
from agentnb.draw.plain_layout import compute_plain_layout
from agentnb.draw.run_view import RunView
from agentnb.errors import AgentNbError
from agentnb.recipe.model import ROOT, Edge, Node, Region
from tests.draw.drawn_recipes import SVG, groups, hostile, hostile_run, recipe, recipes, support, support_run, texts
from tests.draw.test_svg_patch import apply, describe_picture


@pytest.fixture(autouse=True)
def _plain(monkeypatch):
    monkeypatch.setenv("AGENTNB_LAYOUT", "plain")


def nested():
    """A loop around two nodes, the second of which owns a subgraph of its own."""
    nodes = [
        Node("begin", "tool", writes=("n",)),
        Node("loop", "loop", bodies=("round",)),
        Node("first", "tool", scope="round", reads=("n",), writes=("draft",)),
        Node("sub", "subgraph", scope="round", bodies=("deep",)),
        Node("inner", "tool", scope="deep", reads=("draft", "n"), writes=("found",)),
        Node("end", "tool", reads=("found",)),
    ]
    edges = [
        Edge("begin", "loop"),
        Edge("first", "sub"),
        Edge("loop", "end"),
        Edge("inner", "end", "error", condition="Oops"),
        Edge("first", "end", "error", condition="Ouch"),
    ]
    regions = {
        ROOT: Region(ROOT, ("begin",)),
        "round": Region("round", ("first",), "Each round", "loop"),
        "deep": Region("deep", ("inner",), "Deep down", "sub"),
    }
    return recipe(nodes, edges, regions=regions)


def draw_closed(closed, run=None, given=None):
    return draw_recipe(given or nested(), run=run, spare=2, collapsed=closed)


def box(drawing, name):
    (match_,) = [box for box in drawing.picture.boxes if box.id == name]
    return match_


def test_a_collapsed_region_is_one_box_with_its_name_and_all_its_lines():
    root = ET.fromstring(draw_closed(["round"]).bare_svg)
    assert {group.get("data-node") for group in groups(root, "node")} == {"begin", "loop", "region: round", "end"}
    (region_group,) = groups(root, "kind-region")
    assert "Each round" in texts(region_group)
    assert "3 nodes" in texts(region_group)
    assert "first, sub, inner" in texts(region_group)
    assert groups(root, "cluster") == []
    ends = {(edge.get("data-source"), edge.get("data-target")) for edge in groups(root, "edge")}
    around = {("begin", "loop"), ("loop", "end"), ("region: round", "end")}
    assert ends == around | {("loop", "region: round"), ("region: round", "loop")}
    assert "region: round" in {line.get("data-target") for line in groups(root, "enter")}


def test_lines_with_equal_ends_and_kind_are_merged_and_the_tooltip_lists_them():
    drawing = draw_closed(["round"])
    assert dict(drawing.picture.folds.edges) == {1: -1, 4: 3, 7: -1}  # 7 is inside
    (joined,) = [link for link in drawing.picture.links if link.index == 3]
    assert (joined.label, joined.tip.count("→")) == ("", 2)
    assert drawing.patch(RunView(taken=frozenset({1, 4})))["edges"] == {"3": {"classes": ["taken"]}}


def test_only_the_given_regions_are_collapsed():
    drawing = draw_closed(["deep"])
    assert dict(drawing.picture.folds.nodes) == {"inner": "region: deep"}
    assert [area.scope for area in drawing.picture.areas] == ["round"]
    (area,) = drawing.picture.areas
    assert box(drawing, "region: deep").area == area.name
    assert dict(draw_closed(["deep", "round"]).picture.folds.regions) == {"region: round": "round"}


def test_its_marks_summarize_its_content():
    run = RunView(
        current="inner", next=frozenset({"sub", "end"}), visited={"first": 2, "inner": 3, "end": 1},
        failed=frozenset({"inner"}), waiting=frozenset({"first"}), breakpoints=frozenset({"sub"}),
    )  # fmt: skip
    region_box = box(draw_closed(["round"], run), "region: round")
    assert region_box.marks == ("visited", "waiting", "failed", "current", "breakpoint")
    assert region_box.count == "×5"
    assert box(draw_closed(["round"], run), "end").marks == ("visited", "next")
    assert box(draw_closed(["round"]), "region: round").marks == ()


def test_a_collapsed_region_has_the_reads_and_writes_of_its_nodes():
    table = draw_closed(["round"]).picture.board
    flows = {(flow.direction, flow.node): [table.rows[row].key for row in flow.rows] for flow in table.flows}
    assert flows["read", "region: round"] == ["n", "draft"]
    assert flows["write", "region: round"] == ["draft", "found"]
    assert [row.key for row in table.rows] == [row.key for row in draw_closed([]).picture.board.rows]


@pytest.mark.parametrize("closed", [["body"], ["oncall"], ["body", "oncall"]])
@pytest.mark.parametrize("view", [support_run(), RunView(), RunView(current="write", visited={"critic": 3})])
def test_a_patched_drawing_equals_a_new_drawing_of_the_run(closed, view):
    bare = draw_closed(closed, given=support())
    patch = json.loads(json.dumps(bare.patch(view)))
    assert describe_picture(apply(bare.bare_svg, patch)) == describe_picture(
        ET.fromstring(draw_closed(closed, view, support()).bare_svg)
    )


def test_regions_with_hostile_names_can_be_collapsed():
    drawing = hostile()
    scopes = [area.scope for area in draw_recipe(drawing).picture.areas]
    root = ET.fromstring(draw_closed(scopes, hostile_run(), drawing).bare_svg)
    assert groups(root, "kind-region")
    assert not [each for each in root.iter() if each.tag in (f"{SVG}script", f"{SVG}b")]


def test_the_text_form_names_the_region_and_not_its_nodes():
    text = draw_closed(["round"], RunView(current="inner", visited={"inner": 1})).text
    assert "> region: round (3 nodes)  <current, ×1>" in text
    assert "inner (tool)" not in text


def test_a_region_may_have_the_name_of_a_node():
    given_ = recipe(
        [Node("region: r", "tool"), Node("a", "tool", scope="r")], regions={"r": Region("r", ("a",), "R", "region: r")}
    )
    assert dict(draw_closed(["r"], given=given_).picture.folds.regions) == {"region: region: r": "r"}


def test_recipes_and_sessions_are_drawn_with_collapsed_regions():
    session = nb.Session(nb.samples("research"))
    session.step(8)
    assert "region: look_up (3 nodes)" in session.recipe.draw(collapsed=["look_up"]).text
    assert "> region: look_up (3 nodes)  <current, ×2>" in session.draw(collapsed=["look_up"]).text


def test_a_missing_region_is_reported():
    with pytest.raises(AgentNbError) as caught:
        draw_closed(["rounds"])
    (problem,) = caught.value.problems
    assert (problem.code, "round" in problem.do) == ("U206", True)


def subsets(names):
    return list(chain.from_iterable(combinations(names, size) for size in range(len(names) + 1)))


@given(recipes(), st.data())
def test_collapsing_any_regions_loses_no_node(given_, data):
    expanded = draw_recipe(given_).picture
    closed = data.draw(st.sampled_from(subsets([area.scope for area in expanded.areas])))
    picture = draw_recipe(given_, collapsed=closed).picture
    geometry = compute_plain_layout(picture)
    assert {one.name for one in picture.boxes} == set(geometry.boxes)
    assert {area.name for area in picture.areas} == set(geometry.areas)
    folds = picture.folds
    inside = {} if folds is None else folds.nodes
    shown = {one.id for one in picture.boxes}
    assert {one.id for one in expanded.boxes if one.kind != "start"} <= shown | set(inside)
    assert not shown & set(inside)
    assert set(inside.values()) <= shown
    lines = {link.index for link in picture.links}
    edge_folds = {} if folds is None else folds.edges
    for link in expanded.links:
        if link.index >= 0:
            assert (link.index in lines) is (link.index not in edge_folds)
            assert edge_folds.get(link.index, link.index) in lines | {-1}
