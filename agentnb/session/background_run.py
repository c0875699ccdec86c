"""Background runs: a run advances on the kernel's event loop while the notebook stays usable."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agentnb.engine.core.event_loops import in_loop, running_loop
from agentnb.engine.core.event_queue import settle
from agentnb.engine.core.run import PAUSED, Halt
from agentnb.engine.core.time_travel import repair
from agentnb.errors import ExecutionError, Problem, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentnb.engine.core.run import Run
    from agentnb.session.session import Session


class Live:
    """The task of a session's background run. The loop is captured when the session is created, in the main thread.

    `begun` counts the starts: a task that finds another number ends before its next step.
    """

    def __init__(self, session: Session, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._session = session
        self._loop = loop or running_loop()
        self._task: asyncio.Task[None] | None = None
        self._ended: asyncio.Event | None = None
        self.begun = 0
        self.going = False
        self.awaited = 0  # number of `astep` and `arun` calls of other tasks in progress
        self.here = 0  # number of synchronous calls in progress; the functions they call may not move the session
        self.onward = False  # whether start() began the run that asks a person, so that it continues after the answer
        self.answered = False  # whether it continues after a person's answer rather than a call of start()
        self.aim: Any = None  # the `until` of start()
        self.speed: float | None = None  # steps per second; see Session.speed
        self._stirred: asyncio.Event | None = None  # set to end the delay after a step
        self._alarm: asyncio.TimerHandle | None = None
        self._late: asyncio.Task[Any] | None = None

    @property
    def moves(self) -> bool:
        """Return True if the session is being advanced, by its own task or by an awaiting caller."""
        return self.going or self.awaited > 0 or self.here > 0

    def loop_here(self) -> asyncio.AbstractEventLoop:
        """Return the event loop on which a run started here runs.

        Raises:
            ExecutionError: X113, no event loop runs here.
        """
        loop = asyncio.get_running_loop() if in_loop() else self._loop
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

    def start(self) -> None:
        """Start, or restart after a pause.

        Raises:
            ExecutionError: X113, no event loop runs here.
        """
        loop = self._loop = self.loop_here()
        self.begun += 1
        self.going, self.answered = True, False
        self._session.engine.halt = Halt()
        if in_loop() and asyncio.get_running_loop() is loop:
            self._begin(self.begun)
        else:
            loop.call_soon_threadsafe(self._begin, self.begun)

    def _begin(self, number: int) -> None:
        before, self._ended, self._stirred = self._task, asyncio.Event(), asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._go(number, before, self._ended))

    async def _go(self, number: int, before: asyncio.Task[None] | None, ended: asyncio.Event) -> None:
        session = self._session
        try:
            if before is not None and not before.done():
                await asyncio.wait([before])
            if number == self.begun and self.going:
                await self._run(number)
        except (asyncio.CancelledError, KeyboardInterrupt):
            pass  # an interrupt pauses: re-raised, it would end the kernel's loop
        except Exception as error:  # noqa: BLE001  (ours: raised again where somebody waits)
            session.crash = error
        finally:
            if number == self.begun:
                self.going, self.onward = False, True
                session.hooks.tell("end", session)
            ended.set()
            try:
                session.changed()
            except StoreError as error:  # as any other: re-raised in `wait`
                session.crash = error

    async def _run(self, number: int) -> None:
        session, run = self._session, self._session.engine
        session.open_tip()
        settle(run)  # events emitted from outside may have no listener
        run.threaded, before = True, run.threaded
        try:
            if session.may_go() and not session.stops_here(session.stopped_by):
                session.changed()
                await self._on(run)
        finally:
            run.threaded = before
            if number == self.begun:
                repair(run)
                session.ended()

    # -- speed
    # ----------------------------------------------------------------------------------------------------------

    async def _on(self, run: Run) -> None:
        """Run until a stop condition is met, with a delay after each step if a speed is set."""
        session, halt, end = self._session, run.halt, run.stop_at
        while True:
            run.stop_at = end if self.speed is None else min(end, run.position + 1)
            run.set_mark()
            code = await session.run_awaited()
            if code != PAUSED or halt.on or not run.stop_at <= run.position < end:
                return
            session.ready_to_keep()
            session.tick()
            await self._rest(halt, run.ns)
            if halt.on:
                return

    async def _rest(self, halt: Halt, ns: Callable[[], int]) -> None:
        """Wait as long as the current speed requires, even if it changes meanwhile; a pause ends the wait."""
        began = ns()
        while self.speed is not None and not halt.on and self._stirred is not None:
            left = 1 / self.speed - (ns() - began) / 1e9
            self._stirred.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stirred.wait(), max(left, 0))
            if not self._stirred.is_set():
                return

    def _stir(self) -> None:
        if self._stirred is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stirred.set)

    def set_speed(self, steps: float | None) -> None:
        """Set the speed in steps per second, from the next step on; None: no limit."""
        self.speed = steps
        run = self._session.engine
        if self.going and steps is not None:
            run.stop_at = min(run.stop_at, run.position + 1)
            run.mark = 0
        self._stir()

    # -- timeouts of questions
    # -------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Continue a run that was started by start() and has asked a person, now that the answer is there."""
        runs = self._loop is not None and self._loop.is_running()
        if self.onward and runs and not self.moves and self._session.may_go():
            if not self._session.aim(self.aim) or self._session.is_there():
                self._session.ended()
                return
            self.start()
            self.answered = True

    def attend(self) -> None:
        """Schedule the timeout of a pending question: the step then ends, and a background run continues.

        Without a loop there is no timer: the next `step` or `run` checks the time.
        """
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        flights = self._session.engine.flights.values()
        left = [flight.hold.left for flight in flights if flight.held and flight.hold is not None]
        times = [seconds for seconds in left if seconds is not None]
        loop = running_loop() or self._loop
        if times and not self.moves and loop is not None and loop.is_running():
            loop.call_soon_threadsafe(self._set_alarm, loop, min(times))

    def _set_alarm(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = loop.call_later(max(seconds, 0), self._time_is_up, self._session.engine)

    def _time_is_up(self, engine: Run) -> None:
        """End the step of a question that was not answered in time."""
        self._alarm = None
        session = self._session
        late = [flight for flight in engine.flights.values() if flight.hold is not None and flight.hold.late]
        if session.engine is not engine or self.moves:
            return
        if late and self.onward:
            session.start(self.aim)
        elif late:
            self._late = asyncio.get_running_loop().create_task(session.astep())
        else:  # the timer may fire slightly before the clock's deadline
            self.attend()

    def pause(self) -> None:
        """Begin no further step; steps in flight end first."""
        if self.moves:
            run = self._session.engine
            run.halt.on = True
            run.mark = 0  # a run without a loop checks after its step
            self._stir()

    def drop(self) -> None:
        """Stop immediately: cancel the steps in flight; the task ends at its next resumption."""
        self._session.engine.halt.on = True
        self._stir()
        if self.going:
            self.going = False
            self.begun += 1

    async def wait(self, timeout: float | None) -> None:  # noqa: ASYNC109  (what `Session.wait` was given)
        """Wait until it has ended.

        Raises:
            TimeoutError: it still runs after `timeout` seconds; it is not stopped.
        """
        while self.going and self._ended is None:  # noqa: ASYNC110  (begun in another thread: there is no event yet)
            await asyncio.sleep(0)
        if self._ended is not None and (self.going or not self._ended.is_set()):
            await asyncio.wait_for(self._ended.wait(), timeout)

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop it runs on; None before the first."""
        return self._loop
