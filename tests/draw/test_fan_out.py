"""Wide fan-outs: one frame around alike successors, in rows, with the labels in the boxes; collapsible."""

from __future__ import annotations

import re

import pytest

from agentnb.draw.dot import draw_recipe
from agentnb.draw.fan_out import COLUMNS, WIDE
from agentnb.recipe.model import Edge, Node, Recipe


def fan(wide, *, lead_on=True):
    names = [f"branch_{number}" for number in range(wide)]
    edges = [Edge("pick", name, "conditional", None, f"pick == {number}") for number, name in enumerate(names)]
    edges += [Edge(name, "end") for name in names if lead_on or name != names[0]]
    nodes = {name: Node(name, "noop") for name in ("pick", *names, "end")}
    return Recipe("wide", "test", nodes, tuple(edges), ("pick",))


def middle(svg, node):
    x, y = re.search(rf'data-node="{node}"[^>]*translate\(([-\d.]+),([-\d.]+)\)', svg).groups()
    return float(x), float(y)


@pytest.mark.parametrize("layout", ["", "plain"])
def test_a_wide_fan_out_is_drawn_in_rows_with_labels_in_the_boxes(monkeypatch, layout):
    monkeypatch.setenv("AGENTNB_LAYOUT", layout)
    svg = draw_recipe(fan(60), board=False).svg
    places = [middle(svg, f"branch_{number}") for number in range(60)]
    assert len({round(y) for _, y in places}) == -(-60 // COLUMNS)
    assert max(x for x, _ in places) - min(x for x, _ in places) < 1000
    assert 'data-scope="fan-out of pick"' in svg
    box = svg[svg.index('data-node="branch_7"') : svg.index('data-node="branch_8"')]
    assert "pick == 7" in box
    assert svg.count('class="edge') == 120  # those between the rows are hidden until a run takes them


def test_a_collapsed_fan_out_is_one_box_with_the_number_of_nodes_and_steps():
    session_marks = draw_recipe(fan(60), board=False, collapsed=["fan-out of pick"])
    (box,) = [box for box in session_marks.picture.boxes if box.kind == "region"]
    assert (box.caption, box.lines) == ("60 nodes", ("60 after pick",))
    assert len(session_marks.picture.links) == 3  # the start, to the group, from the group


@pytest.mark.parametrize("recipe", [fan(WIDE), fan(WIDE + 1, lead_on=False)])
def test_few_or_different_successors_are_drawn_individually(recipe):
    assert not draw_recipe(recipe).picture.areas


def test_text_forms_contain_every_edge():
    drawing = draw_recipe(fan(20), board=False)
    assert drawing.dot.count("->") >= 41
    assert drawing.mermaid.count("-->") >= 40
