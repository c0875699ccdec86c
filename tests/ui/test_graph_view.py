from __future__ import annotations

import json
import random
import time

import networkx as nx
import pytest

import agentnb as nb
from agentnb.draw import render, svg_patch
from agentnb.errors import AgentNbError
from agentnb.recipe.model import Edge, Node, Recipe, Region
from agentnb.session import Session
from agentnb.ui import graph_view, picture_marks
from agentnb.ui.page_queries import run_query
from agentnb.ui.view_changes import find_changes
from agentnb.ui.view_model import make_screen
from tests.ui import ticket_recipe
from tests.ui.page_graphs import long


def research(steps=0):
    session = nb.Session(nb.samples("research"))
    session.step(steps)
    return session


def large(size=200):
    """A recipe that is too large to be drawn open: nearly all of it stands in one region."""
    nodes = [Node("head", "subgraph", bodies=("deep",)), *(Node(f"n{at}", "noop", scope="deep") for at in range(size))]
    edges = tuple(Edge(f"n{at}", f"n{at + 1}") for at in range(size - 1))
    regions = {"root": Region("root", ("head",)), "deep": Region("deep", ("n0",), "Deep", "head")}
    return Session(Recipe("large", "test", {node.id: node for node in nodes}, edges, ("head",), regions=regions))


def marks(session):
    return picture_marks.mark_picture(graph_view.get_drawing(session), session._parts.pictures.view())


def asked_until_there(session, closed):
    """Ask as a page does, again and again, for what is made in a thread."""
    for _ in range(600):
        reply = graph_view.query_drawing(session, closed)
        if "again" not in reply:
            return reply
        time.sleep(0.05)
    raise AssertionError("it never came")


def test_a_page_opens_with_a_small_drawing_and_requests_a_large_one():
    assert graph_view.draw_at_once(research()).startswith("<svg")
    session = large()
    first, second = graph_view.draw_at_once(session), graph_view.draw_at_once(session)
    assert not first.startswith("<svg")
    assert first != second


def test_a_large_recipe_starts_with_collapsed_regions():
    assert graph_view.find_collapsed(large()) == ("deep",)
    assert graph_view.find_collapsed(research()) == ()
    actual = graph_view.query_drawing(large(), None)
    assert actual["closed"] == ["deep"]
    assert actual["folds"]["regions"] == {"region: deep": "deep"}
    assert len(actual["folds"]["nodes"]) == 200
    assert set(actual["folds"]["edges"].values()) == {-1}


def test_a_large_drawing_is_rendered_in_the_background_and_returned_by_a_later_query():
    session = large()
    assert graph_view.query_drawing(session, []) == {"again": True}
    actual = asked_until_there(session, [])
    assert actual["svg"].count('data-node="n') >= 200
    assert actual["folds"] == {"regions": {}, "nodes": {}, "edges": {}}


def test_a_failing_layout_is_reported_for_each_request(monkeypatch):
    session = large()
    monkeypatch.setenv("AGENTNB_LAYOUT", "nonsense")
    with pytest.raises(AgentNbError, match="U202"):
        asked_until_there(session, [])


def test_reports_are_cached_json():
    session = research(8)
    result = run_query(session, "drawing", ["look_up"])
    assert json.loads(json.dumps(result)) == result
    assert result["folds"]["nodes"] == dict.fromkeys(("archive", "texts", "unknown"), "region: look_up")
    assert graph_view.get_drawing(session, ["look_up", "each"]) is graph_view.get_drawing(session, ["each", "look_up"])


def test_a_missing_region_is_reported():
    with pytest.raises(AgentNbError, match="U206"):
        run_query(research(), "drawing", ["lookup"])


def test_only_rows_with_a_changed_key_are_reported():
    session = ticket_recipe.session("hello")
    assert marks(session)["rows"] == {}
    session.step()
    assert marks(session)["rows"] == {}
    session.edit({"brand": 1, "another": 2})
    rows = len(graph_view.get_drawing(session).picture.board.rows)
    assert marks(session)["rows"] == {str(rows): ["brand", "brand"], str(rows + 1): ["another", "another"]}


def test_values_are_reported_once():
    session = ticket_recipe.session("hello")
    session.edit({"ticket": "a value that is told by the board"})
    assert "told by the board" not in json.dumps(marks(session))


@pytest.mark.parametrize("size", [10, 1000])
def test_a_step_sends_less_than_a_kilobyte_for_any_size(size):
    session = Session(long(size))
    session.edit({f"key{number}": number for number in range(size)})
    drawing = graph_view.get_drawing(session)
    session.step()
    before = make_screen(session, drawing)
    session.step()
    assert len(json.dumps(find_changes(before, make_screen(session, drawing)))) < 1000


