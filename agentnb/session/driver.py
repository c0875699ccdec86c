"""driver: how a session moves: step and run, by hand or live, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from agentnb.engine import people, travel
from agentnb.engine.executor import LOOP, beside, in_own_loop, run_in_loop, run_plain, step_in_loop
from agentnb.engine.run import FAILED, NEVER, PAUSED
from agentnb.session import reading
from agentnb.session.checks import check_until, not_inside, not_running, refuse_step
from agentnb.session.core import Core
from agentnb.session.requirements import advise, unmet

if TYPE_CHECKING:
    from agentnb.engine.flight import Flight
    from agentnb.trace.trace import SimulationStep, SimulationTrace

CHUNK = 4_096  # after so many steps a run looks at the time


class Driver(Core):
    """The verbs that move a run. All are made of the heart's one step."""

    @property
    def current(self) -> str | None:
        """The id of the next node; None at the end."""
        act = people.current(self.engine)
        return None if act is None else act.node.id

    # -- forwards ------------------------------------------------------------------------------------------------

    def step(self, n: int = 1) -> SimulationStep | None:
        """Run the next `n` activations; return the last step, or None where the run cannot go on (see `status`).

        A failure ends it: each further call tries the failed node once more.
        """
        not_running(self, "step()")
        before = self.engine.position
        self._safely(lambda: any(not self._begin_step() or self._one() == FAILED for _ in range(n)))
        self.changed()
        return self._last(before)

    async def astep(self, n: int = 1) -> SimulationStep | None:
        """Like `step`, for async code."""
        not_running(self, "astep()")
        before = self.engine.position
        for _ in range(n):
            if not self._begin_step():
                break
            await self._asafely(step_in_loop(self.engine))
            if reading.failure_of(self.engine) is not None:
                break
        self.changed()
        return self._last(before)

    def _last(self, before: int) -> SimulationStep | None:
        run = self.engine
        moved = run.position > before or (run.at.base == before < run.position)
        return self.trace.steps[run.position - 1] if moved and run.position else None

    def _begin_step(self) -> bool:
        """Get ready for one step by hand: at the end of a history, a held call let go. Say whether there is one."""
        for flight in self.engine.flights.values():
            if flight.hold is not None and flight.hold.kind == "call":
                flight.hold.go = True
        self.live.onward = False
        if not self.engine.position:
            advise(self.engine)
        if not self.may_go():  # first of all: what cannot go on leaves no branch either
            return False
        self.open_tip()
        return True

    def may_go(self) -> bool:
        """Say whether a next step can begin here."""
        run = self.engine
        stands = reading.status_of(run, self.limits)
        if stands == "failed" and unmet(run):
            return False
        if stands == "waiting" and beside(run) is not None:  # another branch goes on while this one is asked
            return True
        return stands in ("ready", "paused", "failed", "in_flight") or not all(
            flight.held for flight in run.flights.values()
        )

    def _one(self, flight: Flight | None = None) -> int:
        run = self.engine
        run.halt.on = False
        code = run_plain(run, once=True, flight=flight)
        return in_own_loop(lambda: step_in_loop(run, flight)) if code == LOOP else code

    def run(self, until: Any = None, max_steps: int | None = None) -> SimulationTrace:
        """Step until a breakpoint, the end, a person, a budget, `until` or `max_steps` of this call; return the trace.

        Args:
            until: a node id, a step number, a condition text, JsonLogic, or a callable of the board.
        """
        not_running(self, "run()")
        try:
            self._safely(lambda: self._run_here(until, max_steps))
        finally:
            self.hooks.tell("end", self)
        self.changed()
        return self.trace

    async def arun(self, until: Any = None, max_steps: int | None = None) -> SimulationTrace:
        """Like `run`, for async code."""
        not_running(self, "arun()")
        try:
            if self._aim(until, max_steps):
                await self._asafely(run_in_loop(self.engine, self.tick))
        finally:
            self.ended()
            self.hooks.tell("end", self)
        self.changed()
        return self.trace

    def _run_here(self, until: Any, max_steps: int | None) -> None:
        if not self._aim(until, max_steps):
            return
        run, end = self.engine, self.engine.stop_at
        try:
            while True:
                run.stop_at = min(end, run.position + CHUNK) if self.hooks.rows["change"] else end
                run.set_mark()
                code = run_plain(run)
                if code == LOOP:
                    code = in_own_loop(lambda: run_in_loop(run, self.tick))
                if code != self._chunk_end(end):
                    return
                self.tick()
        finally:
            self.ended()

    def _chunk_end(self, end: int) -> int:
        """Return the code that means: only a chunk has ended, the run goes on."""
        run = self.engine
        return PAUSED if run.position == run.stop_at != end else -1

    def _aim(self, until: Any, max_steps: int | None) -> bool:
        """Set where a run is to stop; say whether it begins at all."""
        run = self.engine
        if not self._begin_step():
            return False
        run.halt.on = False
        end = NEVER if max_steps is None else run.position + max_steps
        if isinstance(until, int) and not isinstance(until, bool):
            end = min(end, until)
        elif isinstance(until, str) and until in self.recipe.nodes:
            self._until = until
        elif until is not None:
            self._until = check_until(until, self.recipe.nodes, self._view)
        self._arm()
        run.stop_at = end
        run.set_mark()
        if end <= run.position or self.stops_here():
            self.ended()
            return False
        return True

    def stops_here(self) -> bool:
        """Say whether a breakpoint stands before the very first step."""
        return self.engine.position == 0 and self.stopped_by is None and self._breaks(None)

    def ended(self) -> None:
        """Forget what only the last run call asked for."""
        run = self.engine
        self._until, run.stop_at = None, NEVER
        self._arm()
        if not run.dirty:
            run.set_mark()

    # -- live ----------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Run on the kernel's loop while other cells and buttons work; `pause()` and `await wait()` go with it.

        Where it goes on already, since a person's answer, there is nothing to start.
        """
        if not (self.live.going and self.live.answered):
            not_running(self, "start()")
            self.live.start()
        return self

    async def wait(self, timeout: float | None = None) -> SimulationTrace:  # noqa: ASYNC109  (a public name)
        """Wait until the run that `start()` began has stopped; return the trace."""
        await self.live.wait(timeout)
        if self.crash is not None:
            crash, self.crash = self.crash, None
            raise crash
        return self.trace

    def pause(self) -> Self:
        """Begin no further step; what is in flight ends and is committed."""
        self.live.pause()
        self.changed()
        return self

    def stop(self) -> Self:
        """Pause, and cancel what is in flight: those steps run again when they are stepped."""
        not_inside(self, "stop()")
        self.live.drop()
        self._land()
        self.changed()
        return self

    # -- backwards, and elsewhere -----------------------------------------------------------------------------------

    def back(self, n: int = 1) -> Self:
        """Stand `n` steps further back, at the least before the first; nothing runs, nothing is lost."""
        run = self.engine
        if n == 1 and not run.flights and not self.live.moves and not self._unsure and run.position:
            self._travel(travel.undo, run)
            if self.hooks.rows["change"]:
                self.changed()
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
        if self.hooks.rows["change"]:
            self.changed()
        return self

    def run_back(self, until: Any = None) -> SimulationTrace:
        """Go back until a node that is next, a step number or a condition is met; without one, to the start."""
        if isinstance(until, int) and not isinstance(until, bool):
            self.goto(max(until, 0))
            return self.trace
        named = until if isinstance(until, str) and until in self.recipe.nodes else None
        asked = None if until is None or named else check_until(until, self.recipe.nodes, self._view)
        while self.engine.position:
            self.back()
            if (named and self.current == named) or (asked is not None and self._holds(asked)):
                break
        return self.trace

    def reset(self) -> Self:
        """Begin again from the inputs; the run so far stays among `forks`."""
        self.stop()
        self.branches.begin_again()
        self.changed()
        return self
