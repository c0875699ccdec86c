from __future__ import annotations

import asyncio
from dataclasses import asdict, fields
from decimal import Decimal

import networkx as nx
import pytest

from agentnb.clock import FrozenClock
from agentnb.engine.control.budget import Budget
from agentnb.errors import ExecutionError
from agentnb.recipe.model import Node, Region
from agentnb.session import Session
from agentnb.world.llm.base import LLMResponse, Usage
from tests.kinds.test_parallel import branching, function
from tests.session.small_sessions import asking, calling, counting, fan, graph, looping, path, session

LIMITS = [field.name for field in fields(Budget)]


def limited(made, budget, inputs=None, **options):
    run = session(made, inputs, budget=budget, **options)
    run.run()
    return run


def agents(*names):
    built_graph = nx.DiGraph()
    for name in names:
        built_graph.add_node(name, kind="agent")
    nx.add_path(built_graph, names)
    return built_graph


def ended(run):
    """Return after which step a run has ended, how, and at which limit."""
    assert run.error is None
    return run.position, run.status, (run.trace.outcome or {}).get("limit")


# ---------------------------------------------------------------------------------------------------------- max_steps


def test_max_steps_ends_a_run_as_exhausted_and_names_the_limit():
    run = limited(counting(), {"max_steps": 4}, {"n": 0})
    assert ended(run) == (4, "exhausted", "max_steps")
    assert run.trace.outcome == {"status": "exhausted", "steps": 4, "limit": "max_steps"}
    assert run.step() is None
    run.run()
    assert run.position == 4
    assert run.back().status == "paused"
    assert run.step() is not None


def test_a_natural_end_at_the_limit_is_finished():
    run = limited(counting(), {"max_steps": 7}, {"n": 0})
    assert (run.position, run.status) == (7, "finished")


def test_max_steps_of_zero_runs_nothing():
    run = limited(counting(), {"max_steps": 0}, {"n": 0})
    assert (run.position, run.status) == (0, "exhausted")


def test_limits_of_the_recipe_apply_and_can_be_changed_or_removed():
    built_graph = counting()
    built_graph.graph["limits"] = {"max_steps": 3}
    assert limited(built_graph, None, {"n": 0}).position == 3
    assert limited(built_graph, {"max_steps": 5}, {"n": 0}).position == 5
    assert limited(built_graph, {"max_steps": None}, {"n": 0}).status == "finished"


def test_a_composite_node_counts_once():
    run = limited(looping(graph("a"), times=2), {"max_steps": 4})
    assert (path(run), run.status) == (["again enter", "a", "again again", "a", "again leave", "done"], "finished")
    run = limited(looping(graph("a"), times=2), {"max_steps": 3})
    assert (path(run)[-2:], run.current, run.status) == (["a", "again leave"], "done", "exhausted")


def test_a_loop_that_ends_with_the_last_allowed_step_is_finished():
    built_graph = looping(graph("a"), times=2)
    built_graph.remove_node("done")
    run = limited(built_graph, {"max_steps": 3})
    assert (path(run)[-1], run.status) == ("again leave", "finished")


def test_a_failed_step_and_a_retry_count():
    def breaks():
        raise ValueError("no")

    run = session(graph("a", a=breaks), budget={"max_steps": 2})
    run.run()
    assert run.status == "failed"
    assert run.retry().status == "error"
    assert (run.position, run._parts.run.counted_steps) == (2, 2)
    assert (run.retry(), run.position, run.status, run.status.limit) == (None, 2, "failed", "max_steps")
    run.run()
    assert run.position == 2
    assert run.set_budget(max_steps=3).retry().step == 3


# ------------------------------------------------------------------------------------------------- what calls use


def test_max_llm_calls_ends_a_run():
    run = limited(agents("a", "b", "c"), {"max_llm_calls": 2}, llm=lambda request: "x")
    assert ended(run) == (2, "exhausted", "max_llm_calls")
    assert run.back().status == "paused"


def test_max_tool_calls_ends_a_run():
    run = limited(calling(), {"max_tool_calls": 1}, {"word": "rain"})
    assert ended(run) == (2, "exhausted", "max_tool_calls")


@pytest.mark.parametrize(("limit", "status", "made"), [(4, "finished", 3), (3, "exhausted", 3), (2, "exhausted", 2)])
def test_each_attempt_of_a_call_counts(limit, status, made):
    calls = []

    def look(word):
        calls.append(word)
        if len(calls) < 3:
            raise OSError

    run = limited(calling(look, attempts=3), {"max_tool_calls": limit}, {"word": "rain"})
    assert (run.status, len(calls)) == (status, made)


def test_max_cost_ends_a_run():
    price = LLMResponse("x", usage=Usage(10, 20, Decimal("0.25")))
    run = limited(agents("a", "b", "c"), {"max_cost_usd": 0.5}, llm=lambda request: price)
    assert ended(run) == (2, "exhausted", "max_cost_usd")
    calls = run.trace.frames.calls
    assert (calls["tokens_in"].tolist(), calls["tokens_out"].tolist()) == ([10, 10], [20, 20])


@pytest.mark.parametrize("price", [Decimal("0.1"), 0.1, "0.1"])
def test_money_is_added_up_without_an_error(price):
    answer = LLMResponse("x", usage=Usage(1, 1, price))
    run = limited(agents(*range(12)), {"max_cost_usd": 1}, llm=lambda request: answer)
    assert ended(run) == (10, "exhausted", "max_cost_usd")  # a sum of floats would come to 0.99...
    assert run.status.used["max_cost_usd"] == Decimal(1)


