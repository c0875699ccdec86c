"""Execution: the methods that advance a run, each built from the engine's single step function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

from agentnb.engine.control import interventions
from agentnb.engine.control.breakpoints import get_next_activation
from agentnb.engine.core.drivers import (
    LOOP,
    choose_pending_step,
    find_activation_beside,
    run_in_loop,
    run_plain,
    step_in_loop,
)
from agentnb.engine.core.event_queue import settle
from agentnb.engine.core.history import FAIL, RESUME
from agentnb.engine.core.run import FAILED, GO, NEVER, PAUSED, SUSPENDED, Halt
from agentnb.engine.core.step import step
from agentnb.engine.effects import step_into
from agentnb.engine.persistence import masked_values
from agentnb.session.checks import (
    check_count,
    check_not_running,
    check_until,
    find_unmet_requirements,
    warn_of_requirements,
)
from agentnb.session.run_queries import ASKS, get_status
from agentnb.session.state import Until

if TYPE_CHECKING:
    from agentnb.engine.control.breakpoints import Breakpoint
    from agentnb.engine.core.frames import Activation
    from agentnb.engine.core.pending_step import Hold, PendingStep
    from agentnb.engine.core.run import Run
    from agentnb.session.callbacks import Callbacks
    from agentnb.session.notifications import Notifications
    from agentnb.session.persistence import Persistence
    from agentnb.session.rollback import Rollback
    from agentnb.session.state import State
    from agentnb.trace.trace import SimulationStep, SimulationTrace


def make_node_condition(run: Run, node: str) -> Until:
    """Stop when a node is next."""

    def is_met() -> bool:
        following = get_next_activation(run)
        return following is not None and following.node.id == node

    return Until(is_met, lambda activation: activation.node.id == node)


def make_end_condition(run: Run, activation: Activation) -> Until:
    """Stop when an activation has left its frame: a leaf after its step, a composite node at its end.

    The delivery of an event is over when all deliveries of that event are.
    """
    frame, event, nodes = activation.frame.id, activation.event, {activation.node.index}
    if event >= 0:
        nodes = {node.index for listening in run.plan.listeners.values() for node in listening}

    def is_met() -> bool:
        if frame not in run.frames:  # left by an error or a cancellation
            return True
        waiting = [run.tables.activations[number] for number in run.frontier()]
        if event >= 0 and any(turn.event == event for turn in waiting):
            return False
        inside = any(row.parent == frame and row.owner in nodes for row in (frame.row for frame in run.frames.values()))
        ends = any(turn.frame == frame and turn.node in nodes and turn.purpose in (RESUME, FAIL) for turn in waiting)
        return not inside and not ends

    return Until(is_met)


def make_frame_end_condition(run: Run, activation: Activation) -> Until | None:
    """Stop when the frame of an activation is left; None for the root's, which lasts to the end."""
    frame = activation.frame.id
    return Until(lambda: frame not in run.frames) if frame else None


CHUNK = 4_096  # steps between two looks at the clock

# Given the run and the next activation, return where to stop; None: at the end.
StopFor = Callable[["Run", "Activation"], Until | None]


