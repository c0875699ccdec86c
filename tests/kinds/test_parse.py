from __future__ import annotations

import json

from tests.dialects.symphony.making import call, executor


def test_a_decision_stands_on_the_board() -> None:
    session = executor(call("ok", n=1)).session("go")
    session.step(4)
    assert session.board["decision"]["kind"] == "tool"
    assert session.trace.steps[-1].observation["tool_name"] == "ok"
    assert (session.trace.steps[-1].thought, session.current) == (None, "check")


def test_a_fence_is_noted() -> None:
    session = executor(f"```json\n{json.dumps(call('ok'))}\n```").session("go")
    session.step(4)
    assert "fence" in session.trace.steps[-1].thought


def test_an_answer_that_a_person_has_edited_is_what_is_read() -> None:
    session = executor("words").session("go")
    session.step(3)
    session.edit({"answer": json.dumps({"tool_name": "none", "response": "fixed"})})
    session.run()
    assert session.board["result"]["response"] == "fixed"


def test_what_cannot_be_read_is_the_steps_failure_and_the_run_goes_on() -> None:
    session = executor("words").session("go")
    session.step(4)
    assert session.trace.steps[-1].status == "error"
    assert session.board["failure"]["node"] == "parse"
    assert "decision" not in session.board
    assert session.current == "result"
