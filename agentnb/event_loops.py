"""Event loops for callers without one. They stay open between calls, so that clients keep their connections.

An async client holds connections that belong to the event loop in which they were opened. A program that creates one
client and uses it in two nodes works if both run in the same loop, also if they are stepped by two calls of `step()`.
So each thread has one loop for what it calls outside of a running loop, and one thread with a loop for what it calls
inside.
"""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import os
import threading
from collections.abc import Callable, Coroutine, Generator
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar
from weakref import finalize

from agentnb.threadless import has_threads, run_here

T = TypeVar("T")
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


class OpenLoop:
    """An event loop of one thread that stays open until the thread or the process ends."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._close = finalize(self, self._runner.close)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to completion with the current context variables."""
        return self._runner.run(coroutine, context=contextvars.copy_context())

    def close(self) -> None:
        """Close the loop."""
        self._close()


async def _run_alone(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine; then cancel the tasks that it leaves behind, as `asyncio.run` does, and wait for their end."""
    try:
        return await work()
    finally:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)


Job = Callable[[OpenLoop], None]


class LoopThread:
    """A thread with an event loop that stays open, so that what a node opens in it is usable in later calls."""

    def __init__(self, name: str = "agentnb-home") -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=_serve, args=(self._jobs,), name=name, daemon=True)
        self._thread.start()
        finalize(self, self._jobs.put, None)

    def submit(self, job: Job) -> Callable[[], Any]:
        """Run a job in that thread; return a function that waits for it to finish."""
        ended = threading.Event()

        def run_job(loop: OpenLoop) -> None:
            try:
                job(loop)
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
    loop = OpenLoop()
    try:
        while (job := jobs.get()) is not None:
            job(loop)
            del job  # a reference would keep the job's objects alive
    finally:
        loop.close()


class _ThreadLoops(threading.local):
    """The loops of a thread, made when they are needed."""

    own: OpenLoop | None = None
    beside: LoopThread | None = None


_loops = _ThreadLoops()
_of_parent_process: list[_ThreadLoops] = []


def close_loops() -> None:
    """Close this thread's loops, if it has any: async generators end, and clients in them close their connections."""
    if _loops.own is not None:
        _loops.own.close()
    if _loops.beside is not None:
        _loops.beside.close()
    _loops.own = _loops.beside = None


def _forget_loops() -> None:
    """Make new loops in a forked process: those of its parent share their selectors, and must not be closed here."""
    global _loops  # noqa: PLW0603  (the state of this process)
    _of_parent_process.append(_loops)
    _loops = _ThreadLoops()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_loops)


def run_in_own_loop(work: Callable[[], Coroutine[Any, Any, T]], home: LoopThread | None = None) -> T:
    """Run a coroutine to completion in this thread's loop; beside it, if a loop is already running in this thread.

    With `home`, use that thread's loop; what the coroutine leaves running stays for the next call.
    """
    if not has_threads():
        return run_here(work())
    if home is not None:
        return _wait_for(RemoteCoroutine(work, home))
    if not is_in_loop():
        _loops.own = _loops.own or OpenLoop()
        return _loops.own.run(_run_alone(work))
    _loops.beside = _loops.beside or LoopThread("agentnb-run")
    return _wait_for(RemoteCoroutine(lambda: _run_alone(work), _loops.beside))


def _wait_for(remote: RemoteCoroutine[T]) -> T:
    try:
        remote.join()
    except BaseException:  # an interrupt: pending steps are cancelled, committed ones stay
        remote.cancel()
        remote.join()
        raise
    return remote.result()


class RemoteCoroutine(Generic[T]):
    """A coroutine running in an event loop of another thread; `ended` blocks the current thread until it ends.

    Awaiting it keeps the local event loop running; cancelling the await first ends the coroutine there.
    """

    def __init__(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        home: LoopThread,
        then: Callable[[], Any] = lambda: None,
    ) -> None:
        self._work, self._on_end = work, then
        self._outcome: list[Any] = []
        self._loops: list[asyncio.AbstractEventLoop] = []
        context = contextvars.copy_context()
        self.join = home.submit(lambda loop: context.run(self._run, loop.run))

    def _run(self, runs: Callable[[Coroutine[Any, Any, T]], T]) -> None:
        try:
            self._outcome.append(runs(self._run_main()))
        except BaseException as error:  # noqa: BLE001  (raised again in the calling thread)
            self._outcome.append(error)
        self._on_end()

    async def _run_main(self) -> T:
        self._loops.append(asyncio.get_running_loop())
        return await self._work()

    def cancel(self) -> None:
        """Cancel the tasks of its event loop."""
        for loop in self._loops:
            loop.call_soon_threadsafe(_cancel_all, loop)

    def result(self) -> T:
        """Return the coroutine's result, or raise its exception."""
        [outcome] = self._outcome
        if isinstance(outcome, BaseException):
            raise outcome
        result: T = outcome
        return result


async def run_beside(make_remote: Callable[[Callable[[], Any]], RemoteCoroutine[T]]) -> T:
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
