"""Async execution: the event loop keeps running while a step or a run is awaited."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agentnb.engine.core.drivers import LOOP, run_in_loop, run_plain, step_in_loop
from agentnb.engine.core.run import GO, NEVER, PAUSED, SUSPENDED, Halt
from agentnb.engine.effects import step_into
from agentnb.session import run_queries
from agentnb.session.checks import check_count
from agentnb.session.execution import make_end_condition, make_frame_end_condition

if TYPE_CHECKING:
    from agentnb.engine.core.pending_step import PendingStep
    from agentnb.session.execution import Execution, StopFor
    from agentnb.session.notifications import Notifications
    from agentnb.session.rollback import Rollback
    from agentnb.session.state import State
    from agentnb.trace.trace import SimulationStep, SimulationTrace


class AsyncExecution:
    """Steps and runs a session for async code. `pause()` ends it before the next step, `goto` and `stop` at once.

    Sync tools, systems and models are called in a thread, with the context variables of the caller, and so are
    functions that have been slow before: the event loop is not blocked.
    """

    def __init__(self, state: State, execution: Execution, rollback: Rollback, notifications: Notifications) -> None:
        self._state, self._execution, self._rollback, self._notifications = state, execution, rollback, notifications

    async def step(self, n: int = 1) -> SimulationStep | None:
        """Run the next `n` activations; return the last step, None if there was none."""
        state, execution = self._state, self._execution
        execution.check_may_move("astep()")
        check_count(n, "astep(n)")
        start = state.run.position
        with self._in_threads():
            for _ in range(n):
                if not execution.prepare_step():
                    break
                await self._rollback.arun_safely(self._run_one_or_rest())
                if run_queries.get_failure(state.run) is not None or execution.paused_calls():
                    break
        self._notifications.save_and_notify()
        return execution.last_step_since(start)

    async def step_over(self) -> SimulationStep | None:
        """Run until the next activation has left its frame."""
        return await self._step_until("astep_over()", make_end_condition)

    async def step_out(self) -> SimulationStep | None:
        """Run until the frame around the next node is left."""
        return await self._step_until("astep_out()", make_frame_end_condition)

    async def step_into(self) -> SimulationStep | None:
        """Like `step`, but stop inside the node as well. The node runs in a thread of its own, with its own loop."""
        state, execution = self._state, self._execution
        execution.check_may_move("astep_into()")
        start = state.run.position
        with self._in_threads(), execution.stepping_into():
            if execution.prepare_step() and (activation := execution.next_activation()) is not None:
                pending_step = execution.enter(activation)
                if pending_step is not None:
                    step_into.move_to_own_thread(pending_step)
                await self._rollback.arun_safely(self._run_one(pending_step))
        self._notifications.save_and_notify()
        return execution.last_step_since(start)

    async def run(self, until: Any = None, max_steps: int | None = None) -> SimulationTrace:
        """Step until a stop condition is met; return the trace."""
        execution = self._execution
        execution.check_may_move("arun()")
        try:
            with self._in_threads():
                if execution.prepare_run(until, max_steps):
                    await self._rollback.arun_safely(self.run_on())
        finally:
            execution.clear_stop()
            self._notifications.end()
        self._notifications.save_and_notify()
        return self._state.trace

    async def resume(self, pending_step: PendingStep) -> int:
        """Run the rest of a pending step, which has been answered; return why it ended. Sync code runs in a thread."""
        run = self._state.run
        with self._in_threads():
            rest = step_in_loop(run, pending_step) if pending_step.leaves_loop else self._run_one(pending_step)
            return await self._rollback.arun_safely(rest)

    @contextmanager
    def keep_loop_free(self) -> Iterator[None]:
        """Keep the event loop free for the duration of the context, even while a node runs for the first time.

        How long a first run takes is unknown, so it takes place in a thread.
        """
        run = self._state.run
        run.keeps_loop_free += 1
        try:
            yield
        finally:
            run.keeps_loop_free -= 1

    @contextmanager
    def _in_threads(self) -> Iterator[None]:
        """For the duration of the context, call everything that may block the loop in threads."""
        run = self._state.run
        run.halt = Halt()  # an earlier request to pause is over
        run.uses_threads, used_threads = True, run.uses_threads
        try:
            yield
        finally:
            run.uses_threads = used_threads

    async def _run_one_or_rest(self) -> int:
        """Run one step; a node that was stepped into runs to completion."""
        pending_step = step_into.find_entered(self._state.run)
        return await (step_in_loop(self._state.run) if pending_step is None else self._run_one(pending_step))

    async def _run_one(self, pending_step: PendingStep | None = None) -> int:
        run = self._state.run
        code = run_plain(run, once=True, pending_step=pending_step)
        return await step_into.drive_beside(run, lambda: step_in_loop(run, pending_step)) if code == LOOP else code

    async def run_on(self) -> int:
        """Step until a stop condition is met; finish first a node that was stepped into."""
        run = self._state.run
        pending_step, halt = step_into.find_entered(run), run.halt
        code = GO if pending_step is None else await self._run_one(pending_step)
        if halt.is_requested:
            return PAUSED
        return await run_in_loop(run, self._notifications.tick) if code in (GO, SUSPENDED) else code

    async def _step_until(self, verb: str, stop_for: StopFor) -> SimulationStep | None:
        state, execution = self._state, self._execution
        execution.check_may_move(verb)
        start = state.run.position
        try:
            with self._in_threads():
                if execution.prepare_step() and (activation := execution.next_activation()) is not None:
                    execution.stop_at(stop_for(state.run, activation))
                    await self._rollback.arun_safely(self._run_past_one())
        finally:
            execution.clear_stop()
            self._notifications.end()
        self._notifications.save_and_notify()
        return execution.last_step_since(start)

    async def _run_past_one(self) -> None:
        run = self._state.run
        halt = run.halt
        # A manual step: of several branches, only this one
        if await self._run_one_or_rest() == GO and not halt.is_requested:
            run.stop_at = NEVER
            run.set_next_due()
            await run_in_loop(run, self._notifications.tick)


__all__ = ["AsyncExecution"]
