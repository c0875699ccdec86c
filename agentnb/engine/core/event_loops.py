"""Event loops for callers without one: for a single call, or kept open while a step is in flight."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import threading
from collections.abc import Callable, Coroutine, Generator
from queue import SimpleQueue
from typing import Any, Final
from weakref import finalize

from agentnb.threadless import has_threads, run_here

NEED_LOOP: Final = object()


class NeedLoop:
    """An awaitable that moves its coroutine into an event loop."""

    def __await__(self) -> Generator[Any, Any, None]:
        """Yield the marker to the driver of this coroutine."""
        yield NEED_LOOP


def get_running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop running in this thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def is_in_loop() -> bool:
    """Return True if an event loop is running in this thread."""
    return get_running_loop() is not None


Job = Callable[[asyncio.Runner], None]


class LoopThread:
    """A thread with an event loop that stays open, so that what a node opens in it is usable in later calls."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=_serve, args=(self._jobs,), name="agentnb-home", daemon=True)
        self._thread.start()
        finalize(self, self._jobs.put, None)

    def submit(self, job: Job) -> Callable[[], Any]:
        """Run a job in that thread; return a function that waits for it to finish."""
        ended = threading.Event()

        def run_job(runner: asyncio.Runner) -> None:
            try:
                job(runner)
            finally:
                ended.set()

        self._jobs.put(run_job)
        return ended.wait

    def close(self) -> None:
        """Close the event loop and end the thread."""
        self._jobs.put(None)
        if threading.current_thread() is not self._thread:  # a failing branch may end the node of another branch there
            self._thread.join()


def _serve(jobs: SimpleQueue[Job | None]) -> None:
    with asyncio.Runner() as runner:
        while (job := jobs.get()) is not None:
            job(runner)
            del job  # a reference would keep the job's objects alive


def run_in_own_loop(work: Callable[[], Coroutine[Any, Any, int]], home: LoopThread | None = None) -> int:
    """Run a coroutine to completion in a new event loop, in a worker thread if a loop is already running in this one.

    With `home`, use that thread's loop.
    """
    if not has_threads():
        return run_here(work())
    if home is None and not is_in_loop():
        return asyncio.run(work())
    remote = RemoteCoroutine(work, home)
    try:
        remote.join()
    except BaseException:  # an interrupt: pending steps are cancelled, committed ones stay
        remote.cancel()
        remote.join()
        raise
    return remote.result()


class RemoteCoroutine:
    """A coroutine running in an event loop of another thread; `ended` blocks the current thread until it ends.

    Awaiting it keeps the local event loop running; cancelling the await first ends the coroutine there.
    """

    def __init__(
        self,
        work: Callable[[], Coroutine[Any, Any, int]],
        home: LoopThread | None,
        then: Callable[[], Any] = lambda: None,
    ) -> None:
        self._work, self._on_end = work, then
        self._outcome: list[Any] = []
        self._loops: list[asyncio.AbstractEventLoop] = []
        context = contextvars.copy_context()
        self.join = (
            _start_thread(lambda: context.run(self._run, asyncio.run))
            if home is None
            else home.submit(lambda runner: context.run(self._run, runner.run))
        )

    def _run(self, runs: Callable[[Coroutine[Any, Any, int]], int]) -> None:
        try:
            self._outcome.append(runs(self._run_main()))
        except BaseException as error:  # noqa: BLE001  (raised again in the calling thread)
            self._outcome.append(error)
        self._on_end()

    async def _run_main(self) -> int:
        self._loops.append(asyncio.get_running_loop())
        return await self._work()

    def cancel(self) -> None:
        """Cancel the tasks of its event loop."""
        for loop in self._loops:
            loop.call_soon_threadsafe(_cancel_all, loop)

    def result(self) -> int:
        """Return the coroutine's result, or raise its exception."""
        [outcome] = self._outcome
        if isinstance(outcome, BaseException):
            raise outcome
        return int(outcome)


async def run_beside(make_remote: Callable[[Callable[[], Any]], RemoteCoroutine]) -> int:
    """Start a coroutine on another loop and await its end while the current loop continues.

    A cancellation ends it first.
    """
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    sent, cancelled = make_remote(lambda: loop.call_soon_threadsafe(over.set)), None
    while not over.is_set():
        try:
            await over.wait()
        except asyncio.CancelledError as error:
            cancelled = error
            sent.cancel()
    sent.join()
    if cancelled is not None:
        raise cancelled
    return sent.result()


def _start_thread(target: Callable[[], None]) -> Callable[[], Any]:
    thread = threading.Thread(target=target, name="agentnb-run", daemon=True)
    thread.start()
    return thread.join


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()


def enable_nesting() -> str:
    """Allow `asyncio.run` and similar calls while an event loop is running, process-wide; return the module used.

    agentnb itself never needs this: in a notebook, write `await session.arun()` or `session.start()`. It is for
    surrounding code that cannot be awaited. During such a nested run, buttons do not respond. The maintained successor
    nest-asyncio2 is used if it is installed (ipykernel depends on it), else nest-asyncio.
    """
    try:
        module = importlib.import_module("nest_asyncio2")
    except ImportError:
        module = importlib.import_module("nest_asyncio")
    module.apply()
    return module.__name__
