"""The command queue between page and session: posts commands to the kernel's loop and schedules repaints.

Commands arrive from any thread and run one after another on the loop; pause runs first. The page is repainted at most
about fifteen times a second, and always once after the last change.
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
from agentnb.secrets import masks_by
from agentnb.session.parts import get_parts
from agentnb.session.state import get_state
from agentnb.ui.commands import COMMANDS, Command, run_command
from agentnb.ui.kernel_loop import get_kernel_loop

if TYPE_CHECKING:
    from agentnb.session import Session

INTERVAL: Final = 1 / 15  # seconds between repaints while a run moves
_SHARE: Final = 20  # painting takes at most one part in this many of the loop's time
_PATIENCE: Final = 0.1  # seconds until a step that has not ended is shown as running
_UNKNOWN: Final = Command("", lambda *_: None)


def _do_nothing() -> None:
    """Do nothing: the default callback."""


@dataclass
class Request:
    """A command that a page has sent; `value` is its argument (a step number, an answer), `target` what it acts on.

    `done` is called afterwards; `result` is what it returned, if any.
    """

    verb: str
    value: Any = None
    target: Any = None
    done: Callable[[], None] = _do_nothing
    result: Any = None

    @property
    def command(self) -> Command:
        """The row of the command; an unknown one fails when it is run."""
        return COMMANDS.get(self.verb, _UNKNOWN)


@masks_by(lambda queue: get_state(queue.session).run.tables.secrets, private=("_run_now", "_serve"))
class CommandQueue:
    """The command queue of one session. Calls `paint` after a change, and `turned` when another session is shown.

    `problems` are those of the last command, for the page: a kernel does not display errors raised in callbacks.
    `at_work` is True while a step requested here is in flight.
    """

    def __init__(
        self, session: Session, paint: Callable[[], None], switched: Callable[[Session], None] | None = None
    ) -> None:
        self.session, self._turned = session, switched
        self.problems: tuple[Problem, ...] = ()
        self._paint = paint
        self._loop = get_kernel_loop()
        self._queue: deque[Request] = deque()
        self._task: asyncio.Task[None] | None = None
        self._step: asyncio.Task[Any] | None = None
        self._lock = threading.Lock()
        self._painted, self._rest, self._due = 0.0, INTERVAL, inf
        self.open()

    @property
    def at_work(self) -> bool:
        """Return True while a step requested here is in flight."""
        return self._step is not None

    def open(self) -> None:
        """Subscribe to the session."""
        self._unsubscribe = self.session.subscribe(self._handle_message, to="change")

    def close(self) -> None:
        """Unsubscribe from the session; a requested step still finishes."""
        self._unsubscribe()

    # -- commands --------------------------------------------------------------------------------------------------

    def ask(self, request: Request) -> None:
        """Accept a command from any thread; run it on the kernel's loop, or immediately if there is no loop."""
        if self._loop is None or self._loop.is_closed():
            self._run_now(request)
        else:
            self._loop.call_soon_threadsafe(self._take, request)

    def _take(self, request: Request) -> None:
        command = request.command
        if command.ends:  # discard commands queued behind the step in flight
            for late in [request for request in self._queue if request.command.arun is not None]:
                self._queue.remove(late)
                late.done()
        last = self._queue[-1] if self._queue else None
        if not command.waits_for_step:
            self._run_now(request)
            return
        if self._step is not None and command.ends == "step":
            self._step.cancel()  # the step is recorded as cancelled and runs again at the next step
        if request.verb == "goto" and last is not None and last.verb == "goto":
            self._queue.pop().done()  # a slider being dragged: only the last position counts
        self._queue.append(request)
        if self._task is None:
            assert self._loop is not None
            self._task = self._loop.create_task(self._serve(), name="agentnb-desk")

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._queue:
                request = self._queue.popleft()
                late = loop.call_later(_PATIENCE, self.refresh)
                await self._run_guarded(request)
                late.cancel()
                self.refresh()
                request.done()
        finally:
            self._task = None

    async def _run_guarded(self, request: Request) -> None:
        self.problems = ()
        try:
            command = request.command
            if command.arun is None:
                self._run_plainly(request)
            elif asyncio.iscoroutine(pending := command.arun(self.session, request.value, request.target)):
                await self._await_end(pending)
        except KeyboardInterrupt:
            pass  # the interrupt has paused the run; raised further, it would end the kernel's loop
        except Exception as error:  # noqa: BLE001  (a kernel shows it nowhere, so the screen does)
            self.problems = to_problems(error, request.verb)

    async def _await_end(self, moving: Coroutine[Any, Any, Any]) -> None:
        """Await the end of a run command in a separate task, so that navigation commands need not wait for it."""
        self._step = asyncio.get_running_loop().create_task(_await_interruptible(moving), name="agentnb-step")
        try:
            with get_parts(self.session).async_execution.keep_loop_free():
                await asyncio.wait([self._step])
            if not self._step.cancelled():
                self._step.result()
        finally:
            self._step = None

    def _run_now(self, request: Request) -> None:
        """Run a command immediately: in a script, which has no loop, or if it need not wait for a step in flight."""
        quiet = request.verb == "query"  # a query sends its result to the page that asked and changes nothing else
        self.problems = self.problems if quiet else ()
        try:
            self._run_plainly(request)
        except Exception as error:  # noqa: BLE001
            self.problems, quiet = to_problems(error, request.verb), False
        if not quiet:
            self.refresh()
        request.done()

    def _run_plainly(self, request: Request) -> None:
        result = run_command(self.session, request.verb, request.value, request.target)
        if not request.command.returns_session:
            request.result = result
        elif self._turned is not None:
            self._turned(result)

    # -- painting --------------------------------------------------------------------------------------------------

    def _handle_message(self, *_: object) -> None:
        """Schedule a repaint after a change: now if the last one is old enough, otherwise a little later."""
        if self._loop is None or self._loop.is_closed():
            self.refresh()
            return
        now = time.monotonic()
        # the run has stopped: repaint soon
        due = self._painted + (self._rest if get_state(self.session).moves else INTERVAL)
        if due <= now:
            self.refresh()
        elif due < self._due:
            self._due = due
            self._loop.call_soon_threadsafe(self._run_later, due - now)

    def _run_later(self, rest: float) -> None:
        assert self._loop is not None
        self._loop.call_later(rest, self.refresh)

    def refresh(self) -> None:
        """Repaint now. A failure is shown on the page: an error in painting must not reach the run."""
        if not self._lock.acquire(blocking=False):
            if self._loop is not None:  # another thread is painting right now: repaint again later
                self._loop.call_soon_threadsafe(self._run_later, INTERVAL)
            return
        try:
            self._due = inf
            start = time.monotonic()
            self._paint()
            self._painted = time.monotonic()
            self._rest = max(INTERVAL, (_SHARE - 1) * (self._painted - start))
        finally:
            self._lock.release()


async def _await_interruptible(moving: Coroutine[Any, Any, Any]) -> None:
    """Await a coroutine and swallow an interrupt: it has paused the run, and would end the kernel's loop."""
    with suppress(KeyboardInterrupt):
        await moving


def to_problems(error: Exception, verb: str) -> tuple[Problem, ...]:
    """Return an error as Problems that the page can show."""
    if isinstance(error, AgentNbError) and error.problems:
        return error.problems
    name = type(error).__name__
    return (
        Problem(
            "U302",
            f"{verb} failed: {name}",
            f"the cockpit's {verb}",
            str(error) or f"it raised {name} without a message",
            f"call session.{verb} in a cell to see the full error",
        ),
    )
