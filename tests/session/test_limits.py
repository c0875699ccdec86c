from __future__ import annotations

from decimal import Decimal

import networkx as nx
import pytest

from agentnb.clock import FrozenClock
from agentnb.errors import ExecutionError
from agentnb.world.llm.base import LLMResponse, Usage
from tests.session.making import calling, counting, graph, looping, path, session


def limited(made, budget, inputs=None, **options):
    run = session(made, inputs, budget=budget, **options)
    run.run()
    return run


def agents(*names):
    made = nx.DiGraph()
    for name in names:
        made.add_node(name, kind="agent")
    nx.add_path(made, names)
    return made


def test_max_steps_ends_a_run_as_exhausted_and_says_which():
    run = limited(counting(), {"max_steps": 4}, {"n": 0})
    assert (run.position, run.status) == (4, "exhausted")
    assert run.trace.outcome == {"status": "exhausted", "steps": 4, "limit": "max_steps"}
    assert run.step() is None
    run.run()
    assert run.position == 4
    assert run.back().status == "paused"
    assert run.step() is not None


def test_a_natural_end_at_the_limit_is_finished():
    run = limited(counting(), {"max_steps": 7}, {"n": 0})
    assert (run.position, run.status) == (7, "finished")


def test_no_step_at_all():
    run = limited(counting(), {"max_steps": 0}, {"n": 0})
    assert (run.position, run.status) == (0, "exhausted")


def test_the_recipes_own_limits_hold_and_can_be_changed_or_lifted():
    made = counting()
    made.graph["limits"] = {"max_steps": 3}
    assert limited(made, None, {"n": 0}).position == 3
    assert limited(made, {"max_steps": 5}, {"n": 0}).position == 5
    assert limited(made, {"max_steps": None}, {"n": 0}).status == "finished"


def test_a_composite_is_counted_as_it_enters_and_not_again():
    run = limited(looping(graph("a"), times=2), {"max_steps": 4})
    assert (path(run), run.status) == (["again enter", "a", "again again", "a", "again leave", "done"], "finished")
    run = limited(looping(graph("a"), times=2), {"max_steps": 3})
    assert (path(run)[-2:], run.current, run.status) == (["a", "again leave"], "done", "exhausted")


def test_a_loop_that_ends_with_the_last_step_that_may_be_taken_has_ended():
    made = looping(graph("a"), times=2)
    made.remove_node("done")
    run = limited(made, {"max_steps": 3})
    assert (path(run)[-1], run.status) == ("again leave", "finished")


def test_a_failed_step_counts_and_a_retry_too():
    def breaks():
        raise ValueError("no")

    run = session(graph("a", a=breaks), budget={"max_steps": 2})
    run.run()
    assert run.status == "failed"
    assert run.retry().status == "error"
    assert (run.position, run.engine.used) == (2, 2)


def test_max_llm_calls():
    run = limited(agents("a", "b", "c"), {"max_llm_calls": 2}, llm=lambda request: "x")
    assert (run.position, run.status, run.trace.outcome["limit"]) == (2, "exhausted", "max_llm_calls")
    assert run.back().status == "paused"


def test_max_tool_calls():
    run = limited(calling(), {"max_tool_calls": 1}, {"word": "rain"})
    assert (run.position, run.trace.outcome["limit"]) == (2, "max_tool_calls")


@pytest.mark.parametrize(("limit", "status", "made"), [(4, "finished", 3), (3, "exhausted", 3), (2, "exhausted", 2)])
def test_each_attempt_of_a_call_counts(limit, status, made):
    calls = []

    def look(word):
        calls.append(word)
        if len(calls) < 3:
            raise OSError

    run = limited(calling(look, attempts=3), {"max_tool_calls": limit}, {"word": "rain"})
    assert (run.status, len(calls)) == (status, made)


def test_max_cost():
    price = LLMResponse("x", usage=Usage(10, 20, Decimal("0.25")))
    run = limited(agents("a", "b", "c"), {"max_cost_usd": 0.5}, llm=lambda request: price)
    assert (run.position, run.trace.outcome["limit"]) == (2, "max_cost_usd")
    calls = run.trace.frames.calls
    assert (calls["tokens_in"].tolist(), calls["tokens_out"].tolist()) == ([10, 10], [20, 20])


class Slow(FrozenClock):
    """Each time it is read a second has gone by."""

    def ns(self):
        self._ns += 1_000_000_000
        return self._ns


def test_max_seconds_are_those_of_the_steps():
    run = limited(graph("a", "b", "c", "d"), {"max_seconds": 2}, clock=Slow())
    assert (run.position, run.trace.outcome["limit"]) == (2, "max_seconds")
    run.back()
    assert run.status == "paused"
    run.step()
    assert run.status == "exhausted"
    fork = run.fork(at=1)
    assert fork.status == "paused"


def test_max_events():
    run = session(graph("a", "b", "c"), budget={"max_events": 2})
    run.emit("x")
    assert run.status == "ready"
    run.emit("y")
    assert run.status == "exhausted"


def test_max_frames():
    inner = nx.DiGraph()
    inner.add_node("in", kind="loop", graph=graph("a"), times=1)
    run = limited(looping(inner, times=1), {"max_frames": 1})
    assert (run.status, run.current, run.error.code) == ("failed", "in", "X103")


@pytest.mark.parametrize("budget", [{"max_step": 3}, {"max_steps": -1}, {"max_steps": "3"}, {"max_steps": True}])
def test_a_wrong_budget_is_a_problem(budget):
    with pytest.raises(ExecutionError, match=r"X20[12]"):
        session(graph("a"), budget=budget)


def test_a_fork_has_the_limits_too():
    run = limited(counting(), {"max_steps": 4}, {"n": 0})
    fork = run.fork(at=2)
    fork.run()
    assert (fork.position, fork.status) == (4, "exhausted")


def test_the_seconds_of_steps_before_a_branch_are_those_of_the_steps_that_led_there():
    run = session(counting(), {"n": 0})
    run.run(max_steps=6)
    run.goto(4).edit({"n": 10})
    run.run(max_steps=3)
    for position in (7, 2, 4, 0, 5):
        run.goto(position)
        took = sum(step.seconds for step in run.trace.steps[:position])
        assert run.limits.seconds(run.engine) == pytest.approx(took)
