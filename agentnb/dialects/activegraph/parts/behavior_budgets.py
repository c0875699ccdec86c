"""Budgets of single behaviors: the used amounts from the log, and the behaviors whose budget is used up.

Amounts are only counted if a behavior has a budget; other runs have no overhead.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from math import inf
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from agentnb.dialects.activegraph.parts.ledger import STARTED, get_ledger
from agentnb.dialects.activegraph.parts.matching import Matcher

if TYPE_CHECKING:
    from agentnb.engine.core.history import Event, History
    from agentnb.engine.core.run import Run

Amount = int | Decimal
CALLS: Final = "max_behavior_calls"
_REQUESTS: Final = {"llm.requested": "max_llm_calls", "tool.requested": "max_tool_calls"}
_ANSWERS: Final = frozenset({"llm.responded", "tool.responded"})


class _Sum:
    """A growing amount: its total at each position where it increased."""

    def __init__(self) -> None:
        self.at: list[int] = []
        self.amounts: list[Amount] = []

    def add(self, at: int, amount: Amount) -> None:
        """Add an amount at a position."""
        self.at.append(at)
        self.amounts.append((self.amounts[-1] if self.amounts else 0) + amount)

    def up_to(self, position: int) -> Amount:
        """Return the total at a position."""
        end = bisect_right(self.at, position)
        return self.amounts[end - 1] if end else 0


class _Account:
    """The amounts that each behavior has used, from the events of one history. Each event is read only once."""

    def __init__(self) -> None:
        self.read = 0
        self.sums: dict[tuple[str, str], _Sum] = {}

    def of(self, history: History) -> _Account:
        """Read the events added since the last call."""
        for event in history.events[self.read :]:
            for name, limit, amount in _uses(event):
                self.sums.setdefault((name, limit), _Sum()).add(event.at, amount)
            self.read += 1
        return self

    def measure_usage(self, name: str, limit: str, position: int) -> Amount:
        """Return how much a behavior had used at a position."""
        total = self.sums.get((name, limit))
        return 0 if total is None else total.up_to(position)


_accounts: Final[WeakKeyDictionary[History, _Account]] = WeakKeyDictionary()


def _uses(event: Event) -> Iterator[tuple[str, str, Amount]]:
    """Yield the amounts of a behavior's budget that an event used; cached answers cost nothing."""
    payload = event.payload
    if event.type == "patch.applied":
        yield event.actor, "max_patches", 1
    elif event.type in STARTED:
        yield str(payload["behavior"]), CALLS, 1
    elif event.type in _REQUESTS and not payload.get("cache_hit"):
        yield str(payload["behavior"]), _REQUESTS[event.type], 1
    elif event.type in _ANSWERS and not payload.get("cache_hit"):
        yield str(payload["behavior"]), "max_cost_usd", Decimal(str(payload.get("cost_usd") or 0))


def measure_behavior_usage(run: Run, name: str, limits: Mapping[str, Any]) -> dict[str, Amount]:
    """Return the used amount of each limit of a behavior, up to and including the current step."""
    parts = [(_accounts.setdefault(history, _Account()).of(history), end) for history, end in run.parts()]
    amounts: dict[str, Amount] = {limit: sum((account.measure_usage(name, limit, end) for account, end in parts), 0)
                                for limit in limits}  # fmt: skip
    counts = get_ledger(run).sync().work
    for event in () if counts is None else counts.emitted:
        for behavior, limit, amount in _uses(event):
            if behavior == name and limit in amounts:
                amounts[limit] += amount
    return amounts


def find_used_limit(run: Run, behavior: Any) -> str | None:
    """Return the first limit of a behavior that is used up; None if there is none."""
    if not behavior.budget:
        return None
    used = measure_behavior_usage(run, behavior.name, behavior.budget)
    return next((limit for limit, most in behavior.budget.items() if used[limit] >= most), None)


class BudgetedMatcher(Matcher):
    """A Matcher of behaviors with budgets: one whose budget is used up is no longer triggered."""

    def list_triggered(self, run: Run, event: Event) -> list[str] | None:
        """Return the names of the behaviors that an event will trigger.

        None if this depends on the future, which includes a budget that may be used up by then.
        """
        if any(each.budget for each in self.listening(event.type)):
            return None
        return super().list_triggered(run, event)

    def list_deliveries(self, run: Run, event: Event) -> list[tuple[str, int]]:
        """Return the deliveries that an event triggers, as far as the budgets allow."""
        deliveries, allows = super().list_deliveries(run, event), self._make_check(run)
        return [delivery for delivery in deliveries if allows(delivery[0])]

    def list_delayed(self, run: Run, event: Event) -> list[tuple[str, int, int]]:
        """Return the delayed deliveries that are due, as far as the budgets allow."""
        delayed, allows = super().list_delayed(run, event), self._make_check(run)
        return [delivery for delivery in delayed if allows(delivery[0])]

    def _make_check(self, run: Run) -> Callable[[str], bool]:
        """Return a function that tells, for one delivery of an event after another, if the behavior's budget allows it.

        Its argument is the behavior's name.
        """
        left: dict[str, float] = {}  # how often each behavior may still be called

        def allows(name: str) -> bool:
            behavior = self.behaviors[name]
            if not behavior.budget:
                return True
            if name not in left:
                limit = behavior.budget.get(CALLS, inf)
                used = measure_behavior_usage(run, name, {CALLS: limit})[CALLS]
                left[name] = 0 if find_used_limit(run, behavior) else limit - used
            left[name] -= 1
            return left[name] >= 0

        return allows

    def explain_refusal(self, run: Run, name: str, event: Event) -> Iterator[str]:
        """Yield each clause that does not match, including the budget."""
        yield from super().explain_refusal(run, name, event)
        limit = find_used_limit(run, self.behaviors[name])
        if limit is not None:
            yield f"budget: its {limit}={self.behaviors[name].budget[limit]} is used up"


def find_exhausted(run: Run, behaviors: Mapping[str, Any]) -> dict[str, str]:
    """Return the behaviors whose budget is used up, with the limit that each has reached."""
    limits = ((name, find_used_limit(run, each)) for name, each in behaviors.items())
    return {name: limit for name, limit in limits if limit is not None}


__all__ = ["BudgetedMatcher", "find_exhausted", "find_used_limit", "measure_behavior_usage"]
