"""Step into: an activation that stops inside its node, at each event that it emits, anywhere in its code.

A plain function cannot be suspended by `await`. Therefore the code of such an activation runs in greenlets, one from
each await to the next. When it emits, it is suspended, and its driver gets a Hold, as from a paused call. A greenlet
belongs to its thread, so the activation awaits event loops in one thread, whose loop stays open until the activation
ends.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import copy_context
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from agentnb.engine.core.pending_step import Hold, PendingStep
from agentnb.engine.core.rng import save_draws
from agentnb.engine.core.run import PAUSED
from agentnb.errors import ExecutionError, Problem, require_library
from agentnb.event_loops import LoopThread, RemoteCoroutine, run_beside, run_in_own_loop
from agentnb.threadless import has_threads
from agentnb.world.effect import Effect

if TYPE_CHECKING:
    from greenlet import greenlet

    from agentnb.engine.core.frames import Activation
    from agentnb.engine.core.history import Event
    from agentnb.engine.core.run import Run
    from agentnb.engine.core.work import Work


def enter(run: Run, activation: Activation) -> PendingStep:
    """Start an activation that can be paused inside its code; it is in flight but has not run any code yet.

    Raises:
        ExecutionError: L590, the package greenlet is not installed; X534, this platform has none.
    """
    if not has_threads():
        raise ExecutionError(
            Problem("X534", "step_into() does not work in a browser", f"node {activation.node.id!r}",
                    "it suspends plain functions with greenlets, which are not available in WebAssembly",
                    "use step(), or breakpoints before and after a node")
        )  # fmt: skip
    with require_library("greenlet", "stepinto", "step_into()"):
        import greenlet  # noqa: F401  (for the error, before anything has begun)
    save_draws(run)
    pending_step = run.pending_steps[activation.id] = PendingStep(activation, _perform(activation), run.ns())
    pending_step.coro = SuspendableCode(activation.work, pending_step.coro)
    return pending_step


async def _perform(activation: Activation) -> Any:
    result = activation.perform(activation.work)
    if not isinstance(result, Awaitable):
        return result
    if type(result) is not CoroutineType:
        await activation.work.loop()
    return await result


def move_to_own_thread(pending_step: PendingStep) -> None:
    """Move an activation that has not run any code yet to a thread of its own, so that slow code blocks no loop."""
    if (
        isinstance(pending_step.coro, SuspendableCode)
        and not pending_step.is_held
        and not pending_step.coro.has_started
    ):
        pending_step.needs_loop = True


def find_entered(run: Run) -> PendingStep | None:
    """Return the pending step that was stepped into and is bound to a thread; None if there is none."""
    return next((pending_step for pending_step in run.pending_steps.values() if _is_bound(pending_step)), None)


def _is_bound(pending_step: PendingStep) -> bool:
    return isinstance(pending_step.coro, SuspendableCode) and (pending_step.needs_loop or pending_step.coro.is_paused)


def check_threads(run: Run) -> None:
    """Raise an error if an activation that was stepped into cannot continue in this thread.

    Raises:
        ExecutionError: X122, it was started in another thread.
    """
    for pending_step in run.pending_steps.values():
        if isinstance(pending_step.coro, SuspendableCode):
            pending_step.coro.check_thread()


def drive(run: Run, work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Run a coroutine that drives a run to completion, in the loop of a node that was stepped into, or in a new one."""
    bound = next(
        (
            pending_step.coro
            for pending_step in run.pending_steps.values()
            if pending_step.needs_loop and _is_bound(pending_step)
        ),
        None,
    )
    return bound.drive(work) if isinstance(bound, SuspendableCode) else run_in_own_loop(work)


