"""loops: an event loop for those who have none: for one call, or one that stays while a step is in flight."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from queue import SimpleQueue
from typing import Any
from weakref import finalize

from agentnb.engine.flight import in_loop

Job = Callable[[asyncio.Runner], None]


class Home:
    """A thread whose loop stays until it is left: what a node opens in it may be used at the next call too."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=_serve, args=(self._jobs,), name="agentnb-home", daemon=True)
        self._thread.start()
        finalize(self, self._jobs.put, None)

    def begin(self, job: Job) -> Callable[[], Any]:
        """Do something in that thread; return what waits for its end."""
        ended = threading.Event()

        def done(runner: asyncio.Runner) -> None:
            try:
                job(runner)
            finally:
                ended.set()

        self._jobs.put(done)
        return ended.wait

    def leave(self) -> None:
        """Close the loop and end the thread."""
        self._jobs.put(None)
        if threading.current_thread() is not self._thread:  # a branch that fails there may end another one's node
            self._thread.join()


def _serve(jobs: SimpleQueue[Job | None]) -> None:
    with asyncio.Runner() as runner:
        while (job := jobs.get()) is not None:
            job(runner)
            del job  # it would keep alive what it was for


def in_own_loop(work: Callable[[], Coroutine[Any, Any, int]], home: Home | None = None) -> int:
    """Run a coroutine to its end: in a loop of its own, in a worker thread where one is running here already.

    With a `home`, in the loop that stays there.
    """
    if home is None and not in_loop():
        return asyncio.run(work())
    errand = Errand(work, home)
    try:
        errand.ended()
    except BaseException:  # an interrupt: the steps in flight are cancelled, those committed stay
        errand.cancel()
        errand.ended()
        raise
    return errand.found()


class Errand:
    """A coroutine on its way in a loop of another thread; `ended` waits for its end, and holds this thread.

    Awaited, it lets the loop here go on meanwhile; cancelled then, it ends there first.
    """

    def __init__(
        self,
        work: Callable[[], Coroutine[Any, Any, int]],
        home: Home | None = None,
        then: Callable[[], Any] = lambda: None,
    ) -> None:
        self._work, self._then = work, then
        self._found: list[Any] = []
        self._loops: list[asyncio.AbstractEventLoop] = []
        context = contextvars.copy_context()
        self.ended = (
            _begun(lambda: context.run(self._run, asyncio.run))
            if home is None
            else home.begin(lambda runner: context.run(self._run, runner.run))
        )

    def _run(self, runs: Callable[[Coroutine[Any, Any, int]], int]) -> None:
        try:
            self._found.append(runs(self._main()))
        except BaseException as error:  # noqa: BLE001  (raised again where it belongs)
            self._found.append(error)
        self._then()

    async def _main(self) -> int:
        self._loops.append(asyncio.get_running_loop())
        return await self._work()

    def cancel(self) -> None:
        """Cancel what it does there."""
        for loop in self._loops:
            loop.call_soon_threadsafe(_cancel_all, loop)

    def found(self) -> int:
        """Return what it came to, or raise it."""
        if isinstance(self._found[0], BaseException):
            raise self._found[0]
        return int(self._found[0])


async def ended_beside(errand: Callable[[Callable[[], Any]], Errand]) -> int:
    """Begin an errand, and wait for its end while this loop goes on. A cancellation lets it end there first."""
    here, over = asyncio.get_running_loop(), asyncio.Event()
    sent, cancelled = errand(lambda: here.call_soon_threadsafe(over.set)), None
    while not over.is_set():
        try:
            await over.wait()
        except asyncio.CancelledError as error:
            cancelled = error
            sent.cancel()
    sent.ended()
    if cancelled is not None:
        raise cancelled
    return sent.found()


def _begun(target: Callable[[], None]) -> Callable[[], Any]:
    thread = threading.Thread(target=target, name="agentnb-run", daemon=True)
    thread.start()
    return thread.join


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()
