"""budget: the limits of a run. Reaching one ends it as `exhausted`, gracefully, and says which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Protocol

from agentnb.board.secrets import short
from agentnb.errors import ExecutionError, Problem, did_you_mean

if TYPE_CHECKING:
    from agentnb.engine.frames import Activation
    from agentnb.engine.run import Run
    from agentnb.engine.work import Effect, Work

MEASURED: Final = frozenset({"max_seconds", "max_cost_usd"})  # by a scale; all others count things


class Spending(Protocol):
    """What is asked before each attempt of a call, and before a frame is opened, where a run has limits on those."""

    def lets_out(self, run: Run, work: Work, effect: Effect, wait: float, which: tuple[int, int]) -> bool:
        """Say whether one more attempt may go out after a wait of some seconds, and count it.

        `which` is the number of its call in the step, and its own number in the call.
        """
        ...

    def lets_in(self, run: Run, act: Activation) -> bool:
        """Say whether a composite node may open its frame; where not, its step is given up."""
        ...


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may use; None means no limit. Counted is what the steps up to where it stands have used.

    A limit is looked at before the next thing begins, and the run is `exhausted` where as much as that is used; what
    has begun by then ends, so that seconds, tokens, cost and patches may be passed by the last one.

    - `max_steps`: steps that begin a node (a composite node counts as it enters, and not again).
    - `max_events`: events whose turn has come: the first node that listens has begun, or nobody listens. An event is
      not left half-way: all that listen to it still run. Where no node listens to any, each counts at once.
    - `max_behavior_calls`: steps of nodes that an event has set off, one for each node that listens.
    - `max_llm_calls`, `max_tool_calls`, `max_tokens`, `max_cost_usd`: each attempt counts, and is asked for before it
      goes out: none goes out at a limit. Its step is then given up as if it had not begun.
    - `max_patches`: events of type `patch.applied`.
    - `max_depth`: how deep events may follow from one another: one from outside is at 1, one that a node emits while
      it answers to another is one deeper than that. A node that a deeper one would set off does not begin.
    - `max_frames`: how deep frames may stand inside one another; a node does not open one deeper.
    - `max_subgraph_depth`: how deep subgraphs may; a deeper one is the failure of its node.
    - `max_seconds`: what the steps took, less what people took to answer.
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

    @classmethod
    def of(cls, limits: Mapping[str, Any] | None, recipe: Mapping[str, Any]) -> Budget:
        """Return the recipe's own limits with the given ones in their place; one without an end is no limit.

        Raises:
            ExecutionError: X201, a limit has an unknown name; X202, it is not a number of 0 or more; X203, it counts
                things and is no whole number; X204, the budget is no mapping.
        """
        if limits is not None and not isinstance(limits, Mapping):
            raise ExecutionError(
                Problem("X204", f"the budget is a {type(limits).__name__}, not a mapping", "budget",
                        "a budget says which limit has which value", "pass a dict: {'max_steps': 100}")
            )  # fmt: skip
        wanted = {**recipe, **(limits or {})}
        problems = list(_problems(wanted, [field.name for field in fields(cls)]))
        if problems:
            raise ExecutionError(*problems)
        return cls(**{name: _limit(name, value) for name, value in wanted.items()})


def _problems(wanted: Mapping[str, Any], names: list[str]) -> Iterator[Problem]:
    for name in wanted:
        if name not in names:
            yield Problem("X201", f"there is no limit {name!r}", "budget", f"the limits are: {', '.join(names)}",
                          did_you_mean(name, names, "use one of them"))  # fmt: skip
    for name, value in wanted.items():
        if name not in names or value is None:
            continue
        if not _is_limit(value):
            yield Problem("X202", f"{short(value)} is no limit", f"budget, {name}",
                          "a limit is a number of 0 or more, or None", "give a number")  # fmt: skip
        elif name not in MEASURED and not _is_whole(value):
            yield Problem("X203", f"{value!r} is no limit of things that are counted", f"budget, {name}",
                          f"{name} counts whole things", f"give {int(value)} or {int(value) + 1}")  # fmt: skip


def _is_limit(value: Any) -> bool:
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return number and not Decimal(value).is_nan() and value >= 0


def _is_whole(value: float | Decimal) -> bool:
    return Decimal(value).is_infinite() or value == int(value)


def _limit(name: str, value: Any) -> Any:
    """Return a limit in the type that is counted in; money is never a float."""
    if value is None or Decimal(value).is_infinite():
        return None
    if name == "max_cost_usd":
        return Decimal(str(value))
    return value if name in MEASURED else int(value)
