"""Recordings: read-only sessions of runs that a file or another system recorded; they move through the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from agentnb.engine.control.budget import Budget
from agentnb.session.checks import check_count, check_locked
from agentnb.session.execution import is_step_number
from agentnb.session.limits import Limits
from agentnb.session.pending import list_calls
from agentnb.session.session import Session
from agentnb.session.status import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentnb.engine.core.run import Run
    from agentnb.engine.effects.crash_recovery import UnansweredCall
    from agentnb.errors import Problem
    from agentnb.session.pending import Pending
    from agentnb.trace.trace import SimulationStep, SimulationTrace


class Recording(Session):
    """A recorded run that can only be read.

    `step`, `run` and `step_over` go forward through the record, `back`, `goto` and `run_back` backward. Breakpoints,
    `who_wrote`, `watch` and the cockpit work as for any session; nothing runs.
    """

    __slots__ = ("_final_status", "_recorded_outcome", "_recorded_pending")

    _final_status: str  # the status at the end of the record
    _recorded_outcome: dict[str, Any] | None
    _recorded_pending: tuple[Pending, ...]

    @classmethod
    def of_run(cls, run: Run, name: str, run_id: str, locked: Problem, ended: str = "finished",
               about: dict[str, Any] | None = None, outcome: dict[str, Any] | None = None,
               inputs: dict[str, Any] | None = None, pending: Sequence[Pending] = (),
               unanswered: Sequence[UnansweredCall] | None = None) -> Self:  # fmt: skip
        """Return a recording of a run that was rebuilt; `locked` says why it cannot continue.

        Args:
            ended: the status at the end of the record.
            about: data about its origin, for the trace.
            outcome: the recorded outcome; None: the status and the number of steps.
            pending: what waited for a person, or for a response, when the record ended.
            unanswered: the same as calls, for its trace; None: those that follow from `pending`.
        """
        from agentnb.trace import SimulationTrace

        state = cls._from_run(run, Limits(Budget()), name, inputs or {}, run_id).state
        session = state.session
        assert isinstance(session, cls)
        session._final_status, session._recorded_outcome = ended, outcome  # noqa: SLF001  (it is made here)
        session._recorded_pending = tuple(pending)  # noqa: SLF001  (the same)
        state.read_only_reason, state.recorded = locked, True
        recipe = run.plan.recipe
        metadata = {"recipe_kind": "Recipe", "dialect": recipe.dialect, "session": name, "simulated": []}
        metadata |= {**recipe.meta.get("about", {}), **(about or {})}
        outcome_of = session._get_outcome  # noqa: SLF001  (the same)
        calls = list_calls(run, pending) if unanswered is None else unanswered
        state.trace = SimulationTrace.of(
            run, run_id=run_id, outcome=outcome_of, metadata=metadata, unanswered=lambda: calls
        )
        return session

    @property
    def pending(self) -> tuple[Pending, ...]:
        """What waited for a person, or for a response, when the record ended; nothing before its end."""
        return self._recorded_pending if self._run.position == self._run.history.tip else ()

    @property
    def _run(self) -> Run:
        return self._parts.run

    def step(self, n: int = 1) -> SimulationStep | None:
        """Move `n` recorded steps forward; return the last of them, None at the end."""
        check_count(n, "step(n)")
        return self._forward_to(min(self._run.position + n, self._run.history.tip))

    async def astep(self, n: int = 1) -> SimulationStep | None:
        """Like `step`."""
        return self.step(n)

    def step_into(self) -> SimulationStep | None:
        """Like `step`: a record has no stops inside a step."""
        return self.step()

    async def astep_into(self) -> SimulationStep | None:
        """Like `step_into`."""
        return self.step_into()

    def step_over(self) -> SimulationStep | None:
        """Move past the next node and everything that it contains."""
        end = self._get_next_step()
        if end and self.trace.steps[end - 1].phase == "enter":
            activation = self.trace.reading().activation(end)
            end = self._leave_of(activation.node, activation.frame, end)
        return self._forward_to(end)

    async def astep_over(self) -> SimulationStep | None:
        """Like `step_over`."""
        return self.step_over()

    def step_out(self) -> SimulationStep | None:
        """Move to the end of the next node's frame; from the outermost one to the end of the record."""
        end = self._get_next_step()
        frame = self._run.tables.frames[self.trace.reading().activation(end).frame if end else 0]
        return self._forward_to(self._leave_of(frame.owner, frame.parent, end))

    async def astep_out(self) -> SimulationStep | None:
        """Like `step_out`."""
        return self.step_out()

    def run(self, until: Any = None, max_steps: int | None = None) -> SimulationTrace:
        """Move forward through the record, to a breakpoint, `until`, or the end; return the trace.

        Args:
            until: a node id, a step number, a condition text, JsonLogic, or a callable of the board.
        """
        run, end = self._run, self._run.history.tip
        if max_steps is not None:
            check_count(max_steps, "run(max_steps=...)")
            end = min(end, run.position + max_steps)
        condition = None
        if is_step_number(until):
            end = min(end, until)
        elif until is not None:
            condition = self._parts.execution.condition_for(until)
        if condition is None and not self.breakpoints.rows:
            self._forward_to(end)
        while run.position < end:
            self._forward_to(run.position + 1)
            if (condition is not None and condition.is_met()) or self._parts.navigation.meets_breakpoint():
                break
        return self.trace

    async def arun(self, until: Any = None, max_steps: int | None = None) -> SimulationTrace:
        """Like `run`."""
        return self.run(until, max_steps)

    def start(self, until: Any = None) -> Self:
        """Move to the end, or to `until`, without waiting."""
        self.run(until)
        return self

    def retry(self) -> SimulationStep | None:
        """Raise: nothing of a record can run again.

        Raises:
            ExecutionError: L450.
        """
        check_locked(self._parts.state)
        return None

    def _forward_to(self, step: int) -> SimulationStep | None:
        start = self._run.position
        if step > start:
            self.goto(step)
        return self.trace.steps[step - 1] if step > start else None

    def _get_next_step(self) -> int:
        """Return the number of the next step; 0 at the end of the record."""
        position = self._run.position
        return position + 1 if position < self._run.history.tip else 0

    def _leave_of(self, node: int, frame: int, start: int) -> int:
        """Return the first step from `start` on in which a composite node is left; the last step if there is none."""
        tip, reading = self._run.history.tip, self.trace.reading()
        for step in range(start, tip + 1) if node >= 0 else ():
            activation = reading.activation(step)
            if (activation.node, activation.frame) == (node, frame) and self.trace.steps[step - 1].phase == "leave":
                return step
        return tip

    # -- status ------------------------------------------------------------------------------------------------------

    @property
    def status(self) -> Status:
        """The status of the run: `ready` at the start, `paused` inside, at the end the recorded status."""
        return Status(self._get_status_word(), self._run, self._parts.state.limits)

    def _get_status_word(self) -> str:
        position = self._run.position
        if position < self._run.history.tip:
            return "paused" if position else "ready"
        return self._final_status

    def _get_outcome(self) -> dict[str, Any] | None:
        if self._recorded_outcome is not None and self.position == self._run.history.tip:
            return self._recorded_outcome
        return {"status": self._get_status_word(), "steps": self.position}


__all__ = ["Recording"]
