"""The budget: the limits of a run. A run that reaches a limit ends as `exhausted`, with the name of the limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, Final

from agentnb.errors import ExecutionError, Problem, did_you_mean, with_article
from agentnb.text import safe_repr

MEASURED: Final = frozenset({"max_seconds", "max_cost_usd"})  # continuous quantities; all others are counts


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a run; None means no limit. Usage is counted over the steps up to the run's position.

    A limit is checked before anything new starts; if it is used up by then, the run is `exhausted`. Work in progress is
    finished, so the last step may exceed a limit of seconds, tokens, cost or patches.

    - `max_steps`: steps that start a node (a composite node counts once, when it is entered).
    - `max_events`: delivered events. An event counts when the first node that listens to it starts, or at once if no
      node does. Events are delivered completely: all nodes that listen to the last one still run.
    - `max_behavior_calls`: steps of nodes triggered by events, one for each node that listens.
    - `max_llm_calls`, `max_tool_calls`, `max_tokens`, `max_cost_usd`: each attempt counts and is checked before it is
      sent; at a limit, none is sent, and the step is abandoned as if it had not started.
    - `max_patches`: events of type `patch.applied`.
    - `max_depth`: the length of event chains: an external event has depth 1, and an event that a node emits in response
      to another has that event's depth plus 1. A node triggered by an event beyond the limit does not start.
    - `max_frames`: the nesting depth of frames; a node does not open a frame beyond it.
    - `max_subgraph_depth`: the nesting depth of subgraphs; a node that would exceed it fails.
    - `max_seconds`: the total duration of the steps, excluding the time people took to answer.
    """

    max_steps: int | None = None
    max_events: int | None = None
    max_behavior_calls: int | None = None
    max_llm_calls: int | None = None
    max_tool_calls: int | None = None
    max_patches: int | None = None
    max_depth: int | None = None
    max_frames: int | None = None
    max_subgraph_depth: int | None = None
    max_seconds: float | None = None
    max_tokens: int | None = None
    max_cost_usd: Decimal | None = None

    def __repr__(self) -> str:
        """Return the limits that are set."""
        limits = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self))
        return f"Budget({', '.join(limit for limit in limits if not limit.endswith('=None'))})"

    @classmethod
    def of(cls, limits: Mapping[str, Any] | None, recipe: Mapping[str, Any]) -> Budget:
        """Return the recipe's limits, overridden by `limits`; infinity means no limit.

        Raises:
            ExecutionError: X201, a limit has an unknown name; X202, it is not a number of 0 or more; X203, it is a
                count but not a whole number; X204, the budget is not a mapping.
        """
        if limits is not None and not isinstance(limits, Mapping):
            raise ExecutionError(
                Problem("X204", f"the budget is {with_article(type(limits).__name__)}, not a mapping", "budget",
                        "a budget maps limits to values", "pass a dict: {'max_steps': 100}")
            )  # fmt: skip
        merged = {**recipe, **(limits or {})}
        problems = list(_check_limits(merged, [field.name for field in fields(cls)]))
        if problems:
            raise ExecutionError(*problems)
        return cls(**{name: _convert_limit(name, value) for name, value in merged.items()})


def _check_limits(limits: Mapping[str, Any], names: list[str]) -> Iterator[Problem]:
    for name in limits:
        if name not in names:
            yield Problem("X201", f"there is no limit {name!r}", "budget", f"the limits are: {', '.join(names)}",
                          did_you_mean(name, names, "use one of them"))  # fmt: skip
    for name, value in limits.items():
        if name not in names or value is None:
            continue
        if not _is_limit(value):
            yield Problem("X202", f"{safe_repr(value)} is not a limit", f"budget, {name}",
                          "a limit is a number >= 0, or None", "pass a number")  # fmt: skip
        elif name not in MEASURED and not _is_whole(value):
            yield Problem("X203", f"{safe_repr(value)} is not an integer", f"budget, {name}",
                          f"{name} is a count", f"pass {int(value)} or {int(value) + 1}")  # fmt: skip


def _is_limit(value: Any) -> bool:
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return number and not Decimal(value).is_nan() and value >= 0


def _is_whole(value: float | Decimal) -> bool:
    return Decimal(value).is_infinite() or value == int(value)


def _convert_limit(name: str, value: Any) -> Any:
    """Convert a limit to its type; costs are never floats."""
    if value is None or Decimal(value).is_infinite():
        return None
    if name == "max_cost_usd":
        return Decimal(str(value))
    return value if name in MEASURED else int(value)
