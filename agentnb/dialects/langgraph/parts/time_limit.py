"""Timeouts of nodes: an attempt is cancelled if it takes too long, or makes no progress for too long."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Coroutine, Generator
from time import monotonic
from typing import TYPE_CHECKING, Any

from agentnb.board.values import thaw
from agentnb.dialects.langgraph.parts import package as lg
from agentnb.engine.core.pending_step import Hold

if TYPE_CHECKING:
    from agentnb.engine.core.work import Work


def to_plain_limits(timeout: Any) -> dict[str, Any] | None:
    """Return a timeout of a node or of a Send as plain values: run, idle (in seconds) and refresh_on."""
    policy = lg.TimeoutPolicy.coerce(timeout)
    if policy is None:
        return None
    return {"run": policy.run_timeout, "idle": policy.idle_timeout, "refresh_on": policy.refresh_on}


def make_time_limit(name: str, limits: dict[str, Any] | None, work: Work) -> TimeLimit | None:
    """Return the time limit of one attempt: that of the Send that scheduled the step, otherwise the node's own."""
    event = work.event
    if event is not None and "timeout" in event.payload:
        limits = thaw(event.payload["timeout"])
    return None if limits is None else TimeLimit(name, limits)


class TimeLimit:
    """The time limit of one attempt of a node. While a call of the node is paused, so is the clock.

    `scope` is LangGraph's own object for detecting progress.
    """

    def __init__(self, name: str, limits: dict[str, Any]) -> None:
        self.name, self.run, self.idle = name, limits["run"], limits["idle"]
        self.scope = lg.TimedAttemptScope(refresh_on=None if self.idle is None else limits["refresh_on"])
        self.started_at = monotonic()
        self.expired = ""

    @types.coroutine
    def keep(self, coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Await a coroutine for as long as the limit allows.

        Raises:
            NodeTimeoutError: the coroutine took longer.
        """
        reply: Any = None
        error: BaseException | None = None
        try:
            while True:
                try:
                    yielded = coroutine.send(reply) if error is None else coroutine.throw(error)
                except StopIteration as ended:
                    if self.expired:
                        raise self._make_timeout_error() from None
                    return ended.value
                except BaseException:
                    if self.expired:
                        raise self._make_timeout_error() from None
                    raise
                reply = error = None
                stopped = monotonic()
                timer = None if isinstance(yielded, Hold) or self.expired else _Timer(self)
                try:
                    reply = yield yielded
                except BaseException as raised:  # noqa: BLE001  (passed to the node)
                    error = raised
                if timer is not None:
                    timer.end(error)
                elif not self.expired:
                    self._pause_clock(monotonic() - stopped)
        finally:
            self.scope.close()

    def get_remaining(self) -> tuple[float, str]:
        """Return the remaining seconds, and the limit that ends first: "run" or "idle"."""
        now = monotonic()
        ends = []
        if self.run is not None:
            ends.append((self.started_at + self.run - now, "run"))
        if self.idle is not None:
            ends.append((self.scope._last_progress + self.idle - now, "idle"))  # noqa: SLF001  (LangGraph's clock)
        return min(ends)

    def _pause_clock(self, seconds: float) -> None:
        self.started_at += seconds
        self.scope._last_progress += seconds  # noqa: SLF001

    def _make_timeout_error(self) -> Exception:
        error: Exception = lg.NodeTimeoutError(
            self.name, monotonic() - self.started_at, kind=self.expired, idle_timeout=self.idle, run_timeout=self.run
        )
        return error


class _Timer:
    """Cancels the current task when the limit of an attempt is reached."""

    def __init__(self, limit: TimeLimit) -> None:
        self.limit, self.task, self.loop = limit, asyncio.current_task(), asyncio.get_running_loop()
        self._set()

    def end(self, error: BaseException | None) -> None:
        """Stop, and clear the cancellation if this timer caused it."""
        self.handle.cancel()
        if self.limit.expired and isinstance(error, asyncio.CancelledError) and self.task is not None:
            self.task.uncancel()

    def _set(self) -> None:
        self.handle = self.loop.call_later(max(0.0, self.limit.get_remaining()[0]), self._fire)

    def _fire(self) -> None:
        remaining, which = self.limit.get_remaining()
        if remaining > 0:  # there was progress
            self._set()
        elif self.task is not None:
            self.limit.expired = which
            self.limit.scope.close()
            self.task.cancel()


__all__ = ["TimeLimit", "make_time_limit", "to_plain_limits"]