class Execution:
    """Steps and runs a session, without an event loop of its own."""

    def __init__(
        self, state: State, callbacks: Callbacks, rollback: Rollback, persistence: Persistence,
        notifications: Notifications,
    ) -> None:  # fmt: skip
        self._state, self._callbacks, self._rollback = state, callbacks, rollback
        self._persistence, self._notifications = persistence, notifications

    def check_may_move(self, verb: str) -> None:
        """Raise if something else advances the session, or a node that runs in another thread is paused.

        Raises:
            ExecutionError: X112, it is so; L450, L452, the run is read-only.
        """
        check_not_running(self._state, verb)
        step_into.check_threads(self._state.run)

    # -- one step -----------------------------------------------------------------------------------------------

    def step(self, n: int) -> SimulationStep | None:
        """Run the next `n` activations; return the last step, None if there was none."""
        self.check_may_move("step()")
        check_count(n, "step(n)")
        start = self._state.run.position
        self._rollback.run_safely(partial(self._step_up_to, n))
        self._notifications.save_and_notify()
        return self.last_step_since(start)

    def _step_up_to(self, n: int) -> None:
        for _ in range(n):
            if not self.prepare_step() or self.run_one() == FAILED or self.paused_calls():
                return

    def last_step_since(self, start: int) -> SimulationStep | None:
        """Return the last step; None if there was none after step `start`."""
        run = self._state.run
        moved = run.position > start or (run.current_history.base == start < run.position)
        return self._state.trace.steps[run.position - 1] if moved and run.position else None

    def prepare_step(self, *, release_all: bool = False) -> bool:
        """Prepare one manual step: open the tip, release a paused call (or all). Return False if no step can begin."""
        state = self._state
        self._persistence.check_ready()
        self.release(all_=release_all)
        state.resumes_after_answer = False
        if not state.run.position:
            warn_of_requirements(state.run)
        if not self.can_step():  # first: a run that cannot continue starts no branch
            return False
        self._rollback.open_tip()
        run, state.stopped_by = state.run, None
        settle(run)  # the next delivery may have no listener
        return run.queue_start < run.current_history.push_ends[run.position - run.current_history.base]

    def paused_calls(self) -> list[Hold]:
        """Return where steps in flight are paused for inspection, without those that wait for a person's answer."""
        pending_steps = self._state.run.pending_steps
        if not pending_steps:
            return []
        holds = [
            pending_step.hold
            for pending_step in pending_steps.values()
            if pending_step.is_held and pending_step.hold is not None
        ]
        return [hold for hold in holds if hold.kind not in ASKS]

    def release(self, *, all_: bool) -> None:
        """Release paused calls: that of the next pending step, or all."""
        if all_ or all(pending_step.is_held for pending_step in self._state.run.pending_steps.values()):
            for hold in self.paused_calls()[: None if all_ else 1]:
                hold.is_resumed = True

    def next_activation(self) -> Activation | None:
        """Return the activation that the next step continues or begins."""
        run = self._state.run
        return (
            (find_activation_beside(run) or choose_pending_step(run).activation)
            if run.pending_steps
            else interventions.get_current_activation(run)
        )

    def can_step(self) -> bool:
        """Return True if a next step can begin here."""
        run, limits = self._state.run, self._state.limits
        status = get_status(run, limits)
        if status == "failed" and (find_unmet_requirements(run) or limits.find_reached(run) is not None):
            return False
        if status == "waiting" and not masked_values.find_masked_paths(run):
            if not run.pending_steps:
                return True  # another process has asked
            if find_activation_beside(run) is not None:  # a branch beside the one that asks
                return limits.find_reached(run) in (None, "max_steps")  # max_steps is checked when the step is chosen
        return status in ("ready", "paused", "failed", "in_flight") or not all(
            pending_step.is_held for pending_step in run.pending_steps.values()
        )

    def run_one(self, pending_step: PendingStep | None = None) -> int:
        """Run one step, or the rest of a pending one; return why it ended."""
        run = self._state.run
        run.halt.is_requested = False
        code = run_plain(run, once=True, pending_step=pending_step)
        return step_into.drive(run, lambda: step_in_loop(run, pending_step)) if code == LOOP else code

    def restart(self, activation: Activation) -> None:
        """Begin a step of another process again and run it up to where it waits."""
        if step(self._state.run, activation) == SUSPENDED:
            self.run_one(self._state.run.pending_steps[activation.id])

    # -- over, out and into -----------------------------------------------------------------------------------------

    def step_over(self) -> SimulationStep | None:
        """Run until the next activation has left its frame."""
        return self._step_until("step_over()", make_end_condition)

    def step_out(self) -> SimulationStep | None:
        """Run until the frame around the next node is left."""
        return self._step_until("step_out()", make_frame_end_condition)

    def _step_until(self, verb: str, stop_for: StopFor) -> SimulationStep | None:
        self.check_may_move(verb)
        start = self._state.run.position
        try:
            self._rollback.run_safely(partial(self._step_and_run, stop_for))
        finally:
            self._notifications.end()
        self._notifications.save_and_notify()
        return self.last_step_since(start)

    def _step_and_run(self, stop_for: StopFor) -> None:
        if not self.prepare_step() or (activation := self.next_activation()) is None:
            return
        self.stop_at(stop_for(self._state.run, activation))
        try:
            if self.run_one() == GO:  # a manual step: of several branches, only this one
                self._run_on(NEVER)
        finally:
            self.clear_stop()

    def step_into(self) -> SimulationStep | None:
        """Like `step`, but stop inside the node as well: at events, and before and after each call."""
        self.check_may_move("step_into()")
        start = self._state.run.position
        self._rollback.run_safely(self._step_inside)
        self._notifications.save_and_notify()
        return self.last_step_since(start)

    def _step_inside(self) -> None:
        with self.stepping_into():
            if self.prepare_step() and (activation := self.next_activation()) is not None:
                self.run_one(self.enter(activation))

    @contextmanager
    def stepping_into(self) -> Iterator[None]:
        """Pause at calls and events for the duration of the context."""
        self._state.steps_into = True
        self._callbacks.install()
        try:
            yield
        finally:
            self._state.steps_into = False
            self._callbacks.install()

    def enter(self, activation: Activation) -> PendingStep | None:
        """Return the pending step of an activation that is stepped into; None if it only propagates a failure."""
        pending_step = self._state.run.pending_steps.get(activation.id)
        return (
            step_into.enter(self._state.run, activation)
            if pending_step is None and activation.purpose != FAIL
            else pending_step
        )

    # -- run ----------------------------------------------------------------------------------------------------

    def run(self, until: Any = None, max_steps: int | None = None) -> SimulationTrace:
        """Step until a breakpoint, the end, a question, a limit, `until` or `max_steps`; return the trace."""
        self.check_may_move("run()")
        try:
            self._rollback.run_safely(partial(self._run_here, until, max_steps))
        finally:
            self._notifications.end()
        self._notifications.save_and_notify()
        return self._state.trace

    def _run_here(self, until: Any, max_steps: int | None) -> None:
        if self.prepare_run(until, max_steps):
            try:
                if self.finish_entered_node():
                    self._run_on(self._state.run.stop_at)
            finally:
                self.clear_stop()

    def finish_entered_node(self) -> bool:
        """Run a node that was stepped into to completion; return whether the run continues.

        The rest of the node is bound to a thread and blocks this one: no other loop can take it over.
        """
        pending_step = step_into.find_entered(self._state.run)
        return pending_step is None or self.run_one(pending_step) in (GO, SUSPENDED)

    def _run_on(self, end: int) -> None:
        """Step until a stop condition is met, at the latest after step `end`."""
        run, hooks, tick = self._state.run, self._state.hooks, self._notifications.tick
        while True:
            run.stop_at = min(end, run.position + CHUNK) if hooks.rows["change"] else end
            run.set_next_due()
            code = run_plain(run)
            if code == LOOP:
                code = step_into.drive(run, lambda: run_in_loop(run, tick))
            only_a_chunk = code == PAUSED and run.position == run.stop_at != end
            if not only_a_chunk:
                return
            tick()

    # -- where a run stops -----------------------------------------------------------------------------------------

    def prepare_run(self, until: Any, max_steps: int | None) -> bool:
        """Set where a run stops; return False if it does not begin."""
        if max_steps is not None:
            check_count(max_steps, "run(max_steps=...)")
        if until is not None and not is_step_number(until):
            self.condition_for(until)  # an invalid `until` is an error even if the run cannot continue
        last_stop = self._state.stopped_by
        if not self.prepare_step(release_all=True):
            return False
        begins = self.set_stop(until, max_steps) and not self.stops_at_start(last_stop)
        if not begins:
            self.clear_stop()
        return begins

    def set_stop(self, until: Any = None, max_steps: int | None = None) -> bool:
        """Set where the next run stops; return False if it is there already."""
        run = self._state.run
        run.halt = Halt()
        end = NEVER if max_steps is None else run.position + max_steps
        if is_step_number(until):
            end = min(end, until)
        elif until is not None:
            self.stop_at(self.condition_for(until))
        run.stop_at = end
        run.set_next_due()
        return end > run.position

    def stop_at(self, condition: Until | None) -> None:
        """Set the stop condition of the next run."""
        self._state.until = condition
        self._callbacks.install()

    def condition_for(self, until: Any) -> Until:
        """Return the stop condition for a node id, a condition text, JsonLogic or a callable of the board."""
        state = self._state
        if isinstance(until, str) and until in state.recipe.nodes:
            return make_node_condition(state.run, until)
        condition = check_until(state, until)
        return Until(lambda: state.is_true(condition))

    def is_stop_met(self) -> bool:
        """Return True if the run is where the next run is to stop."""
        return self._state.until is not None and self._state.until.is_met()

    def stops_at_start(self, before: Breakpoint | None) -> bool:
        """Return True if a breakpoint stops the run before its first step, unless `before` stopped it here last."""
        self._state.stopped_by = None
        return self._state.run.position == 0 and before is None and self._callbacks.stops_at_breakpoint(None)

    def clear_stop(self) -> None:
        """Reset the stop condition of the last run call."""
        run = self._state.run
        run.stop_at = NEVER
        if self._state.until is not None:
            self.stop_at(None)
        if not run.dirty:
            run.set_next_due()


def is_step_number(until: Any) -> TypeGuard[int]:
    """Return True for a step number."""
    return isinstance(until, int) and not isinstance(until, bool) and until >= 0


__all__ = ["Execution", "StopFor", "is_step_number"]
