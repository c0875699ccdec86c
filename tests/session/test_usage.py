"""Limits at the effect door: no attempt goes out at one, and its step is given up as if it had not begun."""

from __future__ import annotations

import asyncio
import random
from decimal import Decimal

import networkx as nx
import pytest

from agentnb.clock import FrozenClock
from agentnb.engine.control.budget import Budget
from agentnb.load import load
from agentnb.recipe.model import Edge, Node, Recipe
from agentnb.session import Session, usage
from agentnb.session.limits import Limits
from agentnb.session.reopen import open_stored
from agentnb.world.llm.base import LLMError, LLMResponse, Usage
from tests.kinds.test_parallel import branching, function, human
from tests.session.gated_nodes import live
from tests.session.small_sessions import calling, path, session

PRICE = LLMResponse({"a": 1}, usage=Usage(100, 50, Decimal("0.25")))


class Model:
    """Counts what it is asked; the answer may take a turn of the loop, or be a failure."""

    def __init__(self, answer=PRICE, *, waits=False):
        self.answer, self.waits, self.asked = answer, waits, 0

    def __call__(self, request):
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.later() if self.waits else self.answer

    async def later(self):
        await asyncio.sleep(0)
        return self.answer


def sampling(samples=300):
    """Return a line whose middle node asks a model many times in one step."""
    solver = {"strategy": "ensemble", "n_samples": samples}
    plan = Node("plan", "generative", params={"goal": "g", "schema": {"type": "object"}, "solver": solver})
    nodes = {node.id: node for node in (function("before"), plan, function("after"))}
    return Recipe("sampling", "test", nodes, (Edge("before", "plan"), Edge("plan", "after")), ("before",))


def agent(name):
    return Node(name, "agent", params={"output": name})


def fan(number, *more):
    """Return a section whose branches each ask a model."""
    return branching(*([agent(f"b{each}")] for each in range(number)), *more)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(
    "budget", [{"max_llm_calls": 2}, {"max_tokens": 300}, {"max_tokens": 151}, {"max_cost_usd": Decimal("0.5")}]
)
def test_a_step_with_many_calls_stops_at_the_limit(budget, waits):
    model = Model(waits=waits)
    run = Session(sampling(), llm=model, budget=budget)
    run.run()
    assert (model.asked, run.status, run.current, path(run)) == (2, "exhausted", "plan", ["before"])
    assert run.trace.outcome == {"status": "exhausted", "steps": 1, "limit": next(iter(budget))}
    assert (dict(run.board), run.pending, run.error) == ({"before": 1}, (), None)
    run.run()
    assert (run.step(), model.asked, run.position) == (None, 2, 1)


@pytest.mark.parametrize("attempts", [51, 10**9])
def test_failed_attempts_stop_at_the_limit_without_a_failure(attempts):
    model = Model(ValueError("down"))
    graph = nx.DiGraph()
    graph.add_node("ask", kind="agent", attempts=attempts)
    run = session(graph, llm=model, budget={"max_llm_calls": 2})
    run.run()
    assert (model.asked, run.status, run.error, run.trace.outcome["limit"]) == (2, "exhausted", None, "max_llm_calls")


class Slow(FrozenClock):
    """Each time it is read a second has gone by; a pause takes no time of its own."""

    def ns(self):
        self._ns += 1_000_000_000
        return self._ns

    async def sleep(self, seconds):
        self._ns += int(seconds * 1e9)


def test_the_seconds_limit_is_checked_between_attempts():
    def look(word):
        raise OSError

    run = session(calling(look, attempts=10**9), {"word": "rain"}, budget={"max_seconds": 60}, clock=Slow())
    run.run()
    assert (run.status, run.current, run.trace.outcome["limit"]) == ("exhausted", "look", "max_seconds")


