from __future__ import annotations

from typing import Any

import pytest

from agentnb.dialects.symphony import AgentConfig
from agentnb.dialects.symphony.parts.agent_run import RequestStage, ResultStage, ToolResultStage


def test_a_request_contains_the_settings_of_the_config_and_no_others() -> None:
    board = {"system_prompt": "s", "task": "t"}
    plain = RequestStage(AgentConfig(name="A"))(board)["request"]
    assert plain == {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "t"}]}
    full = RequestStage(AgentConfig(name="A", tools=["x"], llm={"model": "m", "provider": "p", "maxTokens": 5}))(board)
    assert {key: value for key, value in full["request"].items() if key != "messages"} == {
        "model": "m", "provider": "p", "max_tokens": 5, "json_object": True,
    }  # fmt: skip


def tried(*, success: bool, **words: Any) -> dict[str, Any]:
    return {"name": "x", "parameters": {}, "success": success, "result": None, "error": None, **words}


def test_it_continues_until_max_calls() -> None:
    stage = ToolResultStage(AgentConfig(name="A", tools=["x"], max_calls=2))
    board: dict[str, Any] = {"usage": {"requests": 1}, "answer": "a", "tools_executed": [tried(success=True, result=1)]}
    actual = stage(board)
    assert actual["goes_on"]
    assert [message["role"] for message in actual["conversation"]] == ["assistant", "user"]
    assert stage({**board, "usage": {"requests": 2}}) == {"goes_on": False}


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (tried(success=True, result={"a": 1}), 'Tool x executed. Success: true. Result: {"a": 1}'),
        (tried(success=True, result="words"), "Tool x executed. Success: true. Result: words"),
        (tried(success=True, result=0), "Tool x executed. Success: true. Result: 0"),
        (tried(success=False, error="sold out"), "Tool x executed. Success: false. Error: sold out"),
        (tried(success=True, error="late"), "Tool x executed. Success: true. Error: late"),
        (tried(success=False, error=""), "Tool x executed. Success: false. Error: "),
        (tried(success=False, result="part", error="late"), "Tool x executed. Success: false. Result: part"),
    ],
)
def test_a_summary_contains_the_result_or_the_error(result: dict[str, Any], text: str) -> None:
    conclude = ResultStage(AgentConfig(name="A", tools=["x"]))
    board = {"answer": "a", "decision": {"kind": "tool"}, "tools_executed": [result]}
    assert conclude(board)["result"]["response"] == text
