from __future__ import annotations

import networkx as nx
import pytest

from agentnb.errors import RecipeError
from tests.session.making import add, graph, looping, path, session


def body():
    made = nx.DiGraph()
    made.add_node("add", function=add, inputs={"n": "n"})
    return made


def rounds(run):
    return path(run).count("add")


def test_so_many_times():
    run = session(looping(body(), times=3), {"n": 0})
    run.run()
    assert path(run) == ["again enter", "add", "again again", "add", "again again", "add", "again leave", "done"]
    assert run.board["n"] == 3


def test_no_times_at_all_is_one_step():
    run = session(looping(body(), times=0), {"n": 0})
    run.run()
    assert path(run) == ["again", "done"]
    assert run.board["n"] == 0


@pytest.mark.parametrize(("start", "count"), [(0, 3), (3, 0), (9, 0)])
def test_while_is_asked_before_each_round(start, count):
    run = session(looping(body(), **{"while": "n < 3"}), {"n": start})
    run.run()
    assert (rounds(run), run.status) == (count, "finished")


@pytest.mark.parametrize(("start", "count"), [(0, 3), (3, 1), (9, 1)])
def test_until_is_asked_after_each_round(start, count):
    run = session(looping(body(), until="n >= 3"), {"n": start})
    run.run()
    assert rounds(run) == count


def test_the_three_go_together():
    run = session(looping(body(), times=5, until="n >= 3", **{"while": {"<": [{"var": "n"}, 2]}}), {"n": 0})
    run.run()
    assert rounds(run) == 2


def test_max_ends_it_as_a_failure_and_more_rounds_can_be_asked_for_by_an_edit():
    run = session(looping(body(), until="n >= 9", max=4), {"n": 0})
    run.run()
    assert (run.status, run.error.code, rounds(run)) == ("failed", "X401", 4)
    assert "4 times" in run.error.what
    run.edit({"n": 9}).retry()
    run.run()
    assert (run.status, run.board["done"]) == ("finished", 1)


def test_without_a_max_it_ends_after_a_thousand_rounds():
    run = session(looping(body(), until="n < 0"), {"n": 0}, budget={"max_steps": 10_000})
    run.run()
    assert (run.error.code, rounds(run)) == ("X401", 1000)


def test_a_loop_that_says_nothing_of_its_end_cannot_be_loaded():
    with pytest.raises(RecipeError, match="R113"):
        session(looping(body()), {"n": 0})


def test_a_body_of_many_nodes_is_one_round():
    run = session(looping(graph("a", "b", "c"), times=2))
    run.run()
    assert path(run)[1:9] == ["a", "b", "c", "again again", "a", "b", "c", "again leave"]
    assert dict(run.board) == {"a": 2, "b": 2, "c": 2, "done": 1}


def test_the_iteration_is_in_the_frames_and_goes_back_with_them():
    run = session(looping(body(), times=3), {"n": 0})
    run.step(5)
    assert [frame.iteration for frame in run.frames] == [1, 3]
    run.back(2)
    assert [frame.iteration for frame in run.frames] == [1, 2]
    run.goto(1)
    assert [(frame.node, frame.iteration) for frame in run.frames] == [(None, 1), ("again", 1)]
    run.run()
    assert run.board["n"] == 3


def test_a_loop_in_a_loop():
    inner = nx.DiGraph()
    inner.add_node("in", kind="loop", graph=body(), times=2)
    run = session(looping(inner, times=3), {"n": 0})
    run.run()
    assert (run.board["n"], rounds(run), run.status) == (6, 6, "finished")
    for k in reversed(range(run.position)):
        run.goto(k)
        assert run.board["n"] == path(run).count("add")


def test_a_failure_in_the_body_stands_there_and_goes_on_in_the_same_round():
    def fragile(board):
        if board["n"] == 1 and not board.get("mended"):
            raise ValueError("once")
        return {"n": board["n"] + 1}

    run = session(looping(graph("add", add=fragile), times=3), {"n": 0})
    run.run()
    assert (run.status, run.current, run.board["n"]) == ("failed", "add", 1)
    run.edit({"mended": True}).run()
    assert (run.status, run.board["n"]) == ("finished", 3)


def test_an_error_edge_of_the_loop_catches_what_fails_inside():
    def breaks():
        raise ValueError("inside")

    made = looping(graph("a", "b", b=breaks), times=3)
    made.add_node("rescue", function=lambda: {"rescued": True})
    made.add_edge("again", "rescue", kind="error")
    run = session(made)
    run.run()
    assert path(run) == ["again enter", "a", "b error", "again leave error", "rescue"]
    assert (run.status, run.board["rescued"], len(run.frames)) == ("finished", True, 1)