def test_no_delay_extends_beyond_the_limit():
    attempts = []

    def look(word):
        attempts.append(word)
        raise OSError

    graph = calling(look, attempts=3, backoff=1_000)
    run = session(graph, {"word": "rain"}, budget={"max_seconds": 900}, clock=Slow())
    run.run()
    assert (len(attempts), run.trace.outcome["limit"]) == (1, "max_seconds")


@pytest.mark.parametrize("waits", [False, True])
def test_branches_share_the_remaining_budget(waits):
    model = Model(waits=waits)
    run = Session(fan(40), llm=model, budget={"max_llm_calls": 3})
    run.run()
    assert (model.asked, run.status, run.position) == (3, "exhausted", 4)
    assert run.trace.outcome["limit"] == "max_llm_calls"
    run.run()
    assert model.asked == 3


def test_a_background_run_ends_at_the_limit_too():
    async def main():
        model = Model(waits=True)
        run = Session(sampling(), llm=model, budget={"max_llm_calls": 2})
        run.start()
        await run.wait()
        assert (model.asked, run.status) == (2, "exhausted")

    live(main)


def test_an_abandoned_step_runs_again_with_another_budget():
    model = Model()
    run = Session(sampling(5), llm=model, budget={"max_llm_calls": 2})
    run.run()
    run._parts.state.limits = Limits(Budget.of({"max_llm_calls": 5}, {}))
    run._parts.state.limits.apply(run._parts.run)
    assert run.status == "paused"
    run.run()
    # The first two are not repeated
    assert (model.asked, run.status, path(run)) == (
        5,
        "exhausted",
        ["before", "plan"],
    )
    assert len(run.trace.frames.calls) == 5


def test_going_back_or_an_edit_allows_a_restart():
    model = Model()
    run = Session(sampling(), llm=model, budget={"max_llm_calls": 2})
    run.run()
    assert run.back().status == "ready"
    run.run()
    assert (model.asked, run.status) == (4, "exhausted")
    run.edit({"x": 1})
    assert run.status == "exhausted"  # two are paid for: to ask a third one takes another budget
    run.set_budget(max_llm_calls=3)
    run.set_next("after")
    run.run()
    assert (run.status, path(run)) == ("finished", ["before", "after"])


def test_calls_of_committed_steps_count_and_those_of_abandoned_ones_do_not():
    run = session(line(4), llm=Model(), budget={"max_tokens": 450})
    run.run()
    assert (run.position, run.status) == (3, "exhausted")
    run.goto(1)
    assert run.status == "paused"
    run.edit({"x": 1})
    run.run()
    assert (run.position, run.status) == (3, "exhausted")
    for position in (2, 0, 3, 1, 3):
        run.goto(position)
        assert (run.status == "exhausted") == (position == 3)


def test_a_person_is_asked_even_if_the_budget_is_spent():
    run = Session(fan(1, [human("ask", "root")]), llm=Model(), budget={"max_llm_calls": 1})
    run.run()
    assert [question.node for question in run.pending] == ["ask"]
    run.answer("yes")
    assert run.status == "exhausted"


def test_each_call_is_counted_once(monkeypatch):
    added = []
    with_attempt = usage.AttemptUsage.with_attempt
    monkeypatch.setattr(
        usage.AttemptUsage,
        "with_attempt",
        lambda paid, kind, call=None, asked=0: (
            added.append(call and call.step) or with_attempt(paid, kind, call, asked)
        ),
    )
    run = session(line(30), llm=Model(), budget={"max_tokens": 10**9})
    run.run()
    assert (run.status, run.status.used["max_tokens"]) == ("finished", 30 * 150)
    assert [step for step in added if step] == list(range(1, 31))
    added.clear()
    run.goto(3).fork().run()
    assert set(added) <= {None, *range(4, 31)}  # what came before the fork is known


def line(number):
    """Return a line of nodes that each ask a model."""
    graph = nx.DiGraph()
    nx.add_path(graph, range(number))
    for name in graph:
        graph.nodes[name]["kind"] = "agent"
    return graph


# --------------------------------------------------------------------------------------------- what a failure has cost