class Slow(FrozenClock):
    """Each time it is read a second has gone by."""

    def ns(self):
        self._ns += 1_000_000_000
        return self._ns


def test_max_seconds_counts_the_seconds_of_steps():
    run = limited(graph("a", "b", "c", "d"), {"max_seconds": 2}, clock=Slow())
    assert ended(run) == (2, "exhausted", "max_seconds")
    run.back()
    assert run.status == "paused"
    run.step()
    assert run.status == "exhausted"
    fork = run.fork(at=1)
    assert fork.status == "paused"


def test_the_time_of_people_is_not_counted():
    clock = FrozenClock()
    run = session(asking(), budget={"max_seconds": 5}, clock=clock)
    run.run()
    assert run.status == "waiting"
    clock._ns += 3600 * 10**9
    run.answer("yes")
    assert (run.status, run.status.used["max_seconds"]) == ("paused", 0)
    assert run.trace.steps[1].seconds == 0
    run.run()
    assert run.status == "finished"


def test_the_seconds_before_a_branch_are_those_of_its_steps():
    run = session(counting(), {"n": 0})
    run.run(max_steps=6)
    run.goto(4).edit({"n": 10})
    run.run(max_steps=3)
    for position in (7, 2, 4, 0, 5):
        run.goto(position)
        took = sum(step.seconds for step in run.trace.steps[:position])
        assert run.status.used["max_seconds"] == pytest.approx(took)


# ---------------------------------------------------------------------------------------------------------- max_frames


def deep(levels):
    """Return a loop in a loop in a loop ..., with a node inside the innermost."""
    built_graph = graph("a")
    for level in range(levels):
        around = nx.DiGraph()
        around.add_node(f"loop{level}", kind="loop", graph=built_graph, times=1)
        built_graph = around
    return built_graph


def test_max_frames_prevents_deeper_frames():
    run = limited(deep(3), {"max_frames": 2})
    assert ended(run) == (2, "exhausted", "max_frames")
    assert (run.current, path(run), len(run.stack)) == ("loop0", ["loop2 enter", "loop1 enter"], 3)
    assert run.step() is None
    assert run.set_budget(max_frames=3).status == "paused"
    run.run()
    assert (run.status, run.position) == ("finished", 7)


def test_a_node_that_opens_no_frame_is_allowed():
    inner = nx.DiGraph()
    inner.add_node("never", kind="loop", graph=graph("a"), **{"while": "false"})
    run = limited(looping(inner, times=1), {"max_frames": 1})
    assert (run.status, path(run)) == ("finished", ["again enter", "never", "again leave", "done"])


def test_a_branch_that_would_open_a_deeper_frame_ends_the_run_and_the_others_end_their_step():
    loop = Node("loop", "loop", bodies=("inside",), params={"times": 1})
    recipe = branching([function("a"), function("b")], [loop])
    recipe.nodes["inner"] = function("inner", scope="inside")
    recipe.regions["inside"] = Region("inside", ("inner",), owner="loop")
    run = Session(recipe, budget={"max_frames": 1})
    run.run()
    assert ended(run)[1:] == ("exhausted", "max_frames")
    assert "inner" not in path(run)
    assert "loop" in [next.node for next in run.frontier]
    run.set_budget(max_frames=2).run()
    assert (run.status, dict(run.board)) == ("finished", {"a": 1, "b": 1, "inner": 1, "done": 1})


# ---------------------------------------------------------------------------------------------------- another budget


@pytest.mark.parametrize("budget", [{"max_step": 3}, {"max_steps": -1}, {"max_steps": "3"}, {"max_steps": True}])
def test_a_wrong_budget_is_a_problem(budget):
    with pytest.raises(ExecutionError, match=r"X20[12]"):
        session(graph("a"), budget=budget)
    run = session(graph("a"), budget={"max_tool_calls": 3})
    with pytest.raises(ExecutionError, match=r"X20[12]"):
        run.set_budget(**budget)
    assert run._parts.state.limits.budget == Budget(max_tool_calls=3)


def test_a_changed_budget_is_an_intervention_and_keeps_other_limits():
    run = limited(counting(), {"max_steps": 4, "max_tokens": 9}, {"n": 0})
    run.set_budget(max_steps=6, max_cost_usd=0.5)
    interventions = run.trace.frames.interventions
    assert interventions[["action", "target", "old", "new"]].to_numpy().tolist() == [
        ["budget", "max_steps", 4, 6],
        ["budget", "max_cost_usd", None, Decimal("0.5")],
    ]
    run.run()
    assert ended(run) == (6, "exhausted", "max_steps")
    assert {name for name, value in asdict(run._parts.state.limits.budget).items() if value is not None} == {
        *("max_steps", "max_tokens", "max_cost_usd"),
    }


def test_a_changed_budget_in_the_past_keeps_the_later_steps():
    run = limited(counting(), {"max_steps": 4}, {"n": 0})
    run.goto(1).set_budget(max_steps=1)
    assert (run.status, len(run.trace), len(run.forks), len(run.trace.frames.interventions)) == ("exhausted", 4, 0, 0)


def test_a_fork_has_the_same_limits():
    run = limited(counting(), {"max_steps": 4}, {"n": 0})
    fork = run.fork(at=2)
    fork.run()
    assert (fork.position, fork.status) == (4, "exhausted")


@pytest.mark.parametrize("most", range(1, 9))
def test_concurrent_branches_take_exactly_the_allowed_steps(most):
    run = session(fan("a", "b", "c"), budget={"max_steps": most})
    asyncio.run(run.arun())
    assert (run.status, run.status.used["max_steps"]) == (("exhausted", most) if most < 6 else ("finished", 6))
