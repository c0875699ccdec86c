"""Clocks: the source of time. `now()` is the time that a recipe sees, `ns()` measures the duration of steps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from time import perf_counter_ns
from typing import Any, Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def to_microseconds(time: datetime) -> int:
    """Return a time as whole microseconds since the epoch.

    Example:
        >>> from_microseconds(to_microseconds(EPOCH + timedelta(days=1))).isoformat()
        '1970-01-02T00:00:00+00:00'
    """
    since = time - EPOCH  # dividing it by a timedelta takes four times as long
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def from_microseconds(count: int) -> datetime:
    """Return the time, in UTC, so many microseconds after the epoch."""
    return EPOCH + timedelta(0, 0, count)


class Clock:
    """The wall clock.

    `now()` is a recipe's visible time; `ns()` counts nanoseconds since the epoch for the trace and never
    ticks a TickingClock; `sleep` is used for backoff and sleep effects.
    """

    is_recorded = True  # whether a replay needs the recorded times of a step, because they cannot be computed again

    def __init__(self) -> None:
        # One reading of the wall clock, then the monotonic one: steps never seem to run backwards.
        self._base = time.time_ns() - perf_counter_ns()

    def now(self) -> datetime:
        """Return the visible time, in UTC."""
        return datetime.now(UTC)

    def ns(self) -> int:
        """Return nanoseconds since the epoch, never decreasing."""
        return self._base + perf_counter_ns()

    def peek(self) -> datetime:
        """Return the visible time without ticking the clock: for times that a recipe does not see."""
        return datetime.now(UTC)

    def go_back(self, state: Mapping[str, Any] | None) -> None:
        """Reset the clock to a state returned by `get_state`, unless it follows real time."""

    async def sleep(self, seconds: float) -> None:
        """Wait for a number of seconds."""
        await asyncio.sleep(seconds)

    def get_state(self) -> dict[str, Any] | None:
        """Return the state of the clock as JSON; None if it has none besides real time."""
        return None


class FrozenClock(Clock):
    """Always the same instant; its sleep takes no time. For tests and reproducible traces."""

    is_recorded = False

    def __init__(self, at: datetime | str = "2000-01-01T00:00:00+00:00") -> None:
        instant = datetime.fromisoformat(at) if isinstance(at, str) else at
        self.at = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
        self._ns = int(self.at.timestamp()) * 1_000_000_000 + self.at.microsecond * 1000

    def now(self) -> datetime:
        """Return the fixed instant."""
        return self.at

    def peek(self) -> datetime:
        """Return the current instant, without a tick."""
        return self.at

    def go_back(self, state: Mapping[str, Any] | None) -> None:
        """Reset the clock to a state returned by `get_state`."""
        if state is not None:
            FrozenClock.__init__(self, state["at"])

    def ns(self) -> int:
        """Return the current instant in nanoseconds."""
        return self._ns

    async def sleep(self, seconds: float) -> None:
        """Return immediately."""

    def get_state(self) -> dict[str, Any] | None:
        """Return the state of the clock as JSON."""
        return {"at": self.at.isoformat()}


class TickingClock(FrozenClock):
    """A clock that advances by `step_seconds` at every `now()`; `ns()` reads it without a tick."""

    def __init__(self, start: datetime | str = "2000-01-01T00:00:00+00:00", step_seconds: float = 1.0) -> None:
        super().__init__(start)
        self.step = timedelta(seconds=step_seconds)

    def now(self) -> datetime:
        """Return the time and advance by one step."""
        instant = self.at
        FrozenClock.__init__(self, instant + self.step)
        return instant

    def get_state(self) -> dict[str, Any] | None:
        """Return the current time and the step as JSON."""
        return {"at": self.at.isoformat(), "step_seconds": self.step.total_seconds()}


def restore_clock(state: Mapping[str, Any] | None) -> Clock:
    """Return a clock in a state returned by `Clock.get_state`.

    Example:
        >>> clock = TickingClock(step_seconds=2)
        >>> _ = clock.now()
        >>> restore_clock(clock.get_state()).now().isoformat()
        '2000-01-01T00:00:02+00:00'
    """
    if state is None:
        return Clock()
    if "step_seconds" in state:
        return TickingClock(state["at"], state["step_seconds"])
    return FrozenClock(state["at"])
