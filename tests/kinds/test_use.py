from __future__ import annotations

from typing import Any

import pytest

from agentnb.dialects.symphony import ToolConfig, ToolResult
from tests.dialects.symphony.making import call, executor


def used(handler: Any, **words: Any) -> Any:
    agent = executor(call("it", n=1), tools=("it",))
    agent.tools.register_tool("it", ToolConfig("it", "", handler, **words))
    session = agent.session("go")
    session.run()
    return session


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"a": 1}, {"a": 1}),
        ("x", "x"),
        (None, None),
        (ToolResult(success=True, result=5), 5),
        ({"success": True, "result": [1]}, [1]),
    ],
)
def test_whatever_a_tool_returns_is_its_result(answer: Any, result: Any) -> None:
    session = used(lambda _given: answer)
    (tried,) = session.board["tools_executed"]
    assert (tried["success"], tried["result"]) == (True, result)
    assert tried["metrics"]["duration"] >= 0


def test_a_tool_is_given_its_parameters_as_one_dict_of_its_own() -> None:
    given: list[Any] = []

    def handler(parameters: dict[str, Any]) -> None:
        given.append(dict(parameters))
        parameters["n"] = 99

    session = used(handler)
    assert given == [{"n": 1}]
    assert session.board["tools_executed"][0]["parameters"] == {"n": 1}


def test_an_async_tool_is_awaited() -> None:
    async def handler(given: dict[str, Any]) -> int:
        return int(given["n"]) + 1

    assert used(handler).board["tools_executed"][0]["result"] == 2


def test_a_failure_is_the_steps_and_its_result_stays() -> None:
    session = used(lambda _given: ToolResult(success=False, error="sold out", details=[{"path": "x"}]))
    step = next(step for step in session.trace.steps if step.kind == "use")
    assert step.status == "error"
    (tried,) = session.board["tools_executed"]
    assert (tried["error"], tried["details"]) == ("sold out", [{"path": "x"}])
    assert session.trace.frames.calls.query("kind == 'tool'").error.iloc[0] == "ToolFailed: sold out"


def test_a_time_out_is_a_failed_result() -> None:
    import threading

    never = threading.Event()
    session = used(lambda _given: never.wait(60), timeout=0.05)
    never.set()
    assert "longer than" in session.board["tools_executed"][0]["error"]


def test_a_secret_parameter_is_not_shown() -> None:
    agent = executor(call("ok", n=1, api_key="sk-verysecret1"))
    agent.execute_task("go")
    assert "sk-verysecret1" not in agent.trace.frames.calls.to_string()


def test_a_person_may_answer_in_a_tools_place_with_any_value() -> None:
    agent = executor(call("ok", n=1))
    session = agent.session("go")
    session.step(5)
    session.step_into()
    (held,) = session.pending
    session.change(held.id, answer=7)
    session.run()
    assert session.board["tools_executed"][0]["result"] == 7
    assert session.board["result"]["success"]
    assert session.replay(strict="reads").ok
