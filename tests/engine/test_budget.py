from __future__ import annotations

from decimal import Decimal

import pytest

from agentnb.engine.budget import Budget
from agentnb.errors import ExecutionError


def test_what_is_given_takes_the_place_of_the_recipes_own():
    budget = Budget.of({"max_steps": 5, "max_cost_usd": Decimal("1.5")}, {"max_steps": 200, "max_frames": 3})
    assert (budget.max_steps, budget.max_frames, budget.max_cost_usd) == (5, 3, Decimal("1.5"))
    assert Budget.of({"max_steps": None}, {"max_steps": 200}).max_steps is None
    assert Budget.of(None, {}) == Budget()


def test_all_that_is_wrong_is_told_at_once():
    with pytest.raises(ExecutionError) as caught:
        Budget.of({"max_step": 3, "max_frames": -1, "max_seconds": "5", "max_events": False}, {})
    assert [problem.code for problem in caught.value.problems] == ["X201", "X202", "X202", "X202"]
    assert "did you mean 'max_steps'" in str(caught.value)


@pytest.mark.parametrize("value", [0, 5, 0.5, Decimal(1)])
def test_limits_are_numbers_from_zero_on(value):
    assert Budget.of({"max_seconds": value}, {}).max_seconds == value


@pytest.mark.parametrize("value", [float("nan"), Decimal("nan")])
def test_what_is_not_a_number_is_no_limit(value):
    with pytest.raises(ExecutionError, match="X202"):
        Budget.of({"max_cost_usd": value}, {})
