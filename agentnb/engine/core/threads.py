"""Threads for blocking sync calls: one per call, so that parallel branches do not wait for each other."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache, partial
from queue import SimpleQueue
from types import CoroutineType
from typing import Any, Final

from agentnb.threadless import has_threads

# The pool of an event loop is small: branches that wait for one another could deadlock.
MAX_THREADS: Final = 256


class _Threads:
    """Threads created on demand, reused, and never joined, so that the process can exit while they run."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._thread_count = 0

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Call a function in the next free thread."""
        future: Future[Any] = Future()
        self._calls.put((future, call))
        if not self._idle.acquire(blocking=False):
            with self._lock:
                if self._thread_count < MAX_THREADS:
                    self._thread_count += 1
                    threading.Thread(target=self._serve, name=f"agentnb_{self._thread_count}", daemon=True).start()
        return future

    def _serve(self) -> None:
        while True:
            _run_call(*self._calls.get())  # no local names, because they would keep the call's objects alive
            self._idle.release()


def _run_call(future: Future[Any], call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except StopIteration as error:  # a future refuses to carry StopIteration, and the caller would wait forever
        future.set_exception(replace_unraisable(error))
    except BaseException as error:  # noqa: BLE001  (raised again where it is awaited)
        future.set_exception(error)
    else:
        future.set_result(result)


@cache
def _get_threads() -> _Threads:
    return _Threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_get_threads.cache_clear)  # a forked process has none of the threads


async def call_in_thread(call: Callable[..., Any], *args: Any) -> Any:
    """Call a function in a thread, with the current context variables, and return its result.

    Without threads, call it here.

    Raises:
        RuntimeError: it raised StopIteration, which a coroutine cannot propagate.
    """
    context = contextvars.copy_context()
    if not has_threads():
        await asyncio.sleep(0)  # let the page be drawn before
        future: Future[Any] = Future()
        _run_call(future, partial(context.run, call, *args))
        return future.result()
    submitted = _get_threads().submit(partial(context.run, call, *args))
    try:
        return await asyncio.wrap_future(submitted)
    except asyncio.CancelledError:
        submitted.add_done_callback(_close_result)
        raise


def _close_result(future: Future[Any]) -> None:
    """Close a coroutine that a call has returned and that is no longer awaited."""
    if not future.cancelled() and future.exception() is None and isinstance(future.result(), CoroutineType):
        future.result().close()


def replace_unraisable(error: Exception | SystemExit) -> Exception:
    """Return an error, replacing StopIteration and SystemExit by an error that names them.

    Python would report StopIteration as an error of a coroutine or without a message, and SystemExit would end the
    program.
    """
    if isinstance(error, SystemExit):
        exit_error = RuntimeError(f"it called sys.exit({error.code!r})")
        exit_error.__cause__ = error
        return exit_error
    of_python = isinstance(error, RuntimeError) and str(error) == "coroutine raised StopIteration"
    stopped = error.__cause__ if of_python else error
    if not isinstance(stopped, StopIteration):
        return error
    replacement = RuntimeError("it raised StopIteration: an iterator, such as a mock's `side_effect`, is exhausted")
    replacement.__cause__ = stopped
    return replacement
