"""Interventions: what people do to a run besides moving it. Each is recorded, so that a replay repeats it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from agentnb.board.values import ABSENT
from agentnb.engine.control import interventions
from agentnb.engine.control.budget import Budget
from agentnb.engine.core.run import GO
from agentnb.engine.core.time_travel import open_tip
from agentnb.engine.persistence import masked_values
from agentnb.errors import ExecutionError, StoreError
from agentnb.session import run_queries
from agentnb.session.checks import check_not_running
from agentnb.session.pending import (
    Kind,
    change_call,
    check_answer,
    find_approval,
    find_pending_step,
    find_pending_step_or_none,
    find_substitutions,
    get_pending,
    list_waiting,
    make_answer_error,
    make_missing_problem,
)
from agentnb.session.run_queries import get_status
from agentnb.world.human_input import make_verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentnb.engine.core.pending_step import PendingStep
    from agentnb.session.async_execution import AsyncExecution
    from agentnb.session.background_run import BackgroundRun
    from agentnb.session.callbacks import Callbacks
    from agentnb.session.execution import Execution
    from agentnb.session.navigation import Navigation
    from agentnb.session.notifications import Notifications
    from agentnb.session.persistence import Persistence
    from agentnb.session.rollback import Rollback
    from agentnb.session.state import State
    from agentnb.trace.trace import SimulationStep


class Interventions:
    """Edits, answers, approvals, skips and the other interventions of people."""

    def __init__(
        self, state: State, callbacks: Callbacks, rollback: Rollback, persistence: Persistence, execution: Execution,
        async_execution: AsyncExecution, navigation: Navigation, background: BackgroundRun,
        notifications: Notifications,
    ) -> None:  # fmt: skip
        self._state, self._callbacks, self._rollback, self._persistence = state, callbacks, rollback, persistence
        self._execution, self._async_execution = execution, async_execution
        self._navigation, self._background = navigation, background
        self._notifications = notifications

    def _prepare(self, verb: str, *, cancels: bool = True) -> None:
        """Prepare an intervention; `cancels` also cancels pending steps and steps in flight."""
        check_not_running(self._state, verb)
        self._persistence.check_intervention(verb)
        self._persistence.check_ready(repairs=True)
        self._rollback.repair()
        if cancels:
            self._rollback.cancel_in_flight()
            self._state.stopped_by = None

    def _perform(self, action: Callable[[], Any]) -> None:
        self._rollback.run_safely(action)
        self._notifications.save_and_notify()

    # -- changes of the run ------------------------------------------------------------------------------------------

    def retry(self) -> SimulationStep | None:
        """Run the failed or waiting node again, or the step that the store could not save."""
        state, persistence = self._state, self._persistence
        if persistence.unsavable_step is not None:
            with suppress(StoreError):  # its codec may have been registered since
                persistence.check_ready()
        if persistence.unsavable_step is not None:
            self._navigation.goto(persistence.unsavable_step - 1)
        elif get_status(state.run, state.limits) == "waiting" and not masked_values.find_masked_paths(state.run):
            self._prepare("retry()")  # withdraws the question
        return self._execution.step(1)

    def skip(self, writes: Mapping[str, Any] | None) -> SimulationStep:
        """Skip the next node.

        Raises:
            ExecutionError: X108, there is no next node; X121, the recipe's requirements do not hold yet.
        """
        state = self._state
        problem = run_queries.get_problem(state.run)
        if problem is not None and problem.code == "X121":
            raise ExecutionError(problem)
        self._prepare("skip()")
        self._perform(lambda: interventions.skip(state.run, writes or {}))
        return state.trace.steps[state.run.position - 1]

    def edit(self, changes: Mapping[str, Any]) -> None:
        """Write values by path.

        Raises:
            BoardError: the board rejects a value or a path; nothing is written then.
        """
        self._prepare("edit()", cancels=False)
        self._perform(lambda: interventions.edit(self._state.run, changes))

    def set_next(self, node: str) -> None:
        """Make a node the next one.

        Raises:
            ExecutionError: X101, there is no such node; X107, its frame is not open.
        """
        self._prepare("set_next()")
        self._perform(lambda: interventions.set_next(self._state.run, node))

    def set_budget(self, limits: Mapping[str, Any]) -> None:
        """Set limits of the budget.

        Raises:
            ExecutionError: X201 to X203, a limit has an unknown name or an invalid value.
        """
        state = self._state
        check_not_running(state, "set_budget()")
        state.limits.change(state.run, Budget.of(limits, asdict(state.limits.budget)))
        self._callbacks.install()
        self._notifications.save_and_notify()

    def emit(self, type_: str, payload: Any, actor: str, fields: Mapping[str, Any]) -> None:
        """Emit an event from outside."""
        self._prepare("emit()", cancels=False)
        run = self._state.run
        open_tip(run, amend=True)
        interventions.record_steps_in_flight(run)
        event = interventions.emit(run, type_, payload, actor, **fields)
        self._notifications.save_and_notify()
        if self._state.recipe.reactive is not None:
            self._state.recipe.reactive.accept(run, event)

    # -- answers ------------------------------------------------------------------------------------------------

    def answer(self, value: Any, node: str | None) -> SimulationStep | None:
        """Answer the waiting node, or supply a value that was masked when the run was stored, by its path.

        Raises:
            ExecutionError: X115, no question is pending; X142, only masked values are pending, and no path is given;
                X144, X147, the answer does not fit the question.
        """
        if self._fill_answer(value, node):
            return None
        return self._supply_answer("answer", node, "answer", value)

    async def aanswer(self, value: Any, node: str | None) -> SimulationStep | None:
        """Do the same without holding the event loop while the rest of the node runs."""
        if self._fill_answer(value, node):
            return None
        return await self._asupply_answer("answer", node, "answer", value)

    def _fill_answer(self, value: Any, node: str | None) -> bool:
        """Return True if the answer is a masked value; a question of the same name comes first."""
        check_not_running(self._state, "answer()")
        run = self._state.run
        asked = (each for each in get_pending(run) if each.kind == "answer" and node in (None, each.node, each.id))
        first = next(asked, None)
        if first is None or not first.is_masked:
            return False
        if node is None:
            raise ExecutionError(make_missing_problem(run, self._persistence.list_masked()))
        self._persistence.fill({first.node: value})
        self._notifications.save_and_notify()
        return True

    def decide(self, action: str, id: str | None, by: str | None, reason: str = "") -> SimulationStep | None:
        """Approve or deny (`action`) a request of a node, or one on the board, which ends no step.

        Raises:
            ExecutionError: X115, no approval is pending.
        """
        decision = self._make_decision(action, id, by, reason)
        return None if decision is None else self._supply_answer("approval", id, action, decision, by)

    async def adecide(self, action: str, id: str | None, by: str | None, reason: str = "") -> SimulationStep | None:
        """Do the same without holding the event loop while the rest of the node runs."""
        decision = self._make_decision(action, id, by, reason)
        return None if decision is None else await self._asupply_answer("approval", id, action, decision, by)

    def _make_decision(self, action: str, id: str | None, by: str | None, reason: str) -> Any:
        """Return the decision for a node's request; one on the board is decided at once: then None."""
        state = self._state
        check_not_running(state, f"{action}()")
        self._resume_pending("approval", id)
        approved, approvals = action == "approve", state.recipe.approvals
        pending_step, approval = find_pending_step_or_none(state.run, "approval", id), find_approval(state.run, id)
        if pending_step is None and approval is not None and approvals is not None:
            approvals.decide(state.session, approval, make_verdict(approved=approved, by=by, reason=reason))
            self._background.continue_after_answer()
            self._notifications.save_and_notify()
            return None
        changed = None if pending_step is None or not approved else find_substitutions(pending_step)
        return make_verdict(approved=approved, by=by, reason=reason, arguments=changed)

    def _supply_answer(
        self, kind: Kind, id: str | None, action: str, value: Any, by: str | None = None
    ) -> SimulationStep | None:
        """Supply the awaited value and finish the pending step, to which the intervention is recorded."""
        pending_step, start = self._take_answer(kind, id, action, value), self._state.run.position
        code = self._rollback.run_safely(partial(self._execution.run_one, pending_step))
        return self._note_answer(pending_step, code, start, action, value, by)

    async def _asupply_answer(
        self, kind: Kind, id: str | None, action: str, value: Any, by: str | None = None
    ) -> SimulationStep | None:
        pending_step, start = self._take_answer(kind, id, action, value), self._state.run.position
        code = await self._async_execution.resume(pending_step)
        return self._note_answer(pending_step, code, start, action, value, by)

    def _take_answer(self, kind: Kind, id: str | None, action: str, value: Any) -> PendingStep:
        """Set the awaited value of a pending step, which can then continue."""
        state = self._state
        check_not_running(state, f"{action}()")
        self._persistence.check_ready()
        self._resume_pending(kind, id)
        pending_step = find_pending_step(state.run, kind, id)
        hold = pending_step.hold
        assert hold is not None
        check_answer(hold, value)
        hold.answer, hold.has_answer, hold.is_resumed, state.stopped_by = value, True, True, None
        return pending_step

    def _note_answer(
        self, pending_step: PendingStep, code: int, start: int, action: str, value: Any, by: str | None
    ) -> SimulationStep | None:
        """Record the answer to the step that it has finished; a run in the background continues."""
        state = self._state
        interventions.record_intervention(state.run, action, pending_step.activation.node.id, ABSENT, value, by)
        self._notifications.save_and_notify()
        step = self._execution.last_step_since(start)
        if code == GO:
            self._background.continue_after_answer()
        return step

    def change(self, id_: str, arguments: Mapping[str, Any] | None, answer: Any) -> None:
        """Change a paused call, or the arguments of a pending approval.

        Raises:
            ExecutionError: X115, there is no such call or approval; X126, X127, this cannot be changed.
        """
        state = self._state
        check_not_running(state, "change()")
        self._persistence.check_ready()
        self._resume_pending("call", id_)
        self._resume_pending("approval", id_)
        run, approvals = state.run, state.recipe.approvals
        approval, pending_step = find_approval(run, id_), find_pending_step_or_none(run, "approval", id_)
        if approval is not None and pending_step is None and approvals is not None:
            if answer is not ABSENT:
                raise make_answer_error(approval.name)
            approvals.change(state.session, approval, {**approval.arguments, **(arguments or {})})
            self._notifications.save_and_notify()
            return
        pending_step = pending_step or find_pending_step(run, "call", id_)
        change_call(pending_step, arguments, answer)
        new = answer if arguments is None else dict(arguments)
        interventions.record_intervention(run, "change", pending_step.activation.node.id, ABSENT, new)
        self._notifications.save_and_notify()

    def _resume_pending(self, kind: Kind, id: str | None) -> None:
        """Run a step of another process up to where it waits, so that a person can respond."""
        run = self._state.run
        for call, pending in list_waiting(run):
            if pending.kind == kind and (id is None or id in (pending.node, pending.id)):
                self._rollback.run_safely(partial(self._execution.restart, run.find_activation(call.activation)))
                self._persistence.check_ready()
                return


__all__ = ["Interventions"]
