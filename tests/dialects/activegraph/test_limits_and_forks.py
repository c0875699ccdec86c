"""Limits inside a delivery and after `load` and `fork`, forks of forks, and the bounds of a quantum."""

from __future__ import annotations

from decimal import Decimal

import pytest

from agentnb.dialects.activegraph import Behavior, Runtime, Tool
from agentnb.errors import AgentNbError
from tests.dialects.activegraph.judge import same
from tests.dialects.activegraph.programs_of_models import Note, _thinking
from tests.dialects.activegraph.runtimes import runtime, types
from tests.dialects.activegraph.test_llm_delivery import thinking

ASKS = ("", None, (("c1", "look", {}),))


def test_a_limit_within_a_delivery_is_its_failure_and_all_paid_calls_are_in_the_log(tmp_path):
    tool = Tool("look", lambda args, ctx: {"n": 1})
    behaviors, options = thinking(ASKS, ASKS, ("done", None, ()), tools=[tool])
    team = runtime(*behaviors, budget={"max_tool_calls": 1}, persist_to=str(tmp_path / "a.db"), **options)
    team.run_goal("go")
    assert [each.reason for each in team.errors] == ["budget.tool_calls_exhausted"]
    event_types = [type_ for type_ in types(team) if type_.startswith(("llm.", "tool."))]
    assert event_types == ["llm.requested", "llm.responded", "tool.requested", "tool.responded"]
    assert (team.graph.events[-1].type, team.replay().ok) == ("runtime.budget_exhausted", True)
    team.session.close()
    reopened = Runtime.load(str(tmp_path / "a.db"), behaviors=behaviors, budget={"max_tool_calls": 9}, **options)
    reopened.run_until_idle()
    ids = [event.id for event in reopened.graph.events]
    assert (len(set(ids)), reopened.replay().ok) == (len(ids), True)


def test_load_takes_its_own_limits_and_a_fork_has_none(tmp_path):
    counted = Behavior("counts", lambda event, graph, ctx: graph.emit("n", {}), on=["goal.created"])
    team = runtime(counted, budget={"max_behavior_calls": 1}, persist_to=str(tmp_path / "a.db"))
    team.run_goal("go")
    fork = team.fork(team.graph.events[-1].id)
    assert (
        fork.budget.snapshot()["limits"]["max_behavior_calls"],
        fork.session._parts.state.limits.budget.max_behavior_calls,
    ) == (
        None,
        None,
    )
    team.session.close()
    for budget in (None, {"max_events": 50}):
        reopened = Runtime.load(str(tmp_path / "a.db"), team.run_id, behaviors=[counted], budget=budget)
        reopened.run_goal("more")
        assert (reopened.status().state, reopened.session._parts.state.limits.budget.max_behavior_calls) == (
            "idle",
            None,
        )
        reopened.session.close()


def test_a_fork_of_a_fork_finds_its_own_events():
    @lambda fn: Behavior("plan", fn, on=["goal.created"])
    def plan(event, graph, ctx):
        graph.emit("one", {"n": 1})
        graph.emit("two", {})

    work = Behavior("work", lambda event, graph, ctx: graph.emit("done", {"of": event.type}), on=["one", "two"])
    extra = Behavior("extra", lambda event, graph, ctx: [graph.emit("more", {}) for _ in range(4)], on=["one"])
    team = runtime(plan, work)
    team.run_goal("go")
    for event in list(team.graph.events):
        fork = team.fork(event.id, behaviors=[plan, extra, work])
        fork.run_until_idle()
        for inner in list(fork.graph.events):
            second_fork = fork.fork(inner.id)
            events = [each.to_dict() for each in second_fork.graph.events]
            assert inner.to_dict() in events


@pytest.mark.parametrize(("words", "code"), [
    ({"max_queue_events": 0}, "X521"), ({"max_queue_events": -1}, "X521"), ({"max_queue_events": True}, "X520"),
    ({"max_queue_events": 1.5}, "X520"), ({"max_seconds": 0}, "X521"), ({"max_seconds": float("nan")}, "X521"),
    ({"max_seconds": float("inf")}, "X521"), ({"max_seconds": "1"}, "X520"),
])  # fmt: skip
def test_the_bounds_of_a_quantum_are_checked(words, code):
    with pytest.raises(AgentNbError, match=code):
        runtime().run_quantum(**words)


def test_a_tool_that_fails_costs_nothing():
    def breaks(args, ctx):
        raise ValueError("it broke")

    tool = Tool("look", breaks, cost_per_call=Decimal("0.5"))
    behaviors, options = thinking(ASKS, tools=[tool])
    team = runtime(*behaviors, budget={"max_cost_usd": "9"}, **options)
    team.run_goal("go")
    assert team.status().budget.cost_used_usd == "0.002"


@pytest.mark.parametrize("budget", [{"max_cost_usd": "5"}, {"max_tool_calls": 1}])
def test_a_limit_within_a_delivery_behaves_as_in_the_package(budget):
    def program(p):
        _thinking(p, ("", None, (("c1", "look", {"q": "a"}),)), ("", None, (("c2", "look", {"q": "b"}),)),
                  ("{}", Note(text="x"), ()), budget=budget)  # fmt: skip

    same(program, besides=("message",))


def test_different_retries_are_not_a_divergence_in_a_strict_load(tmp_path):
    behaviors, options = thinking(ValueError("down"), ValueError("down"), llm_retry_max_attempts=2)
    team = runtime(*behaviors, persist_to=tmp_path / "run.db", **options)
    team.run_goal("go")
    assert team.errors[0].reason == "llm.network_error"
    team.session.close()
    for attempts in (1, 2, 5):
        loaded = Runtime.load(tmp_path / "run.db", behaviors=behaviors, replay_strict=True,
                              llm_provider=options["llm_provider"], llm_retry_max_attempts=attempts)  # fmt: skip
        loaded.session.close()


def test_a_fork_inside_the_deliveries_of_an_event_counts_and_stops_as_the_run_does_there():
    def telling(name, on):
        return Behavior(name, lambda event, graph, ctx: graph.emit(name, {}), on=[on])

    team = runtime(telling("one", "goal.created"), telling("two", "goal.created"), telling("three", "one"))
    team.run_goal("go")
    fork = team.fork(next(event.id for event in team.graph.events if event.type == "one"))
    team.session.goto(fork.session.position)
    status, expected = fork.status(), team.status()
    assert (status.queue_depth, status.budget.used) == (expected.queue_depth, expected.budget.used)
    requests = []
    fork.run_until(lambda graph: requests.append(types(fork)[-1]) or len(requests) > 1)
    assert requests == ["one", "two"]  # not between the two deliveries of one event
