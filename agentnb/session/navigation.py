"""Navigation through a recorded run: back, to any step, back to a stop condition. No node runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from agentnb.engine.core import time_travel
from agentnb.engine.core.drivers import SLICE_NS
from agentnb.engine.core.run import Halt
from agentnb.session.checks import check_count, check_not_inside, refuse_step
from agentnb.session.execution import is_step_number

if TYPE_CHECKING:
    from agentnb.session.background_run import BackgroundRun
    from agentnb.session.execution import Execution
    from agentnb.session.notifications import Notifications
    from agentnb.session.rollback import Rollback
    from agentnb.session.state import State
    from agentnb.trace.trace import SimulationTrace


class Navigation:
    """Moves a session to another position of its recorded run."""

    def __init__(
        self, state: State, rollback: Rollback, execution: Execution, background: BackgroundRun,
        notifications: Notifications,
    ) -> None:  # fmt: skip
        self._state, self._rollback, self._execution = state, rollback, execution
        self._background, self._notifications = background, notifications

    def back(self, n: int = 1) -> None:
        """Go back `n` steps, at most to the start."""
        check_count(n, "back(n)")
        state = self._state
        run = state.run
        simple = not run.pending_steps and run.recorded is None and not state.moves and not state.needs_repair
        if n == 1 and simple and run.position:
            self._rollback.travel(time_travel.undo, run)
            self._finish_move()
        else:
            self.goto(max(run.position - n, 0))

    def goto(self, step: int) -> None:
        """Go to the position after a step.

        Raises:
            ExecutionError: X111, there is no such step.
        """
        refuse_step(self._state, step)
        check_not_inside(self._state, "goto()")
        self._background.drop()
        self._rollback.cancel_in_flight()
        self._rollback.repair()
        self._rollback.travel(time_travel.goto, self._state.run, step)
        self._finish_move()

    def _finish_move(self) -> None:
        state = self._state
        state.stopped_by = None
        if state.hooks.rows["change"] or state.journal is not None:
            self._notifications.notify_move()

    def run_back(self, until: Any = None) -> SimulationTrace:
        """Go back until a breakpoint or `until` is met, else to the start."""
        for _ in self._iter_back_until(until):
            self._notifications.tick()
        return self._state.trace

    async def arun_back(self, until: Any = None) -> SimulationTrace:
        """Like `run_back`, for async code: `pause()` ends it at the position reached by then."""
        state = self._state
        going = self._iter_back_until(until)
        next(going)
        run, slice_end = state.run, 0
        halt = run.halt = Halt()
        state.async_calls += 1
        try:
            for _ in going:
                if run.ns() > slice_end:
                    self._notifications.tick()
                    await asyncio.sleep(0)
                    slice_end = run.ns() + SLICE_NS
                if halt.is_requested or state.run is not run:
                    break
        finally:
            state.async_calls -= 1
        self._notifications.notify_move()
        return state.trace

    def _iter_back_until(self, until: Any) -> Iterator[None]:
        """Pause the run, then go back one step at a time until a stop condition is met."""
        state = self._state
        end = until if is_step_number(until) else 0
        condition = None if until is None or is_step_number(until) else self._execution.condition_for(until)
        is_met = not state.breakpoint_rows and condition is None
        self.goto(min(end, state.run.position) if is_met else state.run.position)
        yield
        while not is_met and state.run.position > end:
            self._rollback.travel(time_travel.undo, state.run)
            is_met = self.meets_breakpoint() or (condition is not None and condition.is_met())
            yield
        self._notifications.notify_move()

    def meets_breakpoint(self) -> bool:
        """Return True if a breakpoint is met at the current position; counts no hit, because nothing ran."""
        state = self._state
        if state.breakpoint_rows:
            state.stopped_by = state.breakpoints.find_met(state.run, state.names)
        return state.stopped_by is not None


__all__ = ["Navigation"]
