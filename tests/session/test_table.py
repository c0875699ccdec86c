"""A session's verbs that move it do what they say in each of the five shapes; see test_table_acts for the others."""

from __future__ import annotations

import asyncio

import pytest

from agentnb.errors import ExecutionError
from tests.engine.graph_shapes import SHAPES, board, shape_of
from tests.session.gated_nodes import live
from tests.session.shape_sessions import ENDS, session_of, went

UNTIL_NODE = {
    "diamond": ("fix", 3), "cycle": ("done", 5), "branches": ("rescue", 6), "nested": ("look", 3),
    "reactive": ("count", 1),
}  # fmt: skip
UNTIL_HOLDS = {
    "diamond": ("b", 2, 5), "cycle": ("n", 3, 4), "branches": ("rescued", True, 7), "nested": ("out", "SAY YES", 3),
    "reactive": ("count", 2, 4),
}  # fmt: skip
OVER = {
    "diamond": [1, 2, 3, 4, 5, 6, 7, 8, 9],
    "cycle": [1, 2, 3, 4, 5, 6],
    "branches": [6, 7],
    "nested": [1, 5, 6],
    "reactive": [2, 4, 5, 6],
}
AROUND = {"branches": "both", "nested": "inside"}  # what opened the frame of the third step; elsewhere it is the root's
INNER = {
    "nested": ["before llm call 'model' of 'think'", "after llm call 'model' of 'think'"],
    "reactive": ["at event evt_003 'greeting.done' of 'greet'", "at event evt_004 'greeting.done' of 'greet'"],
}


@pytest.fixture(params=SHAPES)
def name(request):
    return request.param


def ran(name):
    """The steps of a run; of branches, they are others than when it is stepped."""
    return shape_of(name).ran or shape_of(name).steps


def by_hand(name):
    """The nodes of the steps that are made one by one; what a failure cancels beside it is not a step to be made."""
    return [step.split()[0] for step in shape_of(name).steps if "cancelled" not in step]


# -- step, back, goto, run, run_back -----------------------------------------------------------------------------------


def test_step_makes_one_step_and_none_at_the_end(name):
    session = session_of(name)
    for node in by_hand(name):
        assert session.current == node
        step = session.step()
        assert step == session.trace.steps[session.position - 1]
        assert step.node_id == node or step.status == "cancelled"
    assert (session.step(), session.status, session.current, session.error) == (None, ENDS[name], None, None)
    assert (went(session), board(session._parts.run)) == (shape_of(name).steps, shape_of(name).end)


def test_step_makes_several_and_returns_the_last(name):
    session = session_of(name)
    assert (session.step(2).step, went(session)) == (2, shape_of(name).steps[:2])
    assert session.step(99).step == len(shape_of(name).steps)
    assert session.step(99) is None


def test_back_and_goto_stop_anywhere_and_nothing_is_lost(name):
    session = session_of(name)
    seen = [board(session._parts.run)]
    while session.step() is not None:
        while len(seen) < session.position:  # two rows at once: a branch was cancelled
            seen.append(None)
        seen.append(board(session._parts.run))
    end = len(seen) - 1
    for k in (*reversed(range(end)), end, 1, 0, 2):
        assert session.goto(k) is session
        assert (session.position, len(session.trace)) == (k, end)
        assert seen[k] is None or board(session._parts.run) == seen[k]
    assert session.goto(end).back(2).position == end - 2
    assert session.back().position == end - 3
    session.goto(2).step(99)
    assert (went(session), len(session.forks)) == (shape_of(name).steps, 1)
    assert session.forks[0].position == end
    with pytest.raises(ExecutionError, match="X111"):
        session.goto(end + 1)


def test_run_ends_at_the_end_of_the_recipe(name):
    session = session_of(name, runs=True)
    assert session.run() is session.trace
    assert (session.status, went(session), board(session._parts.run)) == (
        ENDS[name],
        ran(name),
        shape_of(name).end,
    )
    session.run()
    assert len(session.trace) == len(ran(name))


@pytest.mark.parametrize("form", ["node", "number", "text", "logic", "callable"])
def test_run_stops_at_until(name, form):
    key, value, holds = UNTIL_HOLDS[name]
    until, position = {
        "node": UNTIL_NODE[name],
        "number": (2, 2),
        "text": (f"{key} == {value!r}", holds),
        "logic": ({"==": [{"var": key}, value]}, holds),
        "callable": (lambda seen: seen.get(key) == value, holds),
    }[form]
    session = session_of(name, runs=True)
    session.run(until)
    assert session.position == position
    session.run()
    assert (session.status, went(session)) == (ENDS[name], ran(name))


def test_run_stops_after_max_steps(name):
    session = session_of(name)  # branches that wait for one another do not fit into so few steps
    for position in (2, 4):
        session.run(max_steps=2)
        assert (session.position, session.status) == (position, "paused")
    session.run(max_steps=99)
    assert session.status == ENDS[name]


