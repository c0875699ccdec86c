"""Whose blackboard a picture shows: that of the part where the run stands."""

import networkx as nx

import agentnb as nb
from agentnb.draw.board_table import make_board_table
from tests.dialects.symphony.symphony_agents import call, executor


def desk():
    graph = nx.DiGraph(name="desk")
    graph.add_node("help", function=executor(call("ok", n=2)), inputs={"task": "question"}, output="reply")
    return nb.Session(nb.load(graph), {"question": "go"})


def keys(session):
    return [row.key for row in make_board_table(session.recipe, session._parts.pictures.view()).rows]


def test_inside_an_agent_its_own_board_is_drawn_and_outside_that_of_the_recipe():
    session = desk()
    assert "system_prompt" not in keys(session)
    session.step(2)
    assert {"task", "system_prompt", "decision"} <= set(keys(session))
    assert "question" not in keys(session)
    session.run()
    assert keys(session) == ["question", "reply"]


def test_the_table_has_room_for_the_larger_of_the_two():
    session = desk()
    sizes = set()
    while session.step() is not None:
        table = make_board_table(session.recipe, session._parts.pictures.view(), spare=2)
        sizes.add(len(table.rows) + table.spare)
    assert len(sizes) == 1


def test_an_error_edge_is_taken_only_by_a_failure():
    for answer, taken in ((call("ok", n=1), "sequential"), (call("bad"), "error")):
        session = executor(answer).session("go")
        session.run()
        edges = session.recipe.edges
        edge_kinds = [
            edges[place].kind for place in session._parts.pictures.view().taken if edges[place].source == "tool"
        ]
        assert edge_kinds == [taken]
