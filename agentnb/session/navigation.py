"""Navigation through a recorded run: back, to any step, back to a stop condition. No node runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from agentnb.engine.control import interventions
from agentnb.engine.core import time_travel
from agentnb.session import stop_condition as stops
from agentnb.session.checks import check_until, not_inside, refuse_step
from agentnb.session.core import Core

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentnb.trace.trace import SimulationTrace


class Walker(Core):
    """The methods that move to another position of the recorded run."""

    @property
    def current(self) -> str | None:
        """The id of the next node; None at the end."""
        act = interventions.current(self.engine)
        return None if act is None else act.node.id

    def back(self, n: int = 1) -> Self:
        """Go back `n` steps, at most to the start; nothing runs, and no step is lost."""
        run = self.engine
        simple = not run.flights and run.recorded is None and not self.live.moves and not self._unsure
        if n == 1 and simple and run.position:
            self._travel(time_travel.undo, run)
            self.stopped_by = None
            if self.hooks.rows["change"] or self.journal is not None:
                self.moved()
            return self
        return self.goto(max(run.position - n, 0))

    def goto(self, k: int) -> Self:
        """Go to the position after step `k` (0: before the first).

        Raises:
            ExecutionError: X111, there is no such step.
        """
        run = self.engine
        refuse_step(self, k)
        not_inside(self, "goto()")
        self.live.drop()
        self._land()
        self._mend()
        self._travel(time_travel.goto, run, k)
        self.stopped_by = None
        if self.hooks.rows["change"] or self.journal is not None:
            self.moved()
        return self

    def run_back(self, until: Any = None) -> SimulationTrace:
        """Go back until a breakpoint, a next node, a step number or a condition is met, else to the start.

        Breakpoints count no hits, because nothing runs.
        """
        for _ in self._going_back(until):
            self.tick()
        return self.trace

    def _going_back(self, until: Any) -> Iterator[None]:
        """Pause the run, then go back one step at a time until a stop condition is met."""
        numbered = isinstance(until, int) and not isinstance(until, bool)
        end = max(until, 0) if numbered else 0
        asked = None if until is None or numbered else self._asked(until)
        met = not self.breakpoints.rows and asked is None
        self.goto(min(end, self.engine.position) if met else self.engine.position)
        yield
        while not met and self.engine.position > end:
            self._travel(time_travel.undo, self.engine)
            met = self._breaks_back() or (asked is not None and asked.met())
            yield
        self.moved()

    def _breaks_back(self) -> bool:
        """Return True if a breakpoint is met at the current position."""
        self.stopped_by = self.breakpoints.met_at(self.engine, self._names)
        return self.stopped_by is not None

    def _asked(self, until: Any) -> stops.Until:
        """Return the stop condition for a node id, a condition text, JsonLogic or a callable of the board."""
        if isinstance(until, str) and until in self.recipe.nodes:
            return stops.node_is_next(self.engine, until)
        condition = check_until(self, until)
        return stops.Until(lambda: self._holds(condition))
