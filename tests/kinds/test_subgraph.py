from __future__ import annotations

import networkx as nx
import pytest

from tests.session.making import add, counter, graph, path, session


def inside(**attributes):
    inner = nx.DiGraph()
    inner.add_node("add", function=add, inputs={"n": "n"})
    inner.add_node("list", function=lambda board: {"keys": sorted(board)})
    inner.add_edge("add", "list")
    made = nx.DiGraph()
    made.add_node("sub", kind="subgraph", graph=inner, **attributes)
    made.add_node("done", function=counter("done"))
    made.add_edge("sub", "done")
    return made


def test_without_inputs_and_outputs_it_shares_the_board():
    run = session(inside(), {"n": 1, "x": 0})
    run.run()
    assert dict(run.board) == {"n": 2, "x": 0, "keys": ["n", "x"], "done": 1}


def test_with_inputs_it_has_a_board_of_its_own():
    run = session(inside(inputs={"n": "deep.n"}, outputs={"result": "n"}), {"deep": {"n": 1}, "x": 0})
    run.step(3)
    assert dict(run.board) == {"deep": {"n": 1}, "x": 0}
    assert run.trace.steps[2].outputs == {"keys": ["n"]}
    run.run()
    assert dict(run.board) == {"deep": {"n": 1}, "x": 0, "result": 2, "done": 1}


def test_the_board_is_that_of_the_next_node():
    run = session(inside(inputs={"n": "n"}, outputs={"m": "n"}), {"n": 1, "x": 0})
    assert dict(run.board) == {"n": 1, "x": 0}
    run.step()
    assert dict(run.board) == {"n": 1}
    run.step()
    assert dict(run.board) == {"n": 2}
    assert run.trace.state_at(2) == {"n": 1, "x": 0}


def test_an_edit_inside_changes_the_inside_alone():
    run = session(inside(inputs={"n": "n"}, outputs={"m": "n"}), {"n": 1})
    run.step()
    run.edit({"n": 10}).run()
    assert (run.board["n"], run.board["m"]) == (1, 11)


@pytest.mark.parametrize("outputs", [{"m": "gone"}, {}])
def test_an_output_that_is_not_there_is_left_out(outputs):
    run = session(inside(inputs={"n": "n"}, outputs=outputs), {"n": 1})
    run.run()
    assert dict(run.board) == {"n": 1, "done": 1}


def test_an_input_that_is_not_there_is_left_out_and_told_where_it_is_needed():
    run = session(inside(inputs={"n": "gone"}, outputs={"m": "n"}), {"x": 1})
    run.run()
    assert (run.status, run.current) == ("failed", "add")


def test_a_subgraph_in_a_subgraph():
    outer = nx.DiGraph()
    outer.add_node("outer", kind="subgraph", graph=inside(inputs={"n": "n"}, outputs={"n": "n"}), inputs={"n": "start"},
                   outputs={"end": "n"})  # fmt: skip
    run = session(outer, {"start": 5})
    run.run()
    assert path(run) == ["outer enter", "sub enter", "add", "list", "sub leave", "done", "outer leave"]
    assert dict(run.board) == {"start": 5, "end": 6}
    depths = [step.depth for step in run.trace.steps]
    assert depths == [0, 1, 2, 2, 1, 1, 0]
    for k in (4, 2, 6, 0, 3):
        run.goto(k)
        assert len(run.frames) == [1, 2, 3, 3, 2, 2, 1, 1][k]
    run.run()
    assert run.board["end"] == 6


def test_a_fork_inside_goes_on_inside():
    run = session(inside(inputs={"n": "n"}, outputs={"m": "n"}), {"n": 1})
    run.step(2)
    fork = run.fork(edit={"n": 7})
    run.run()
    fork.run()
    assert (run.board["m"], fork.board["m"]) == (2, 7)


def test_what_fails_inside_can_be_caught_by_the_node_outside():
    def breaks():
        raise ValueError("inside")

    made = nx.DiGraph()
    made.add_node("sub", kind="subgraph", graph=graph("a", a=breaks), inputs={}, outputs={"x": "a"})
    made.add_node("rescue", function=lambda board: {"rescued": sorted(board)})
    made.add_edge("sub", "rescue", kind="error")
    run = session(made, {"n": 1})
    run.run()
    assert path(run) == ["sub enter", "a error", "sub leave error", "rescue"]
    assert run.board["rescued"] == ["n"]
