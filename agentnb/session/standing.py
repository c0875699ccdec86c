"""standing: where a run stands: one word, and with it what the run has used of its budget and what is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from agentnb.session.limits import left_of

if TYPE_CHECKING:
    from agentnb.engine.budget import Budget
    from agentnb.engine.run import Run
    from agentnb.session.limits import Limits, Number

Status = Literal[
    "ready", "running", "pausing", "paused", "waiting", "in_flight", "idle", "finished", "failed", "exhausted"
]


class Standing(str):
    """Where a run stands, in one word: a text like any other, that also knows `used`, `left` and `limit`.

    `used` and `left` are mappings by the names of limits, as the run stood when it was asked: `used` has all of them,
    `left` those that there is a limit of. `limit` is the one that has ended the run, or that keeps its failed node from
    being tried again; None where none does.
    """

    __slots__ = ("_budget", "_found", "_used", "limit")

    limit: str | None
    _budget: Budget
    _used: Callable[[], dict[str, Number]]
    _found: dict[str, Number] | None

    def __new__(cls, word: str, run: Run, limits: Limits) -> Self:
        """Return where a run stands; what it has used is worked out when somebody looks at it."""
        here = super().__new__(cls, word)
        here.limit = limits.reached(run) if word in ("exhausted", "failed") else None
        here._used, here._budget, here._found = limits.used_here(run), limits.budget, None
        return here

    @property
    def word(self) -> Status:
        """The word alone."""
        return cast("Status", str(self))

    @property
    def used(self) -> Mapping[str, Number]:
        """What the steps up to here have used, by the name of each limit."""
        if self._found is None:
            self._found = self._used()
        return MappingProxyType(self._found)

    @property
    def left(self) -> Mapping[str, Number]:
        """What is left, by the name of each limit that there is."""
        return MappingProxyType(left_of(self._budget, self.used))

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave as the word alone: a copy, or another process, knows no run."""
        return str, (str(self),)


__all__ = ["Standing", "Status"]
