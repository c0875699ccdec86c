from __future__ import annotations

import networkx as nx
import pytest

import agentnb as nb
from agentnb.secrets import MASK
from tests.magics.magic_texts import wrong
from tests.session import shape_sessions
from tests.session.shape_sessions import to_where_it_waits
from tests.session.small_sessions import asking


def test_breakpoints_and_watches(agent, shell):
    point = agent("break check when n >= 2")
    assert (point.node, point.text) == ("check", "n >= 2")
    agent("run")
    assert shell.user_ns["session"].board["n"] == 2
    assert dict(agent("watch n * 10")) == {"n * 10": 20}
    assert "'chek'" in wrong(agent, "break chek").what
    assert wrong(agent, "break").code == "U401"


def test_board_edit_and_trace(agent, shell):
    assert dict(agent("board")) == {"n": 0}
    assert dict(agent("edit n 2"))["n"] == 2
    assert agent("edit text some words")["text"] == "some words"
    assert agent('edit deep.x {\\"a\\": 1}')["deep"] == {"x": {"a": 1}} or agent("board")["deep.x"]
    agent("step")
    assert agent("trace")["node"].tolist() == ["add"]
    assert wrong(agent, "edit n").code == "U401"


def test_answer(agent):
    agent("board", asking())
    assert agent("run").startswith("waiting after step 1, next ask\nX110")
    assert wrong(agent, "answer yes, do it").code == "X147"
    assert agent("answer yes") == "paused after step 2, next after"
    assert agent("board")["answer"] == "yes"
    assert wrong(agent, "answer yes").code == "X115"


def test_an_answer_is_no_masked_value(agent, tmp_path):
    graph = nx.DiGraph(name="secret")
    graph.add_node("ask", kind="human", prompt="Sure?", output="sure")
    recipe = nb.load(graph)
    session = nb.Session(recipe, {"api_key": "k3y-zzzz-4711"}, store=tmp_path / "runs.db")
    session.run()
    session.close()
    agent("board", nb.open(tmp_path / "runs.db", recipe=recipe))
    agent("answer yes")
    assert "'api_key'" in wrong(agent, "answer yes").do
    board = agent("board")
    assert (board["sure"], board["api_key"]) == ("yes", MASK)


def test_breakpoints_and_watches_can_be_removed(agent, shell):
    agent("break check")
    agent("break add")
    assert agent("breaks")["node"].tolist() == ["check", "add"]
    assert agent("unbreak check") == "1 breakpoint(s) left"
    assert agent("unbreak 2") == "0 breakpoint(s) left"
    agent("break check")
    assert agent("unbreak") == "0 breakpoint(s) left"
    agent("watch n")
    assert list(agent("watch")) == ["n"]
    assert list(agent("unwatch n")) == []
    assert wrong(agent, "unwatch").code == "U401"


def test_board_shows_values_and_their_writers(agent):
    assert agent("board n") == 0
    assert agent("who n") == "the inputs"
    agent("step")
    assert agent("who n") == "step 1: add"
    assert agent("who nothing") == "no step has written 'nothing'"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("approve", {"approved": True, "reason": ""}),
        ("approve again", {"approved": True, "reason": ""}),
        ("deny because it is too dear", {"approved": False, "reason": "it is too dear"}),
        ("deny again because no", {"approved": False, "reason": "no"}),
        ("deny", {"approved": False, "reason": ""}),
    ],
)
def test_approvals_are_granted_or_denied(agent, line, said):
    agent("board", to_where_it_waits(shape_sessions.asking("cycle", "approval")))
    assert [one.node for one in agent("pending")] == ["again"]
    agent(line)
    assert {key: agent("board said")[key] for key in said} == said


def test_why_explains_the_last_route(agent):
    agent("run 2")
    assert "check" in repr(agent("why"))
    assert "done" in repr(agent("whynot done"))
    assert wrong(agent, "whynot").code == "U401"


def test_trace_draw_and_show_display_the_run(agent, shell):
    agent("run 4")
    assert agent("trace 1")["node"].tolist() == ["check"]
    assert "<svg" in agent("draw").svg
    assert agent("show") is shell.user_ns["session"]
