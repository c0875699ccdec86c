"""Pending steps: steps that have started but are not committed, and the holds at which they pause."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from time import perf_counter_ns
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from agentnb.board.values import ABSENT, freeze
from agentnb.engine.core.history import Intervention
from agentnb.event_loops import NEED_LOOP, NeedLoop

if TYPE_CHECKING:
    from agentnb.engine.core.frames import Activation
    from agentnb.engine.core.run import Run
    from agentnb.world.effect import Effect


class Hold:
    """A pause of a step: for a person's answer, at a call that may be reviewed and changed, or at an emitted event.

    `kind` is `answer`, `approval`, `call` or `emit`; `call` is the index of the call in its step. Setting `is_resumed`
    resumes the step, with the current effect or, if `has_answer` is set, with `answer`. `until` is the time, in
    nanoseconds of `clock`, at which the hold expires.
    """

    __slots__ = ("answer", "call", "clock", "effect", "has_answer", "is_resumed", "kind", "moment", "until")

    def __init__(self, effect: Effect, kind: str, moment: str, answer: Any = None, *, call: int = -1) -> None:
        self.effect, self.kind, self.moment, self.answer, self.call = effect, kind, moment, answer, call
        self.has_answer = self.is_resumed = False
        self.until: int | None = None
        self.clock: Callable[[], int] = perf_counter_ns

    def set_deadline(self, until: int, clock: Callable[[], int]) -> Hold:
        """Set the time of a clock at which the hold expires; return the hold."""
        self.until, self.clock = until, clock
        return self

    @property
    def seconds_left(self) -> float | None:
        """The seconds until the hold expires; None if it does not."""
        return None if self.until is None else (self.until - self.clock()) / 1e9

    @property
    def is_expired(self) -> bool:
        """True if the hold has expired before anybody resumed it."""
        remaining = self.seconds_left
        return not self.is_resumed and remaining is not None and remaining <= 0

    def __await__(self) -> Generator[Any, Any, Hold]:
        """Yield this hold to the driver; continue when the driver sends a value."""
        yield self
        return self


class PendingStep:
    """A step that has started but is not committed: its coroutine, and the hold at which it pauses.

    `intervention_count` counts the interventions made in the meantime. `waiting_ns` is the time that does not count for
    the step: while it was held, and while a model's client was prepared.
    """

    __slots__ = (
        "activation",
        "awaited_future",
        "coro",
        "held_since",
        "hold",
        "intervention_count",
        "is_cancelled",
        "needs_loop",
        "start_position",
        "started_at",
        "task",
        "waiting_ns",
    )

    def __init__(self, activation: Activation, awaitable: Awaitable[Any], started_at: int) -> None:
        self.activation, self.started_at = activation, started_at
        # The step after which it started: a node has one activation per step
        self.start_position = activation.work.run.position
        own = type(awaitable) is CoroutineType
        self.coro: Coroutine[Any, Any, Any] = awaitable if own else _await_in_loop(awaitable)  # type: ignore[assignment]  # checked above
        self.hold: Hold | None = None
        self.task: asyncio.Task[int] | None = None
        self.awaited_future: asyncio.Future[Any] | None = None  # the future it awaits in another task
        self.is_cancelled, self.intervention_count = False, 0
        self.waiting_ns, self.held_since = 0, -1  # `held_since`: when it was paused; -1 if it is not
        self.needs_loop = False  # True if it cannot continue without an event loop

    def handle_yield(self, yielded: Any) -> None:
        """Handle what the coroutine yielded without an event loop: a hold, or the request for an event loop."""
        if isinstance(yielded, Hold):
            self.hold_at(yielded)
        else:
            assert yielded is NEED_LOOP
            self.needs_loop = True

    def hold_at(self, hold: Hold) -> None:
        """Hold this step; its clock is paused until `resume`."""
        self.hold, self.held_since = hold, self.activation.work.run.ns()

    def resume(self) -> None:
        """Resume the step's clock after a hold."""
        if self.held_since >= 0:
            self.waiting_ns += self.activation.work.run.ns() - self.held_since
            self.held_since = -1

    @contextmanager
    def pause_clock(self) -> Iterator[None]:
        """Pause the clock of this step inside the `with` block; no effect if it is already paused."""
        still = self.held_since >= 0
        if not still:
            self.held_since = self.activation.work.run.ns()
        try:
            yield
        finally:
            if not still:
                self.resume()

    @property
    def is_held(self) -> bool:
        """True if it waits for a person to resume it."""
        return self.hold is not None and not self.hold.is_resumed and not self.hold.is_expired

    @property
    def leaves_loop(self) -> bool:
        """True if it was paused and continues with sync code, which may take long: it then runs in a thread.

        Async code continues in the event loop that owns its resources; a node that was stepped into has its own thread.
        """
        work = self.activation.work
        is_held = self.hold is not None and type(self.coro) is CoroutineType
        return is_held and work.run.uses_threads and not (self.needs_loop or work.needs_loop)

    def cancel(self) -> None:
        """Abandon this step: late writes are refused, its coroutine is closed or its task cancelled."""
        work = self.activation.work
        work.has_ended = self.is_cancelled = True
        self.activation.work = type(work)(work.run, self.activation)
        if self.task is not None:
            self.task.cancel()
            return
        if not getattr(self.coro, "cr_running", False):  # if it runs in a thread, it ends there
            self.coro.close()
        if self.awaited_future is not None:  # its driver must not wait for a result that is no longer needed
            self.awaited_future.get_loop().call_soon_threadsafe(self.awaited_future.cancel)


def record_interrupted(run: Run, pending_step: PendingStep, action: str, step: int) -> Intervention:
    """Return the record that a step was in flight (`held`) during an intervention, or that it has `ended`."""
    work = pending_step.activation.work
    how = (
        {"calls": work.call_count, "events": len(work.emitted)}
        if action == "held"
        else {"held": pending_step.intervention_count}
    )
    new = freeze({"turn": pending_step.activation.id, **how})
    return Intervention(step, action, pending_step.activation.node.id, ABSENT, new, "user", run.clock.peek())


def cancel(run: Run, pending_step: PendingStep) -> None:
    """Cancel a step in flight; when it runs again, it does not repeat the calls that were answered."""
    work = pending_step.activation.work
    run.dispatcher.end_calls(work)
    run.dispatcher.remember(work)
    pending_step.cancel()


async def _await_in_loop(awaitable: Awaitable[Any]) -> Any:
    await NeedLoop()
    return await awaitable
