"""What the engine calls while a run moves: listeners, breakpoints, the stop condition and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentnb.engine.control import interventions
from agentnb.engine.control.breakpoints import Breakpoint, get_last_step
from agentnb.engine.control.listeners import Token
from agentnb.engine.core.run import BREAK, ENDING, EXHAUSTED, GO, LANES, PAUSED, SUSPENDED
from agentnb.engine.effects import step_into
from agentnb.session.event_dispatch import attach

if TYPE_CHECKING:
    from agentnb.engine.core.frames import Activation
    from agentnb.engine.core.work import Work
    from agentnb.session.state import State
    from agentnb.world.effect import Effect


class Callbacks:
    """Installs in the engine's run what it is to call, and decides there whether the run stops."""

    __slots__ = ("_state",)

    def __init__(self, state: State) -> None:
        self._state = state

    def install(self) -> None:
        """Install the callbacks that are needed now; without listeners, breakpoints and conditions a step has none."""
        state = self._state
        run, hooks, breakpoints, until = state.run, state.hooks, state.breakpoint_rows, state.until
        at_calls = at_nodes = 0
        for row in breakpoints.values():
            at_calls += row.call is not None
            at_nodes += row.node is not None
        listeners = hooks.rows
        run.armed = bool(
            listeners["step"]
            or listeners["error"]
            or hooks.schedules
            or run.limiter is not None
            or state.limits.has_counted_limits
            or len(breakpoints) > at_calls
            or until is not None
            or state.journal is not None
            or run.recorded is not None
        )
        run.run_id, run.origin_id = self._run_id, self._origin_id
        run.after_step = attach(state, self._handle_step)
        run.before_activation = (
            self._should_stop_before if at_nodes or (until is not None and until.is_met_before is not None) else None
        )
        run.holds_call = self._holds_call if at_calls or state.steps_into else None
        run.on_emit = step_into.stop if state.steps_into else None
        run.on_token = self._emit_token if listeners["token"] else None

    def _run_id(self) -> str:
        return self._state.run_id

    def _origin_id(self) -> str:
        return self._state.origin_id

    def _emit_token(self, *fields: Any) -> None:
        self._state.hooks.notify("token", Token(*fields))

    def _handle_step(self, activation: Activation, code: int) -> int:
        """Notify the listeners after a step, then return whether the run stops here."""
        state = self._state
        run, hooks, limits = state.run, state.hooks, state.limits
        if code == SUSPENDED:  # the step has begun and is not committed yet
            return code
        if limits.has_counted_limits:
            limits.commit(activation.work)
        if run.recorded is not None:
            run.recorded.forget_step(run, activation.id)
        saved = state.journal is None or state.journal.save_step()
        if hooks.rows["step"] or hooks.rows["error"]:
            self._notify_of_steps()
        stops = run.lanes != ENDING and self._should_stop_after(
            activation
        )  # when branches end, only the cause is reported
        if code not in (GO, LANES):
            return code
        if limits.has_counted_limits and limits.find_reached(run):
            return EXHAUSTED
        if run.halt.is_requested or not saved:
            return PAUSED
        return BREAK if stops else code

    def _notify_of_steps(self) -> None:
        """Notify the listeners of the last step, and of the steps cancelled by its failure."""
        state = self._state
        run, hooks = state.run, state.hooks
        history, row = get_last_step(run)
        for number in range(history.base + row, run.position + 1):
            step = state.trace.steps[number - 1]
            hooks.notify("step", step)
            if number in history.errors:
                hooks.notify("error", step)

    def _should_stop_after(self, activation: Activation) -> bool:
        """Return True if a breakpoint or the stop condition of a run is met at the current position."""
        is_met = self._state.until is not None and self._state.until.is_met()
        return self.stops_at_breakpoint(activation) or is_met

    def stops_at_breakpoint(self, activation: Activation | None) -> bool:
        """Return True if a breakpoint is met after the step of `activation` (None: before any), and record it."""
        state = self._state
        if not state.breakpoint_rows:
            return False
        return self._record_stop(state.breakpoints.find_after_step(state.run, activation, state.names))

    def _record_stop(self, breakpoint: Breakpoint | None) -> bool:
        """Record the breakpoint that stops the run here; return False if there is none."""
        if breakpoint is None:
            return False
        self._state.stopped_by = breakpoint
        interventions.record_intervention(self._state.run, "breakpoint", str(breakpoint))
        return True

    def _should_stop_before(self, activation: Activation) -> bool:
        """Return True if the run stops before an activation of a branch while others are in flight."""
        state = self._state
        if state.until is not None and state.until.is_met_before is not None and state.until.is_met_before(activation):
            return True
        return self._record_stop(state.breakpoints.find_before_step(state.run, activation))

    def _holds_call(self, work: Work, effect: Effect, moment: str) -> bool:
        """Return True if a call is to be paused: by a breakpoint, or because its node is stepped into."""
        state = self._state
        breakpoint = state.breakpoints.find_at_call(work, effect, moment)
        state.stopped_by = breakpoint or state.stopped_by
        return breakpoint is not None or (state.steps_into and step_into.stops_at_calls(work))


__all__ = ["Callbacks"]
