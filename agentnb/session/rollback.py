"""Rollback: a move that is interrupted or fails leaves the session after a committed step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from agentnb.engine.control import interventions
from agentnb.engine.core import time_travel
from agentnb.engine.core.pending_step import cancel
from agentnb.engine.core.rng import roll_back_draws
from agentnb.engine.effects.crash_recovery import InterruptedSteps, roll_back_interrupted_step
from agentnb.errors import StoreError
from agentnb.session.logging_listener import attach_listener

if TYPE_CHECKING:
    from agentnb.session.state import State

T = TypeVar("T")


class Rollback:
    """Runs what moves the session, and rolls back what an exception or an interrupt has left of it.

    Work is passed as a callable rather than run in a `with` block: between two moments of a context manager there are
    more places where a KeyboardInterrupt can arrive.
    """

    __slots__ = ("_state",)

    def __init__(self, state: State) -> None:
        self._state = state

    def run_safely(self, work: Callable[[], T]) -> T:
        """Execute work that advances the run; on any exception, roll back to the last committed step."""
        state = self._state
        self.repair()
        state.needs_repair = True
        state.sync_calls += 1
        try:
            result = work()
        except StoreError:  # the step could not be saved: no other has begun, and pending steps stay pending
            self.repair()
            raise
        except BaseException:
            self.cancel_in_flight("interrupted")
            self.repair()
            raise
        finally:
            state.sync_calls -= 1
        state.needs_repair = False
        return result

    async def arun_safely(self, work: Awaitable[T]) -> T:
        """Like `run_safely`, for async code."""
        state = self._state
        self.repair()
        state.needs_repair = True
        state.async_calls += 1
        try:
            result = await work
        except BaseException:
            self.cancel_in_flight("interrupted")
            self.repair()
            raise
        finally:
            state.async_calls -= 1
        state.needs_repair = False
        return result

    def repair(self) -> None:
        """Roll back what an interrupted step has left."""
        state = self._state
        run = state.run
        if state.needs_repair or run.dirty:
            if roll_back_interrupted_step(run) and not run.pending_steps:
                roll_back_draws(run)
            if state.journal is not None:
                state.journal.record_again()
            state.needs_repair = False

    def travel(self, move: Callable[..., None], *arguments: Any) -> None:
        """Move to another step; atomic under KeyboardInterrupt."""
        self._state.needs_repair = True
        try:
            move(*arguments)
        except BaseException:
            self.repair()
            raise
        self._state.needs_repair = False

    def cancel_in_flight(self, reason: str = "cancelled") -> None:
        """Cancel the steps in flight; they run again when stepped, without repeating calls that were answered."""
        run = self._state.run
        pending_steps = list(run.pending_steps.values())
        for pending_step in pending_steps:
            del run.pending_steps[pending_step.activation.id]
            cancel(run, pending_step)
            interventions.record_intervention(run, reason, pending_step.activation.node.id)
        if len(pending_steps) == 1 and not pending_steps[0].intervention_count:
            roll_back_draws(run)
        if isinstance(run.recorded, InterruptedSteps):
            run.recorded.end_calls(run)

    def open_tip(self) -> None:
        """Prepare to continue: later steps, if any, become a branch; reloaded functions have their new code."""
        run = self._state.run
        run.plan.apply_reloads()
        if run.is_rewound or run.current_history is not run.history:
            time_travel.open_tip(run)
        attach_listener(self._state)


__all__ = ["Rollback"]
