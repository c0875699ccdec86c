"""One attempt of a tool, with its timeout, for blocking and for async callers.

An async tool is cancelled at its timeout. A plain function cannot be cancelled: it continues in its thread, and its
result is discarded.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from agentnb.event_loops import run_in_own_loop
from agentnb.threadless import has_threads

T = TypeVar("T")
Call = Callable[[], Any]


class WaitMode(Protocol):
    """How to wait for the parts of an execution."""

    async def call(self, call: Call, seconds: float | None, *, is_async: bool) -> Any:
        """Return the result of a call. Raises the errors of the call; TimeoutError if it took longer than `seconds`."""

    async def settle(self, answer: Any) -> Any:
        """Return an answer, awaited if necessary."""

    def is_cancelled(self) -> bool:
        """Return True if the execution itself is being cancelled, rather than the tool."""


class Awaiting:
    """For async callers: a plain function runs in a thread, so that the loop is not blocked."""

    async def call(self, call: Call, seconds: float | None, *, is_async: bool) -> Any:
        """Return the result of a call; see WaitMode."""
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                answer = await self.settle(call() if is_async else await _run_in_thread(call))
        except TimeoutError:
            if limit.expired():
                raise _make_timeout_error(seconds) from None
            raise
        if limit.expired():  # it was cancelled and returned a value anyway
            raise _make_timeout_error(seconds)
        return answer

    async def settle(self, answer: Any) -> Any:
        """Return an answer, awaited if necessary."""
        return await answer if inspect.isawaitable(answer) else answer

    def is_cancelled(self) -> bool:
        """Return True if the executing task is being cancelled."""
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0


class Blocking:
    """For callers that block a thread, whether or not an event loop runs in it: nothing here suspends."""

    async def call(self, call: Call, seconds: float | None, *, is_async: bool) -> Any:
        """Return the result of a call; see WaitMode."""
        if is_async:
            return run_in_own_loop(lambda: Awaiting().call(call, seconds, is_async=True))
        if seconds is None:
            return _await(call())
        answer: Future[tuple[Any, BaseException | None]] = start_in_thread(lambda: _await(call()))
        try:
            value, error = answer.result(seconds)
        except TimeoutError:
            raise _make_timeout_error(seconds) from None
        if error is not None:
            raise error
        return value

    async def settle(self, answer: Any) -> Any:
        """Return an answer, awaited if necessary."""
        return _await(answer)

    def is_cancelled(self) -> bool:
        """Return False: a blocking caller cannot be cancelled."""
        return False


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, without a loop."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    raise AssertionError("what is driven so must not suspend")


def start_in_thread(call: Call) -> Future[tuple[Any, BaseException | None]]:
    """Call a function in a new thread, with the current context variables.

    Return a container for (return value, exception), because a future cannot carry a StopIteration.
    """
    future: Future[tuple[Any, BaseException | None]] = Future()
    future.set_running_or_notify_cancel()  # it can no longer be cancelled: a caller that stops waiting abandons it
    context = contextvars.copy_context()

    def work() -> None:
        try:
            done = context.run(call), None
        except BaseException as error:  # noqa: BLE001  (raised again where it is waited for)
            future.set_result((None, error))
        else:
            future.set_result(done)

    if has_threads():
        threading.Thread(target=work, name="agentnb-tool", daemon=True).start()
    else:
        work()
    return future


async def _run_in_thread(call: Call) -> Any:
    value, error = await asyncio.wrap_future(start_in_thread(call))
    if error is not None:
        raise error
    return value


def _await(answer: Any) -> Any:
    return run_in_own_loop(lambda: _to_coroutine(answer)) if inspect.isawaitable(answer) else answer


async def _to_coroutine(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _make_timeout_error(seconds: float | None) -> TimeoutError:
    return TimeoutError(f"it took longer than {seconds:g} s")
