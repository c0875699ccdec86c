"""into: a turn that stops inside its node: at each event that it emits, wherever in its code that is.

A plain function cannot be suspended by `await`. So the code of such a turn runs in greenlets, one from each await to
the next: where it emits, it is left as it stands, and its driver gets a Hold, as from a call that is held. A greenlet
belongs to its thread; so what such a turn awaits of a loop, it awaits in one thread, whose loop stays until it ends.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import copy_context
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from agentnb.engine.chance import take_note
from agentnb.engine.flight import Flight, Hold
from agentnb.engine.loops import Errand, Home, ended_beside, in_own_loop
from agentnb.engine.run import PAUSED
from agentnb.engine.work import Effect
from agentnb.errors import ExecutionError, Problem

if TYPE_CHECKING:
    from greenlet import greenlet

    from agentnb.engine.frames import Activation
    from agentnb.engine.history import Event
    from agentnb.engine.run import Run
    from agentnb.engine.work import Work


def enter(run: Run, act: Activation) -> Flight:
    """Begin the turn of an activation as one that can be held inside; it is in flight, and has done nothing yet."""
    take_note(run)
    flight = run.flights[act.id] = Flight(act, _turn(act), run.ns())
    flight.coro = Inside(act.work, flight.coro)
    return flight


async def _turn(act: Activation) -> Any:
    result = act.perform(act.work)
    if not isinstance(result, Awaitable):
        return result
    if result.__class__ is not CoroutineType:
        await act.work.loop()
    return await result


def entered(run: Run) -> Flight | None:
    """Return the flight that was gone into and is bound to a thread; None where there is none."""
    return next((flight for flight in run.flights.values() if _bound(flight)), None)


def _bound(flight: Flight) -> bool:
    return isinstance(flight.coro, Inside) and (flight.looped or flight.coro.stands)


def check_threads(run: Run) -> None:
    """Raise where a turn gone into cannot go on in this thread.

    Raises:
        ExecutionError: X122, it was begun in another one.
    """
    for flight in run.flights.values():
        if isinstance(flight.coro, Inside):
            flight.coro.check_thread()


def drive(run: Run, work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Run a coroutine that drives a run to its end: in the loop that a turn gone into needs, else in one of its own."""
    bound = next((flight.coro for flight in run.flights.values() if flight.looped and _bound(flight)), None)
    return bound.drive(work) if isinstance(bound, Inside) else in_own_loop(work)


