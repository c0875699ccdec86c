"""Chaos at the effect door: calls wait and fail as it says, and the same way again."""

from __future__ import annotations

import pytest

from agentnb.clock import FrozenClock
from agentnb.engine.core.run import DONE, FAILED
from agentnb.world.effect import Effect
from agentnb.world.fault_injection import Chaos
from agentnb.world.llm.base import LLMResponse, Usage
from agentnb.world.world import World
from tests.engine.graph_shapes import go_on
from tests.engine.small_runs import data, run_of


class Waiting(FrozenClock):
    def __init__(self):
        super().__init__()
        self.waits = []

    async def sleep(self, seconds):
        self.waits.append(seconds)


def calling(chaos, kind="tool", target=lambda: "fine", **words):
    async def node(work):
        return {"answer": await work.call(Effect(kind, "look", {}, target=target, **words))}

    run = run_of(node)
    run.clock, run.chaos = Waiting(), chaos
    return run


def test_every_call_is_delayed():
    run = calling(Chaos(latency_ms=200))
    assert (go_on(run), data(run), run.clock.waits) == (DONE, {"answer": "fine"}, [0.2])


def test_a_failed_attempt_calls_nothing_and_another_may_succeed():
    called = []
    key = ("n0", "tool", 0)
    seed = next(n for n in range(100) if [Chaos(0, 0.5, seed=n).fails((*key, a)) for a in (1, 2)] == [True, False])
    run = calling(Chaos(error_rate=0.5, seed=seed), target=lambda: called.append(1), attempts=3)
    assert go_on(run) == DONE
    assert len(called) == 1
    assert [row.attempt for row in run.history.calls] == [1, 2]
    assert run.history.calls[0].error.startswith("ChaosError: ")


def test_all_calls_fail_at_a_rate_of_one():
    run = calling(Chaos(error_rate=1.0), attempts=2)
    assert go_on(run) == FAILED
    assert run.history.errors[1].type == "ChaosError"


def test_a_delay_longer_than_the_timeout_is_a_timeout():
    run = calling(Chaos(latency_ms=5_000), timeout=2.0)
    assert go_on(run) == FAILED
    assert (run.history.errors[1].timeout, run.clock.waits) == (True, [2.0])


@pytest.mark.parametrize(("throttle", "waits"), [(True, [0.1, 0.2]), (False, [0.1, 0.0])])
def test_a_throttled_answer_is_delayed_by_its_tokens(throttle, waits):
    answer = LLMResponse("words", usage=Usage(1, 200))
    run = calling(Chaos(latency_ms=100, token_throttle=throttle), "llm", target=lambda: answer)
    assert go_on(run) == DONE
    assert run.clock.waits == waits


def test_an_attempt_does_not_consume_a_scripted_answer():
    # What a script answers is counted in calls: one that failed once takes the same place again.
    calls = []

    class Client:
        def complete(self, request):
            calls.append((request.number, request.of_node))
            if len(calls) == 1:
                raise OSError
            return LLMResponse("x")

    async def node(work):
        await work.call(Effect("llm", "one", {"prompt": "?"}, attempts=2))
        await work.call(Effect("llm", "two", {"prompt": "?"}))

    run = run_of(node)
    run.world = World(llm=Client())
    assert go_on(run) == DONE
    assert calls == [(0, 0), (0, 0), (1, 1)]
