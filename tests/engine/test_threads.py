from __future__ import annotations

import asyncio
import contextvars
import inspect
import subprocess
import sys
import threading
import time

import pytest

from agentnb.engine.core.threads import call_in_thread, replace_unraisable

here = contextvars.ContextVar("here", default="nowhere")


def test_it_returns_what_the_function_returns_or_raises_what_it_raises():
    assert asyncio.run(call_in_thread(divmod, 7, 2)) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(call_in_thread(divmod, 7, 0))


def test_the_function_runs_in_another_thread_with_the_context_variables_of_the_caller():
    async def main():
        here.set("set")
        return await call_in_thread(lambda: (here.get(), threading.current_thread()))

    value, thread = asyncio.run(main())
    assert value == "set"
    assert thread is not threading.current_thread()


def test_many_threads_can_wait_for_one_another():
    barrier = threading.Barrier(50, timeout=30)

    async def main():
        await asyncio.gather(*(call_in_thread(barrier.wait) for _ in range(50)))

    asyncio.run(main())
    assert not barrier.broken


def test_a_stop_iteration_is_reported_and_does_not_hang():
    with pytest.raises(RuntimeError, match="it raised StopIteration") as caught:
        asyncio.run(call_in_thread(next, iter([])))
    assert isinstance(caught.value.__cause__, StopIteration)


def test_other_errors_are_raised_unchanged():
    for error in (ValueError("no"), RuntimeError("coroutine"), RuntimeError("coroutine raised StopIteration")):
        assert replace_unraisable(error) is error


STUCK = """
import asyncio, threading
from agentnb.engine.core.threads import call_in_thread

async def main():
    try:
        await asyncio.wait_for(call_in_thread(threading.Event().wait), 0.01)
    except TimeoutError:
        print("late")

asyncio.run(main())
"""


def test_a_process_ends_despite_a_call_that_hangs():
    ended = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "late\n"


def test_an_abandoned_coroutine_is_closed():
    results, started, gate = [], threading.Event(), threading.Event()

    async def answer():
        """Return nothing."""

    def call():
        started.set()
        gate.wait(10)
        results.append(answer())
        return results[0]

    async def check():
        task = asyncio.get_running_loop().create_task(call_in_thread(call))
        await asyncio.to_thread(started.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(check())
    gate.set()
    until = time.monotonic() + 10
    while not results or inspect.getcoroutinestate(results[0]) != inspect.CORO_CLOSED:
        assert time.monotonic() < until
        time.sleep(0.001)
