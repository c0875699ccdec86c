"""A replay, and a step that runs again, read the time that was recorded, not that of another clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import agentnb.dialects.activegraph as ag
from agentnb.clock import Clock
from agentnb.store import MemoryLog


class Racing(Clock):
    """A wall clock that is a second further on each time that it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.at = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at


@pytest.fixture
def team(tmp_path):
    @ag.behavior(name="plan", on=["goal.created"])
    def plan(event, graph, ctx):
        graph.add_object("task", {"at": ctx.clock.now(), "n": ctx.random.random()})
        graph.add_object("task", {"at": ctx.clock.now()})

    @ag.behavior(name="work", on=["object.created"])
    def work(event, graph, ctx):
        graph.emit("done", {"at": ctx.clock.now()})

    graph = ag.Graph(clock=Racing())
    runtime = ag.Runtime(graph, behaviors=[plan, work], persist_to=str(tmp_path / "runs.db"))
    runtime.run_goal("go")
    return runtime


def test_a_replay_reads_the_times_of_the_run(team):
    assert len({event.payload["at"] for event in team.graph.events if event.type == "done"}) == 2
    assert team.replay().ok
    assert team.session.replay(from_step=1).ok
    assert team.session.fork(2).replay().ok


def test_a_run_that_was_stored_replays_in_another_process(team, tmp_path):
    team.session.close()
    reopened = ag.Runtime.load(str(tmp_path / "runs.db"), behaviors=team.behaviors, replay_strict=True)
    assert reopened.replay().ok


def test_an_interrupted_step_keeps_its_times():
    readings, log = [], MemoryLog()

    class Model:
        def complete(self, **words):
            readings.append(words)
            if len(readings) == 3:
                raise KeyboardInterrupt
            calls = [ag.ToolCall("1", "look", {})] if len(readings) == 1 else []
            return ag.LLMResponse(raw_text="x", parsed=None, input_tokens=1, output_tokens=1, cost_usd="0.1",
                                  latency_seconds=0.1, model="m", finish_reason="stop", tool_calls=calls)  # fmt: skip

    @ag.tool(name="look")
    def look(args, ctx):
        readings.append("tool")
        return {"n": 1}

    @ag.llm_behavior(name="think", on=["goal.created"], tools=[look])
    def think(event, graph, ctx, answer):
        graph.emit("thought", {})

    runtime = ag.Runtime(ag.Graph(clock=Racing()), behaviors=[think], llm_provider=Model(), store=log)
    with pytest.raises(KeyboardInterrupt):
        runtime.run_goal("go")
    assert len(runtime.session.trace.frames.calls) == len(readings)
    runtime.run_until_idle()
    calls = runtime.session.trace.frames.calls
    assert len(calls) == len(readings)
    assert calls.step.notna().all()
    assert runtime.replay().ok
    ids = [event.id for event in runtime.graph.events]
    assert len(set(ids)) == len(ids)
