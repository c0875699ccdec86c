"""desk: between a person and a session: posts commands to the kernel's loop, and says when to paint the screen anew.

Commands come from any thread and are carried out one after the other on the loop; pause goes first. The screen is
painted at most some fifteen times a second, and always once more after the last change.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final

from agentnb.errors import AgentNbError, Problem
from agentnb.ui.loop import kernel_loop
from agentnb.ui.verbs import ASIDE, BESIDE, LEADS, carry_out

if TYPE_CHECKING:
    from agentnb.session import Session

INTERVAL: Final = 1 / 15  # seconds from one picture to the next while a run goes
_SHARE: Final = 20  # painting takes at most one part in this many of the loop's time
_PATIENCE: Final = 0.1  # seconds until a step that has not ended shows as running
_AWAY: Final = frozenset({"back", "goto", "run_back", "stop", "reset"})
_ENDS: Final = _AWAY | {"pause"}
_AT_ONCE: Final = ASIDE | {"pause", "switch"}  # these wait for no step in flight


def _nothing() -> None:
    """Nobody asked to be told."""


@dataclass
class Command:
    """What a person asks for; `value` is what they gave (a step number, an answer), `target` what it is about.

    `found` is what they are to be told once it is done, if anything.
    """

    verb: str
    value: Any = None
    target: Any = None
    done: Callable[[], None] = _nothing
    found: Any = None


class Desk:
    """Takes commands for one session, and calls `paint` when something has changed, `turned` for another session.

    `problems` are those of the last command, for the screen: a kernel shows the errors of callbacks nowhere.
    `at_work` says that a step which was asked for here has not ended yet.
    """

    def __init__(
        self, session: Session, paint: Callable[[], None], turned: Callable[[Session], None] | None = None
    ) -> None:
        self.session, self._turned = session, turned
        self.problems: tuple[Problem, ...] = ()
        self._paint = paint
        self._loop = kernel_loop()
        self._queue: deque[Command] = deque()
        self._task: asyncio.Task[None] | None = None
        self._step: asyncio.Task[Any] | None = None
        self._lock = threading.Lock()
        self._painted, self._rest, self._due = 0.0, INTERVAL, inf
        self.open()

    @property
    def at_work(self) -> bool:
        """Whether a step that was asked for here is in flight."""
        return self._step is not None

    def open(self) -> None:
        """Hear of the session."""
        self._unsubscribe = self.session.subscribe(self._heard, to="change")

    def close(self) -> None:
        """Hear no more of the session; a step that was asked for comes to its end."""
        self._unsubscribe()

    # -- commands --------------------------------------------------------------------------------------------------

    def ask(self, command: Command) -> None:
        """Take a command, from any thread; it is carried out on the kernel's loop, here and now where there is none."""
        if self._loop is None or self._loop.is_closed():
            self._now(command)
        else:
            self._loop.call_soon_threadsafe(self._take, command)

    def _take(self, command: Command) -> None:
        if command.verb in _ENDS:  # what was to begin after the step in flight is not wanted any more
            for late in [one for one in self._queue if one.verb in BESIDE]:
                self._queue.remove(late)
                late.done()
        last = self._queue[-1] if self._queue else None
        if command.verb in _AT_ONCE:
            self._now(command)
            return
        if self._step is not None and command.verb in _AWAY:
            self._step.cancel()  # it is recorded as cancelled, and runs again when it is stepped
        if command.verb == "goto" and last is not None and last.verb == "goto":
            self._queue.pop().done()  # a slider on its way: the last place wins
        self._queue.append(command)
        if self._task is None:
            assert self._loop is not None
            self._task = self._loop.create_task(self._serve(), name="agentnb-desk")

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._queue:
                command = self._queue.popleft()
                late = loop.call_later(_PATIENCE, self.refresh)
                await self._guarded(command)
                late.cancel()
                self.refresh()
                command.done()
        finally:
            self._task = None

    async def _guarded(self, command: Command) -> None:
        self.problems = ()
        try:
            begins = BESIDE.get(command.verb)
            if begins is None:
                self._plain(command)
            elif asyncio.iscoroutine(begun := begins(self.session, command.value, command.target)):
                await self._ended(begun)
        except KeyboardInterrupt:
            pass  # it has paused what went on here; raised further, it would end the kernel's loop
        except Exception as error:  # noqa: BLE001  (a kernel shows it nowhere, so the screen does)
            self.problems = problems_of(error, command.verb)

    async def _ended(self, moving: Coroutine[Any, Any, Any]) -> None:
        """Wait for the end of what moves the session, in a task of its own: who goes elsewhere need not wait for it."""
        self._step = asyncio.get_running_loop().create_task(_calmly(moving), name="agentnb-step")
        try:
            await asyncio.wait([self._step])
            if not self._step.cancelled():
                self._step.result()
        finally:
            self._step = None

    def _now(self, command: Command) -> None:
        """Carry out a command here: as a script does, which has no loop, and what waits for no step in flight."""
        quiet = command.verb == "look"  # what is only told to who asks changes nothing on the screen
        self.problems = self.problems if quiet else ()
        try:
            self._plain(command)
        except Exception as error:  # noqa: BLE001
            self.problems, quiet = problems_of(error, command.verb), False
        if not quiet:
            self.refresh()
        command.done()

    def _plain(self, command: Command) -> None:
        found = carry_out(self.session, command.verb, command.value, command.target)
        if command.verb not in LEADS:
            command.found = found
        elif self._turned is not None:
            self._turned(found)

    # -- painting --------------------------------------------------------------------------------------------------

    def _heard(self, *_: object) -> None:
        """Something changed. Paints at once if the last picture is old enough, else a little later."""
        if self._loop is None or self._loop.is_closed():
            self.refresh()
            return
        now = time.monotonic()
        due = self._painted + (self._rest if self.session.live.moves else INTERVAL)  # where it has come to rest: soon
        if due <= now:
            self.refresh()
        elif due < self._due:
            self._due = due
            self._loop.call_soon_threadsafe(self._later, due - now)

    def _later(self, rest: float) -> None:
        assert self._loop is not None
        self._loop.call_later(rest, self.refresh)

    def refresh(self) -> None:
        """Paint now. What goes wrong is shown too: no error of a picture may reach the run."""
        if not self._lock.acquire(blocking=False):
            if self._loop is not None:  # painted in another thread at this moment: once more, later
                self._loop.call_soon_threadsafe(self._later, INTERVAL)
            return
        try:
            self._due = inf
            begun = time.monotonic()
            self._paint()
            self._painted = time.monotonic()
            self._rest = max(INTERVAL, (_SHARE - 1) * (self._painted - begun))
        finally:
            self._lock.release()


async def _calmly(moving: Coroutine[Any, Any, Any]) -> None:
    """Await it; an interrupt has paused it, and raised further, it would end the kernel's loop."""
    with suppress(KeyboardInterrupt):
        await moving


def problems_of(error: Exception, verb: str) -> tuple[Problem, ...]:
    """Return what an error says, as Problems that the screen can show."""
    if isinstance(error, AgentNbError) and error.problems:
        return error.problems
    name = type(error).__name__
    return (
        Problem(
            "U302",
            f"{verb} did not work: {name}",
            f"the cockpit's {verb}",
            str(error) or f"it raised {name} and said no more",
            f"call session.{verb} in a cell to see where it comes from",
        ),
    )
