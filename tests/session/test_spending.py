"""Limits at the effect door: no attempt goes out at one, and its step is given up as if it had not begun."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import networkx as nx
import pytest

from agentnb.clock import FrozenClock
from agentnb.engine.budget import Budget
from agentnb.recipe.model import Edge, Node, Recipe
from agentnb.session import Session, limits
from agentnb.session.limits import Limits
from agentnb.world.llm.base import LLMResponse, Usage
from tests.kinds.test_parallel import branching, function, human
from tests.session.gates import live
from tests.session.making import calling, path, session

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
def test_a_step_of_many_calls_makes_no_more_than_the_limit(budget, waits):
    model = Model(waits=waits)
    run = Session(sampling(), llm=model, budget=budget)
    run.run()
    assert (model.asked, run.status, run.current, path(run)) == (2, "exhausted", "plan", ["before"])
    assert run.trace.outcome == {"status": "exhausted", "steps": 1, "limit": next(iter(budget))}
    assert (dict(run.board), run.pending, run.error) == ({"before": 1}, (), None)
    run.run()
    assert (run.step(), model.asked, run.position) == (None, 2, 1)


@pytest.mark.parametrize("attempts", [51, 10**9])
def test_attempts_that_fail_end_at_the_limit_and_are_no_failure(attempts):
    model = Model(ValueError("down"))
    made = nx.DiGraph()
    made.add_node("ask", kind="agent", attempts=attempts)
    run = session(made, llm=model, budget={"max_llm_calls": 2})
    run.run()
    assert (model.asked, run.status, run.error, run.trace.outcome["limit"]) == (2, "exhausted", None, "max_llm_calls")


class Slow(FrozenClock):
    """Each time it is read a second has gone by; a pause takes no time of its own."""

    def ns(self):
        self._ns += 1_000_000_000
        return self._ns

    async def sleep(self, seconds):
        self._ns += int(seconds * 1e9)


def test_seconds_are_asked_for_between_attempts():
    def look(word):
        raise OSError

    run = session(calling(look, attempts=10**9), {"word": "rain"}, budget={"max_seconds": 60}, clock=Slow())
    run.run()
    assert (run.status, run.current, run.trace.outcome["limit"]) == ("exhausted", "look", "max_seconds")


def test_no_attempt_is_waited_for_until_after_the_limit():
    tried = []

    def look(word):
        tried.append(word)
        raise OSError

    made = calling(look, attempts=3, backoff=1_000)
    run = session(made, {"word": "rain"}, budget={"max_seconds": 900}, clock=Slow())
    run.run()
    assert (len(tried), run.trace.outcome["limit"]) == (1, "max_seconds")


@pytest.mark.parametrize("waits", [False, True])
def test_branches_share_what_is_left(waits):
    model = Model(waits=waits)
    run = Session(fan(40), llm=model, budget={"max_llm_calls": 3})
    run.run()
    assert (model.asked, run.status, run.position) == (3, "exhausted", 4)
    assert run.trace.outcome["limit"] == "max_llm_calls"
    run.run()
    assert model.asked == 3


def test_a_live_run_ends_there_too():
    async def main():
        model = Model(waits=True)
        run = Session(sampling(), llm=model, budget={"max_llm_calls": 2})
        run.start()
        await run.wait()
        assert (model.asked, run.status) == (2, "exhausted")

    live(main)


def test_what_was_given_up_runs_again_with_another_budget():
    model = Model()
    run = Session(sampling(5), llm=model, budget={"max_llm_calls": 2})
    run.run()
    run.limits = Limits(Budget.of({"max_llm_calls": 5}, {}))
    run.limits.apply(run.engine)
    assert run.status == "paused"
    run.run()
    assert (model.asked, run.status, path(run)) == (7, "exhausted", ["before", "plan"])
    assert len(run.trace.frames.calls) == 5


def test_going_back_or_changing_something_lets_it_begin_again():
    model = Model()
    run = Session(sampling(), llm=model, budget={"max_llm_calls": 2})
    run.run()
    assert run.back().status == "ready"
    run.run()
    assert (model.asked, run.status) == (4, "exhausted")
    run.edit({"x": 1})
    assert run.status == "paused"
    run.set_next("after")
    run.run()
    assert (run.status, path(run)) == ("finished", ["before", "after"])


def test_the_calls_of_committed_steps_count_and_those_of_another_way_do_not():
    made = nx.DiGraph()
    nx.add_path(made, "abcd")
    for name in made:
        made.nodes[name]["kind"] = "agent"
    run = session(made, llm=Model(), budget={"max_tokens": 450})
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


def test_a_person_is_asked_whatever_is_spent():
    run = Session(fan(1, [human("ask", "root")]), llm=Model(), budget={"max_llm_calls": 1})
    run.run()
    assert [asked.node for asked in run.pending] == ["ask"]
    run.answer("yes")
    assert run.status == "exhausted"


def test_each_call_is_added_up_once_however_many_steps_follow(monkeypatch):
    added = []
    paid = limits._Used.paid
    monkeypatch.setattr(limits._Used, "paid", lambda used, call: added.append(call.step) or paid(used, call))
    made = nx.DiGraph()
    nx.add_path(made, range(30))
    for name in made:
        made.nodes[name]["kind"] = "agent"
    run = session(made, llm=Model(), budget={"max_tokens": 10**9})
    run.run()
    assert run.status == "finished"
    assert added == list(range(1, 30))  # after the last one nothing is asked
