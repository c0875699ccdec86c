"""budget: the limits of a run. Reaching one ends it as `exhausted`, gracefully, and says which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

from agentnb.errors import ExecutionError, Problem, did_you_mean

if TYPE_CHECKING:
    from agentnb.engine.run import Run
    from agentnb.engine.work import Effect, Work


class Spending(Protocol):
    """What the effect door asks before each attempt of a call, where a run has limits on calls."""

    def lets_out(self, run: Run, work: Work, effect: Effect, wait: float) -> bool:
        """Say whether one more attempt may go out after a wait of some seconds, and count it."""
        ...


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may use; None means no limit.

    Each attempt of a call counts, and is asked for before it goes out: none goes out at a limit. Its step is then given
    up as if it had not begun, and the run is `exhausted` before it. A call that is out is not cut short, so
    `max_tokens`, `max_cost_usd` and `max_seconds` may be passed by what the last calls took.
    """

    max_steps: int | None = None
    max_events: int | None = None
    max_llm_calls: int | None = None
    max_tool_calls: int | None = None
    max_tokens: int | None = None
    max_frames: int | None = None
    max_subgraph_depth: int | None = None
    max_seconds: float | None = None
    max_cost_usd: Decimal | None = None

    @classmethod
    def of(cls, limits: Mapping[str, Any] | None, recipe: Mapping[str, Any]) -> Budget:
        """Return the recipe's own limits with the given ones in their place.

        Raises:
            ExecutionError: X201, a limit has an unknown name; X202, it is not a number of 0 or more.
        """
        names = [field.name for field in fields(cls)]
        wanted = {**recipe, **(limits or {})}
        problems = [
            Problem("X201", f"there is no limit {name!r}", "budget", f"the limits are: {', '.join(names)}",
                    did_you_mean(name, names, "use one of them"))
            for name in wanted if name not in names
        ] + [
            Problem("X202", f"{value!r} is no limit", f"budget, {name}", "a limit is a number of 0 or more, or None",
                    "give a number")
            for name, value in wanted.items()
            if name in names and value is not None and not _is_limit(value)
        ]  # fmt: skip
        if problems:
            raise ExecutionError(*problems)
        return cls(**wanted)


def _is_limit(value: Any) -> bool:
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return number and not Decimal(value).is_nan() and value >= 0
