"""The status of a run: one word, with the used and the remaining budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from agentnb.session.limits import compute_remaining_budget

if TYPE_CHECKING:
    from agentnb.engine.control.budget import Budget
    from agentnb.engine.core.run import Run
    from agentnb.session.limits import Limits, Number

StatusWord = Literal[
    "ready", "running", "pausing", "paused", "waiting", "in_flight", "idle", "finished", "failed", "exhausted"
]


def find_limit(word: str, run: Run, limits: Limits) -> str | None:
    """Return the limit that has ended a run of this status, or prevents the retry of its failed node; None if none."""
    return limits.find_reached(run) if word in ("exhausted", "failed") else None


class Status(str):
    """The status of a run in one word: a string with the attributes `used`, `left` and `limit`.

    `used` and `left` map the names of limits to amounts at the time of the query: `used` has all of them, `left` those
    that are limited. `limit` is the one that has ended the run, or that prevents the retry of its failed node; None if
    none does.
    """

    __slots__ = ("_budget", "_usage", "_used", "limit")

    limit: str | None
    _budget: Budget
    _used: Callable[[], dict[str, Number]]
    _usage: dict[str, Number] | None

    def __new__(cls, word: str, run: Run, limits: Limits) -> Self:
        """Return the status of a run; its usage is computed on first access."""
        status = super().__new__(cls, word)
        status.limit = find_limit(word, run, limits)
        status._used, status._budget, status._usage = limits.capture_usage(run), limits.budget, None
        return status

    @property
    def word(self) -> StatusWord:
        """The word alone."""
        return cast("StatusWord", str(self))

    @property
    def used(self) -> Mapping[str, Number]:
        """The usage of the steps up to here, by the name of each limit."""
        if self._usage is None:
            self._usage = self._used()
        return MappingProxyType(self._usage)

    @property
    def left(self) -> Mapping[str, Number]:
        """What is left, by the name of each limit that is set."""
        return MappingProxyType(compute_remaining_budget(self._budget, self.used))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the word alone: a copy, or another process, has no run."""
        return str, (str(self),)


__all__ = ["Status", "StatusWord"]
