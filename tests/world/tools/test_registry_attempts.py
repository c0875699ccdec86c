from __future__ import annotations

import asyncio
import threading

import pytest

from agentnb.world.tools.registry import ToolRegistry
from agentnb.world.tools.tool_config import ToolConfig, ToolResult
from tests.world.tools.registry_samples import OWN, WAYS, Failing, Pauses, echo, registry_of

# -- time and attempts -----------------------------------------------------------------------------------------------


@WAYS
def test_a_failure_is_retried_with_the_same_parameters(run):
    refusal = ToolResult(success=False, error="busy")
    for first in (ValueError("busy"), refusal, {"success": False, "error": "busy"}, SystemExit(1)):
        handler = Failing(first, refusal, 5)
        result = run(registry_of(t=ToolConfig("t", handler=handler, retry_count=2)), "t", {"a": 1})
        assert (result.success, result.result) == (True, 5)
        assert handler.seen == [{"a": 1}] * 3


@WAYS
def test_the_last_failure_is_reported_and_no_attempt_follows_a_success(run):
    handler = Failing(ValueError("first"), ValueError("second"), 5, 6)
    registry = registry_of(t=ToolConfig("t", handler=handler, retry_count=1))
    assert run(registry, "t").error == "Tool 't' failed: ValueError: second"
    assert run(registry, "t").result == 5
    assert handler.answers == [6]


@WAYS
def test_a_rejected_call_is_not_retried(run):
    handler = Failing(5)
    registry = registry_of(t=ToolConfig("t", handler=handler, input_schema=OWN, retry_count=3))
    assert not run(registry, "t").success
    assert handler.seen == []


@WAYS
def test_attempts_are_separated_by_a_delay(run):
    clock = Pauses()
    registry = ToolRegistry(clock=clock)
    handler = Failing(*[ValueError("no")] * 3)
    registry.register_tool("t", ToolConfig("t", handler=handler, retry_count=2, backoff=7))
    assert not run(registry, "t").success
    assert clock.waits == [7, 7]


@WAYS
def test_each_attempt_has_a_timeout_and_a_late_answer_is_dropped(run):
    go, calls = threading.Event(), []

    def handler(params):
        calls.append(1)
        if len(calls) == 1:
            go.wait(60)
            return "late"
        return "in time"

    registry = registry_of(t=ToolConfig("t", handler=handler, timeout=0.05, retry_count=50))
    result = run(registry, "t")
    go.set()
    assert (result.success, result.result) == (True, "in time")


@WAYS
@pytest.mark.parametrize("is_async", [False, True])
def test_a_tool_that_takes_too_long_is_a_failure(run, is_async):
    go = threading.Event()

    async def ahandler(params):
        await asyncio.Event().wait()

    handler = ahandler if is_async else (lambda _: go.wait(60))
    result = run(registry_of(t=ToolConfig("t", handler=handler, timeout=0.01, retry_count=1)), "t")
    go.set()
    assert result.error == "Tool 't' failed: it took longer than 0.01 s"


def test_a_cancelled_execution_is_not_a_failure():
    calls = []

    async def main():
        started = asyncio.Event()

        async def handler(params):
            calls.append(1)
            started.set()
            await asyncio.Event().wait()

        registry = registry_of(t=ToolConfig("t", handler=handler, retry_count=5))
        task = asyncio.create_task(registry.aexecute_tool("t"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert calls == [1]


# -- many at once ----------------------------------------------------------------------------------------------------


def test_two_executions_in_threads_share_nothing():
    meet = threading.Barrier(2, timeout=60)

    def handler(params):
        params["mine"].append(params["who"])
        meet.wait()
        return params["mine"]

    registry = registry_of(t=ToolConfig("t", handler=handler, timeout=60))
    shared, results = [], {}

    def work(who):
        results[who] = registry.execute_tool("t", {"who": who, "mine": shared})

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: result.result for name, result in results.items()} == {"a": ["a"], "b": ["b"]}
    assert shared == []


@pytest.mark.parametrize("is_async", [False, True])
def test_many_executions_in_one_event_loop_run_concurrently(is_async):
    many = 50

    async def main():
        meet, ameet = threading.Barrier(many, timeout=60), asyncio.Barrier(many)

        def handler(params):
            meet.wait()
            return params["who"]

        async def ahandler(params):
            await ameet.wait()
            return params["who"]

        registry = registry_of(t=ahandler if is_async else handler)
        return await asyncio.gather(*(registry.aexecute_tool("t", {"who": name}) for name in range(many)))

    assert [result.result for result in asyncio.run(main())] == list(range(many))


def test_tools_are_registered_and_run_from_many_threads():
    registry = registry_of(keep=echo)
    meet, failed = threading.Barrier(8, timeout=60), []

    def work(number):
        meet.wait()
        for turn in range(50):
            registry.register_tool(f"t{number}", lambda _, turn=turn: turn)
            right = registry.execute_tool(f"t{number}").result == turn
            if not right or "keep" not in registry.get_available_tools() or len(registry.describe()) < 2:
                failed.append((number, turn))
            registry.unregister_tool(f"t{number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert registry.get_available_tools() == ["keep"]
