from __future__ import annotations

from decimal import Decimal

import pytest

from agentnb.engine.control.budget import Budget
from agentnb.errors import ExecutionError


def test_a_given_budget_replaces_that_of_the_recipe():
    budget = Budget.of({"max_steps": 5, "max_cost_usd": Decimal("1.5")}, {"max_steps": 200, "max_frames": 3})
    assert (budget.max_steps, budget.max_frames, budget.max_cost_usd) == (5, 3, Decimal("1.5"))
    assert Budget.of({"max_steps": None}, {"max_steps": 200}).max_steps is None
    assert Budget.of(None, {}) == Budget()


def test_all_errors_are_reported_at_once():
    with pytest.raises(ExecutionError) as caught:
        Budget.of({"max_step": 3, "max_frames": -1, "max_seconds": "5", "max_events": False}, {})
    assert [problem.code for problem in caught.value.problems] == ["X201", "X202", "X202", "X202"]
    assert "did you mean 'max_steps'" in str(caught.value)


@pytest.mark.parametrize("value", [0, 5, 0.5, Decimal(1)])
def test_limits_are_non_negative_numbers(value):
    assert Budget.of({"max_seconds": value}, {}).max_seconds == value


@pytest.mark.parametrize("value", [float("nan"), Decimal("nan")])
def test_a_value_that_is_not_a_number_is_not_a_limit(value):
    with pytest.raises(ExecutionError, match="X202"):
        Budget.of({"max_cost_usd": value}, {})


@pytest.mark.parametrize("value", [2.5, Decimal("0.1"), 1e-9])
def test_limits_of_counts_are_integers(value):
    with pytest.raises(ExecutionError) as caught:
        Budget.of({"max_steps": value, "max_depth": value, "max_seconds": value, "max_cost_usd": value}, {})
    assert [(problem.code, problem.where) for problem in caught.value.problems] == [
        ("X203", "budget, max_steps"),
        ("X203", "budget, max_depth"),
    ]
    assert Budget.of({"max_steps": 3.0}, {}) == Budget(max_steps=3)


@pytest.mark.parametrize("value", [float("inf"), Decimal("inf"), None])
def test_infinity_means_no_limit(value):
    assert Budget.of({"max_steps": value, "max_seconds": value, "max_cost_usd": value}, {"max_steps": 5}) == Budget()


def test_money_is_never_a_float():
    budget = Budget.of({"max_cost_usd": 0.1}, {})
    assert isinstance(budget.max_cost_usd, Decimal)
    assert budget.max_cost_usd == Decimal("0.1")


@pytest.mark.parametrize("given", [["max_steps"], 5, "max_steps"])
def test_a_budget_is_a_mapping(given):
    with pytest.raises(ExecutionError, match="X204"):
        Budget.of(given, {})


def test_a_fractional_limit_is_rejected_with_the_nearest_integers():
    with pytest.raises(ExecutionError) as caught:
        Budget.of({"max_steps": 2.5}, {})
    assert caught.value.problems[0].do == "pass 2 or 3"
