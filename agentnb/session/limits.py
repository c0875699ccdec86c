"""limits: a session's budget against what its run has used. Reaching a limit ends a run as `exhausted`."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from agentnb.engine.run import MAX_FRAMES, NEVER

if TYPE_CHECKING:
    from agentnb.engine.budget import Budget
    from agentnb.engine.history import History
    from agentnb.engine.run import Run


class Limits:
    """The budget of one run. `max_steps` and `max_frames` the engine counts itself; the others are asked each step."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        asked = (
            budget.max_events,
            budget.max_llm_calls,
            budget.max_tool_calls,
            budget.max_tokens,
            budget.max_seconds,
            budget.max_cost_usd,
        )
        self.asked = asked != (None,) * len(asked)
        self._spent: tuple[History | None, int, int] = (None, -1, 0)

    def apply(self, run: Run) -> None:
        """Give the engine the limits that it counts itself."""
        budget = self.budget
        run.limit = NEVER if budget.max_steps is None else budget.max_steps
        run.max_frames = MAX_FRAMES if budget.max_frames is None else budget.max_frames
        run.max_subgraph_depth = budget.max_subgraph_depth
        run.set_mark()

    def reached(self, run: Run) -> str | None:
        """Return the name of the limit that is reached where the run stands; None where there is none."""
        budget = self.budget
        if run.spent():
            return "max_steps"
        if not self.asked:
            return None
        if budget.max_events is not None and run.last_event() >= budget.max_events:
            return "max_events"
        if budget.max_llm_calls is not None and run.calls_before("llm") >= budget.max_llm_calls:
            return "max_llm_calls"
        if budget.max_tool_calls is not None and run.calls_before("tool") >= budget.max_tool_calls:
            return "max_tool_calls"
        if budget.max_tokens is not None and tokens(run) >= budget.max_tokens:
            return "max_tokens"
        if budget.max_seconds is not None and self.seconds(run) >= budget.max_seconds:
            return "max_seconds"
        if budget.max_cost_usd is not None and cost(run) >= Decimal(str(budget.max_cost_usd)):
            return "max_cost_usd"
        return None

    def seconds(self, run: Run) -> float:
        """Return how many seconds the steps up to here have taken, added up step by step while the run goes on."""
        known, position, total = self._spent
        if known is run.at and run.at.base <= position <= run.position:
            total += _taken(run.at, position, run.position)
        else:
            total = sum(_taken(history, history.base, end) for history, end in run.parts())
        self._spent = (run.at, run.position, total)
        return total / 1e9


def _taken(history: History, after: int, to: int) -> int:
    """Return how many nanoseconds the steps after one of a history took, up to another."""
    rows = slice(after - history.base + 1, to - history.base + 1)
    return sum(history.s_t1[rows]) - sum(history.s_t0[rows])


def tokens(run: Run) -> int:
    """Return how many tokens the calls up to here have taken, in and out."""
    counts = (
        (call.tokens_in or 0) + (call.tokens_out or 0)
        for history, end in run.parts()
        for call in history.calls
        if call.step <= end
    )
    return sum(counts)


def cost(run: Run) -> Decimal:
    """Return what the calls up to here have cost, in US dollars."""
    costs = (call.cost_usd for history, end in run.parts() for call in history.calls if call.step <= end)
    return sum((Decimal(str(cost)) for cost in costs if cost is not None), Decimal(0))
