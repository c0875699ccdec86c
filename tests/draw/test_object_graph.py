from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from agentnb.board.values import freeze
from agentnb.draw.object_graph import draw_graph, list_objects
from tests.draw.drawn_recipes import HOSTILE, groups


@pytest.fixture(autouse=True)
def _plain(monkeypatch):
    monkeypatch.setenv("AGENTNB_LAYOUT", "plain")


def thing(id, type_="task", version=1, **data):
    return freeze({"id": id, "type": type_, "data": data, "version": version, "provenance": {}})


def relation(id, source, target, type_="needs"):
    return freeze({"id": id, "source": source, "target": target, "type": type_, "data": {}})


def board(*rows):
    return {row["id"]: row for row in rows}


BEFORE = board(thing("a", n=1), thing("b"), thing("c"), relation("r1", "a", "b"), relation("r2", "b", "c"))
NOW = board(
    thing("a", n=2, version=2, m=0), thing("b"), thing("d", "note"), relation("r1", "a", "b"), relation("r3", "d", "a")
) | {
    "patch_001": freeze({"id": "patch_001", "target": "a", "op": "update", "value": {}}),
    "chance": 7,
}  # fmt: skip


def boxes(drawing):
    return {box.id: box for box in drawing.picture.boxes}


def lines(drawing):
    return {(*link.ends, link.label): link.marks for link in drawing.picture.links}


def test_only_objects_and_relations_of_the_board_are_drawn():
    shown = draw_graph("shop", NOW)
    assert set(boxes(shown)) == set(list_objects(NOW)) == {"a", "b", "d"}
    a = boxes(shown)["a"]
    assert (a.caption, a.lines, a.notes, a.marks) == ("task v2", ("a",), ("n: 2", "m: 0"), ())
    assert lines(shown) == {("a", "b", "needs"): (), ("d", "a", "needs"): ()}


def test_changes_of_the_last_step_are_marked_and_described():
    shown = draw_graph("shop", NOW, BEFORE)
    actual = {id: (box.marks, box.count, box.caption) for id, box in boxes(shown).items()}
    assert actual == {
        "a": (("changed",), "~ changed", "task v1 → v2"),
        "b": ((), "", "task v1"),
        "d": (("new",), "+ new", "note v1"),
        "c": (("removed",), "- removed", "task v1"),
    }
    assert boxes(shown)["a"].notes == ("~ n: 2", "~ m: 0")
    assert lines(shown) == {
        ("a", "b", "needs"): (), ("d", "a", "+ needs"): ("new",), ("b", "c", "- needs"): ("removed",),
    }  # fmt: skip
    root = ET.fromstring(shown.svg)
    assert [g.get("data-node") for g in groups(root, "node") if "removed" in g.get("class").split()] == ["c"]
    assert shown.text.splitlines() == [
        "shop: 3 objects, 2 relations",
        "  a (task v1 → v2): ~ n: 2, ~ m: 0  <changed>",
        "      -[needs]-> b",
        "  b (task v1)",
        "      -[- needs]-> c <removed>",
        "  d (note v1)  <new>",
        "      -[+ needs]-> a <new>",
        "  c (task v1)  <removed>",
    ]


def test_each_type_has_a_constant_color():
    shown = draw_graph("shop", NOW)
    assert boxes(shown)["a"].family == boxes(shown)["b"].family != boxes(shown)["d"].family
    assert shown.dot == draw_graph("shop", NOW).dot


def test_long_data_is_cut_and_secrets_are_masked():
    shown = draw_graph("shop", board(thing("a", text="x" * 500, api_key="sk-live-1", b=1, c=2, d=3)))
    a = boxes(shown)["a"]
    assert a.notes[0].endswith("…")
    assert a.notes[-1] == "and 2 more"
    assert "sk-live-1" not in shown.svg + shown.dot + shown.text


def test_a_missing_end_of_a_relation_is_shown_as_missing():
    shown = draw_graph("shop", board(thing("a"), relation("r", "a", "gone")))
    assert boxes(shown)["gone"].caption == "not there"
    assert boxes(shown)["gone"].marks == ("ghost",)


def test_a_large_graph_is_truncated_with_a_note():
    many = board(*(thing(f"t{number}") for number in range(30)), relation("r", "t0", "t1"), relation("s", "t28", "t29"))
    before = {**many, "t3": thing("t3", n=0)}
    shown = draw_graph("shop", many, before, most=5)
    assert list(boxes(shown)) == ["t3", "t26", "t27", "t28", "t29", ""]
    assert list(lines(shown)) == [("t28", "t29", "needs")]
    assert "<title>and 25 more objects; 5 are drawn</title>" in shown.svg
    assert shown.text.splitlines()[-1] == "and 25 more objects; 5 are drawn"


def test_hostile_objects_remain_text():
    rows = [thing(text, text, **{text or "empty": text}) for text in HOSTILE]
    relations = [relation(f"r{n}", text, HOSTILE[-n], text) for n, text in enumerate(HOSTILE)]
    svg = draw_graph(HOSTILE[0], board(*rows, *relations), board(*rows[3:])).svg
    ET.fromstring(svg)
    assert "<script" not in svg


class Loud:
    def __repr__(self):
        raise ValueError("no")


def test_a_value_whose_repr_fails_does_not_prevent_a_drawing():
    shown = draw_graph("shop", {"a": {"type": "t", "version": 1, "data": {"x": Loud()}}})
    assert boxes(shown)["a"].notes == ("x: <Loud that cannot be shown: Valu…",)
