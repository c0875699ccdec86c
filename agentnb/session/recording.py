"""Recordings: read-only sessions of runs that a file or another system recorded; they move through the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from agentnb.engine.control.budget import Budget
from agentnb.session.checks import check_locked
from agentnb.session.limits import Limits
from agentnb.session.session import Session
from agentnb.session.status import Standing

if TYPE_CHECKING:
    from agentnb.engine.core.run import Run
    from agentnb.errors import Problem
    from agentnb.trace.trace import SimulationStep, SimulationTrace


class Recording(Session):
    """A recorded run that can only be read.

    `step`, `run` and `step_over` go forward through the record, `back`, `goto` and `run_back` backward. Breakpoints,
    `who_wrote`, `watch` and the cockpit work as for any session; nothing runs.
    """

    recorded = True

    _ended: str = "finished"  # the status at the end of the record
    _outcome_words: dict[str, Any] | None = None
    _about: dict[str, Any] | None = None

    @classmethod
    def of_run(cls, run: Run, name: str, run_id: str, locked: Problem, ended: str = "finished",
               about: dict[str, Any] | None = None, outcome: dict[str, Any] | None = None) -> Self:  # fmt: skip
        """Return a recording of a run that was rebuilt; `locked` says why it cannot continue.

        Args:
            ended: the status at the end of the record.
            about: data about its origin, for the trace.
            outcome: the recorded outcome; None: the status and the number of steps.
        """
        session = cls.__new__(cls)
        session.inputs = {}
        session._wire(run.plan.recipe, run, Limits(Budget()), name, run_id)  # noqa: SLF001  (it is made here)
        session.locked = locked
        session._ended, session._about, session._outcome_words = ended, about, outcome  # noqa: SLF001  (the same)
        return session

    def step(self, n: int = 1) -> SimulationStep | None:
        """Move `n` recorded steps forward; return the last of them, None at the end."""
        return self._forward_to(min(self.engine.position + n, self.engine.history.tip))

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
        end = self._next()
        if end and self.trace.steps[end - 1].phase == "enter":
            act = self.trace.reading().act(end)
            end = self._leave_of(act.node, act.frame, end)
        return self._forward_to(end)

    async def astep_over(self) -> SimulationStep | None:
        """Like `step_over`."""
        return self.step_over()

    def step_out(self) -> SimulationStep | None:
        """Move to the end of the next node's frame; from the outermost one to the end of the record."""
        end = self._next()
        frame = self.engine.tables.frames[self.trace.reading().act(end).frame if end else 0]
        return self._forward_to(self._leave_of(frame.owner, frame.parent, end))

    async def astep_out(self) -> SimulationStep | None:
        """Like `step_out`."""
        return self.step_out()

    def run(self, until: Any = None, max_steps: int | None = None) -> SimulationTrace:
        """Move forward through the record, to a breakpoint, `until`, or the end; return the trace.

        Args:
            until: a node id, a step number, a condition text, JsonLogic, or a callable of the board.
        """
        run, end = self.engine, self.engine.history.tip
        if max_steps is not None:
            end = min(end, run.position + max_steps)
        asked = None
        if isinstance(until, int) and not isinstance(until, bool):
            end = min(end, until)
        elif until is not None:
            asked = self._asked(until)
        if asked is None and not self.breakpoints.rows:
            self._forward_to(end)
        while run.position < end:
            self._forward_to(run.position + 1)
            if (asked is not None and asked.met()) or self._breaks_back():
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
        check_locked(self)
        return None

    def _forward_to(self, step: int) -> SimulationStep | None:
        before = self.engine.position
        if step > before:
            self.goto(step)
        return self.trace.steps[step - 1] if step > before else None

    def _next(self) -> int:
        """Return the number of the next step; 0 at the end of the record."""
        position = self.engine.position
        return position + 1 if position < self.engine.history.tip else 0

    def _leave_of(self, node: int, frame: int, start: int) -> int:
        """Return the first step from `start` on in which a composite node is left; the last step if there is none."""
        tip, reading = self.engine.history.tip, self.trace.reading()
        for step in range(start, tip + 1) if node >= 0 else ():
            act = reading.act(step)
            if (act.node, act.frame) == (node, frame) and self.trace.steps[step - 1].phase == "leave":
                return step
        return tip

    # -- status ------------------------------------------------------------------------------------------------------

    @property
    def status(self) -> Standing:
        """The status of the run: `ready` at the start, `paused` inside, at the end the recorded status."""
        return Standing(self._word(), self.engine, self.limits)

    def _word(self) -> str:
        position = self.engine.position
        if position < self.engine.history.tip:
            return "paused" if position else "ready"
        return self._ended

    def _outcome(self) -> dict[str, Any] | None:
        if self._outcome_words is not None and self.position == self.engine.history.tip:
            return self._outcome_words
        return {"status": self._word(), "steps": self.position}

    @property
    def trace(self) -> SimulationTrace:
        """The trace of this run."""
        if self._trace is None:
            from agentnb.trace import SimulationTrace

            recipe = self.recipe
            meta = {"recipe_kind": "Recipe", "dialect": recipe.dialect, "session": self.name, "simulated": []}
            meta |= {**recipe.meta.get("about", {}), **(self._about or {})}
            self._trace = SimulationTrace.of(self.engine, run_id=self.run_id, outcome=self._outcome, metadata=meta)
        return self._trace


__all__ = ["Recording"]
