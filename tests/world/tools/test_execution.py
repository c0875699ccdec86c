from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

import pytest

from agentnb.world.tools.execution import Awaiting, Blocking, drive, start_in_thread

WORD = ContextVar("WORD", default="none")


async def in_a_loop(make):
    """Call a plain function where a loop is running."""
    await asyncio.sleep(0)
    return make()


def blocked(call, seconds=None, *, is_async=False):
    return drive(Blocking().call(call, seconds, is_async=is_async))


def awaited(call, seconds=None, *, is_async=False):
    return asyncio.run(Awaiting().call(call, seconds, is_async=is_async))


def beside_a_loop(call, seconds=None, *, is_async=False):
    return asyncio.run(in_a_loop(lambda: blocked(call, seconds, is_async=is_async)))


WAYS = pytest.mark.parametrize("way", [blocked, awaited, beside_a_loop])
LIMITS = pytest.mark.parametrize("seconds", [None, 60])


def fails(error):
    def call():
        raise error

    async def acall():
        raise error

    return call, acall


async def later(value):
    await asyncio.sleep(0)
    return value


@WAYS
@LIMITS
def test_a_call_returns_its_result(way, seconds):
    assert way(lambda: 5, seconds) == 5
    assert way(lambda: later(5), seconds, is_async=True) == 5
    assert way(lambda: later(5), seconds) == 5  # nobody could tell before


@WAYS
@LIMITS
@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(2), TimeoutError("its own"), KeyboardInterrupt()])
def test_a_call_raises_its_error(way, seconds, error):
    call, acall = fails(error)
    for each, is_async in ((call, False), (acall, True)):
        with pytest.raises(type(error)) as raised:
            way(each, seconds, is_async=is_async)
        assert str(raised.value) == str(error)


@WAYS
def test_a_late_sync_function_is_abandoned(way):
    go, ended = threading.Event(), threading.Event()

    def call():
        go.wait(60)
        ended.set()
        return "late"

    with pytest.raises(TimeoutError, match=r"^it took longer than 0.01 s$"):
        way(call, 0.01)
    assert not ended.is_set()
    go.set()
    assert ended.wait(60)


@WAYS
def test_a_late_async_function_is_cancelled(way):
    cancelled = []

    async def call():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    with pytest.raises(TimeoutError, match=r"^it took longer than 0.01 s$"):
        way(call, 0.01, is_async=True)
    assert cancelled == [True]


@WAYS
def test_the_result_of_a_cancelled_function_is_dropped(way):
    async def call():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "all the same"

    with pytest.raises(TimeoutError):
        way(call, 0.01, is_async=True)


@WAYS
@LIMITS
def test_context_variables_are_passed_on(way, seconds):
    token = WORD.set("here")
    try:
        assert way(WORD.get, seconds) == "here"

        async def read():
            return WORD.get()

        assert way(read, seconds, is_async=True) == "here"
    finally:
        WORD.reset(token)


def test_without_a_timeout_a_sync_caller_uses_its_own_thread():
    assert blocked(threading.get_ident) == threading.get_ident()
    assert awaited(threading.get_ident) != threading.get_ident()


def test_the_event_loop_runs_while_a_sync_function_runs():
    go = threading.Event()

    async def main():
        running = asyncio.create_task(Awaiting().call(lambda: go.wait(60), None, is_async=False))
        await asyncio.sleep(0)
        go.set()  # only who comes here lets it end
        return await running

    assert asyncio.run(main()) is True


def test_an_async_caller_can_be_cancelled():
    async def main():
        mode, messages = Awaiting(), []

        async def attempt():
            try:
                await mode.call(lambda: asyncio.Event().wait(), None, is_async=True)
            except asyncio.CancelledError:
                messages.append(mode.is_cancelled())
                raise

        task = asyncio.create_task(attempt())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return messages, mode.is_cancelled()

    assert asyncio.run(main()) == ([True], False)
    assert Blocking().is_cancelled() is False


def test_a_future_can_carry_a_stop_iteration():
    error = StopIteration("over")
    call, _ = fails(error)
    assert start_in_thread(call).result() == (None, error)
