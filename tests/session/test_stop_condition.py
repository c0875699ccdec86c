from __future__ import annotations

import pytest

from agentnb.engine.control.interventions import current
from agentnb.recipe.model import Edge, Node, Region
from agentnb.session.stop_condition import is_left, node_is_next
from tests.engine.shapes import Shape, leaf
from tests.session.making import calling, counting, fan, graph, looping, path, session
from tests.session.shaped import session_of


def over(run):
    """Step over to the end; return after which steps it stood."""
    found = []
    while run.step_over() is not None:
        found.append(run.position)
    return found


def nested(**inner):
    """A composite in a composite, with a leaf `in` inside; what is `inner` goes into the innermost region."""
    nodes = [
        leaf("before", lambda work: {}),
        Node("outer", "nest", bodies=("o",), params={"policy": "child"}),
        leaf("first", lambda work: {}, scope="o"),
        Node("inner", "nest", bodies=("i",), params={"policy": "child"}, scope="o"),
        leaf("in", inner.get("does", lambda work: {}), scope="i"),
        leaf("last", lambda work: {}, scope="o"),
        leaf("after", lambda work: {}),
        leaf("rescue", lambda work: {}),
    ]
    edges = [Edge("before", "outer"), Edge("outer", "after"), Edge("first", "inner"), Edge("inner", "last"),
             Edge("outer", "rescue", "error")]  # fmt: skip
    regions = [Region("o", ("first",), owner="outer"), Region("i", ("in",), owner="inner")]
    return session_of("nested", Shape(nodes, edges, ("before",), [], {}, regions))


def test_a_leaf_is_one_step():
    assert over(session(counting(), {"n": 0})) == [1, 2, 3, 4, 5, 6, 7]


def test_a_loop_is_gone_over_with_all_its_rounds():
    run = session(looping(graph("x", "y"), times=3))
    assert over(run) == [run.position - 1, run.position]
    assert path(run)[-2:] == ["again leave", "done"]
    inside = session(looping(graph("x", "y"), times=3))
    inside.step(2)
    assert over(inside)[0] == 3
    inside.goto(2).step_out()
    assert path(inside)[-1] == "again leave"


def test_a_composite_inside_another_is_over_when_it_is_left():
    run = nested()
    run.step(3)
    assert (run.step_over().node_id, run.current) == ("inner", "last")
    run.goto(4)
    assert (run.current, run.step_out().node_id, run.current) == ("in", "inner", "last")
    assert (run.step_out().node_id, run.current) == ("outer", "after")
    run.goto(1)
    assert (run.step_over().node_id, run.current) == ("outer", "after")


def test_a_composite_that_stands_before_its_leave_is_left():
    run = nested()
    run.step(5)
    assert (run.current, run.step_over().phase, run.current) == ("inner", "leave", "last")


def test_left_by_the_side_door_of_an_error_it_is_over():
    run = nested(does=lambda work: 1 / 0)
    run.step(3)
    assert (run.step_over().node_id, run.current) == ("outer", "rescue")
    for verb in ("step_over", "step_out"):
        run.goto(1)
        getattr(run, verb)()
        assert run.current == ("rescue" if verb == "step_over" else None)


def test_a_failure_that_nothing_handles_stops_both():
    run = session(graph("a", "b", a=lambda: 1 / 0))
    for verb in (run.step_over, run.step_out):
        assert (verb().status, run.status, run.current) == ("error", "failed", "a")


def test_parallel_branches_are_gone_over_together():
    run = session(fan("x", "y"))
    assert [run.step_over().node_id for _ in range(5)] == ["open", "x", "y", "meet", "after"]


def test_a_call_that_is_held_stops_them_and_they_go_on_with_it():
    run = session(looping(calling("look"), times=2), {"word": "rain"}, tools={"look": lambda word: word})
    run.breakpoints.add(call="tool")
    assert (run.step_over().node_id, run.status) == ("before", "in_flight")
    assert (run.step_out().node_id, run.status) == ("before", "in_flight")
    assert (run.step_out().phase, run.status) == ("leave", "paused")


def test_they_end_with_the_budget_and_say_so():
    run = session(looping(graph("x"), times=9), budget={"max_steps": 3})
    run.step_over()
    assert (run.status, run.trace.outcome["limit"]) == ("exhausted", "max_steps")
    assert run.step_over() is None


def test_who_listens_to_the_end_is_told():
    told = []
    run = session(looping(graph("x"), times=2), hooks={"end": lambda one: told.append(one.position)})
    run.step_over()
    run.step_out()
    assert told == [run.position - 1, run.position]


def test_an_event_is_over_when_all_have_heard_it():
    run = session_of("reactive")
    run.step()
    assert (run.step_over().step, run.position) == (2, 2)  # from the middle of it too


def test_a_composite_that_listens_is_part_of_the_delivery():
    nodes = [
        leaf("plain", lambda work: {}, on=("hello",)),
        Node("nest", "nest", bodies=("in",), params={"policy": "child"}, on=("hello",)),
        leaf("inside", lambda work: {}, scope="in"),
    ]
    shape = Shape(nodes, [], (), [], {}, [Region("in", ("inside",), owner="nest")], emits=("a", "b"))
    assert over(session_of("listens", shape)) == [4, 8]


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_the_root_frame_lasts_to_the_end(steps):
    run = session(counting(), {"n": 0})
    run.step(steps)
    assert is_left(run._parts.run, current(run._parts.run)) is None
    run.step_out()
    assert run.status == "finished"


def test_a_node_is_next():
    run = session(counting(), {"n": 0})
    asked = node_is_next(run._parts.run, "check")
    assert (asked.met(), run.step() is not None, asked.met()) == (False, True, True)
    assert asked.turn is not None
    assert asked.turn(current(run._parts.run))


def test_a_breakpoint_is_counted_where_until_is_met_too():
    run = session(counting(), {"n": 0})
    point = run.breakpoints.add("check")
    run.run("check")
    assert (run.position, point.hits, run.stopped_by) == (1, 1, point)