def test_marks_need_no_layout(monkeypatch):
    session = research(3)

    def fail(*_, **__):
        raise AssertionError("laid out")

    monkeypatch.setattr(render, "lay_out", fail)
    assert "current" in json.dumps(marks(session))


def test_observed_edges_are_reported_on_request():
    session = ticket_recipe.session("hello")
    assert marks(session)["board"] == {"more": "", "flows": ""}
    session.run()
    assert marks(session)["board"]["flows"]
    actual = graph_view.query_flows(session, [])
    assert "write tell" in actual["flows"]
    assert actual["removed"] == []
    session.goto(0)
    assert marks(session)["board"]["flows"] == ""


def test_edges_of_a_collapsed_region_belong_to_its_box():
    session = research(8)
    assert "read region: look_up" in graph_view.query_flows(session, ["look_up"])["flows"]


def test_edges_that_do_not_apply_at_the_position_are_removed():
    """Inside a region with a board of its own other keys are seen, and other nodes write them."""
    nodes = [
        Node("outer", "subgraph", reads=("task",), writes=("result",), bodies=("own",)),
        Node("inner", "noop", scope="own", reads=("task",), writes=("thought",)),
    ]
    regions = {"root": Region("root", ("outer",)), "own": Region("own", ("inner",), "Own", "outer", isolated=True)}
    session = Session(Recipe("r", "test", {node.id: node for node in nodes}, (), ("outer",), regions=regions))
    assert marks(session)["board"]["flows"] == ""
    session.step()
    assert session.current == "inner"
    assert marks(session)["board"]["flows"]
    actual = graph_view.query_flows(session, [])
    assert set(actual["removed"]) == {"read outer", "write outer"}
    assert set(actual["flows"]) == {"read inner", "write inner"}


def whole_marks(session):
    """Return the marks as they are computed from all nodes, without the id of the flows."""
    drawing = graph_view.get_drawing(session)
    return picture_marks.PictureMarks(drawing).of(session._parts.pictures.view())


WANDERERS = [*range(8)]


@pytest.mark.parametrize("seed", WANDERERS)
def test_incremental_marks_equal_those_of_a_complete_drawing(seed):
    chance = random.Random(seed)
    session = Session(wandering(chance), {"n": 0, "left": 60}, seed=seed)
    for _ in range(40):
        match chance.randrange(6):
            case 0:
                session.goto(chance.randint(0, len(session.trace)))
            case 1:
                session = session.fork(at=chance.randint(0, session.position))
            case 2:
                session.edit({chance.choice(["n", "k3", "late"]): chance.choice([1, nb.ABSENT])})
            case 3:
                session.breakpoints.add(node=chance.choice([*session.recipe.nodes]))
            case _:
                session.step(chance.randint(1, 4))
        view = session._parts.pictures.view()
        drawing = graph_view.get_drawing(session)
        actual = picture_marks.mark_picture(drawing, view)
        assert actual == whole_marks(session)
        patch = svg_patch.make_marks(drawing.recipe, drawing.picture, view)
        assert {part: actual[part] for part in ("nodes", "edges")} == patch
        table = svg_patch.make_table(drawing.recipe, drawing.picture, view)
        drawn = [row.key for row in drawing.picture.board.rows]
        keys = [actual["rows"].get(str(place), [*drawn[place : place + 1], ""])[0] for place in range(len(table.rows))]
        assert keys == [row.key for row in table.rows]
        assert actual["board"]["more"] == table.last_line
        flows = [
            [(flow.direction, flow.node, flow.rows) for flow in one.flows] for one in (drawing.picture.board, table)
        ]
        assert (actual["board"]["flows"] == "") == (sorted(flows[0]) == sorted(flows[1]))


def wandering(chance):
    """Return a recipe of functions that write keys of their own, some nested, and of edges that branch."""
    graph = nx.DiGraph(name="wanderer", entry="a0")

    def act(number):
        def work(board):
            writes = {"left": board["left"] - 1, f"k{number % 5}": board.get("n")}
            return writes | ({f"own{number}": 1} if number % 3 == 0 else {})

        return work

    for number in range(9):
        graph.add_node(f"a{number}", function=act(number))
    for number in range(9):
        graph.add_edge(f"a{number}", f"a{chance.randrange(9)}", when=f"left % {chance.randint(2, 3)} == 0")
        graph.add_edge(f"a{number}", f"a{(number + 1) % 9}")
    return nb.load(graph)
