from __future__ import annotations

import dataclasses

import pytest

from agentnb.engine.control.cursor import OpenFrame, get_cursor, get_frontier, get_stack
from agentnb.engine.core.time_travel import goto
from tests.engine.graph_shapes import begun, branches, step
from tests.kinds.test_loop import body
from tests.session.small_sessions import counting, fan, graph, looping, session


def test_a_cursor_is_a_value():
    run = branches().run()
    before = get_cursor(run)
    step(run)
    after = get_cursor(run)
    assert before != after
    with pytest.raises(dataclasses.FrozenInstanceError):
        after.position = 5
    goto(run, 0)
    assert get_cursor(run) == before
    assert hash(get_cursor(run)) == hash(before)


def test_branches_are_in_the_frontier_and_their_frames_are_open():
    run = branches().run()
    step(run)
    cursor = get_cursor(run)
    assert [(one.node, one.depth, one.branch, one.why) for one in cursor.frontier] == [
        ("first", 1, 0, "entry of 'one'"),
        ("second", 1, 1, "entry of 'two'"),
    ]
    assert [(frame.region, frame.branch, frame.scope) for frame in cursor.frames] == [
        ("root", None, "root"),
        ("one", 0, "one@1.0"),
        ("two", 1, "two@1.1"),
    ]
    assert [frame.region for frame in get_stack(run)] == ["root", "one"]


def test_the_phase_of_a_composite_node_is_reported():
    run = session(looping(body(), times=2), {"n": 0})
    run.step(2)
    (following,) = run.frontier
    assert (following.node, following.phase, following.why) == ("again", "resume", "its inside has ended")


def test_the_phase_after_a_failure_inside_is_reported():
    def breaks():
        raise ValueError

    built_graph = looping(graph("x", x=breaks), times=2)
    built_graph.add_node("rescue", kind="noop")
    built_graph.add_edge("again", "rescue", kind="error")
    run = session(built_graph)
    run.step(2)
    (following,) = run.frontier
    assert (following.phase, following.why) == ("fail", "its inside has failed")


def test_a_delivery_names_its_event():
    run = begun("reactive")
    assert get_frontier(run)[0].why == "event evt_001 of type 'hello'"
    assert [one.phase for one in get_frontier(run)] == ["start", "start", "event"]


def test_the_origin_of_a_node_is_found_across_moves_of_the_queue():
    run = begun("diamond")
    for _ in range(4):
        step(run)
    assert [(one.node, one.why) for one in get_frontier(run)] == [
        ("b", "edge 'a' -> 'b'"),
        ("d", "edge 'b' -> 'd'"),
        ("c", "edge 'fix' -> 'c'"),
    ]


def test_at_the_end_the_frontier_is_empty():
    run = session(graph("a"))
    run.run()
    assert (run.frontier, [frame.region for frame in run.stack]) == ((), ["root"])


def reasons(run):
    return [[(each.node, each.why) for each in run.goto(at).frontier] for at in range(run.position, -1, -1)]


def test_a_fork_gives_the_same_reasons_as_its_parent():
    for recipe, inputs in ((counting(), {"n": 0}), (looping(graph("x", "y"), times=2), {}), (fan("x", "y"), {})):
        run = session(recipe, inputs)
        run.run()
        tip, expected = run.position, reasons(run)
        assert expected[-1][0][1] == "entry of the recipe"
        assert [[(each.node, each.why) for each in run.fork(at).frontier] for at in range(tip, -1, -1)] == expected
        fork = run.fork(run.goto(2).position)
        deeper = fork.fork(fork.step().step)
        assert [each.why for each in deeper.frontier] == [why for _, why in expected[tip - 3]]


def test_an_edge_is_the_reason_after_an_edit_in_the_past_too():
    run = session(graph("a", "b", "c"))
    run.run()
    run.goto(1).edit({"x": 1})
    assert [each.why for each in run.frontier] == ["edge 'a' -> 'b'"]
    run.step()
    assert [each.why for each in run.frontier] == ["edge 'b' -> 'c'"]


@pytest.mark.parametrize(("iteration", "end"), [(0, ""), (1, ""), (2, ", iteration 2"), (3, ", iteration 3")])
def test_a_frame_shows_its_iteration_from_the_second_one_on(iteration, end):
    assert repr(OpenFrame(1, "loop", "body", 1, iteration, "root")) == f"<frame 'body' of 'loop'{end}>"
