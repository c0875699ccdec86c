"""How long a step lasts: the time in which it works, and not the time in which a person thinks."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

import agentnb as nb
from agentnb.clock import FrozenClock
from tests.session.small_sessions import asking, calling, fan, session


class Stopwatch(FrozenClock):
    """Stands still until a test lets time go by."""

    def go_on(self, seconds):
        self._ns += round(seconds * 1e9)


def seconds(run):
    return {step.node_id: step.seconds for step in run.trace.steps}


def working(clock, took, made):
    """Let each function of a graph take its time."""
    for name, each in took.items():
        inner = made.nodes[name].get("function", lambda: None)

        def slow(*args, _inner=inner, _each=each, **words):
            clock.go_on(_each)
            return _inner(*args, **words)

        made.nodes[name]["function"] = slow
    return made


def test_waiting_for_an_answer_does_not_count(tmp_path):
    clock = Stopwatch()
    recipe = working(clock, {"before": 2, "after": 3}, asking())
    run = session(recipe, clock=clock, store=tmp_path / "runs.db")
    run.run()
    clock.go_on(600)
    run.answer("yes")
    run.run()
    assert seconds(run) == {"before": 2, "ask": 0, "after": 3}
    assert run.trace.frames.steps.seconds.tolist() == [2, 0, 3]
    assert run.trace.frames.calls.seconds.tolist() == [600]  # the call is the question: there it does
    run.trace.to_json(tmp_path / "trace.json")
    for other in (nb.open(tmp_path / "runs.db").trace, nb.SimulationTrace.read(tmp_path / "trace.json")):
        assert other.frames.steps.seconds.tolist() == [2, 0, 3]
    assert run.fork(2).trace.frames.steps.seconds.tolist() == [2, 0]


@pytest.mark.parametrize("awaited", [False, True])
def test_the_time_of_a_paused_call_does_not_count(awaited):
    clock = Stopwatch()

    async def look(word):
        clock.go_on(5)
        return word

    def look_now(word):
        clock.go_on(5)
        return word

    run = session(calling(look if awaited else look_now), {"word": "rain"}, clock=clock)
    run.breakpoints.add(call="*")
    run.breakpoints.add(call="*", side="after")
    for _ in range(2):
        run.run()
        assert run.status == "in_flight"
        clock.go_on(60)
    run.run()
    assert seconds(run) == {"before": 0, "look": 5, "after": 0}


@pytest.mark.parametrize("end", ["answered", "failed", "unfit", "interrupted"])
def test_a_call_lasts_as_long_as_it_runs_however_it_ends(end):
    clock, unfit = Stopwatch(), []
    unfit.append(unfit)

    def look(word):
        clock.go_on(5)
        match end:
            case "answered":
                return word
            case "failed":
                raise OSError("no weather")
            case "unfit":
                return unfit
        raise KeyboardInterrupt

    run = session(calling(look), {"word": "rain"}, clock=clock)
    with suppress(KeyboardInterrupt):
        run.run()
    calls = run.trace.frames.calls
    assert (calls.seconds.tolist(), calls.error.isna().tolist()) == ([5], [end == "answered"])


def test_the_time_during_step_into_does_not_count():
    clock = Stopwatch()
    run = session(working(clock, {"before": 1}, calling()), {"word": "rain"}, clock=clock)
    while run.status not in ("finished", "failed"):
        run.step_into()
        clock.go_on(60)
    assert seconds(run) == {"before": 1, "look": 0, "after": 0}


def test_a_branch_that_waits_for_a_person_works_no_longer_than_its_own_time():
    clock = Stopwatch()
    graph = fan("x", "y")
    graph.nodes["x"].clear()
    graph.nodes["x"].update(kind="human", output="said")
    run = session(graph, clock=clock)
    asyncio.run(run.arun())
    clock.go_on(60)
    run.answer("yes")
    run.run()
    assert run.status == "finished"
    assert set(seconds(run).values()) == {0}


def test_a_timed_out_question_has_no_working_time():
    clock = Stopwatch()
    graph = asking()
    graph.nodes["ask"]["timeout"] = 30
    run = session(graph, clock=clock)
    run.run()
    clock.go_on(31)
    run.run()
    assert (run.status, run.trace.steps[1].status, run.trace.steps[1].seconds) == ("failed", "error", 0)
