"""budget: the limits of a run. Reaching one ends it as `exhausted`, gracefully, and says which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any

from agentnb.errors import ExecutionError, Problem, did_you_mean


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may use; None means no limit. A step in flight is never interrupted by it."""

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
        numbers = (int, float, Decimal)
        wanted = {**recipe, **(limits or {})}
        problems = [
            Problem("X201", f"there is no limit {name!r}", "budget", f"the limits are: {', '.join(names)}",
                    did_you_mean(name, names, "use one of them"))
            for name in wanted if name not in names
        ] + [
            Problem("X202", f"{value!r} is no limit", f"budget, {name}", "a limit is a number of 0 or more, or None",
                    "give a number")
            for name, value in wanted.items()
            if name in names and value is not None
            and (not isinstance(value, numbers) or isinstance(value, bool) or value < 0)
        ]  # fmt: skip
        if problems:
            raise ExecutionError(*problems)
        return cls(**wanted)
