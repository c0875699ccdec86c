"""Async variants of a session's methods: the event loop keeps running while they are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agentnb.engine.core.drivers import LOOP, SLICE_NS, run_in_loop, run_plain, step_in_loop
from agentnb.engine.core.run import GO, NEVER, PAUSED, SUSPENDED, Halt
from agentnb.engine.effects import step_into
from agentnb.session import run_queries
from agentnb.session import stop_condition as stops
from agentnb.session.execution import Driver

if TYPE_CHECKING:
    from agentnb.engine.core.frames import Activation
    from agentnb.engine.core.pending_step import PendingStep
    from agentnb.engine.core.run import Run
    from agentnb.trace.trace import SimulationStep, SimulationTrace


class Awaited(Driver):
    """The async methods. `pause()` ends one before its next step; `back`, `goto` and `stop` end it at once.

    Sync tools, systems and models are called in a thread, with the context variables of the caller, and so are
    functions that have been slow before: the event loop is not blocked.
    """

    async def astep(self, n: int = 1) -> SimulationStep | None:
        """Like `step`, for async code."""
        self._refuse("astep()")
        before = self.engine.position
        with self._beside():
            for _ in range(n):
                if not self._begin_step():
                    break
                await self._asafely(self._step_awaited())
                if run_queries.failure_of(self.engine) is not None or self._held():
                    break
        self.changed()
        return self._last(before)

    async def astep_over(self) -> SimulationStep | None:
        """Like `step_over`, for async code."""
        return await self._astep_until("astep_over()", stops.is_over)

    async def astep_out(self) -> SimulationStep | None:
        """Like `step_out`, for async code."""
        return await self._astep_until("astep_out()", stops.is_left)

    async def astep_into(self) -> SimulationStep | None:
        """Like `step_into`, for async code. Coroutines of the node run on a separate loop."""
        self._refuse("astep_into()")
        before = self.engine.position
        with self._beside(), self._goes_in():
            if self._begin_step() and (turn := self._turn()) is not None:
                await self._asafely(self._one_awaited(self._entering(turn)))
        self.changed()
        return self._last(before)

    async def arun(self, until: Any = None, max_steps: int | None = None) -> SimulationTrace:
        """Like `run`, for async code."""
        self._refuse("arun()")
        try:
            with self._beside():
                if self._aim(until, max_steps):
                    await self._asafely(self.run_awaited())
        finally:
            self.ended()
            self.hooks.tell("end", self)
        self.changed()
        return self.trace

    async def arun_back(self, until: Any = None) -> SimulationTrace:
        """Like `run_back`, for async code: `pause()` ends it at the position reached by then."""
        going = self._going_back(until)
        next(going)
        run, looks = self.engine, 0
        halt = run.halt = Halt()
        self.live.awaited += 1
        try:
            for _ in going:
                if run.ns() > looks:
                    self.tick()
                    await asyncio.sleep(0)
                    looks = run.ns() + SLICE_NS
                if halt.on or self.engine is not run:
                    break
        finally:
            self.live.awaited -= 1
        self.moved()
        return self.trace

    # -- building blocks
    # ------------------------------------------------------------------------------------------------

    @contextmanager
    def _beside(self) -> Iterator[None]:
        """Call in threads, for the duration of the context, whatever may block the loop."""
        run = self.engine
        run.halt = Halt()  # a pause before it has ended
        run.threaded, before = True, run.threaded
        try:
            yield
        finally:
            run.threaded = before

    async def _step_awaited(self) -> int:
        """Run one step; a node that was stepped into runs to its end."""
        flight = step_into.entered(self.engine)
        return await (step_in_loop(self.engine) if flight is None else self._one_awaited(flight))

    async def _one_awaited(self, flight: PendingStep | None = None) -> int:
        run = self.engine
        code = run_plain(run, once=True, flight=flight)
        return await step_into.drive_beside(run, lambda: step_in_loop(run, flight)) if code == LOOP else code

    async def run_awaited(self) -> int:
        """Step until a stop condition is met; finish first a node that was stepped into."""
        flight, halt = step_into.entered(self.engine), self.engine.halt
        code = GO if flight is None else await self._one_awaited(flight)
        if halt.on:
            return PAUSED
        return await run_in_loop(self.engine, self.tick) if code in (GO, SUSPENDED) else code

    async def _astep_until(
        self, verb: str, until: Callable[[Run, Activation], stops.Until | None]
    ) -> SimulationStep | None:
        self._refuse(verb)
        before = self.engine.position
        try:
            with self._beside():
                if self._begin_step() and (turn := self._turn()) is not None:
                    self._until = until(self.engine, turn)
                    self._arm()
                    await self._asafely(self._until_awaited())
        finally:
            self.ended()
            self.hooks.tell("end", self)
        self.changed()
        return self._last(before)

    async def _until_awaited(self) -> None:
        run = self.engine
        halt = run.halt
        if await self._step_awaited() == GO and not halt.on:  # a manual step: of several branches, only this one
            run.stop_at = NEVER
            run.set_mark()
            await run_in_loop(run, self.tick)
