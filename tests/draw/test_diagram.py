import pytest

from agentnb.draw.diagram import count_text, format_edge
from agentnb.draw.run_view import RunView
from agentnb.recipe.model import Edge, Node, Region
from tests.draw.drawn_recipes import HOSTILE, hostile, picture, recipe, support, support_run


def test_every_node_and_edge_is_drawn_once():
    shown = picture(support())
    assert [box.id for box in shown.boxes if box.kind != "start"] == list(support().nodes)
    assert [link.ends for link in shown.links if link.index >= 0] == [(e.source, e.target) for e in support().edges]


def test_a_start_mark_precedes_the_entry_and_lines_lead_into_regions():
    shown = picture(support())
    assert [link.ends for link in shown.links if link.kind == "start"] == [("", "classify")]
    assert [link.ends for link in shown.links if link.kind == "enter"] == [("tries", "write"), ("escalate", "page")]
    assert [(area.scope, area.parent) for area in shown.areas] == [("body", ""), ("oncall", "")]


def test_areas_that_are_not_regions_are_placed_with_their_owner_and_contain_the_regions_of_their_nodes():
    nodes = [
        Node("loop", "loop", bodies=("body",)),
        Node("risky", "tool", scope="body"),
        Node("fix", "loop", scope="body", bodies=("inner",)),
        Node("try", "tool", scope="inner"),
    ]
    regions = {"body": Region("body", ("risky",), "", "loop"), "inner": Region("inner", ("try",), "", "fix")}
    meta = {"areas": {"handler": Region("handler", ("fix",), "if it fails", "risky")}, "area_of": {"fix": "handler"}}
    shown = picture(recipe(nodes, [Edge("risky", "fix", "error")], regions=regions, meta=meta))
    names = {area.scope: area.name for area in shown.areas}
    assert [(area.scope, area.parent) for area in shown.areas] == [
        ("body", ""), ("handler", names["body"]), ("inner", names["handler"]),
    ]  # fmt: skip
    assert {box.id: box.area for box in shown.boxes if box.id}["fix"] == names["handler"]
    assert [link.ends for link in shown.links if link.kind == "enter"] == [("loop", "risky"), ("fix", "try")]


def meeting(**more):
    """Return what a fork of two branches looks like: a line, and a router that may end it, then `meet`."""
    nodes = [
        Node("both", "parallel", bodies=("one", "two")),
        Node("a", "tool", scope="one"),
        Node("b", "tool", scope="one"),
        Node("r", "router", scope="two", params={"routes": {"x": "c"}, "default": ""}),
        Node("c", "parallel", scope="two", bodies=("in",)),
        Node("d", "tool", scope="in"),
        Node("meet", "tool"),
    ]
    owners = {"one": ("a", "both"), "two": ("r", "both"), "in": ("d", "c")}
    regions = {name: Region(name, (entry,), "", owner) for name, (entry, owner) in owners.items()}
    edges = [Edge("both", "meet"), Edge("a", "b"), Edge("r", "c", "route")]
    return picture(recipe(nodes, edges, regions=regions))


def test_lines_lead_from_the_ends_of_branches_to_their_join():
    leaving = [link for link in meeting().links if link.kind == "leave"]
    assert [link.ends for link in leaving] == [("b", "meet"), ("r", "meet"), ("d", "meet")]
    assert {link.index for link in leaving} == {-1}
    assert not [link for link in picture(support()).links if link.kind == "leave"]


def test_regions_are_nested_in_the_region_of_their_owner():
    nodes = [Node("a", "loop"), Node("b", "loop", scope="one"), Node("c", "tool", scope="two")]
    regions = {"two": Region("two", ("c",), "", "b"), "one": Region("one", ("b",), "", "a")}
    areas = picture(recipe(nodes, regions=regions)).areas
    assert [(area.name, area.scope, area.parent) for area in areas] == [("r0", "one", ""), ("r1", "two", "r0")]


def test_a_region_that_contains_itself_is_drawn():
    shown = picture(recipe([Node("a", "loop", scope="r")], regions={"r": Region("r", ("a",), "", "a")}))
    assert [area.parent for area in shown.areas] == [""]


def test_an_edge_to_a_missing_node_gets_a_placeholder():
    shown = picture(recipe([Node("a", "tool")], [Edge("a", "refnd")]))
    assert [(box.id, box.kind) for box in shown.boxes[1:]] == [("a", "tool"), ("refnd", "missing")]


def test_element_names_are_generated():
    shown = picture(hostile())
    names = [part.name for part in (*shown.boxes, *shown.links, *shown.areas)]
    assert all(name[0] in "snteor" and name[1:].isdecimal() for name in names)
    assert len(set(names)) == len(names)


def test_labels_are_clean_text_of_limited_width():
    boxes = {box.id: box for box in picture(hostile()).boxes}
    assert set(HOSTILE) <= set(boxes)
    assert max(box.width for box in boxes.values()) < 320
    assert all(1 <= len(box.lines) <= 2 for box in boxes.values() if box.kind != "start")


def test_a_run_changes_marks_and_counts_but_not_the_layout():
    before, after = picture(support()), picture(support(), support_run())
    assert [(box.name, box.width, box.height, box.lines) for box in before.boxes] == [
        (box.name, box.width, box.height, box.lines) for box in after.boxes
    ]
    assert {box.id: (box.marks, box.count) for box in after.boxes}["write"] == (("visited", "next"), "×2")
    assert [link.index for link in after.links if link.marks] == [0, 2]
    assert (before.with_run, after.with_run) == (False, True)


def test_an_edge_that_the_recipe_lacks_marks_nothing():
    assert not [link for link in picture(support(), RunView(taken={99, -1})).links if link.marks]


@pytest.mark.parametrize(
    ("kind", "condition", "words"),
    [
        ("error", "", "error"),
        ("error", "ToolError", "error: ToolError"),
        ("timeout", "", "◷ timeout"),
        ("route", " yes ", "yes"),
        ("sequential", "", ""),
    ],
)
def test_the_tooltip_of_an_edge_says_when_it_is_taken(kind, condition, words):
    assert format_edge(Edge("a", "b", kind, condition=condition)) == words


def test_counts_are_shown_only_for_nodes_that_ran():
    assert (count_text(0), count_text(-1), count_text(12)) == ("", "", "×12")
