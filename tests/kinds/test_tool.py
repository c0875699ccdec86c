from __future__ import annotations

import asyncio

import pytest

from agentnb.clock import FrozenClock
from tests.session.making import calling, graph, session


def flaky(times):
    """Return a tool that fails so many times, and the list of its calls."""
    calls = []

    def look(word):
        calls.append(word)
        if len(calls) <= times:
            raise OSError("no line")
        return {"found": word}

    return look, calls


def test_its_answer_is_written_as_a_functions_is():
    run = session(calling(), {"word": "rain"})
    run.step(2)
    assert run.board["look"] == "about rain"
    run = session(calling(lambda word: {"a": word}), {"word": "rain"})
    run.step(2)
    assert run.board["a"] == "rain"


def test_each_attempt_is_a_row_of_the_calls():
    look, calls = flaky(2)
    run = session(calling(look, attempts=3, backoff=0.5), {"word": "rain"}, clock=FrozenClock())
    run.run()
    assert (run.status, calls) == ("finished", ["rain"] * 3)
    rows = run.trace.frames.calls
    assert rows["attempt"].tolist() == [1, 2, 3]
    assert rows["wait"].tolist() == [0.0, 0.5, 0.5]
    assert rows["error"].isna().tolist() == [False, False, True]


def test_after_the_last_attempt_it_fails():
    look, calls = flaky(9)
    run = session(calling(look, attempts=2), {"word": "rain"})
    run.run()
    assert (run.status, run.current, len(calls)) == ("failed", "look", 2)
    assert "no line" in run.error.what
    assert isinstance(run.cause, OSError)


def test_one_that_takes_too_long_is_a_timeout_with_edges_of_its_own():
    async def slow(word):
        await asyncio.Event().wait()

    made = calling(slow, timeout=0.001)
    made.add_node("late", kind="noop")
    made.add_node("wrong", kind="noop")
    made.add_edge("look", "wrong", kind="error")
    made.add_edge("look", "late", kind="timeout")
    run = session(made, {"word": "rain"})
    run.run()
    assert [step.node_id for step in run.trace.steps] == ["before", "look", "late"]
    assert "took longer than 0.001 s" in run.trace.steps[1].error


def test_without_a_timeout_edge_an_error_edge_is_not_taken_for_it():
    async def slow(word):
        await asyncio.Event().wait()

    made = calling(slow, timeout=0.001)
    made.add_node("wrong", kind="noop")
    made.add_edge("look", "wrong", kind="error")
    run = session(made, {"word": "rain"})
    run.run()
    assert (run.status, run.current) == ("failed", "look")


def test_a_failure_takes_the_error_edge_and_not_the_others():
    look, _ = flaky(9)
    made = calling(look)
    made.add_node("wrong", kind="noop")
    made.add_edge("look", "wrong", kind="error")
    run = session(made, {"word": "rain"})
    run.run()
    assert [step.node_id for step in run.trace.steps] == ["before", "look", "wrong"]
    assert run.status == "finished"


def test_without_inputs_it_is_given_the_board_and_the_call_says_nothing_of_it():
    made = graph("look", look=lambda board: board["word"])
    made.nodes["look"]["kind"] = "tool"
    run = session(made, {"word": "rain"})
    run.run()
    assert run.board["look"] == "rain"
    assert run.trace.frames.calls["arguments"].tolist() == [{}]


@pytest.mark.parametrize("name", ["look", None])
def test_it_is_named_as_it_was_bound_or_by_its_function(name):
    def search(word):
        return word

    made = calling(search if name is None else name)
    run = session(made, {"word": "rain"}, tools={"look": search})
    run.run()
    assert run.trace.frames.calls["name"].tolist() == [name or "search"]


@pytest.mark.parametrize("timeout", [0, 30])
@pytest.mark.parametrize("inputs", [{"word": "word"}, None])
def test_its_options_hold_for_each_way_to_call_it(timeout, inputs):
    look, calls = flaky(1)
    made = calling(look if inputs else lambda: look("rain"), attempts=2, timeout=timeout)
    made.nodes["look"]["inputs"] = inputs
    run = session(made, {"word": "rain"})
    run.run()
    assert (run.status, run.board["found"], calls) == ("finished", "rain", ["rain"] * 2)
