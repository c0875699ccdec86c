from __future__ import annotations

import asyncio
import threading
from collections import UserDict
from dataclasses import dataclass
from types import MappingProxyType

import pytest

from agentnb.board.values import thaw
from agentnb.clock import FrozenClock
from agentnb.engine.core.run import DONE, EXHAUSTED, FAILED, SUSPENDED
from agentnb.errors import Problem
from agentnb.world.effect import Effect
from agentnb.world.llm.base import LLMError
from tests.engine.graph_shapes import go_on
from tests.engine.small_runs import data, run_of


def calls(target, **words):
    """Return a node that does one effect and writes its answer."""

    async def node(work):
        return {"answer": await work.call(Effect("tool", "look", {"a": 1}, target=target, **words))}

    return node


def test_a_call_returns_its_answer_and_writes_a_row():
    run = run_of(calls(lambda a: [a]))
    assert go_on(run) == DONE
    (row,) = run.history.calls
    assert data(run) == {"answer": [1]}
    assert (row.step, row.call, row.kind, row.name, row.attempt, dict(row.arguments), list(row.result), row.error) == (
        1,
        0,
        "tool",
        "look",
        1,
        {"a": 1},
        [1],
        None,
    )


def test_arguments_are_stored_as_before_the_call_in_any_mapping():
    async def node(work):
        for kind in (dict, MappingProxyType, UserDict):
            await work.call(Effect("tool", "look", kind({"a": [1]}), target=lambda a: a.append(2)))

    run = run_of(node)
    assert go_on(run) == DONE
    assert [thaw(row.arguments) for row in run.history.calls] == [{"a": [1]}] * 3


def test_several_calls_of_one_step_are_numbered():
    async def node(work):
        for number in range(3):
            await work.call(Effect("tool", str(number), {}, target=lambda: None))

    run = run_of(node)
    go_on(run)
    assert [(row.call, row.name) for row in run.history.calls] == [(0, "0"), (1, "1"), (2, "2")]


def test_an_async_call_is_awaited():
    async def look(a):
        await asyncio.sleep(0)
        return a

    run = run_of(calls(look))
    assert (go_on(run), data(run)) == (DONE, {"answer": 1})


def test_attempts_are_separated_by_delays():
    attempts, waits = [], []

    class Waiting(FrozenClock):
        async def sleep(self, seconds):
            waits.append(seconds)

    def look(a):
        attempts.append(a)
        raise OSError(f"try {len(attempts)}")

    run = run_of(calls(look, attempts=3, backoff=2.5))
    run.clock = Waiting()
    assert go_on(run) == FAILED
    assert (len(attempts), waits, run.history.errors[1].message) == (3, [2.5, 2.5], "try 3")
    assert [(row.attempt, row.wait, row.error) for row in run.history.calls] == [
        (1, 0.0, "OSError: try 1"),
        (2, 2.5, "OSError: try 2"),
        (3, 2.5, "OSError: try 3"),
    ]


def refusing(tried, again, **words):
    def look(a):
        tried.append(a)
        raise LLMError(Problem("X336", "no", "here", "it says so", "ask otherwise"), is_retryable=again, **words)

    return look


def test_a_permanent_refusal_is_not_retried():
    attempts = []
    run = run_of(calls(refusing(attempts, again=False), attempts=5))
    assert (go_on(run), len(attempts)) == (FAILED, 1)


def test_a_retry_waits_as_long_as_the_server_says():
    attempts, waits = [], []

    class Waiting(FrozenClock):
        async def sleep(self, seconds):
            waits.append(seconds)

    run = run_of(calls(refusing(attempts, again=True, retry_after=7.5), attempts=3, backoff=2.5))
    run.clock = Waiting()
    assert (go_on(run), len(attempts), waits) == (FAILED, 3, [7.5, 7.5])


def test_the_calls_of_a_failed_step_are_stored():
    async def node(work):
        await work.call(Effect("tool", "look", {}, target=lambda: "paid"))
        raise ValueError("after it")

    run = run_of(node)
    assert go_on(run) == FAILED
    assert [row.result for row in run.history.calls] == ["paid"]


def test_a_sync_call_with_a_timeout_runs_in_a_thread_and_is_abandoned_there():
    began, go, threads = threading.Event(), threading.Event(), []

    def look(a):
        threads.append(threading.current_thread())
        began.set()
        assert go.wait(20)

    async def node(work):
        try:
            await work.call(Effect("tool", "look", {"a": 1}, target=look, timeout=0.01))
        finally:
            go.set()  # a loop waits for its threads when it closes

    run = run_of(node)
    assert go_on(run) == FAILED
    assert began.wait(20)  # on a busy machine a thread begins later than the timeout
    assert threads[0] is not threading.main_thread()
    assert run.history.errors[1].timeout
    assert run.history.calls[0].error == "TimeoutError: tool 'look' took longer than 0.01 s"


def test_a_call_that_ends_in_time_is_not_a_timeout():
    run = run_of(calls(lambda a: a, timeout=20))
    assert (go_on(run), data(run)) == (DONE, {"answer": 1})


def test_a_blocking_call_runs_in_a_thread():
    run = run_of(calls(lambda a: threading.current_thread() is threading.main_thread(), blocking=True))
    go_on(run)
    assert data(run) == {"answer": False}


