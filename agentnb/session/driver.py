"""driver: how a session moves: step and run, by hand or live, and back."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from agentnb.engine import into, people
from agentnb.engine.deliveries import settle
from agentnb.engine.executor import LOOP, beside, next_flight, run_in_loop, run_plain, step_in_loop
from agentnb.engine.flight import running_loop
from agentnb.engine.history import FAIL
from agentnb.engine.run import FAILED, GO, NEVER, PAUSED, SUSPENDED, Halt
from agentnb.engine.step import step
from agentnb.session import reading
from agentnb.session import until as stops
from agentnb.session.checks import check_locked, check_speed, not_inside, not_running
from agentnb.session.requirements import advise, unmet
from agentnb.session.walking import Walker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentnb.engine.flight import Flight, Hold
    from agentnb.engine.frames import Activation
    from agentnb.engine.run import Run
    from agentnb.trace.trace import SimulationStep, SimulationTrace

CHUNK = 4_096  # after so many steps a run looks at the time


class Driver(Walker):
    """The verbs that move a run. All are made of the heart's one step."""

    def _refuse(self, verb: str) -> None:
        """Raise while something else moves the session, or where a node is held that goes on in another thread."""
        not_running(self, verb)
        into.check_threads(self.engine)

    # -- forwards ------------------------------------------------------------------------------------------------

    def step(self, n: int = 1) -> SimulationStep | None:
        """Run the next `n` activations; return the last step, or None where the run cannot go on (see `status`).

        A failure ends it: each further call tries the failed node once more.
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
        """Get ready for one step by hand: at the end of a history, a held call let go. Say whether there is one."""
        self.ready_to_keep()
        self._let_go(each=each)
        self.live.onward = False
        if not self.engine.position:
            advise(self.engine)
        if not self.may_go():  # first of all: what cannot go on leaves no branch either
            return False
        self.open_tip()
        run = self.engine
        settle(run)  # what stands in the queue may set nobody off
        return run.pos < run.at.s_pend[run.position - run.at.base]

    def _held(self) -> list[Hold]:
        """Return where steps in flight are held to be looked at, and not for a person's answer."""
        flights = self.engine.flights.values()
        holds = [flight.hold for flight in flights if flight.held and flight.hold is not None]
        return [hold for hold in holds if hold.kind not in reading.ASKS]

    def _let_go(self, *, each: bool) -> None:
        """Let what is held go on: the flight that the next step goes on with, or each of them."""
        if each or all(flight.held for flight in self.engine.flights.values()):
            for hold in self._held()[: None if each else 1]:
                hold.go = True

    def _turn(self) -> Activation | None:
        """Return the turn that the next step goes on with."""
        run = self.engine
        return (beside(run) or next_flight(run).act) if run.flights else people.current(run)

    def may_go(self) -> bool:
        """Say whether a next step can begin here."""
        run = self.engine
        stands = reading.status_of(run, self.limits)
        if stands == "failed" and (unmet(run) or self.limits.reached(run) is not None):
            return False
        if stands == "waiting" and not self.masked() and not run.flights:
            return True  # another process has asked
        if stands == "waiting" and not self.masked() and beside(run) is not None:  # a branch beside the one that asks
            return self.limits.reached(run) in (None, "max_steps")  # steps are counted where it is chosen
        return stands in ("ready", "paused", "failed", "in_flight") or not all(
            flight.held for flight in run.flights.values()
        )

    def _one(self, flight: Flight | None = None) -> int:
        run = self.engine
        run.halt.on = False
        code = run_plain(run, once=True, flight=flight)
        return into.drive(run, lambda: step_in_loop(run, flight)) if code == LOOP else code

    def _bring(self, act: Activation) -> None:
        """Begin a step of another process again, and come to where it waits."""
        if step(self.engine, act) == SUSPENDED:
            self._one(self.engine.flights[act.id])

    def _end_inside(self) -> int:
        """Let a node that was stepped into come to its end first; return why the run does not go on.

        What it still does is bound to a thread, and holds this one: no other loop can take it over.
        """
        flight = into.entered(self.engine)
        return GO if flight is None else self._one(flight)

    def _goes_on(self) -> bool:
        """Say whether a run goes on, after a node that was stepped into has come to its end."""
        return self._end_inside() in (GO, SUSPENDED)

    # -- over, out and into ------------------------------------------------------------------------------------------

    def step_over(self) -> SimulationStep | None:
        """Run until the next turn has left its frame: a leaf's is one step, a composite node's lasts to its leave.

        In a reactive run, until its event is delivered to all who listen. It stops where `run` does.
        """
        return self._step_until("step_over()", stops.is_over)

    def step_out(self) -> SimulationStep | None:
        """Run until the frame around the next turn is left; from the root's, to the end. It stops where `run` does."""
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
            if self._one() == GO:  # by hand: of branches, only this one
                self._run_on(NEVER)
        finally:
            self.ended()

    def step_into(self) -> SimulationStep | None:
        """Like `step`, but stop inside the node too: where it emits, before a call goes out and after it came back.

        The status is `in_flight` then, and `held_at` says where. The next one goes on to the next stop; `step` and
        `run` let the node come to its end.
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
        """Hold calls and events on the way."""
        self._into = True
        self._arm()
        try:
            yield
        finally:
            self._into = False
            self._arm()

    def _entering(self, turn: Activation) -> Flight | None:
        """Return the flight of a turn that is stepped into; None where its failure only is passed on."""
        flight = self.engine.flights.get(turn.id)
        return into.enter(self.engine, turn) if flight is None and turn.what != FAIL else flight

    # -- to where something says stop --------------------------------------------------------------------------------

    def run(self, until: Any = None, max_steps: int | None = None) -> SimulationTrace:
        """Step until a breakpoint, the end, a person, a budget, `until` or `max_steps` of this call; return the trace.

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
        """Step until something says stop, at the latest after step `end`."""
        run = self.engine
        while True:
            run.stop_at = min(end, run.position + CHUNK) if self.hooks.rows["change"] else end
            run.set_mark()
            code = run_plain(run)
            if code == LOOP:
                code = into.drive(run, lambda: run_in_loop(run, self.tick))
            if code != self._chunk_end(end):
                return
            self.tick()

    def _chunk_end(self, end: int) -> int:
        """Return the code that means: only a chunk has ended, the run goes on."""
        run = self.engine
        return PAUSED if run.position == run.stop_at != end else -1

    def _aim(self, until: Any, max_steps: int | None) -> bool:
        """Set where a run is to stop; say whether it begins at all."""
        if not self._begin_step(each=True):
            return False
        goes = self.aim(until, max_steps) and not self.stops_here()
        if not goes:
            self.ended()
        return goes

    def aim(self, until: Any = None, max_steps: int | None = None) -> bool:
        """Set where the next run is to stop; say whether that lies ahead."""
        run = self.engine
        run.halt = Halt()
        end = NEVER if max_steps is None else run.position + max_steps
        if isinstance(until, int) and not isinstance(until, bool):
            end = min(end, until)
        elif until is not None:
            self._until = self._asked(until)
            self._arm()
        run.stop_at = end
        run.set_mark()
        return end > run.position

    def is_there(self) -> bool:
        """Say whether the run stands where the next one is to stop."""
        return self._until is not None and self._until.met()

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

    def start(self, until: Any = None) -> Self:
        """Run on the kernel's loop while other cells and buttons work; `pause()` and `await wait()` go with it.

        Where it goes on already, since a person's answer, there is nothing to start.

        Args:
            until: as that of `run`; a run that asks a person on its way goes on to there after the answer.
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
        """Let a node that was stepped into in this thread come to its end, before a run goes on in another one."""
        goes = list[bool]()
        self._safely(lambda: goes.append(self._goes_on()))
        return goes == [True]

    @property
    def speed(self) -> float | None:
        """How many steps a second a run makes that `start()` has begun, at most; None: as many as it can.

        It may be set while the run goes on. With a speed set, branches take turns, one step at a time.

        Raises:
            ExecutionError: X128, it is no number above 0.
        """
        return self.live.speed

    @speed.setter
    def speed(self, steps: float | None) -> None:
        self.live.set_speed(check_speed(steps))
        self.moved()

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

    def reset(self) -> Self:
        """Begin again from the inputs; the run so far stays among `forks`."""
        check_locked(self)
        self.stop()
        self.branches.begin_again()
        self.changed()
        return self
