from __future__ import annotations

from typing import Any

import pytest

from tests.dialects.symphony.making import call, executor


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (call("nobody"), "not found"),
        (call("other"), "not allowed"),
        (call("ok", n="x"), "Input validation failed"),
        ({"tool_name": "ok", "parameters": [1]}, "object"),
        ({"tool_name": "ok", "parameters": "n=1"}, "object"),
    ],
)
def test_what_may_not_be_called_does_not_go_out(answer: dict[str, Any], told: str) -> None:
    session = executor(answer).session("go")
    session.step(5)
    assert session.trace.steps[-1].status == "error"
    (tried,) = session.board["tools_executed"]
    assert told in tried["error"]
    assert not tried["success"]
    assert session.current == "result"
    assert "tool" not in session.trace.frames.calls.kind.tolist()


def test_every_wrong_parameter_is_told_with_its_path() -> None:
    agent = executor({"tool_name": "many", "parameters": {"a": 1, "list": [{"x": "y"}]}}, tools=("many",))
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}},
        },
        "required": ["b"],
    }
    agent.tools.register_tool("many", {"handler": lambda given: given, "inputSchema": schema})
    (tried,) = agent.execute_task("go").result.tools_executed
    assert {each["path"] for each in tried.details} == {
        "many.inputParams.a", "many.inputParams.b", "many.inputParams.list[0].x",
    }  # fmt: skip


def test_a_person_is_asked_only_where_the_call_could_go_out() -> None:
    session = executor(call("other"), require_approval=True).session("go")
    session.run()
    assert (session.status, session.pending) == ("finished", ())


def test_a_scripted_verdict_is_one() -> None:
    session = executor(call("ok", n=1), require_approval=True).session("go", answers=[True])
    session.run()
    assert session.board["result"]["success"]
    assert session.trace.frames.calls.kind.tolist() == ["llm", "approval", "tool"]


def asked_for(n):
    """A session whose model wants to call `ok` with n=1, and which a person approves with another n."""
    session = executor(call("ok", n=1), require_approval=True).session("go")
    session.run()
    (waits,) = session.pending
    session.change(waits.id, arguments={"n": n})
    session.approve(waits.id, by="ann")
    return session


def test_what_is_approved_with_other_parameters_is_called_with_those() -> None:
    session = asked_for(7)
    session.run()
    calls = session.trace.frames.calls.set_index("kind")
    assert (calls.arguments["approval"], calls.arguments["tool"]) == ({"n": 1}, {"n": 7})
    assert session.board["tools_executed"][0]["parameters"] == {"n": 7}
    assert session.trace.frames.interventions["action"].tolist() == ["change", "approve"]
    assert session.replay().ok


def test_parameters_that_do_not_fit_are_not_called_though_a_person_has_given_them() -> None:
    session = asked_for("x")
    session.run()
    assert "Input validation failed" in session.board["tools_executed"][0]["error"]
    assert "tool" not in session.trace.frames.calls.kind.tolist()
    assert session.replay().ok


def test_a_verdict_may_bring_its_own_parameters() -> None:
    answers = [{"approved": True, "arguments": {"n": 5}}]
    session = executor(call("ok", n=1), require_approval=True).session("go", answers=answers)
    session.run()
    assert session.board["tools_executed"][0]["parameters"] == {"n": 5}
