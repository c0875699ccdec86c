"""walking: a session's way to elsewhere in its run: back, to any step, back to where something is met. Nothing runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from agentnb.engine import people, travel
from agentnb.session import until as stops
from agentnb.session.checks import check_until, not_inside, refuse_step
from agentnb.session.core import Core

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentnb.trace.trace import SimulationTrace


class Walker(Core):
    """The verbs that stand elsewhere in what has run."""

    @property
    def current(self) -> str | None:
        """The id of the next node; None at the end."""
        act = people.current(self.engine)
        return None if act is None else act.node.id

    def back(self, n: int = 1) -> Self:
        """Stand `n` steps further back, at the least before the first; nothing runs, nothing is lost."""
        run = self.engine
        simple = not run.flights and run.recorded is None and not self.live.moves and not self._unsure
        if n == 1 and simple and run.position:
            self._travel(travel.undo, run)
            if self.hooks.rows["change"] or self.journal is not None:
                self.moved()
            return self
        return self.goto(max(run.position - n, 0))

    def goto(self, k: int) -> Self:
        """Stand after step `k` (0: before the first).

        Raises:
            ExecutionError: X111, there is no such step.
        """
        run = self.engine
        refuse_step(self, k)
        not_inside(self, "goto()")
        self.live.drop()
        self._land()
        self._mend()
        self._travel(travel.goto, run, k)
        self.stopped_by = None
        if self.hooks.rows["change"] or self.journal is not None:
            self.moved()
        return self

    def run_back(self, until: Any = None) -> SimulationTrace:
        """Go back until a breakpoint, a node that is next, a step number or a condition is met, else to the start.

        No breakpoint counts a hit: nothing runs.
        """
        for _ in self._going_back(until):
            self.tick()
        return self.trace

    def _going_back(self, until: Any) -> Iterator[None]:
        """Pause what moves it; then go back a step at a time, until something is met."""
        numbered = isinstance(until, int) and not isinstance(until, bool)
        end = max(until, 0) if numbered else 0
        asked = None if until is None or numbered else self._asked(until)
        met = not self.breakpoints.rows and asked is None
        self.goto(min(end, self.engine.position) if met else self.engine.position)
        yield
        while not met and self.engine.position > end:
            self._travel(travel.undo, self.engine)
            met = self._breaks_back() or (asked is not None and asked.met())
            yield
        self.moved()

    def _breaks_back(self) -> bool:
        """Say whether a breakpoint is met where the run has come back to."""
        self.stopped_by = self.breakpoints.met_at(self.engine, self._names)
        return self.stopped_by is not None

    def _asked(self, until: Any) -> stops.Until:
        """Return what a node's id, a condition text, JsonLogic or a callable of the board asks."""
        if isinstance(until, str) and until in self.recipe.nodes:
            return stops.node_is_next(self.engine, until)
        condition = check_until(until, self.recipe.nodes, self._view)
        return stops.Until(lambda: self._holds(condition))
