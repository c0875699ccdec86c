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


def test_an_edit_is_undone_and_done_again_with_its_step():
    run = run_of(count, count, inputs={"x": 0})
    one(run)
    edit(run, {"x": 1, "n": ABSENT})
    assert data(run) == {"x": 1}
    goto(run, 0)
    assert data(run) == {"x": 0}
    goto(run, 1)
    assert data(run) == {"x": 1}


def test_several_edits_at_one_step_are_one_after_the_other():
    run = run_of(count, count)
    one(run)
    for value in (1, 2, 3):
        edit(run, {"x": value})
    assert [(act.old, act.new) for act in run.history.interventions] == [(ABSENT, 1), (1, 2), (2, 3)]
    goto(run, 0)
    goto(run, 1)
    assert data(run)["x"] == 3


def test_an_edit_that_is_refused_changes_nothing_and_the_run_continues():
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
    made = session(looping(body(), times=3), {"n": 0})
    made.run()
    made.goto(3).edit({"n": 10})
    made.run()
    assert made.board["n"] == 12


def test_set_next_shuts_the_frames_that_are_left():
    made = session(looping(graph("x", "y"), times=3))
    made.step(2)
    assert len(made.stack) == 2
    made.set_next("done")
    assert (len(made._parts.run.frames), made.current) == (1, "done")
    made.run()
    assert made.status == "finished"
    made.goto(2)
    assert (len(made._parts.run.frames), made.current) == (1, "done")
    made.goto(1)
    assert (len(made._parts.run.frames), made.current) == (2, "x")


def test_set_next_within_an_open_frame_keeps_it():
    made = session(looping(graph("x", "y"), times=2))
    made.step(2)
    made.set_next("x")
    assert len(made.stack) == 2
    made.run()
    assert (made.board["x"], made.status) == (3, "finished")


def test_a_node_inside_a_frame_that_is_not_open_cannot_be_next():
    made = session(looping(graph("x", "y"), times=2))
    with pytest.raises(ExecutionError, match="X107") as caught:
        made.set_next("y")
    assert "'again'" in caught.value.problems[0].do
    assert made.current == "again"
    made.run()
    assert made.status == "finished"


def test_one_that_waits_already_only_comes_first():
    edges = [Edge("n0", "a"), Edge("n0", "b"), Edge("n0", "c")]
    run = run_of(nothing, nodes=[leaf(name, nothing) for name in "abc"], edges=edges, routing="all")
    one(run)
    set_next(run, "c")
    while not run_plain(run, once=True):
        pass
    assert path(run) == ["n0", "c", "a", "b"]


def test_skip_writes_in_place_of_the_node_and_follows_its_edges():
    run = run_of(count, count)
    skip(run, {"n": 5})
    assert (path(run), data(run), get_current_activation(run).node.id) == (["n0 skipped"], {"n": 5}, "n1")


def test_a_composite_node_can_be_skipped_before_and_after_its_inside():
    made = session(looping(graph("x"), times=2))
    made.skip()
    made.run()
    assert (made.status, dict(made.board)) == ("finished", {"done": 1})
    made = session(looping(graph("x"), times=2))
    made.step(2)
    assert made.current == "again"
    made.skip()
    assert len(made._parts.run.frames) == 1
    made.run()
    assert dict(made.board) == {"x": 1, "done": 1}


def test_the_last_node_inside_can_be_skipped():
    made = session(looping(graph("x", "y"), times=1))
    made.step(2)
    made.skip({"y": "mine"})
    made.run()
    assert (made.status, board(made._parts.run)) == ("finished", {"x": 1, "y": "mine", "done": 1})


def test_a_skip_that_is_refused_changes_nothing():
    made = session(graph("x", "y"))
    with pytest.raises(BoardError, match="B105"):
        made.skip({5: 1})
    assert (made.position, made.current, dict(made.board)) == (0, "x", {})
    made.run()
    assert made.status == "finished"
    assert made.trace.frames.interventions["action"].tolist() == []


def test_what_an_act_was_done_with_is_stored_as_it_was():
    run = run_of(count)
    given = {"words": ["one"]}
    record_intervention(run, "change", "n0", ABSENT, given)
    given["words"].append("two")
    assert thaw(run.history.interventions[0].new) == {"words": ["one"]}


def test_an_act_says_which_steps_were_under_way():
    async def asks(work):
        return {"said": await work.call(Effect("human", "who", {}))}

    run = run_of(asks)
    step(run)
    edit(run, {"n": 1})
    record_steps_in_flight(run)
    assert [(act.action, act.target) for act in run.history.interventions] == [
        ("held", "n0"),
        ("edit", "n"),
        ("held", "n0"),
    ]
    run.pending_steps.popitem()[1].cancel()
    edit(run, {"n": 2})
    assert [act.action for act in run.history.interventions][3:] == ["edit"]
