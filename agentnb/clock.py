"""clock: where time comes from. `now()` is the time that a recipe sees, `ns()` the time that a step took."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from time import perf_counter_ns
from typing import Any


class Clock:
    """The wall clock.

    `now()` is a recipe's visible time; `ns()` counts nanoseconds since the epoch for the trace and never
    ticks a TickingClock; `sleep` is what back-off and sleep effects wait by.
    """

    def __init__(self) -> None:
        # One reading of the wall clock, then the monotonic one: steps never seem to run backwards.
        self._base = time.time_ns() - perf_counter_ns()

    def now(self) -> datetime:
        """Return the visible time, in UTC."""
        return datetime.now(UTC)

    def ns(self) -> int:
        """Return nanoseconds since the epoch, never going back."""
        return self._base + perf_counter_ns()

    def seen(self) -> datetime:
        """Return the visible time, as `now` would, and tick no clock: for what a recipe does not see."""
        return datetime.now(UTC)

    def go_back(self, kept: Mapping[str, Any] | None) -> None:
        """Stand where it stood when it said `kept`, where its time is its own."""

    async def sleep(self, seconds: float) -> None:
        """Wait so long."""
        await asyncio.sleep(seconds)

    def kept(self) -> dict[str, Any] | None:
        """Return where it stands, as JSON; None where any other clock of its kind stands there too."""
        return None


class FrozenClock(Clock):
    """Always the same instant; its sleep takes no time. For tests and reproducible traces."""

    def __init__(self, at: datetime | str = "2000-01-01T00:00:00+00:00") -> None:
        instant = datetime.fromisoformat(at) if isinstance(at, str) else at
        self.at = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
        self._ns = int(self.at.timestamp()) * 1_000_000_000 + self.at.microsecond * 1000

    def now(self) -> datetime:
        """Return the instant that was given."""
        return self.at

    def seen(self) -> datetime:
        """Return the instant at which it stands."""
        return self.at

    def go_back(self, kept: Mapping[str, Any] | None) -> None:
        """Stand where it stood when it said `kept`."""
        if kept is not None:
            FrozenClock.__init__(self, kept["at"])

    def ns(self) -> int:
        """Return that instant in nanoseconds."""
        return self._ns

    async def sleep(self, seconds: float) -> None:
        """Return at once."""

    def kept(self) -> dict[str, Any] | None:
        """Return where it stands, as JSON."""
        return {"at": self.at.isoformat()}


class TickingClock(FrozenClock):
    """Goes on by `step_seconds` at every `now()`; `ns()` reads it without a tick."""

    def __init__(self, start: datetime | str = "2000-01-01T00:00:00+00:00", step_seconds: float = 1.0) -> None:
        super().__init__(start)
        self.step = timedelta(seconds=step_seconds)

    def now(self) -> datetime:
        """Return the time and go on by one step."""
        instant = self.at
        FrozenClock.__init__(self, instant + self.step)
        return instant

    def kept(self) -> dict[str, Any] | None:
        """Return where it stands and how far it goes on each time, as JSON."""
        return {"at": self.at.isoformat(), "step_seconds": self.step.total_seconds()}


def clock_of(kept: Mapping[str, Any] | None) -> Clock:
    """Return a clock that stands where `kept` says.

    Example:
        >>> clock = TickingClock(step_seconds=2)
        >>> _ = clock.now()
        >>> clock_of(clock.kept()).now().isoformat()
        '2000-01-01T00:00:02+00:00'
    """
    if kept is None:
        return Clock()
    if "step_seconds" in kept:
        return TickingClock(kept["at"], kept["step_seconds"])
    return FrozenClock(kept["at"])
