"""limits: a session's budget against what its run has used. Reaching a limit ends a run as `exhausted`."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from agentnb.engine.run import MAX_FRAMES, NEVER

if TYPE_CHECKING:
    from agentnb.engine.budget import Budget
    from agentnb.engine.run import Run


class Limits:
    """The budget of one run. `max_steps` and `max_frames` the engine counts itself; the others are asked each step."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        asked = (
            budget.max_events,
            budget.max_llm_calls,
            budget.max_tool_calls,
            budget.max_seconds,
            budget.max_cost_usd,
        )
        self.asked = asked != (None,) * len(asked)
        self._spent: tuple[int, int, int] = (-1, -1, 0)

    def apply(self, run: Run) -> None:
        """Give the engine the limits that it counts itself."""
        budget = self.budget
        run.limit = NEVER if budget.max_steps is None else budget.max_steps
        run.max_frames = MAX_FRAMES if budget.max_frames is None else budget.max_frames
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
        if budget.max_seconds is not None and self.seconds(run) >= budget.max_seconds:
            return "max_seconds"
        if budget.max_cost_usd is not None and cost(run) >= Decimal(str(budget.max_cost_usd)):
            return "max_cost_usd"
        return None

    def seconds(self, run: Run) -> float:
        """Return how many seconds the steps up to here have taken, added up step by step while the run goes on."""
        known, position, total = self._spent
        if known != id(run.at) or position > run.position or run.at.base > position:
            position, total = -1, 0
            for number, history in enumerate(run.chain):
                end = run.chain[number + 1].base if number + 1 < len(run.chain) else run.position
                rows = slice(1, min(end, run.position) - history.base + 1)
                total += sum(history.s_t1[rows]) - sum(history.s_t0[rows])
        else:
            rows = slice(position - run.at.base + 1, run.position - run.at.base + 1)
            total += sum(run.at.s_t1[rows]) - sum(run.at.s_t0[rows])
        self._spent = (id(run.at), run.position, total)
        return total / 1e9


def cost(run: Run) -> Decimal:
    """Return what the calls up to here have cost, in US dollars."""
    total = Decimal(0)
    for number, history in enumerate(run.chain):
        end = run.chain[number + 1].base if number + 1 < len(run.chain) else run.position
        total += sum((Decimal(str(call.cost_usd)) for call in history.calls if call.cost_usd is not None
                      and call.step <= min(end, run.position)), Decimal(0))  # fmt: skip
    return total
