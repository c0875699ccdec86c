from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from agentnb.draw.diagram import is_reactive, make_picture
from agentnb.draw.dot import draw_recipe
from agentnb.draw.label_text import to_safe_text
from agentnb.draw.mermaid import to_mermaid
from agentnb.draw.reactive import get_event_id_prefix, get_event_type, iter_event_lines, list_types
from agentnb.recipe.model import Edge, Node
from tests.draw.behavior_recipes import hostile_behaviors, hostile_behaviors_run, shop, shop_run
from tests.draw.drawn_recipes import DIRECTIONS, HOSTILE, SVG, diamond, groups
from tests.draw.test_dot import run_dot
from tests.draw.test_svg_patch import apply


@pytest.fixture(autouse=True)
def _plain(monkeypatch):
    monkeypatch.setenv("AGENTNB_LAYOUT", "plain")


def lines(drawing):
    """Return each line as (from, to, whether it is only supposed)."""
    boxes = {box.name: box for box in drawing.picture.boxes}
    return {
        (*(boxes[end].id.removeprefix("event: ") for end in (link.source, link.target)), "may" in link.marks)
        for link in drawing.picture.links
        if link.index >= 0
    }


def classes(group):
    return set(group.get("class").split())


def test_types_of_events_are_drawn_between_emitters_and_listeners():
    assert is_reactive(shop())
    assert lines(draw_recipe(shop())) == {
        ("order.came", "take", False),
        ("take", "object.created", False),
        ("object.created", "pack", False),
        ("pack", "packed", True),
        ("packed", "send", False),
        ("*", "log", False),
        ("take", "order.came", True),
    }


def test_the_box_of_an_event_type_is_small_with_its_name_and_its_edges_have_the_conditions():
    picture = make_picture(shop(), board=False, direction="TB", run=None)
    boxes = {box.id: box for box in picture.boxes}
    type_, behavior = boxes["event: order.came"], boxes["take"]
    assert (type_.shape, type_.family, type_.lines, type_.caption) == ("pill", "event", ("order.came",), "")
    assert type_.height < behavior.height
    assert behavior.lines == ("take",)  # what it listens to stands before it
    assert (boxes["pack"].family, behavior.family) == ("think", "react")
    assert boxes["event: *"].lines == ("any event",)
    labels = {link.ends: link.label for link in picture.links}
    assert labels["event: object.created", "pack"] == "object.type = 'parcel'"
    assert labels["event: packed", "send"] == "-[goes_to]-"
    assert labels["take", "event: object.created"] == "parcel"


def test_the_tooltip_has_the_complete_masked_condition():
    filters = {"a": {"<": 1, "!=": 0}, "api_key": "sk-123"}
    node = Node("n", "behavior", on=("go",), params={"where": filters, "pattern": "(a)-[:b]->(c)", "activate_after": 2})
    (line,) = iter_event_lines(replace(shop(), nodes={"n": node}, edges=(), meta={}))
    assert line.tip.splitlines() == [
        "n listens to go", "a < 1", "a != 0", "api_key = '********'", "(a)-[:b]->(c)", "after 2 events",
    ]  # fmt: skip


def test_a_start_mark_precedes_an_event_type_without_emitter():
    picture = make_picture(shop(), board=False, direction="TB", run=None)
    ends = {link.ends[1] for link in picture.links if link.kind == "start"}
    assert ends == set()  # `take` may tell of order.came; any event is everybody's
    silent = replace(shop(), meta={"events": {"own": (), "tells": {}, "may": {}}}, edges=())
    picture = make_picture(silent, board=False, direction="TB", run=None)
    ends = {link.ends[1] for link in picture.links if link.kind == "start"}
    assert ends == {"event: order.came", "event: object.created", "event: packed"}


def test_the_drawing_of_a_run_has_the_observed_edges_with_their_counts():
    drawing = draw_recipe(shop(), run=shop_run())
    assert ("pack", "paid", False) in lines(drawing)  # nobody listens to it, but it has been told
    assert ("pack", "packed", False) in lines(drawing)  # now it is known
    boxes = {box.id: box for box in drawing.picture.boxes}
    assert "event: behavior.started" not in boxes  # the run's own events are no news
    assert (boxes["event: order.came"].count, boxes["event: order.came"].marks) == ("×2", ("visited",))
    assert boxes["event: object.created"].marks == ("visited", "last")
    assert boxes["event: packed"].marks == ("visited", "breakpoint", "last")
    marks = {link.ends: link.marks for link in drawing.picture.links if link.index >= 0}
    assert marks["event: object.created", "pack"] == marks["pack", "event: packed"] == ("taken", "last")
    assert marks["event: *", "log"] == marks["event: order.came", "take"] == ("taken",)
    assert marks["event: packed", "send"] == ()
    assert marks["take", "event: order.came"] == ("may",)
    assert "last" in boxes["pack"].marks


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_an_existing_drawing_is_patched_to_show_the_run(direction):
    drawing = draw_recipe(shop(), direction=direction, board=False)
    root = ET.fromstring(drawing.bare_svg)
    hidden = [group for group in groups(root, "edge") if "later" in classes(group)]
    assert len(hidden) == 4 * 3 - 3
    assert all(group.get("display") == "none" for group in hidden)
    patch = json.loads(json.dumps(drawing.patch(shop_run())))
    assert patch["nodes"]["event: packed"] == {"classes": ["visited", "breakpoint", "last"], "count": "×1"}
    shown = ET.fromstring(draw_recipe(shop(), direction=direction, board=False, run=shop_run()).bare_svg)
    for each in (shown, patched := patched_root(drawing, patch)):
        assert count_of(each, "event: order.came") == "×2"
        taken = {(g.get("data-source"), g.get("data-target")) for g in groups(each, "edge") if "taken" in classes(g)}
        assert taken - {("pack", "event: paid")} == {
            ("event: order.came", "take"), ("take", "event: object.created"), ("event: object.created", "pack"),
            ("pack", "event: packed"), ("event: *", "log"),
        }  # fmt: skip
    assert count_of(patched, "event: *") == count_of(shown, "event: *")


