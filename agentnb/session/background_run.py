"""Background runs: a run advances on the kernel's event loop while the notebook stays usable."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agentnb.engine.core.event_queue import settle
from agentnb.engine.core.run import PAUSED, Halt
from agentnb.engine.core.time_travel import repair
from agentnb.errors import ExecutionError, Problem, StoreError
from agentnb.event_loops import get_running_loop, is_in_loop
from agentnb.session.checks import check_not_inside, check_speed

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentnb.engine.core.run import Run
    from agentnb.session.async_execution import AsyncExecution
    from agentnb.session.execution import Execution
    from agentnb.session.notifications import Notifications
    from agentnb.session.persistence import Persistence
    from agentnb.session.rollback import Rollback
    from agentnb.session.state import State


class BackgroundRun:
    """The task in which a session runs after `start()`, and the timers of pending questions.

    `_start_count` counts the starts: a task that finds another number ends before its next step.
    """

    def __init__(
        self, state: State, execution: Execution, async_execution: AsyncExecution, rollback: Rollback,
        persistence: Persistence, notifications: Notifications,
    ) -> None:  # fmt: skip
        self._state, self._execution, self._async_execution = state, execution, async_execution
        self._rollback, self._persistence, self._notifications = rollback, persistence, notifications
        self._task: asyncio.Task[None] | None = None
        self._end_event: asyncio.Event | None = None
        self._start_count = 0
        # Whether it continues after a person's answer rather than a call of start().
        self._continues_after_answer = False
        self._until: Any = None  # of start()
        self._speed: float | None = None  # steps per second
        self._wake_event: asyncio.Event | None = None  # set to end the delay after a step
        self._timer: asyncio.TimerHandle | None = None
        self._timed_out_step: asyncio.Task[Any] | None = None

    def start(self, until: Any = None) -> None:
        """Run on the kernel's loop; no effect if the run is already running, after a person's answer.

        Raises:
            ExecutionError: X112, something else moves the session; X113, no event loop runs here.
        """
        if self._state.runs_in_background and self._continues_after_answer:
            return
        execution = self._execution
        execution.check_may_move("start()")
        on_this_loop = self._get_loop() is get_running_loop()
        execution.release(all_=True)
        self._until = until
        # A node that was stepped into in this thread is finished before the run continues in another one.
        if execution.set_stop(until) and (on_this_loop or self._rollback.run_safely(execution.finish_entered_node)):
            self._launch()
        else:
            execution.clear_stop()
            self._notifications.save_and_notify()

    def _get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop on which a run started here runs.

        Raises:
            ExecutionError: X113, no event loop runs here.
        """
        loop = asyncio.get_running_loop() if is_in_loop() else self._state.loop
        if loop is None or not loop.is_running():
            raise ExecutionError(
                Problem(
                    "X113",
                    "start() needs an event loop, and none is running here",
                    "session.start()",
                    "it runs in the background of an event loop, as in a notebook's kernel; a plain script has none",
                    "call session.run(), or await session.arun()",
                )
            )
        return loop

    def _launch(self) -> None:
        """Start the task, or restart it after a pause."""
        state = self._state
        loop = state.loop = self._get_loop()
        self._start_count += 1
        state.runs_in_background, self._continues_after_answer = True, False
        state.run.halt = Halt()
        if is_in_loop() and asyncio.get_running_loop() is loop:
            self._begin(self._start_count)
        else:
            loop.call_soon_threadsafe(self._begin, self._start_count)

    def _begin(self, number: int) -> None:
        previous_task, self._end_event, self._wake_event = self._task, asyncio.Event(), asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run_task(number, previous_task, self._end_event))

    async def _run_task(self, number: int, before: asyncio.Task[None] | None, ended: asyncio.Event) -> None:
        state = self._state
        try:
            if before is not None and not before.done():
                await asyncio.wait([before])
            if number == self._start_count and state.runs_in_background:
                await self._run(number)
        except (asyncio.CancelledError, KeyboardInterrupt):
            pass  # an interrupt pauses: re-raised, it would end the kernel's loop
        except Exception as error:  # noqa: BLE001  (our own: raised again by `wait`)
            state.background_error = error
        finally:
            if number == self._start_count:
                state.runs_in_background, state.resumes_after_answer = False, True
                self._notifications.end()
            ended.set()
            try:
                self._notifications.save_and_notify()
            except StoreError as error:  # as any other: re-raised in `wait`
                state.background_error = error

    async def _run(self, number: int) -> None:
        state, execution, run = self._state, self._execution, self._state.run
        self._rollback.open_tip()
        settle(run)  # events emitted from outside may have no listener
        run.uses_threads, used_threads = True, run.uses_threads
        try:
            if execution.can_step() and not execution.stops_at_start(state.stopped_by):
                self._notifications.save_and_notify()
                with self._async_execution.keep_loop_free():
                    await self._run_on(run)
        finally:
            run.uses_threads = used_threads
            if number == self._start_count:
                repair(run)
                execution.clear_stop()

    # -- speed --------------------------------------------------------------------------------------------------

    async def _run_on(self, run: Run) -> None:
        """Run until a stop condition is met, with a delay after each step if a speed is set."""
        halt, end = run.halt, run.stop_at
        while True:
            run.stop_at = end if self._speed is None else min(end, run.position + 1)
            run.set_next_due()
            code = await self._async_execution.run_on()
            if code != PAUSED or halt.is_requested or not run.stop_at <= run.position < end:
                return
            self._persistence.check_ready()
            self._notifications.tick()
            await self._sleep(halt, run.ns)
            if halt.is_requested:
                return

    async def _sleep(self, halt: Halt, ns: Callable[[], int]) -> None:
        """Wait as long as the current speed requires, even if it changes meanwhile; a pause ends the wait."""
        start = ns()
        while self._speed is not None and not halt.is_requested and self._wake_event is not None:
            remaining = 1 / self._speed - (ns() - start) / 1e9
            self._wake_event.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake_event.wait(), max(remaining, 0))
            if not self._wake_event.is_set():
                return

    def _wake(self) -> None:
        loop = self._state.loop
        if self._wake_event is not None and loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._wake_event.set)

    @property
    def speed(self) -> float | None:
        """The most steps per second; None: no limit."""
        return self._speed

    def set_speed(self, steps: float | None) -> None:
        """Set the speed in steps per second, from the next step on; None: no limit.

        Raises:
            ExecutionError: X128, it is not a number above 0.
        """
        self._speed = check_speed(steps)
        run = self._state.run
        if self._state.runs_in_background and steps is not None:
            run.stop_at = min(run.stop_at, run.position + 1)
            run.next_due = 0
        self._wake()
        self._notifications.notify_move()

    # -- questions to people ---------------------------------------------------------------------------------------

    def continue_after_answer(self) -> None:
        """Continue a run that was started by start() and has asked a person, now that the answer is there."""
        state, execution = self._state, self._execution
        runs = state.loop is not None and state.loop.is_running()
        if state.resumes_after_answer and runs and not state.moves and execution.can_step():
            if not execution.set_stop(self._until) or execution.is_stop_met():
                execution.clear_stop()
                return
            self._launch()
            self._continues_after_answer = True

    def schedule_timeout(self) -> None:
        """Schedule the timeout of a pending question: the step then ends, and a background run continues.

        Without a loop there is no timer: the next `step` or `run` checks the time.
        """
        state = self._state
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        pending_steps = state.run.pending_steps.values()
        remaining = [
            pending_step.hold.seconds_left
            for pending_step in pending_steps
            if pending_step.is_held and pending_step.hold is not None
        ]
        times = [seconds for seconds in remaining if seconds is not None]
        loop = get_running_loop() or state.loop
        if times and not state.moves and loop is not None and loop.is_running():
            loop.call_soon_threadsafe(self._set_alarm, loop, min(times))

    def _set_alarm(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(max(seconds, 0), self._handle_timeout, self._state.run)

    def _handle_timeout(self, run: Run) -> None:
        """End the step of a question that was not answered in time."""
        self._timer = None
        state = self._state
        late = [
            pending_step
            for pending_step in run.pending_steps.values()
            if pending_step.hold is not None and pending_step.hold.is_expired
        ]
        if state.run is not run or state.moves:
            return
        if late and state.resumes_after_answer:
            self.start(self._until)
        elif late:
            self._timed_out_step = asyncio.get_running_loop().create_task(self._async_execution.step())
        else:  # the timer may fire slightly before the clock's deadline
            self.schedule_timeout()

    # -- end ----------------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Begin no further step; steps in flight end first."""
        if self._state.moves:
            run = self._state.run
            run.halt.is_requested = True
            run.next_due = 0  # a run without a loop checks after its step
            self._wake()
        self._notifications.save_and_notify()

    def stop(self) -> None:
        """Pause, and cancel the steps in flight.

        Raises:
            ExecutionError: X112, a node of the run tries it.
        """
        check_not_inside(self._state, "stop()")
        self.drop()
        self._rollback.cancel_in_flight()
        self._notifications.save_and_notify()

    def drop(self) -> None:
        """Stop immediately: the task ends at its next resumption, and takes no step from there."""
        self._state.run.halt.is_requested = True
        self._wake()
        if self._state.runs_in_background:
            self._state.runs_in_background = False
            self._start_count += 1

    async def wait(self, timeout: float | None) -> None:  # noqa: ASYNC109  (what `Session.wait` was given)
        """Wait until it has ended; raise what ended it, if it was an error.

        Raises:
            TimeoutError: it still runs after `timeout` seconds; it is not stopped.
        """
        state = self._state
        while state.runs_in_background and self._end_event is None:  # noqa: ASYNC110  (begun in another thread: there is no event yet)
            await asyncio.sleep(0)
        if self._end_event is not None and (state.runs_in_background or not self._end_event.is_set()):
            await asyncio.wait_for(self._end_event.wait(), timeout)
        if state.background_error is not None:
            crash, state.background_error = state.background_error, None
            raise crash


__all__ = ["BackgroundRun"]
