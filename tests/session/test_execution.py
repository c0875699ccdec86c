from __future__ import annotations

import asyncio

import pytest

from agentnb.engine.control.interventions import get_current_activation
from agentnb.errors import RecipeError
from agentnb.load import load
from agentnb.recipe.model import Edge, Node, Region
from agentnb.samples import samples
from agentnb.session import Session
from agentnb.session.execution import make_frame_end_condition, make_node_condition
from tests.engine.graph_shapes import Shape, leaf
from tests.session.shape_sessions import session_of
from tests.session.small_sessions import asking, broken, calling, counting, fan, graph, looping, path, session


def test_step_runs_one_node_and_returns_it():
    run = session(graph("a", "b"))
    step = run.step()
    assert (step.node_id, step.step, run.position, run.current) == ("a", 1, 1, "b")
    assert run.step().node_id == "b"
    assert (run.step(), run.position, run.current, run.status) == (None, 2, None, "finished")


def test_step_n_ends_where_the_run_ends_and_returns_the_last():
    run = session(graph("a", "b", "c"))
    assert run.step(2).node_id == "b"
    assert run.step(9).node_id == "c"
    assert run.step(9) is None
    assert run.position == 3


def test_a_run_ends_at_the_end_and_returns_the_trace():
    run = session(graph("a", "b"))
    trace = run.run()
    assert trace is run.trace
    assert (len(trace), run.status, trace.outcome["status"]) == (2, "finished", "finished")
    assert run.run() is trace
    assert len(trace) == 2


@pytest.mark.parametrize(
    ("until", "position"),
    [
        ("check", 1),
        ("done", 6),
        (4, 4),
        ("n == 2", 3),
        ({"==": [{"var": "n"}, 2]}, 3),
        (lambda board: board["n"] == 2, 3),
        ("n > 99", 7),
        (99, 7),
        (None, 7),
    ],
)
def test_run_stops_at_until(until, position):
    run = session(counting(), {"n": 0})
    run.run(until=until)
    assert run.position == position
    assert run.status == ("finished" if position == 7 else "paused")
    run.run()
    assert run.status == "finished"


def test_until_the_next_node_continues_to_its_next_visit():
    run = session(counting(), {"n": 0})
    run.run(until="check")
    run.run(until="check")
    assert (run.position, run.current) == (3, "check")


def test_until_a_past_step_does_nothing():
    run = session(counting(), {"n": 0})
    run.step(3)
    run.run(until=2)
    assert run.position == 3


def test_until_means_a_node_if_its_id_matches_and_otherwise_a_condition():
    built_graph = graph("a", "ready", "b", a=lambda: {"ready": True})
    run = session(built_graph)
    run.run(until="ready")
    assert (run.position, run.current) == (1, "ready")
    other = session(graph("a", "b", "c", a=lambda: {"ready": True}))
    other.run(until="ready == true")
    assert other.position == 1
    other.goto(0).run(until="ready")  # by now it is known as a key
    assert other.position == 1


def test_a_wrong_condition_is_a_problem_and_nothing_runs():
    run = session(counting(), {"n": 0})
    with pytest.raises(RecipeError):
        run.run(until="n ==")
    assert (run.position, run.status) == (0, "ready")
    run.run()
    assert run.status == "finished"


def test_max_steps_of_a_call_pauses_the_run():
    run = session(counting(), {"n": 0})
    assert [(run.run(max_steps=3) and run.position, run.status) for _ in range(3)] == [
        (3, "paused"),
        (6, "paused"),
        (7, "finished"),
    ]
    run.goto(0).run(max_steps=0)
    assert run.position == 0


def test_a_new_step_after_going_back_leaves_the_old_ones_as_a_branch():
    run = session(counting(), {"n": 0})
    run.run()
    run.goto(2)
    assert run.forks == ()
    run.step()
    assert (run.position, len(run.trace)) == (3, 3)
    (old,) = run.forks
    assert (old.position, old.status, old.board["end"]) == (7, "finished", 3)
    assert path(old)[:2] == path(run)[:2]


def test_async_verbs_do_the_same():
    async def main():
        run = session(counting(), {"n": 0})
        step = await run.astep(2)
        assert (step.step, run.position) == (2, 2)
        trace = await run.arun(until="n == 2")
        assert (trace is run.trace, run.position) == (True, 3)
        await run.arun(max_steps=1)
        assert run.position == 4
        await run.arun()
        assert await run.astep() is None
        return run.status

    assert asyncio.run(main()) == "finished"