def patched_root(drawing, patch):
    root = ET.fromstring(drawing.bare_svg)
    holder = ET.SubElement(root, f"{SVG}g", {"class": "flows"})
    holder.text = ""
    return apply(ET.tostring(root, encoding="unicode"), patch)


def count_of(root, id_):
    (group,) = (group for group in groups(root, "node") if group.get("data-node") == id_)
    return group.find(f".//{SVG}tspan").text


def test_an_edge_observed_only_in_runs_is_prepared_and_shown_by_its_class():
    drawing = draw_recipe(shop(), board=False)
    run = shop_run()
    run = replace(run, reactions=replace(run.reactions, emissions={("send", "packed"): 1}))
    indices = {link.ends: str(link.index) for link in drawing.picture.later}
    assert drawing.patch(run)["edges"][indices["send", "event: packed"]] == {"classes": ["taken"]}
    sheet = draw_recipe(shop()).svg
    assert ".edge.later{display:none}" in sheet
    assert ".edge.later.taken{display:inline}" in sheet


def test_ids_of_event_types_and_nodes_differ():
    nodes = {id: Node(id, "behavior", on=("go", "event: go")) for id in ("event: go", "event:: go")}
    changed_shop = replace(shop(), nodes=nodes, edges=(), meta={})
    assert get_event_id_prefix(changed_shop) not in ("event: ", "event:: ")
    assert (
        len({box.id for box in make_picture(changed_shop, board=False, direction="TB", run=None).boxes if box.id}) == 4
    )
    assert get_event_type(changed_shop, get_event_id_prefix(changed_shop) + "event: go") == "event: go"
    assert get_event_type(changed_shop, "event: go") is None
    assert get_event_type(diamond(), "event: go") is None


def test_an_edge_of_a_log_represents_several_types():
    nodes = {"a": Node("a", "behavior", on=("go",)), "b": Node("b", "behavior", on=("x", "y, z"))}
    recipe = replace(shop(), nodes=nodes, edges=(), meta={})
    assert list_types(recipe, Edge("a", "b", "event", condition="x, w")) == ("x", "w")
    assert list_types(recipe, Edge("a", "b", "event", condition="y, z")) == ("y, z",)


def test_other_recipes_are_drawn_without_event_types():
    assert not is_reactive(diamond())
    assert not is_reactive(replace(shop(), nodes={}, edges=()))
    assert not is_reactive(replace(shop(), edges=(Edge("take", "pack"),)))


def test_it_has_a_text_form():
    text = draw_recipe(shop(), run=shop_run()).text
    assert text.startswith("shop (activegraph): 4 behaviors, 5 types of events\n")
    assert "  packed (event)  <breakpoint, last, ×1>\n      -> send [-[goes_to]-]" in text
    assert "      -> order.came (its code names it)" in text
    assert "> send (relation_behavior)  <current>" in text


@pytest.mark.parametrize("run", [None, hostile_behaviors_run()])
def test_hostile_names_remain_text(run):
    drawing = draw_recipe(hostile_behaviors(), run=run)
    root = ET.fromstring(drawing.svg)
    names = {name for element in root.iter() for name in element.attrib}
    assert not [name for name in names if name.startswith("on") or "href" in name or name == "id"]
    ids = {group.get("data-node") for group in groups(root, "node")}
    assert set(map(to_safe_text, HOSTILE)) <= ids
    assert "<script" not in drawing.svg
    assert "<script" not in to_mermaid(hostile_behaviors())
    assert len(drawing.text.splitlines()) < 200
    bare = draw_recipe(hostile_behaviors())
    patch = bare.patch(hostile_behaviors_run())
    assert set(patch["nodes"]) <= {group.get("data-node") for group in groups(ET.fromstring(bare.svg), "node")}


@pytest.mark.needs_dot
def test_graphviz_reads_hostile_names(dot):
    shown = run_dot(dot, draw_recipe(hostile_behaviors(), run=hostile_behaviors_run()).dot, "svg")
    assert "<script" not in shown
