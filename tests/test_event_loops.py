from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import warnings
from contextvars import ContextVar
from pathlib import Path
from weakref import ref

import pytest

from agentnb.event_loops import LoopThread, RemoteCoroutine, run_beside, run_in_own_loop

WORD = ContextVar("WORD", default="")


def where(found):
    async def work():
        found.append((threading.current_thread(), asyncio.get_running_loop()))
        return 7

    return work


def test_without_an_event_loop_it_runs_in_this_thread():
    results = []
    assert run_in_own_loop(where(results)) == 7
    assert results[0][0] is threading.current_thread()


def test_the_loop_of_a_thread_stays_open_for_the_next_call():
    results = []
    for _ in range(2):
        run_in_own_loop(where(results))
    assert results[0] == results[1]

    async def main():
        run_in_own_loop(where(results))
        run_in_own_loop(where(results))

    asyncio.run(main())
    assert results[2] == results[3]
    assert results[2][1] is not results[0][1]
    thread = threading.Thread(target=lambda: run_in_own_loop(where(results)))
    thread.start()
    thread.join()
    gc.collect()
    assert [loop.is_closed() for _, loop in results] == [False, False, False, False, True]


def test_tasks_that_a_call_leaves_behind_are_cancelled():
    ended = []

    async def waits():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(1)

    async def work():
        tasks.append(asyncio.create_task(waits()))
        await asyncio.sleep(0)
        return 7

    tasks = []
    assert run_in_own_loop(work) == 7
    assert ended == [1]


def test_each_call_has_the_context_variables_of_its_caller():
    async def read():
        return WORD.get()

    words = []
    for word in ("one", "two"):
        token = WORD.set(word)
        words.append(run_in_own_loop(read))
        WORD.reset(token)
    assert words == ["one", "two"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_process_has_loops_of_its_own():
    results = []
    run_in_own_loop(where(results))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of forks beside threads
        child = os.fork()
    if child == 0:
        run_in_own_loop(where(results))
        os._exit(results[0][1] is results[1][1])
    assert os.waitpid(child, 0)[1] == 0
    assert run_in_own_loop(where(results)) == 7


def test_inside_an_event_loop_it_runs_in_a_thread_with_the_context_variables():
    results = []

    async def main():
        WORD.set("here")

        async def work():
            results.append((WORD.get(), threading.current_thread()))
            return 3

        return run_in_own_loop(work)

    assert asyncio.run(main()) == 3
    assert (results[0][0], results[0][1] is threading.main_thread()) == ("here", False)


def test_its_error_is_raised_in_the_caller():
    async def breaks():
        raise KeyboardInterrupt

    async def main():
        run_in_own_loop(breaks)

    home = LoopThread()
    for work in (lambda: run_in_own_loop(breaks), lambda: asyncio.run(main()), lambda: run_in_own_loop(breaks, home)):
        with pytest.raises(KeyboardInterrupt):
            work()
    home.close()


def test_a_loop_thread_is_reused_for_the_next_call():
    results, home = [], LoopThread()
    for _ in range(2):
        assert run_in_own_loop(where(results), home) == 7
    assert results[0] == results[1]
    assert results[0][0] is not threading.current_thread()
    waiting = []

    async def begin():
        waiting.append(asyncio.get_running_loop().create_future())
        return 0

    async def end():
        asyncio.get_running_loop().call_soon(waiting[0].set_result, 5)
        return await waiting[0]

    run_in_own_loop(begin, home)
    assert run_in_own_loop(end, home) == 5
    home.close()
    assert results[0][1].is_closed()
    assert not results[0][0].is_alive()


def test_an_unreferenced_loop_thread_ends():
    results, home = [], LoopThread()
    run_in_own_loop(where(results), home)
    home_ref = ref(home)
    del home
    gc.collect()
    assert home_ref() is None
    results[0][0].join(10)
    assert not results[0][0].is_alive()


def test_a_loop_thread_may_be_closed_from_inside():
    results, home = [], LoopThread()

    async def work():
        home.close()
        return 1

    run_in_own_loop(where(results), home)
    assert run_in_own_loop(work, home) == 1
    results[0][0].join(10)
    assert not results[0][0].is_alive()


def test_an_interrupt_cancels_the_running_coroutine_and_keeps_the_loop():
    results, home, started = [], LoopThread(), threading.Event()

    async def waits():
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            results.append("ended")

    class Interrupted:
        """A loop thread whose first call is interrupted while it is awaited."""

        def submit(self, job):
            ended, calls = home.submit(job), []

            def wait():
                if not calls:
                    calls.append(1)
                    assert started.wait(10)
                    raise KeyboardInterrupt
                ended()

            return wait

    with pytest.raises(KeyboardInterrupt):
        run_in_own_loop(waits, Interrupted())
    assert results == ["ended"]
    assert run_in_own_loop(where(results), home) == 7
    home.close()


def test_a_call_to_the_loop_thread_is_awaited_while_this_loop_continues():
    results, home = [], LoopThread()
    gate = threading.Event()

    async def work():
        while not gate.is_set():  # noqa: ASYNC110  (set in another thread)
            await asyncio.sleep(0.001)
        results.append(threading.current_thread() is threading.main_thread())
        return 7

    async def main():
        task = asyncio.create_task(run_beside(lambda then: RemoteCoroutine(work, home, then)))
        for _ in range(5):
            await asyncio.sleep(0.001)
        assert not task.done()
        gate.set()
        return await task

    assert asyncio.run(main()) == 7
    assert results == [False]
    home.close()


def test_a_cancelled_call_ends_in_the_loop_thread_first():
    results, home, started = [], LoopThread(), threading.Event()

    async def work():
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            results.append("ended")

    async def main():
        task = asyncio.create_task(run_beside(lambda then: RemoteCoroutine(work, home, then)))
        while not started.is_set():  # noqa: ASYNC110  (set in another thread)
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert results == ["ended"]

    asyncio.run(main())
    assert run_in_own_loop(where(results), home) == 7
    home.close()


def test_the_error_of_a_call_is_raised_where_it_is_awaited():
    async def breaks():
        raise ValueError("there")

    home = LoopThread()

    async def main():
        with pytest.raises(ValueError, match="there"):
            await run_beside(lambda then: RemoteCoroutine(breaks, home, then))

    asyncio.run(main())
    home.close()


PROGRAM = """
import asyncio, warnings
warnings.simplefilter("ignore")
import agentnb as nb
async def main():
    try:
        asyncio.run(asyncio.sleep(0))
    except RuntimeError:
        print("refused")
    print(nb.enable_nesting())
    asyncio.run(asyncio.sleep(0))
    print("nested")
asyncio.run(main())
"""


def test_loops_can_be_nested_on_request():
    # In a process of its own: it changes asyncio for good.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent.parent,
    )
    assert done.returncode == 0, done.stderr
    refused, name, nested = done.stdout.split()
    assert (refused, name in {"nest_asyncio", "nest_asyncio2"}, nested) == ("refused", True, "nested")