async def drive_beside(run: Run, work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """The same for async code: a turn gone into goes on in its own loop, and the one here goes on meanwhile."""
    bound = next((flight.coro for flight in run.flights.values() if flight.looped and _bound(flight)), None)
    return await bound.drive_beside(work) if isinstance(bound, Inside) else await work()


def stops_at(work: Work) -> bool:
    """Say whether a call of a turn that goes on by itself can be held: not that of a task which it began."""
    flight = work.run.flights.get(work.act.id)
    return flight is not None and (not isinstance(flight.coro, Inside) or flight.coro.is_here(work))


def stop(work: Work, event: Event) -> None:
    """Stop inside the node that has just emitted an event; come back when its turn goes on."""
    flight = work.run.flights.get(work.act.id)
    if flight is not None and isinstance(flight.coro, Inside) and flight.coro.is_here(work):
        flight.coro.stop(event)


class Inside(Coroutine[Any, Any, Any]):
    """The code of a turn, which gives a Hold wherever it stops: to its driver a coroutine like any other."""

    def __init__(self, work: Work, code: Coroutine[Any, Any, Any]) -> None:
        self._work, self._code, self._context = work, code, copy_context()
        self._greenlet: greenlet | None = None
        self._thread = 0
        self._home: Home | None = None
        self._errand: Errand | None = None  # it goes on in its own loop at this moment, and is awaited in another one
        self._given_up = False

    @property
    def stands(self) -> bool:
        """Whether it stands somewhere inside its code, where it has emitted an event."""
        return self._greenlet is not None

    def is_here(self, work: Work) -> bool:
        """Say whether the code that asks is this turn's own: neither a task that it began nor a call in a thread."""
        from greenlet import getcurrent

        return work is self._work and self._greenlet is getcurrent()

    def stop(self, event: Event) -> None:
        """Leave the code as it stands, and hand a Hold to the driver."""
        assert self._greenlet is not None
        hold = Hold(Effect("emit", event.type, {"payload": event.payload}), "emit", "after", event)
        self._greenlet.parent.switch((True, hold))

    # -- the turn as a coroutine -------------------------------------------------------------------------------------

    def send(self, value: Any) -> Any:
        """Go on to the next await, the next stop or the end."""
        return self._go(self._code.send, value)

    def throw(self, error: Any, value: Any = None, traceback: Any = None) -> Any:
        """Go on with an exception where it awaits."""
        return self._go(self._code.throw, error)

    def __await__(self) -> Generator[Any, Any, Any]:
        """Go on as a coroutine does."""
        return self._code.__await__()

    def close(self) -> None:
        """Give it up where it stands: its code is left by an exception that none of its handlers takes.

        What goes on in its own loop at this moment is cancelled there.
        """
        if self._errand is not None:
            self._given_up = True
            self._errand.cancel()
            return
        with suppress(RuntimeError):  # it goes on all the same, but nobody waits for it
            if self._greenlet is None or self._thread == threading.get_ident():
                self._give_up()
            elif self._home is not None:
                self._home.begin(lambda _: self._give_up())()
        self._greenlet = None  # in a thread that is somebody else's, it is given up when that thread looks
        self.leave()

    def _give_up(self) -> None:
        from greenlet import GreenletExit, getcurrent

        with suppress(Exception):
            if self._greenlet is not None:
                self._greenlet.parent = getcurrent()
                self._greenlet.throw(GreenletExit)
            self._code.close()

    def _go(self, way: Callable[[Any], Any], value: Any) -> Any:
        from greenlet import getcurrent, greenlet

        if self._greenlet is None:
            self._greenlet, self._thread = greenlet(_stretch), threading.get_ident()
            self._greenlet.gr_context = self._context
            words: tuple[Any, ...] = (way, value)
        else:
            self._greenlet.parent, words = getcurrent(), ()
        lives, came = self._greenlet.switch(*words)
        if self._greenlet.dead:
            self._greenlet = None
        if lives:
            return came
        raise came

    # -- where it goes on --------------------------------------------------------------------------------------------

    def drive(self, work: Callable[[], Coroutine[Any, Any, int]]) -> int:
        """Run a coroutine that drives this turn in the thread whose loop stays until it has ended."""
        self._home = self._home or Home()
        try:
            return in_own_loop(work, self._home)
        finally:
            if self._ended:
                self.leave()

    async def drive_beside(self, work: Callable[[], Coroutine[Any, Any, int]]) -> int:
        """Do the same, and let the loop here go on meanwhile."""
        home = self._home = self._home or Home()

        def sent(then: Callable[[], Any]) -> Errand:
            self._errand = Errand(work, home, then)
            return self._errand

        try:
            return await ended_beside(sent)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._given_up or (task is not None and task.cancelling()):
                raise
            return PAUSED
        finally:
            self._errand = None
            if self._ended:
                self.leave()

    @property
    def _ended(self) -> bool:
        return getattr(self._code, "cr_frame", None) is None

    def leave(self) -> None:
        """Leave the thread that it was given."""
        if self._home is not None:
            self._home.leave()
            self._home = None

    def check_thread(self) -> None:
        """Raise where it stands inside its code, and this is not the thread that it can go on in.

        Raises:
            ExecutionError: X122, it was begun in another thread.
        """
        if self._greenlet is not None and self._home is None and self._thread != threading.get_ident():
            raise ExecutionError(
                Problem(
                    "X122",
                    f"{self._work.node.id!r} is held inside its code, in another thread than this one",
                    f"after step {self._work.run.position}",
                    "a node that was stepped into goes on in the thread in which it began",
                    "go on from that thread; or call session.stop(), and step here",
                )
            )


def _stretch(way: Callable[[Any], Any], value: Any) -> tuple[bool, Any]:
    """Run code up to its next await, and say what came of it: what it awaits, or what it ended with."""
    try:
        return True, way(value)
    except BaseException as error:  # noqa: BLE001  (raised again by the driver)
        return False, error