def test_an_unusable_answer_counts():
    refused = LLMError("no use", is_retryable=True, usage=Usage(10, 5, Decimal("0.25")))
    graph = nx.DiGraph()
    graph.add_node("ask", kind="agent", attempts=9)
    model = Model(refused)
    run = session(graph, llm=model, budget={"max_cost_usd": 1})
    run.run()
    assert (model.asked, run.status, run.trace.outcome["limit"]) == (4, "exhausted", "max_cost_usd")


def test_costs_of_a_failed_step_count():
    refused = LLMError("no use", usage=Usage(10, 5, Decimal("0.25")))
    run = session(line(1), llm=Model(refused), budget={"max_tokens": 15})
    run.run()
    assert (run.status, run.status.limit) == ("failed", "max_tokens")
    assert dict(run.status.left) == {"max_tokens": 0}
    calls = run.trace.frames.calls
    assert calls[["tokens_in", "tokens_out", "cost_usd_exact"]].to_numpy().tolist() == [[10, 5, Decimal("0.25")]]
    assert (run.retry(), run.position) == (None, 1)


# ----------------------------------------------------------------------------------------------- a step given up


def test_an_abandoned_step_is_an_intervention_with_its_usage():
    run = Session(sampling(), llm=Model(), budget={"max_llm_calls": 2})
    run.run()
    intervention = run.trace.frames.interventions.iloc[-1]
    assert (intervention["step"], intervention["action"], intervention["target"], intervention["actor"]) == (
        1,
        "exhausted",
        "plan",
        "budget",
    )
    status = run.status
    assert (status.limit, status.used["max_llm_calls"], status.used["max_tokens"]) == ("max_llm_calls", 2, 300)
    assert (status.used["max_cost_usd"], dict(status.left)) == (Decimal("0.5"), {"max_llm_calls": 0})
    assert run.back().status.used["max_llm_calls"] == 0


@pytest.mark.parametrize("change", [{"max_llm_calls": 3}, {"max_llm_calls": None}])
def test_an_abandoned_step_restarts_only_with_another_limit(change):
    run = Session(sampling(3), llm=Model(), budget={"max_llm_calls": 2})
    run.run()
    assert run.set_budget(max_tool_calls=99).status == "exhausted"
    assert run.set_budget(**change).status == "paused"
    assert run.set_budget(max_llm_calls=2).status == "exhausted"
    run.set_budget(**change).run()
    assert path(run)[:2] == ["before", "plan"]


def test_paid_calls_of_an_interrupted_step_count_and_are_not_repeated():
    model = Model()

    def interrupted(request):
        model.asked += 1
        if model.asked == 2:
            raise KeyboardInterrupt
        return PRICE

    run = Session(sampling(3), llm=interrupted, budget={"max_llm_calls": 3})
    with pytest.raises(KeyboardInterrupt):
        run.run()
    assert (run.status, run.position) == ("paused", 1)
    run.run()
    assert (model.asked, path(run), run.status) == (3, ["before"], "exhausted")  # the two from before count
    assert run.trace.frames.calls[["step", "attempt"]].isna().sum().tolist() == [3, 0]
    run.set_budget(max_llm_calls=4).run()
    assert (model.asked, path(run), run.status) == (4, ["before", "plan"], "exhausted")
    calls = run.trace.frames.calls
    assert calls[["call", "attempt"]].values.tolist() == [[0, 1], [1, 1], [1, 2], [2, 1]]
    assert calls.error.str.startswith("CancelledError").fillna(value=False).tolist() == [False, True, False, False]


def test_a_branch_does_not_start_at_a_limit_while_another_waits():
    model = Model()
    recipe = branching([human("ask", "root")], [agent("b0"), function("b1"), agent("b2")])
    run = Session(recipe, llm=model, budget={"max_tokens": 150})
    run.run()
    assert (run.status, model.asked, path(run)) == ("waiting", 1, ["both enter", "b0"])
    for go in (run.run, run.step, run.run):
        go()
        assert (run.position, [question.node for question in run.pending]) == (2, ["ask"])
    run.set_budget(max_tokens=None).run()
    assert (run.status, path(run)) == ("waiting", ["both enter", "b0", "b1", "b2"])
    run.answer("yes")
    run.run()
    assert run.status == "finished"


