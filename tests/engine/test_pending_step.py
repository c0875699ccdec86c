from __future__ import annotations

import asyncio

import pytest

from agentnb.clock import FrozenClock
from agentnb.engine.core.drivers import run_plain, step_in_loop
from agentnb.engine.core.pending_step import Hold
from agentnb.engine.core.run import SUSPENDED
from agentnb.errors import ExecutionError
from agentnb.event_loops import NEED_LOOP, NeedLoop, get_running_loop, is_in_loop
from agentnb.world.effect import Effect
from tests.engine.small_runs import run_of


class Watch(FrozenClock):
    """Stands still until a test lets time go by."""

    def go_on(self, seconds):
        self._ns += int(seconds * 1e9)


def hold(**more):
    return Hold(Effect("tool", "look", {}), "call", "before", **more)


def test_a_hold_is_yielded_to_the_driver_and_resumed():
    async def code(one):
        return await one

    one = hold()
    coroutine = code(one)
    assert coroutine.send(None) is one
    with pytest.raises(StopIteration) as ended:
        coroutine.send("anything")
    assert ended.value.value is one


def test_a_hold_is_late_after_its_deadline_unless_released():
    watch = Watch()
    one, other = (hold().set_deadline(watch.ns() + 5_000_000_000, watch.ns) for _ in range(2))
    assert (one.seconds_left, one.is_expired, hold().seconds_left, hold().is_expired) == (5.0, False, None, False)
    other.is_resumed = True
    watch.go_on(5)
    assert (one.seconds_left, one.is_expired, other.is_expired) == (0.0, True, False)


def test_a_coroutine_requests_an_event_loop_from_the_driver():
    async def code():
        await NeedLoop()

    coroutine = code()
    assert coroutine.send(None) is NEED_LOOP
    coroutine.close()


def holding(left):
    async def calls(work):
        try:
            await work.call(Effect("human", "ask", {}))
        finally:
            left.append(work)

    run = run_of(calls)
    assert run_plain(run, once=True) == SUSPENDED
    (pending_step,) = run.pending_steps.values()
    return run, pending_step


def test_a_step_in_flight_is_held_until_released():
    _, pending_step = holding([])
    assert (pending_step.is_held, pending_step.hold.kind, pending_step.needs_loop, pending_step.start_position) == (
        True,
        "answer",
        False,
        0,
    )
    pending_step.hold.is_resumed = True
    assert not pending_step.is_held


def test_the_code_of_an_abandoned_step_ends_and_its_late_writes_are_rejected():
    left = []
    run, pending_step = holding(left)
    pending_step.cancel()
    assert (left[0].has_ended, pending_step.is_cancelled) == (True, True)
    assert pending_step.activation.work is not left[0]
    with pytest.raises(ExecutionError, match="X102"):
        left[0].write("late", 1)
    assert run.position == 0


def test_an_awaitable_that_is_not_a_coroutine_is_awaited_in_a_loop():
    class Later:
        def __await__(self):
            yield from asyncio.sleep(0).__await__()
            return {"out": 1}

    run = run_of(lambda work: Later())
    run_plain(run, once=True)
    (pending_step,) = run.pending_steps.values()
    assert pending_step.needs_loop
    asyncio.run(step_in_loop(run))
    assert run.root.scope.data["out"] == 1


def test_a_running_event_loop_is_detected():
    async def main():
        return is_in_loop(), get_running_loop() is asyncio.get_running_loop()

    assert (is_in_loop(), get_running_loop(), asyncio.run(main())) == (False, None, (True, True))