def test_run_back_stops_at_the_same_positions(name):
    node, at = UNTIL_NODE[name]
    key, value, _ = UNTIL_HOLDS[name]
    session = session_of(name, runs=True)
    session.run()
    end = session.position
    nodes = [session.goto(k).current for k in range(end)]
    held = [k for k in range(end) if session.goto(k).board.get(key) == value]
    places = {
        "number": (at - 1, at - 1),
        "beyond": (end, end),
        "node": (node, max(k for k in range(end) if nodes[k] == node)),
        "logic": ({"==": [{"var": key}, value]}, max(held, default=0)),
        "start": (None, 0),
    }
    for until, position in places.values():
        assert session.goto(end).run_back(until) is session.trace
        assert session.position == position
    point = session.goto(end).breakpoints.add(node)
    session.run_back()
    assert (session.position, session.stopped_by, point.hits) == (places["node"][1], point, 0)


# -- over, out, into ---------------------------------------------------------------------------------------------------


def test_step_over_stops_after_the_node(name):
    session, results = session_of(name, runs=True), []
    while (last := session.step_over()) is not None:
        assert last.step == session.position
        results.append(session.position)
    assert (results, session.status, board(session._parts.run)) == (OVER[name], ENDS[name], shape_of(name).end)


def test_step_over_stops_at_a_breakpoint_as_run_does(name):
    node, at = UNTIL_NODE[name]
    session = session_of(name, runs=True)
    point = session.breakpoints.add(node)
    while session.position < at:
        session.step_over()
    assert (session.position, session.current, session.stopped_by) == (at, node, point)


def test_step_out_stops_after_the_frame(name):
    session = session_of(name)
    session.step(2)
    last = session.step_out()
    if name in AROUND:
        assert (last.node_id, last.phase, len(session.stack)) == (AROUND[name], "leave", 1)
        last = session.step_out()
    assert (last.step, session.status, session.step_out()) == (session.position, ENDS[name], None)
    assert board(session._parts.run) == shape_of(name).end


def test_step_into_stops_inside_each_node_and_then_completes_it(name):
    session, inner, results = session_of(name), [], []
    while (step := session.step_into()) is not None or session.status == "in_flight":
        if step is None:
            inner.append(session.held_at)
            assert session.held_at in repr(session)
        else:
            results.append(step)
    assert (inner, session.held_at, session.status) == (INNER.get(name, []), "", ENDS[name])
    assert (len(results), went(session), board(session._parts.run)) == (
        len(by_hand(name)), shape_of(name).steps, shape_of(name).end,
    )  # fmt: skip


@pytest.mark.parametrize("verb", ["back", "goto", "stop", "reset"])
def test_moving_abandons_a_held_node(name, verb):
    session = session_of(name)
    while not session.held_at and session.step_into() is not None:
        pass
    held = bool(session.held_at)
    assert held is (name in INNER)
    position = session.position
    getattr(session, verb)(*([position] if verb == "goto" else []))
    assert (session.held_at, session.pending) == ("", ())
    assert session.position == {"back": max(position - 1, 0), "reset": 0}.get(verb, position)
    if held and verb != "reset":
        assert "cancelled" in session.trace.frames.interventions["action"].tolist()
    session.step(99)
    assert verb == "reset" or board(session._parts.run) == shape_of(name).end


# -- async, live -------------------------------------------------------------------------------------------------------


def test_astep_and_arun_give_the_same_results(name):
    session, other = session_of(name), session_of(name, runs=True)

    async def main():
        while (step := await session.astep()) is not None:
            assert step.step == session.position
        assert await other.arun(2) is other.trace
        assert other.position == 2
        await other.arun()

    asyncio.run(main())
    assert (went(session), went(other)) == (shape_of(name).steps, ran(name))
    assert board(session._parts.run) == board(other._parts.run) == shape_of(name).end


def test_start_wait_and_pause_work(name):
    session = session_of(name, runs=True)
    verbs = ("step", "run", "fork", "step_over", "step_out", "step_into", "retry", "skip")

    async def main():
        assert session.start() is session
        assert session.status == "running"
        for verb in verbs:
            with pytest.raises(ExecutionError, match="X112"):
                getattr(session, verb)()
        assert session.pause().status == "pausing"
        assert await session.wait() is session.trace
        assert (session.status, session.position) == ("ready", 0)
        await session.start().wait()
        assert (session.status, went(session)) == (ENDS[name], ran(name))

    live(main)


def test_start_needs_an_event_loop(name):
    with pytest.raises(ExecutionError, match="X113"):
        session_of(name).start()


def test_stop_ends_a_background_run_at_once(name):
    session = session_of(name, runs=True)

    async def main():
        session.start().stop()
        await session.wait()
        assert (session.status, session.position) == ("ready", 0)

    live(main)
    session.run()
    assert went(session) == ran(name)


def test_reset_starts_again_and_keeps_the_run(name):
    session = session_of(name, runs=True)
    session.run()
    end = session.position
    assert session.reset() is session
    assert (session.position, [fork.position for fork in session.forks]) == (0, [end])
    if name == "reactive":  # what people have emitted is no input
        assert session.status == "idle"
    else:
        assert (session.status, session.current) == ("ready", shape_of(name).steps[0].split()[0])