def test_questions_cost_nothing():
    run = Session(fan(1, [human("ask", "root")]), llm=Model(), budget={"max_tokens": 10**6, "max_seconds": 10**6})
    run.run()
    assert [question.node for question in run.pending] == ["ask"]


# ------------------------------------------------------------------------------------------------ what a history says


def naive(run):
    """Add up what the steps up to here have used, row by row."""
    steps, calls = run.trace.steps[: run.position], run.trace.frames.calls
    calls = calls[calls["step"] <= run.position]
    total_cost = sum((cost for cost in calls["cost_usd_exact"] if isinstance(cost, Decimal)), Decimal(0))
    return {
        "max_steps": sum(step.phase in ("run", "enter") and step.status != "cancelled" for step in steps),
        "max_llm_calls": int((calls["kind"] == "llm").sum()),
        "max_tool_calls": int((calls["kind"] == "tool").sum()),
        "max_tokens": int(calls["tokens_in"].sum() + calls["tokens_out"].sum()),
        "max_cost_usd": total_cost,
        "max_events": len(run._parts.run.events()),
    }


@pytest.mark.parametrize("seed", range(8))
def test_usage_equals_the_rows_at_every_position(seed):
    chance = random.Random(seed)
    run = session(line(12), llm=Model(), budget={"max_tokens": 10**9})
    runs = [run]
    for _ in range(60):
        run = chance.choice(runs)
        match chance.randrange(6):
            case 0 | 1:
                run.step(chance.randrange(1, 4))
            case 2:
                run.goto(chance.randrange(len(run.trace) + 1))
            case 3:
                run.edit({"x": chance.random()})
            case 4:
                run.emit("seen")
            case 5 if len(runs) < 5:
                runs.append(run.fork(at=chance.randrange(run.position + 1)))
        used = run.status.used
        assert {name: used[name] for name in naive(run)} == naive(run)


def test_a_status_has_the_usage_of_its_moment():
    run = session(line(4), llm=Model())
    early = run.step() and run.status
    run.run()
    run.goto(2).edit({"x": 1}).run()
    assert (early, early.used["max_llm_calls"], early.used["max_steps"]) == ("paused", 1, 1)


# ------------------------------------------------------------------------------------------------------ opened again


def test_a_reopened_run_has_its_previous_usage(tmp_path):
    run = session(line(6), llm=Model(), budget={"max_cost_usd": 1}, store=tmp_path / "runs.db")
    run.run()
    used = dict(run.status.used)
    run.close()
    reopened = open_stored(tmp_path / "runs.db", recipe=load(line(6)), llm=Model())
    assert (reopened.status, reopened.status.limit, dict(reopened.status.used)) == ("exhausted", "max_cost_usd", used)
    assert dict(reopened.status.left) == {"max_cost_usd": Decimal(0)}
    reopened.set_budget(max_cost_usd=1.25).run()
    assert (reopened.position, reopened.status) == (5, "exhausted")


def test_an_abandoned_step_is_abandoned_after_reopening(tmp_path):
    model = Model()
    run = Session(sampling(), llm=model, budget={"max_llm_calls": 2}, store=tmp_path / "runs.db")
    run.run()
    run.close()
    reopened = open_stored(tmp_path / "runs.db", recipe=sampling(), llm=model)
    assert (reopened.status, reopened.status.limit, reopened.status.used["max_tokens"]) == (
        "exhausted",
        "max_llm_calls",
        300,
    )
    assert (reopened.step(), model.asked) == (None, 2)
    reopened.set_budget(max_llm_calls=5).run()
    assert (model.asked, reopened.status.limit, reopened.status.used["max_llm_calls"]) == (5, "max_llm_calls", 5)
