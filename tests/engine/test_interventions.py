from __future__ import annotations

import pytest

from agentnb.board.values import ABSENT, thaw
from agentnb.engine.control.interventions import (
    edit,
    get_current_activation,
    get_current_scope,
    record_intervention,
    record_steps_in_flight,
    set_next,
    skip,
)
from agentnb.engine.core.drivers import run_plain
from agentnb.engine.core.time_travel import goto
from agentnb.errors import BoardError, ExecutionError
from agentnb.recipe.model import Edge
from agentnb.world.effect import Effect
from tests.engine.graph_shapes import board, branches, leaf, path, step
from tests.engine.small_runs import data, one, run_of
from tests.engine.test_scheduler import nothing
from tests.kinds.test_loop import body
from tests.session.small_sessions import graph, looping, session


def count(work):
    return {"n": work.board.get("n", 0) + 1}


def test_an_edit_is_undone_and_redone_with_its_step():
    run = run_of(count, count, inputs={"x": 0})
    one(run)
    edit(run, {"x": 1, "n": ABSENT})
    assert data(run) == {"x": 1}
    goto(run, 0)
    assert data(run) == {"x": 0}
    goto(run, 1)
    assert data(run) == {"x": 1}


def test_several_edits_at_one_step_are_ordered():
    run = run_of(count, count)
    one(run)
    for value in (1, 2, 3):
        edit(run, {"x": value})
    assert [(intervention.old, intervention.new) for intervention in run.history.interventions] == [
        (ABSENT, 1),
        (1, 2),
        (2, 3),
    ]
    goto(run, 0)
    goto(run, 1)
    assert data(run)["x"] == 3


def test_a_rejected_edit_changes_nothing_and_the_run_continues():
    run = run_of(count, count, inputs={"x": 0})
    one(run)
    with pytest.raises(BoardError, match="B103"):
        edit(run, {"y": 1, "x.below": 2})
    assert (data(run), run.history.interventions) == ({"x": 0, "n": 1}, [])
    one(run)
    assert data(run) == {"x": 0, "n": 2}


def test_an_edit_is_in_the_scope_of_the_next_node():
    run = branches().run()
    step(run)
    assert get_current_scope(run).name == "one@1.0"
    edit(run, {"x": "changed"})
    step(run)
    assert (run.root.scope.get("x"), get_current_scope(run).get("seen")) == ("root's", "changed")


def test_the_frame_of_an_edit_in_the_past_is_rebuilt():
    run = session(looping(body(), times=3), {"n": 0})
    run.run()
    run.goto(3).edit({"n": 10})
    run.run()
    assert run.board["n"] == 12


def test_set_next_closes_the_frames_that_it_leaves():
    run = session(looping(graph("x", "y"), times=3))
    run.step(2)
    assert len(run.stack) == 2
    run.set_next("done")
    assert (len(run._parts.run.frames), run.current) == (1, "done")
    run.run()
    assert run.status == "finished"
    run.goto(2)
    assert (len(run._parts.run.frames), run.current) == (1, "done")
    run.goto(1)
    assert (len(run._parts.run.frames), run.current) == (2, "x")


def test_set_next_within_an_open_frame_keeps_the_frame():
    run = session(looping(graph("x", "y"), times=2))
    run.step(2)
    run.set_next("x")
    assert len(run.stack) == 2
    run.run()
    assert (run.board["x"], run.status) == (3, "finished")


def test_a_node_in_a_closed_frame_cannot_be_next():
    run = session(looping(graph("x", "y"), times=2))
    with pytest.raises(ExecutionError, match="X107") as caught:
        run.set_next("y")
    assert "'again'" in caught.value.problems[0].do
    assert run.current == "again"
    run.run()
    assert run.status == "finished"


def test_set_next_moves_a_scheduled_node_to_the_front():
    edges = [Edge("n0", "a"), Edge("n0", "b"), Edge("n0", "c")]
    run = run_of(nothing, nodes=[leaf(name, nothing) for name in "abc"], edges=edges, routing="all")
    one(run)
    set_next(run, "c")
    while not run_plain(run, once=True):
        pass
    assert path(run) == ["n0", "c", "a", "b"]


def test_skip_writes_for_the_node_and_follows_its_edges():
    run = run_of(count, count)
    skip(run, {"n": 5})
    assert (path(run), data(run), get_current_activation(run).node.id) == (["n0 skipped"], {"n": 5}, "n1")


def test_a_composite_node_can_be_skipped_before_and_after_its_inside():
    run = session(looping(graph("x"), times=2))
    run.skip()
    run.run()
    assert (run.status, dict(run.board)) == ("finished", {"done": 1})
    run = session(looping(graph("x"), times=2))
    run.step(2)
    assert run.current == "again"
    run.skip()
    assert len(run._parts.run.frames) == 1
    run.run()
    assert dict(run.board) == {"x": 1, "done": 1}


def test_the_last_node_inside_can_be_skipped():
    run = session(looping(graph("x", "y"), times=1))
    run.step(2)
    run.skip({"y": "mine"})
    run.run()
    assert (run.status, board(run._parts.run)) == ("finished", {"x": 1, "y": "mine", "done": 1})


def test_a_rejected_skip_changes_nothing():
    run = session(graph("x", "y"))
    with pytest.raises(BoardError, match="B105"):
        run.skip({5: 1})
    assert (run.position, run.current, dict(run.board)) == (0, "x", {})
    run.run()
    assert run.status == "finished"
    assert run.trace.frames.interventions["action"].tolist() == []


@pytest.mark.parametrize(
    "act",
    [lambda run: run.edit({"a": 5}), lambda run: run.set_next("a"), lambda run: run.skip({"b": 5})],
    ids=["edit", "set_next", "skip"],
)
def test_an_intervention_after_a_fork_is_not_in_the_fork(act):
    run = session(graph("a", "b", "c"))
    run.step()
    fork = run.fork()
    act(run)
    assert len(run.trace.frames.interventions) == 1
    fork.run()
    assert fork.trace.frames.interventions.empty
    assert (path(fork._parts.run), dict(fork.board)) == (["a", "b", "c"], {"a": 1, "b": 1, "c": 1})
    run.run()
    assert fork.replay().ok
    assert run.replay().ok


def test_the_values_of_an_intervention_are_stored_unchanged():
    run = run_of(count)
    value = {"words": ["one"]}
    record_intervention(run, "change", "n0", ABSENT, value)
    value["words"].append("two")
    assert thaw(run.history.interventions[0].new) == {"words": ["one"]}


def test_an_intervention_names_the_steps_in_flight():
    async def asks(work):
        return {"said": await work.call(Effect("human", "who", {}))}

    run = run_of(asks)
    step(run)
    edit(run, {"n": 1})
    record_steps_in_flight(run)
    assert [(intervention.action, intervention.target) for intervention in run.history.interventions] == [
        ("held", "n0"),
        ("edit", "n"),
        ("held", "n0"),
    ]
    run.pending_steps.popitem()[1].cancel()
    edit(run, {"n": 2})
    assert [intervention.action for intervention in run.history.interventions][3:] == ["edit"]