async def waits(board):
    await asyncio.sleep(0)
    return {"waited": board.get("waited", 0) + 1}


def test_async_nodes_run_in_sync_methods_with_and_without_an_event_loop():
    built_graph = graph("a", "b", "c", "d", b=waits, d=waits)
    run = session(built_graph)
    run.step(2)
    run.run()
    assert run.board["waited"] == 2

    async def main():
        inner = session(built_graph)
        inner.step(2)
        assert inner.board["waited"] == 1
        inner.run()
        return dict(inner.board)

    assert asyncio.run(main())["waited"] == 2


def test_parallel_branches_are_stepped_one_node_at_a_time():
    run = session(fan("a", "b"))
    assert [run.step().node_id for _ in range(5)] == ["open", "a", "b", "meet", "after"]
    assert run.step() is None


def test_an_interrupt_leaves_the_run_at_its_last_step():
    def stops(board):
        if not board.get("again"):
            raise KeyboardInterrupt
        return {"b": 1}

    run = session(graph("a", "b", "c", b=stops))
    with pytest.raises(KeyboardInterrupt):
        run.run()
    assert (run.position, run.current, run.status, dict(run.board)) == (1, "b", "paused", {"a": 1})
    run.edit({"again": True}).run()
    assert (run.status, path(run)) == ("finished", ["a", "b", "c"])


def test_an_interrupt_in_an_async_node_leaves_the_run_at_its_last_step():
    async def stops(board):
        await asyncio.sleep(0)
        if not board.get("again"):
            raise KeyboardInterrupt
        return {"b": 1}

    run = session(graph("a", "b", b=stops))
    with pytest.raises(KeyboardInterrupt):
        run.run()
    assert (run.position, run.current, run.status) == (1, "b", "paused")
    run.edit({"again": True}).run()
    assert run.status == "finished"


def test_an_interrupt_in_a_loop_keeps_its_iteration():
    def stops(board):
        if board.get("n") == 1 and not board.get("again"):
            raise KeyboardInterrupt
        return {"n": board.get("n", 0) + 1}

    run = session(looping(graph("add", add=stops), times=3))
    with pytest.raises(KeyboardInterrupt):
        run.run()
    assert [frame.iteration for frame in run.stack] == [1, 2]
    run.edit({"again": True}).run()
    assert (run.board["n"], run.status) == (3, "finished")


def test_a_waiting_run_stays_where_it_is():
    run = session(asking())
    run.run()
    for _ in range(2):
        assert run.step() is None
        run.run()
        assert (run.position, run.status) == (1, "waiting")
    assert run.back().current == "before"
    assert run.pending == ()


def test_reset_starts_again_and_keeps_the_run():
    run = session(counting(), {"n": 0})
    run.run()
    assert run.reset() is run
    assert (run.position, run.status, dict(run.board), len(run.trace)) == (0, "ready", {"n": 0}, 0)
    run.run()
    assert run.status == "finished"
    (old,) = run.forks
    assert (old.position, old.status) == (7, "finished")


def test_reset_of_a_run_that_has_not_started_keeps_nothing():
    run = session(counting(), {"n": 0})
    assert run.reset().forks == ()


def test_a_failed_run_is_run_again_from_its_node():
    run = session(broken())
    run.run()
    run.run()
    assert path(run) == ["first", "middle error", "middle error"]
    assert run.back().status == "failed"
    assert run.back().status == "paused"


def test_the_samples_run():
    for name, answers in (("pipeline", None), ("refine", None), ("fanout", None), ("triage", ["no", "approve"])):
        run = Session(samples(name), answers=answers)
        run.run()
        assert run.status == "finished", name
        second = Session(samples(name), answers=answers)
        while second.step() is not None:
            pass
        assert (path(second), dict(second.board)) == (path(run), dict(run.board))


def test_a_recipe_can_be_run_by_many_sessions():
    recipe = load(counting())
    runs = [Session(recipe, {"n": n}) for n in (0, 1, 2)]
    for run in runs:
        run.run()
    assert [run.position for run in runs] == [7, 5, 3]