def test_a_node_can_catch_the_error_of_a_call():
    async def node(work):
        try:
            await work.call(Effect("tool", "look", {}, target=lambda: 1 / 0))
        except ZeroDivisionError:
            return {"caught": True}

    run = run_of(node)
    assert (go_on(run), data(run)) == (DONE, {"caught": True})
    assert run.history.calls[0].error.startswith("ZeroDivisionError")


def test_an_effect_without_implementation_is_a_problem():
    async def node(work):
        await work.call(Effect("weather", "look", {}))

    run = run_of(node)
    assert go_on(run) == FAILED
    assert "weather" in run.history.errors[1].message


def test_a_paused_call_continues_when_released():
    run = run_of(calls(lambda a: a))
    run.holds_call = lambda work, effect, moment: moment == "after"
    assert go_on(run) == SUSPENDED
    assert go_on(run) == SUSPENDED
    (pending_step,) = run.pending_steps.values()
    assert (pending_step.is_held, pending_step.hold.answer, pending_step.hold.effect.name) == (True, 1, "look")
    pending_step.hold.is_resumed = True
    assert (go_on(run), data(run)) == (DONE, {"answer": 1})


@pytest.mark.parametrize("awaits", [True, False])
def test_an_abandoned_call_leaves_nothing(awaits):
    async def node(work):
        if awaits:
            await work.loop()
        await work.call(Effect("human", "ask", {"prompt": "?"}))
        return {"never": 1}

    run = run_of(node)
    assert go_on(run) == SUSPENDED
    (pending_step,) = run.pending_steps.values()
    old = pending_step.activation.work
    pending_step.cancel()
    run.pending_steps.clear()
    assert (old.has_ended, pending_step.activation.work is old, data(run), run.position) == (True, False, {}, 0)


def test_a_returned_reference_is_not_shared_with_the_record():
    answer = [1]

    async def node(work):
        result = await work.call(Effect("tool", "look", {}, target=lambda: answer))
        result.append(2)
        return {"answer": result}

    run = run_of(node)
    go_on(run)
    assert (data(run), list(run.history.calls[0].result)) == ({"answer": [1, 2]}, [1])


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("later", [False, True])
def test_a_tool_that_raises_stop_iteration_fails_with_a_message(threaded, later):
    left = iter([])

    async def waits(a):
        return next(left)

    run = run_of(calls(waits if later else lambda a: next(left)))
    run.uses_threads = threaded
    assert go_on(run) == FAILED
    failure = run.history.errors[1]
    assert (failure.type, isinstance(failure.error.__cause__, StopIteration)) == ("RuntimeError", True)
    assert failure.message.startswith("it raised StopIteration")
    assert run.history.calls[0].error == f"RuntimeError: {failure.message}"


def test_a_node_that_raises_stop_iteration_fails_with_a_message():
    run = run_of(lambda work: next(iter([])))
    assert go_on(run) == FAILED
    assert run.history.errors[1].message.startswith("it raised StopIteration")


class Limiter:
    """Lets so many attempts out."""

    def __init__(self, left):
        self.left, self.waits = left, []

    def admit_call(self, run, work, effect, wait, which):
        self.left, self.waits = self.left - 1, [*self.waits, wait]
        return self.left >= 0


def test_a_forbidden_attempt_abandons_its_step():
    attempts = []

    async def node(work):
        work.write("half", 1)
        try:
            return {"answer": await work.call(Effect("tool", "look", {}, target=lambda: attempts.append(1) or 1 / 0,
                                                     attempts=9, backoff=0.001))}  # fmt: skip
        except Exception:  # noqa: BLE001  (a node that catches all that it can)
            return {"caught": True}

    run = run_of(node)
    run.limiter = Limiter(2)
    assert go_on(run) == EXHAUSTED
    assert (len(attempts), run.position, run.pending_steps, data(run), run.history.errors) == (2, 0, {}, {}, {})
    assert run.limiter.waits == [0.0, 0.001, 0.001]
    run.limiter = None
    assert go_on(run) == DONE
    assert (len(attempts), data(run)) == (9, {"half": 1, "caught": True})  # the two from before are not repeated


class RefusedError(Exception):
    def __init__(self, result):
        super().__init__("refused")
        self.result = result


@pytest.mark.parametrize(("told", "kept"), [({"status": 404}, {"status": 404}), ("a text", None), (None, None)])
def test_an_answer_that_is_a_failure_is_stored_with_its_attempt(told, kept):
    def check(answer):
        raise RefusedError(told)

    run = run_of(calls(lambda a: {"status": 404}, check=check))
    assert go_on(run) == FAILED
    assert [(row.error, row.result) for row in run.history.calls] == [("RefusedError: refused", kept)]


@dataclass
class Article:
    title: str
    content: str


@pytest.mark.parametrize(("kind", "kept"), [("tool", Article("a", "b")), ("llm", "b"), ("agent", "b")])
def test_only_the_text_of_a_response_object_is_stored(kind, kept):
    async def node(work):
        await work.call(Effect(kind, "look", {}, target=lambda: Article("a", "b")))

    run = run_of(node)
    go_on(run)
    assert thaw(run.history.calls[0].result) == kept
