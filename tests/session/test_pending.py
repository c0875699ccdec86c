from __future__ import annotations

import pytest

from agentnb.errors import ExecutionError
from tests.session.making import asking, calling, session


def noting(calls):
    def look(word):
        calls.append(word)

    return look


def held(side="before", **options):
    run = session(calling(**options), {"word": "rain"})
    run.breakpoints.add(call="tool", side=side)
    run.run()
    return run


def test_a_call_is_held_before_it_goes_out():
    calls = []
    run = held(answer=noting(calls))
    assert (run.status, run.position, run.current, calls) == ("in_flight", 1, "look", [])
    (call,) = run.pending
    assert (call.kind, call.node, dict(call.arguments)) == ("call", "look", {"word": "rain"})


def test_it_goes_on_with_the_next_step():
    run = held()
    step = run.step()
    assert (step.node_id, step.outputs, run.status) == ("look", {"look": "about rain"}, "paused")
    assert run.pending == ()


def test_or_with_the_next_run():
    run = held()
    run.run()
    assert (run.status, run.board["look"]) == ("finished", "about rain")


def test_its_arguments_can_be_changed():
    run = held()
    run.change(run.pending[0].id, arguments={"word": "snow"})
    assert dict(run.pending[0].arguments) == {"word": "snow"}
    run.run()
    assert run.board["look"] == "about snow"
    assert run.trace.frames.calls["arguments"].tolist() == [{"word": "snow"}]
    assert run.trace.frames.acts["act"].tolist() == ["change"]


def test_an_answer_before_it_goes_out_replaces_it():
    calls = []
    run = held(answer=noting(calls))
    run.change("look", answer="mine")
    run.run()
    assert (run.board["look"], calls) == ("mine", [])
    assert run.trace.frames.calls["result"].tolist() == ["mine"]


def test_after_it_came_back_its_answer_is_seen_and_can_be_changed():
    run = held(side="after")
    assert run.pending[0].answer == "about rain"
    run.change(run.pending[0].id, answer="mine")
    run.run()
    assert run.board["look"] == "mine"
    assert run.trace.frames.calls["result"].tolist() == ["mine"]


def test_what_is_changed_is_a_copy():
    run = held()
    arguments = {"word": ["snow"]}
    run.change("look", arguments=arguments)
    arguments["word"].append("more")
    run.run()
    assert run.board["look"] == "about ['snow']"


@pytest.mark.parametrize("move", [lambda run: run.back(), lambda run: run.goto(1), lambda run: run.stop()])
def test_going_elsewhere_gives_the_call_up_and_it_goes_out_again_later(move):
    calls = []
    run = held(answer=noting(calls))
    move(run)
    assert (run.pending, calls) == ((), [])
    assert "cancelled" in run.trace.frames.acts["act"].tolist()
    run.run()
    assert run.status == "in_flight"
    run.run()
    assert (run.status, calls) == ("finished", ["rain"])


def test_an_edit_leaves_what_waits_as_it_was_asked():
    run = held()
    run.edit({"word": "snow"})
    assert dict(run.pending[0].arguments) == {"word": "rain"}
    run.run()
    run.run()
    assert (run.status, run.board["word"]) == ("finished", "snow")


def test_an_edit_while_a_person_is_asked_keeps_the_question():
    run = session(asking())
    run.run()
    run.edit({"note": "look again"})
    assert run.status == "waiting"
    run.answer("yes")
    assert run.board["note"] == "look again"
    assert run.status != "waiting"


def test_a_call_that_is_not_held_cannot_be_changed():
    run = session(calling(), {"word": "rain"})
    with pytest.raises(ExecutionError, match="X115"):
        run.change("look", answer=1)


def test_an_answer_is_no_call_and_a_call_no_answer():
    run = session(asking())
    run.run()
    with pytest.raises(ExecutionError, match="'ask'"):
        run.change("ask", answer="yes")
    with pytest.raises(ExecutionError, match="X115"):
        held().answer("yes")


def test_the_call_can_be_named_by_its_effect_too():
    for pattern in ("look", "l*", "*", "tool"):
        run = session(calling("look"), {"word": "rain"}, tools={"look": lambda word: word})
        run.breakpoints.add(call=pattern)
        run.run()
        assert run.status == "in_flight", pattern