async def drive_beside(run: Run, work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """The async variant of `drive`: the activation continues in its own loop while the current loop runs."""
    bound = next(
        (
            pending_step.coro
            for pending_step in run.pending_steps.values()
            if pending_step.needs_loop and _is_bound(pending_step)
        ),
        None,
    )
    return await bound.drive_beside(work) if isinstance(bound, SuspendableCode) else await work()


def stops_at_calls(work: Work) -> bool:
    """Return True if a call can be paused while a step runs; False if a task created by the step makes it."""
    pending_step = work.run.pending_steps.get(work.activation.id)
    return pending_step is not None and (
        not isinstance(pending_step.coro, SuspendableCode) or pending_step.coro.is_here(work)
    )


def stop(work: Work, event: Event) -> None:
    """Stop inside the node that has just emitted an event; return when its activation resumes."""
    pending_step = work.run.pending_steps.get(work.activation.id)
    if pending_step is not None and isinstance(pending_step.coro, SuspendableCode) and pending_step.coro.is_here(work):
        pending_step.coro.stop(event)


def is_stopped(work: Work) -> bool:
    """Return True if the code of an activation waits at an event that it emitted; what is done now is not its doing."""
    pending_step = work.run.pending_steps.get(work.activation.id)
    return pending_step is not None and isinstance(pending_step.coro, SuspendableCode) and pending_step.coro.is_stopped


class SuspendableCode(Coroutine[Any, Any, Any]):
    """The code of an activation as a coroutine that yields a Hold wherever it stops."""

    def __init__(self, work: Work, code: Coroutine[Any, Any, Any]) -> None:
        self._work, self._code, self._context = work, code, copy_context()
        self._greenlet: greenlet | None = None
        self._thread = 0
        self._loop_thread: LoopThread | None = None
        self._remote: RemoteCoroutine[int] | None = None  # while it runs in its own loop and is awaited from another
        self._is_closed = False
        self.is_stopped = False  # whether it waits at an event that it emitted, while others act

    @property
    def is_paused(self) -> bool:
        """True if it is suspended inside its code, at an event that it emitted."""
        return self._greenlet is not None

    @property
    def has_started(self) -> bool:
        """True if some of its code has run."""
        return inspect.getcoroutinestate(self._code) != inspect.CORO_CREATED

    def is_here(self, work: Work) -> bool:
        """Return True if the caller is this activation's own code, not a task that it created or a call in a thread."""
        from greenlet import getcurrent

        return work is self._work and self._greenlet is getcurrent()

    def stop(self, event: Event) -> None:
        """Suspend the code and pass a Hold to the driver."""
        assert self._greenlet is not None
        hold = Hold(Effect("emit", event.type, {"payload": event.payload}), "emit", "after", event)
        self.is_stopped = True
        try:
            self._greenlet.parent.switch((True, hold))
        finally:
            self.is_stopped = False

    # -- the coroutine protocol --------------------------------------------------------------------------------------

    def send(self, value: Any) -> Any:
        """Continue to the next await, the next stop or the end."""
        return self._switch(self._code.send, value)

    def throw(self, error: Any, value: Any = None, traceback: Any = None) -> Any:
        """Continue with an exception at the current await."""
        return self._switch(self._code.throw, error)

    def __await__(self) -> Generator[Any, Any, Any]:
        """Await the code as a coroutine."""
        return self._code.__await__()

    def close(self) -> None:
        """Abandon it: its code is left by an exception that none of its handlers catches.

        If it is currently running in its own loop, it is cancelled there.
        """
        if self._remote is not None:
            self._is_closed = True
            self._remote.cancel()
            return
        with suppress(RuntimeError):  # its code ignores the exit and continues, but is no longer awaited
            if self._greenlet is None or self._thread == threading.get_ident():
                self._exit_code()
            elif self._loop_thread is not None:
                self._loop_thread.submit(lambda _: self._exit_code())()
        self._greenlet = None  # in another thread: it is abandoned when that thread next switches
        self.close_thread()

    def _exit_code(self) -> None:
        from greenlet import GreenletExit, getcurrent

        with suppress(Exception):
            if self._greenlet is not None:
                self._greenlet.parent = getcurrent()
                self._greenlet.throw(GreenletExit)
            self._code.close()

    def _switch(self, method: Callable[[Any], Any], value: Any) -> Any:
        from greenlet import getcurrent, greenlet

        if self._greenlet is None:
            self._greenlet, self._thread = greenlet(_run_to_next_await), threading.get_ident()
            self._greenlet.gr_context = self._context
            args: tuple[Any, ...] = (method, value)
        else:
            self._greenlet.parent, args = getcurrent(), ()
        lives, outcome = self._greenlet.switch(*args)
        if self._greenlet.dead:
            self._greenlet = None
        if lives:
            return outcome
        raise outcome

    # -- threads and event loops -------------------------------------------------------------------------------------

    def drive(self, work: Callable[[], Coroutine[Any, Any, int]]) -> int:
        """Run a coroutine that drives this activation, in the thread whose loop stays open until it has ended."""
        self._loop_thread = self._loop_thread or LoopThread()
        try:
            return run_in_own_loop(work, self._loop_thread)
        finally:
            if self._has_ended:
                self.close_thread()

    async def drive_beside(self, work: Callable[[], Coroutine[Any, Any, int]]) -> int:
        """The async variant of `drive`: the current event loop continues meanwhile."""
        home = self._loop_thread = self._loop_thread or LoopThread()

        def start_remote(then: Callable[[], Any]) -> RemoteCoroutine[int]:
            self._remote = RemoteCoroutine(work, home, then)
            return self._remote

        try:
            return await run_beside(start_remote)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._is_closed or (task is not None and task.cancelling()):
                raise
            return PAUSED
        finally:
            self._remote = None
            if self._has_ended:
                self.close_thread()

    @property
    def _has_ended(self) -> bool:
        return getattr(self._code, "cr_frame", None) is None

    def close_thread(self) -> None:
        """Close its thread, if it has one."""
        if self._loop_thread is not None:
            self._loop_thread.close()
            self._loop_thread = None

    def check_thread(self) -> None:
        """Raise an error if it is suspended inside its code and cannot continue in this thread.

        Raises:
            ExecutionError: X122, it was started in another thread.
        """
        if self._greenlet is not None and self._loop_thread is None and self._thread != threading.get_ident():
            raise ExecutionError(
                Problem(
                    "X122",
                    f"{self._work.node.id!r} is paused inside its code in another thread",
                    f"after step {self._work.run.position}",
                    "a node that was stepped into must continue in the thread in which it started",
                    "continue from that thread, or call session.stop() and step here",
                )
            )


def _run_to_next_await(method: Callable[[Any], Any], value: Any) -> tuple[bool, Any]:
    """Run code up to its next await; return whether it continues, and the awaited object or the result."""
    try:
        return True, method(value)
    except BaseException as error:  # noqa: BLE001  (raised again by the driver)
        return False, error
