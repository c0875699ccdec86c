"""Execution: the `step` and `run` methods, in the foreground or on the kernel's loop."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeGuard

from agentnb.engine.control import interventions
from agentnb.engine.core.drivers import LOOP, beside, next_flight, run_in_loop, run_plain, step_in_loop
from agentnb.engine.core.event_loops import running_loop
from agentnb.engine.core.event_queue import settle
from agentnb.engine.core.history import FAIL
from agentnb.engine.core.run import FAILED, GO, NEVER, PAUSED, SUSPENDED, Halt
from agentnb.engine.core.step import step
from agentnb.engine.effects import step_into
from agentnb.session import run_queries
from agentnb.session import stop_condition as stops
from agentnb.session.checks import check_locked, check_speed, not_inside, not_running
from agentnb.session.navigation import Walker
from agentnb.session.required_inputs import advise, unmet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentnb.engine.control.breakpoints import Breakpoint
    from agentnb.engine.core.frames import Activation
    from agentnb.engine.core.pending_step import Hold, PendingStep
    from agentnb.engine.core.run import Run
    from agentnb.trace.trace import SimulationStep, SimulationTrace

CHUNK = 4_096  # steps between two looks at the clock


class Driver(Walker):
    """The methods that advance a run. All use the engine's single step function."""

    def _refuse(self, verb: str) -> None:
        """Raise if something else advances the session, or a node that runs in another thread is paused."""
        not_running(self, verb)
        step_into.check_threads(self.engine)

    # -- forwards ------------------------------------------------------------------------------------------------

    def step(self, n: int = 1) -> SimulationStep | None:
        """Run the next `n` activations; return the last step, or None if the run cannot continue (see `status`).

        A failure ends the call; each further call retries the failed node.
        """
        self._refuse("step()")
        before = self.engine.position
        self._safely(lambda: any(not self._begin_step() or self._one() == FAILED or self._held() for _ in range(n)))
        self.changed()
        return self._last(before)

    def _last(self, before: int) -> SimulationStep | None:
        run = self.engine
        moved = run.position > before or (run.at.base == before < run.position)
        return self.trace.steps[run.position - 1] if moved and run.position else None

    def _begin_step(self, *, each: bool = False) -> bool:
        """Prepare one manual step: open the tip, release a paused call. Return False if no step can begin."""
        self.ready_to_keep()
        self._let_go(each=each)
        self.live.onward = False
        if not self.engine.position:
            advise(self.engine)
        if not self.may_go():  # first: a run that cannot continue starts no branch
            return False
        self.open_tip()
        run, self.stopped_by = self.engine, None
        settle(run)  # the next delivery may have no listener
        return run.pos < run.at.s_pend[run.position - run.at.base]

    def _held(self) -> list[Hold]:
        """Return where steps in flight are paused for inspection, without those that wait for a person's answer."""
        flights = self.engine.flights.values()
        holds = [flight.hold for flight in flights if flight.held and flight.hold is not None]
        return [hold for hold in holds if hold.kind not in run_queries.ASKS]

    def _let_go(self, *, each: bool) -> None:
        """Release paused calls: that of the next pending step, or all."""
        if each or all(flight.held for flight in self.engine.flights.values()):
            for hold in self._held()[: None if each else 1]:
                hold.go = True

    def _turn(self) -> Activation | None:
        """Return the activation that the next step continues or begins."""
        run = self.engine
        return (beside(run) or next_flight(run).act) if run.flights else interventions.current(run)

    def may_go(self) -> bool:
        """Return True if a next step can begin here."""
        run = self.engine
        stands = run_queries.status_of(run, self.limits)
        if stands == "failed" and (unmet(run) or self.limits.reached(run) is not None):
            return False
        if stands == "waiting" and not self.masked() and not run.flights:
            return True  # another process has asked
        if stands == "waiting" and not self.masked() and beside(run) is not None:  # a branch beside the one that asks
            return self.limits.reached(run) in (None, "max_steps")  # max_steps is checked when the step is chosen
        return stands in ("ready", "paused", "failed", "in_flight") or not all(
            flight.held for flight in run.flights.values()
        )

    def _one(self, flight: PendingStep | None = None) -> int:
        run = self.engine
        run.halt.on = False
        code = run_plain(run, once=True, flight=flight)
        return step_into.drive(run, lambda: step_in_loop(run, flight)) if code == LOOP else code

    def _bring(self, act: Activation) -> None:
        """Begin a step of another process again and run it up to where it waits."""
        if step(self.engine, act) == SUSPENDED:
            self._one(self.engine.flights[act.id])

    def _end_inside(self) -> int:
        """Run a node that was stepped into to its end; return why the run does not continue.

        The rest of the node is bound to a thread and blocks this one: no other loop can take it over.
        """
        flight = step_into.entered(self.engine)
        return GO if flight is None else self._one(flight)

    def _goes_on(self) -> bool:
        """Return True if a run continues after a node that was stepped into has ended."""
        return self._end_inside() in (GO, SUSPENDED)

    # -- over, out and into ------------------------------------------------------------------------------------------

    def step_over(self) -> SimulationStep | None:
        """Run until the next activation has left its frame: one step for a leaf, up to its end for a composite node.

        In a reactive run, until its event is delivered to all listeners. It stops where `run` does.
        """
        return self._step_until("step_over()", stops.is_over)

    def step_out(self) -> SimulationStep | None:
        """Run until the frame around the next node is left; from the root, to the end. It stops where `run` does."""
        return self._step_until("step_out()", stops.is_left)

    def _step_until(self, verb: str, until: Callable[[Run, Activation], stops.Until | None]) -> SimulationStep | None:
        self._refuse(verb)
        before = self.engine.position
        try:
            self._safely(lambda: self._step_and_run(until))
        finally:
            self.hooks.tell("end", self)
        self.changed()
        return self._last(before)

    def _step_and_run(self, until: Callable[[Run, Activation], stops.Until | None]) -> None:
        if not self._begin_step() or (turn := self._turn()) is None:
            return
        self._until = until(self.engine, turn)
        self._arm()
        try:
            if self._one() == GO:  # a manual step: of several branches, only this one
                self._run_on(NEVER)
        finally:
            self.ended()

    def step_into(self) -> SimulationStep | None:
        """Like `step`, but stop inside the node as well: at events, and before and after each call.

        The status is then `in_flight`, and `held_at` says where. The next `step_into` continues to the next stop;
        `step` and `run` finish the node.
        """
        self._refuse("step_into()")
        before = self.engine.position
        self._safely(self._step_inside)
        self.changed()
        return self._last(before)

    def _step_inside(self) -> None:
        with self._goes_in():
            if self._begin_step() and (turn := self._turn()) is not None:
                self._one(self._entering(turn))

    @contextmanager
    def _goes_in(self) -> Iterator[None]:
        """Pause at calls and events for the duration of the context."""
        self._into = True
        self._arm()
        try:
            yield
        finally:
            self._into = False
            self._arm()

    def _entering(self, turn: Activation) -> PendingStep | None:
        """Return the pending step of an activation that is stepped into; None if it only propagates a failure."""
        flight = self.engine.flights.get(turn.id)
        return step_into.enter(self.engine, turn) if flight is None and turn.what != FAIL else flight

    # -- run
    # ------------------------------------------------------------------------------------------------------------

    def run(self, until: Any = None, max_steps: int | None = None) -> SimulationTrace:
        """Step until a breakpoint, the end, a question, a limit, `until` or `max_steps`; return the trace.

        Args:
            until: a node id, a step number, a condition text, JsonLogic, or a callable of the board.
        """
        self._refuse("run()")
        try:
            self._safely(lambda: self._run_here(until, max_steps))
        finally:
            self.hooks.tell("end", self)
        self.changed()
        return self.trace

    def _run_here(self, until: Any, max_steps: int | None) -> None:
        if self._aim(until, max_steps):
            try:
                if self._goes_on():
                    self._run_on(self.engine.stop_at)
            finally:
                self.ended()

    def _run_on(self, end: int) -> None:
        """Step until a stop condition is met, at the latest after step `end`."""
        run = self.engine
        while True:
            run.stop_at = min(end, run.position + CHUNK) if self.hooks.rows["change"] else end
            run.set_mark()
            code = run_plain(run)
            if code == LOOP:
                code = step_into.drive(run, lambda: run_in_loop(run, self.tick))
            if code != self._chunk_end(end):
                return
            self.tick()

    def _chunk_end(self, end: int) -> int:
        """Return the stop code that means that only a chunk has ended and the run continues."""
        run = self.engine
        return PAUSED if run.position == run.stop_at != end else -1

    def _aim(self, until: Any, max_steps: int | None) -> bool:
        """Set the stop condition of a run; return False if the run does not begin."""
        if until is not None and not _is_number(until):
            self._asked(until)  # an invalid `until` is an error even if the run cannot continue
        before = self.stopped_by
        if not self._begin_step(each=True):
            return False
        goes = self.aim(until, max_steps) and not self.stops_here(before)
        if not goes:
            self.ended()
        return goes

    def aim(self, until: Any = None, max_steps: int | None = None) -> bool:
        """Set the stop condition of the next run; return False if it is already met."""
        run = self.engine
        run.halt = Halt()
        end = NEVER if max_steps is None else run.position + max_steps
        if _is_number(until):
            end = min(end, until)
        elif until is not None:
            self._until = self._asked(until)
            self._arm()
        run.stop_at = end
        run.set_mark()
        return end > run.position

    def is_there(self) -> bool:
        """Return True if the run is where the next run is to stop."""
        return self._until is not None and self._until.met()

    def stops_here(self, before: Breakpoint | None) -> bool:
        """Return True if a breakpoint stops the run before its first step, unless `before` stopped it here last."""
        self.stopped_by = None
        return self.engine.position == 0 and before is None and self._breaks(None)

    def ended(self) -> None:
        """Reset the stop conditions of the last run call."""
        run = self.engine
        self._until, run.stop_at = None, NEVER
        self._arm()
        if not run.dirty:
            run.set_mark()

    # -- background run
    # -------------------------------------------------------------------------------------------------

    def start(self, until: Any = None) -> Self:
        """Run on the kernel's loop while other cells and buttons work; see `pause()` and `await wait()`.

        No effect if the run is already running, after a person's answer.

        Args:
            until: as in `run`; if the run asks a person, it continues to the same stop after the answer.
        """
        if not (self.live.going and self.live.answered):
            self._refuse("start()")
            here = self.live.loop_here() is running_loop()
            self._let_go(each=True)
            self.live.aim = until
            if self.aim(until) and (here or self._comes_out()):
                self.live.start()
            else:
                self.ended()
                self.changed()
        return self

    def _comes_out(self) -> bool:
        """Finish a node that was stepped into in this thread, before the run continues in another one."""
        goes = list[bool]()
        self._safely(lambda: goes.append(self._goes_on()))
        return goes == [True]

    @property
    def speed(self) -> float | None:
        """The most steps per second that a run started by `start()` makes; None: no limit.

        May be set during the run. With a speed set, branches alternate, one step at a time.

        Raises:
            ExecutionError: X128, it is not a number above 0.
        """
        return self.live.speed

    @speed.setter
    def speed(self, steps: float | None) -> None:
        self.live.set_speed(check_speed(steps))
        self.moved()

    async def wait(self, timeout: float | None = None) -> SimulationTrace:  # noqa: ASYNC109  (a public name)
        """Wait until the run started by `start()` has stopped; return the trace."""
        await self.live.wait(timeout)
        if self.crash is not None:
            crash, self.crash = self.crash, None
            raise crash
        return self.trace

    def pause(self) -> Self:
        """Begin no further step; steps in flight end and are committed."""
        self.live.pause()
        self.changed()
        return self

    def stop(self) -> Self:
        """Pause, and cancel the steps in flight, which run again when stepped."""
        not_inside(self, "stop()")
        self.live.drop()
        self._land()
        self.changed()
        return self

    def reset(self) -> Self:
        """Restart from the inputs; the run so far stays in `forks`."""
        check_locked(self)
        self.stop()
        self.branches.begin_again()
        self.changed()
        return self


def _is_number(until: Any) -> TypeGuard[int]:
    """Return True for a step number."""
    return isinstance(until, int) and not isinstance(until, bool)