def test_a_condition_that_cannot_be_evaluated_yet_does_not_hold():
    run = session(counting(), {"n": 0})
    run.run(until=lambda board: board["end"] == 3)
    assert run.status == "finished"
    run.run_back(until=lambda board: board["gone"])
    assert run.position == 0


def over(run):
    """Step over to the end; return after which steps it stood."""
    results = []
    while run.step_over() is not None:
        results.append(run.position)
    return results


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


def test_step_over_completes_a_loop_with_all_iterations():
    run = session(looping(graph("x", "y"), times=3))
    assert over(run) == [run.position - 1, run.position]
    assert path(run)[-2:] == ["again leave", "done"]
    inside = session(looping(graph("x", "y"), times=3))
    inside.step(2)
    assert over(inside)[0] == 3
    inside.goto(2).step_out()
    assert path(inside)[-1] == "again leave"


def test_step_over_of_a_nested_composite_ends_when_it_is_left():
    run = nested()
    run.step(3)
    assert (run.step_over().node_id, run.current) == ("inner", "last")
    run.goto(4)
    assert (run.current, run.step_out().node_id, run.current) == ("in", "inner", "last")
    assert (run.step_out().node_id, run.current) == ("outer", "after")
    run.goto(1)
    assert (run.step_over().node_id, run.current) == ("outer", "after")


def test_step_over_before_the_leave_phase_leaves_the_composite():
    run = nested()
    run.step(5)
    assert (run.current, run.step_over().phase, run.current) == ("inner", "leave", "last")


def test_step_over_ends_when_an_error_leaves_the_composite():
    run = nested(does=lambda work: 1 / 0)
    run.step(3)
    assert (run.step_over().node_id, run.current) == ("outer", "rescue")
    for verb in ("step_over", "step_out"):
        run.goto(1)
        getattr(run, verb)()
        assert run.current == ("rescue" if verb == "step_over" else None)


def test_an_unhandled_failure_stops_step_over_and_step_out():
    run = session(graph("a", "b", a=lambda: 1 / 0))
    for verb in (run.step_over, run.step_out):
        assert (verb().status, run.status, run.current) == ("error", "failed", "a")


def test_step_over_completes_parallel_branches_together():
    run = session(fan("x", "y"))
    assert [run.step_over().node_id for _ in range(5)] == ["open", "x", "y", "meet", "after"]


def test_a_paused_call_stops_them_and_they_continue_with_it():
    run = session(looping(calling("look"), times=2), {"word": "rain"}, tools={"look": lambda word: word})
    run.breakpoints.add(call="tool")
    assert (run.step_over().node_id, run.status) == ("before", "in_flight")
    assert (run.step_out().node_id, run.status) == ("before", "in_flight")
    assert (run.step_out().phase, run.status) == ("leave", "paused")


def test_they_end_with_the_budget_and_report_it():
    run = session(looping(graph("x"), times=9), budget={"max_steps": 3})
    run.step_over()
    assert (run.status, run.trace.outcome["limit"]) == ("exhausted", "max_steps")
    assert run.step_over() is None


def test_listeners_of_the_end_are_notified():
    messages = []
    run = session(looping(graph("x"), times=2), hooks={"end": lambda one: messages.append(one.position)})
    run.step_over()
    run.step_out()
    assert messages == [run.position - 1, run.position]


def test_step_over_of_an_event_ends_after_all_deliveries():
    run = session_of("reactive")
    run.step()
    assert (run.step_over().step, run.position) == (2, 2)  # from the middle of it too


def test_a_listening_composite_is_part_of_the_delivery():
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
    assert make_frame_end_condition(run._parts.run, get_current_activation(run._parts.run)) is None
    run.step_out()
    assert run.status == "finished"


def test_current_is_the_next_node():
    run = session(counting(), {"n": 0})
    node_condition = make_node_condition(run._parts.run, "check")
    assert (node_condition.is_met(), run.step() is not None, node_condition.is_met()) == (False, True, True)
    assert node_condition.is_met_before is not None
    assert node_condition.is_met_before(get_current_activation(run._parts.run))


def test_a_breakpoint_at_the_until_position_counts_a_hit():
    run = session(counting(), {"n": 0})
    point = run.breakpoints.add("check")
    run.run("check")
    assert (run.position, point.hits, run.stopped_by) == (1, 1, point)
