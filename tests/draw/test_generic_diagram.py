from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from agentnb.draw.generic_diagram import GenericBox, GenericLink, draw_sketch
from agentnb.draw.label_text import to_safe_text
from agentnb.draw.run_view import RunView
from agentnb.draw.style import make_stylesheet
from tests.draw.drawn_recipes import HOSTILE, SVG, groups, texts
from tests.draw.test_dot import run_dot


@pytest.fixture(autouse=True)
def _plain(monkeypatch):
    monkeypatch.setenv("AGENTNB_LAYOUT", "plain")


def draw_example():
    items = [
        GenericBox("a", "cap", "A", ("note 1", "note 2"), badge="+ new", marks=("new",)),
        GenericBox("b", "cap", "B"),
    ]
    return draw_sketch(
        "Two", items, [GenericLink("a", "b", "relation", "to", marks=("new",))], ["in words"], rest="and 3 more"
    )


def test_items_and_links_are_boxes_and_lines_with_all_their_text():
    root = ET.fromstring(draw_example().svg)
    a, b, rest = groups(root, "node")
    assert [word.text for word in a.iter(f"{SVG}text")] == ["cap", "A", "note 1", "note 2"]
    assert a.find(f".//{SVG}tspan").text == "+ new"
    assert {"new"} <= set(a.get("class").split())
    assert "and 3 more" in texts(rest)
    (edge,) = groups(root, "edge")
    assert (edge.get("data-source"), edge.get("data-target")) == ("a", "b")
    assert {"edge-relation", "new"} <= set(edge.get("class").split())
    assert "B" in texts(b)
    assert root.get("aria-label") == "picture of Two"


def test_a_box_is_as_high_as_its_notes_need():
    a, b, _ = draw_example().picture.boxes
    assert a.height - b.height == pytest.approx(21, abs=1)


def test_it_has_every_output_format(tmp_path):
    shown = draw_example()
    assert shown.text == "in words\nand 3 more"
    assert repr(shown) == "<Drawing of 'Two': 3 boxes, 1 lines>"
    assert "A" in shown.mermaid
    assert "note 1" in shown.dot
    assert shown.save(tmp_path / "two.svg").read_text(encoding="utf-8") == shown.svg
    assert shown.bare_svg.startswith("<svg")
    assert "<style" not in shown.bare_svg
    assert set(shown._repr_mimebundle_()) >= {"image/svg+xml", "text/plain"}
    assert shown.patch(RunView(current="a")) == {}


def test_the_style_of_a_run_does_not_change_the_colors_of_items():
    root = ET.fromstring(draw_example().svg)
    assert all("kind-thing" in group.get("class").split() for group in groups(root, "node"))
    blank = [rule for rule in make_stylesheet().splitlines() if ".has-run .node" in rule and "fill:#ffffff" in rule]
    assert blank
    assert all(":not(.kind-thing)" in rule for rule in blank)


def test_an_empty_diagram_can_be_drawn():
    assert ET.fromstring(draw_sketch("Empty", [], [], ["nothing"]).svg).tag == f"{SVG}svg"


def hostile_sketch():
    boxes = [GenericBox(text, text, text, (text,), text, badge=text) for text in HOSTILE]
    ties = [
        GenericLink(one, other, "relation", one, other) for one, other in zip(HOSTILE, reversed(HOSTILE), strict=True)
    ]
    return draw_sketch(HOSTILE[0], boxes, ties, ["words"], rest=HOSTILE[1])


def test_hostile_text_remains_text():
    svg = hostile_sketch().svg
    root = ET.fromstring(svg)
    assert {to_safe_text(text) for text in HOSTILE} <= {group.get("data-node") for group in groups(root, "node")}
    assert "<script" not in svg + hostile_sketch().mermaid
    assert svg.count("</svg>") == 1


@pytest.mark.needs_dot
def test_graphviz_reads_hostile_texts(dot):
    assert "<script" not in run_dot(dot, hostile_sketch().dot, "svg")
