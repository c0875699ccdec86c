from __future__ import annotations

from decimal import Decimal

import pytest

from agentnb.dialects.activegraph import Budget
from agentnb.dialects.activegraph.errors import InvalidRuntimeConfiguration
from agentnb.dialects.activegraph.parts.budgets import parse_limits, parse_own_limits
from agentnb.errors import AgentNbError
from tests.dialects.activegraph.judge import assert_same_signatures
from tests.dialects.activegraph.runtimes import on, runtime, thinking


def test_an_unknown_limit_is_rejected_with_a_suggestion():
    with pytest.raises(InvalidRuntimeConfiguration, match="X511") as raised:
        Budget({"max_llm_call": 1})
    assert "max_llm_calls" in raised.value.problems[0].do


@pytest.mark.parametrize("limits", [{"max_cost_usd": "much"}, {"max_patches": -1}, {"max_depth": 1.5}])
def test_a_value_that_limits_nothing_is_rejected(limits):
    with pytest.raises(AgentNbError, match=r"X20[23]"):
        runtime(budget=limits)


def test_dollars_are_decimals_and_an_invalid_value_is_not_a_limit():
    assert parse_limits({"max_cost_usd": 0.1, "max_events": None, "max_patches": 2}) == {
        "max_cost_usd": Decimal("0.1"),
        "max_patches": 2,
    }
    assert parse_limits(Budget({"max_events": 3})) == {"max_events": 3}
    assert parse_own_limits("a", None) is None
    assert parse_own_limits("a", {"max_cost_usd": "0.30"}) == {"max_cost_usd": Decimal("0.30")}


def test_it_reports_what_is_left():
    @on("go")
    def patch(event, graph, ctx):
        graph.patch_object("book#1", {"n": 1})

    team = runtime(patch, budget={"max_patches": 2, "max_behavior_calls": 9})
    team.graph.add_object("book", {})
    assert (team.budget.remaining(), team.budget.exhausted_by()) == (True, None)
    assert not team.budget.has_cost_limit()
    assert team.budget.cost_remaining(10**6)
    for _ in range(3):
        team.session.emit("go", {})
    team.run_until_idle()
    assert (team.budget.remaining(), team.budget.exhausted_by()) == (False, "max_patches")
    assert team.budget.snapshot()["used"]["max_patches"] == 2.0
    assert team.status().state == "exhausted"
    assert str(team.budget).startswith("Budget({'max_patches': 2")


def test_a_budget_reports_what_was_used():
    behaviors, options = thinking(("one", None, ()))
    team = runtime(*behaviors, budget={"max_cost_usd": "1.0"}, **options)
    team.run_goal("go")
    assert team.budget.used["max_llm_calls"] == 1
    assert (team.budget.cost_used, team.budget.cost_limit) == (Decimal("0.002"), Decimal("1.0"))
    assert (Budget().cost_used, Budget().cost_limit) == (Decimal(0), None)


def test_signatures_are_those_of_the_package():
    assert_same_signatures(
        "Budget",
        "Budget.cost_remaining",
        "Budget.cost_remaining_amount",
        "Budget.has_cost_limit",
        "Budget.exhausted_by",
        "Budget.snapshot",
    )
