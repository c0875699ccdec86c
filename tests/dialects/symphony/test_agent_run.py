from __future__ import annotations

import json
from typing import Any

import pytest

from agentnb.dialects.symphony import AgentConfig
from agentnb.dialects.symphony.parts.agent_run import RequestStage, ResultStage, ToolResultStage, take_next_call
from agentnb.world.llm.decision import EMPTY


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


def concluded(tools: list[str], board: dict[str, Any]) -> tuple[Any, ...]:
    result = ResultStage(AgentConfig(name="A", tools=tools))({"task": "t", **board})["result"]
    return result["success"], result["response"], result["reasoning"], result["error"]


SORRY = "Sorry: A could not work on the task 't'."
WORKED = tried(success=True, result=1)
FAILED = tried(success=False, error="sold out")
FIRST = "Processed 1 tool actions; the first was x, success: true. "
BOTH = "Processed 2 tool actions; the first was x, success: true."
FENCED = " The JSON of the answer was in a code fence."


@pytest.mark.parametrize(
    ("tools", "board", "expected"),
    [
        ([], {}, (False, SORRY, "The model could not be asked: the model was not called", "the model was not called")),
        (
            [],
            {"answer": "a", "failure": {"node": "llm", "message": "line"}},
            (False, SORRY, "The model could not be asked: line", "line"),
        ),
        ([], {"answer": "a"}, (True, "a", "The agent has no tools: the model's answer is the result.", None)),
        ([], {"answer": None}, (True, "", "The agent has no tools: the model's answer is the result.", None)),
        (
            ["x"],
            {"answer": "a", "failure": {"node": "parse", "message": "no JSON"}},
            (False, "a", "The model's answer could not be read: no JSON.", "no JSON"),
        ),
        (
            ["x"],
            {"answer": " ", "failure": {"node": "parse", "message": "no"}, "tools_executed": [WORKED]},
            (False, EMPTY, f"{FIRST}The model's answer could not be read: no.", "no"),
        ),
        (
            ["x"],
            {
                "answer": "a",
                "failure": {"node": "check", "message": "m"},
                "decision": {"kind": "none", "response": "r"},
            },
            (True, "r", "The model decided that no tool was needed.", None),
        ),
        (
            ["x"],
            {"answer": "a", "decision": {"kind": "other", "response": "r", "why": "w", "fenced": True}},
            (
                *(False, "r", f"No tool was called: w.{FENCED}"),
                "the model's answer is JSON, but not in the requested form: w",
            ),
        ),
        (
            ["x"],
            {"answer": "a", "decision": {"kind": "none", "response": "r", "fenced": True}, "tools_executed": [WORKED]},
            (True, "r", f"{FIRST}The model decided that no tool was needed.{FENCED}", None),
        ),
        (
            ["x"],
            {"answer": "a", "decision": {"kind": "none", "response": "r"}, "tools_executed": [WORKED, FAILED]},
            (False, "r", f"{BOTH} The model decided that no tool was needed.", "Tool 'x' failed: sold out"),
        ),
        (
            ["x"],
            {"answer": "a", "decision": {"kind": "tool", "fenced": True}, "tools_executed": [WORKED, FAILED]},
            (
                *(False, "Tool x executed. Success: false. Error: sold out", f"{BOTH}{FENCED}"),
                "Tool 'x' failed: sold out",
            ),
        ),
        (
            ["x"],
            {
                "answer": {"content": "", "tool_calls": [{"id": n, "name": "x", "arguments": {}} for n in "12"]},
                "decision": {"kind": "tool"},
                "tools_executed": [WORKED, WORKED, tried(success=False, error="'x' is away")],
            },
            (
                False,
                "Tool x executed. Success: true. Result: 1\nTool x executed. Success: false. Error: 'x' is away",
                "Processed 3 tool actions; the first was x, success: true.",
                "'x' is away",
            ),
        ),
    ],
)
def test_a_result_follows_from_the_blackboard(
    tools: list[str], board: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    assert concluded(tools, board) == expected


def test_the_next_call_of_an_answer_is_taken_until_there_is_none() -> None:
    board: dict[str, Any] = {"calls": [1, 2]}
    assert take_next_call(board) == {"decision": 1, "calls": [2], "calls_on": True}
    assert take_next_call({"calls": [2]}) == {"decision": 2, "calls": [], "calls_on": True}
    assert take_next_call({"calls": []}) == take_next_call({}) == {"calls_on": False}


def test_a_conversation_grows_by_each_round() -> None:
    stage = ToolResultStage(AgentConfig(name="A", tools=["x"], max_calls=4))
    earlier = [{"role": "assistant", "content": "before"}]
    board = {"usage": {"requests": 1}, "answer": "a", "tools_executed": [FAILED, WORKED], "conversation": earlier}
    before, said, report = stage(board)["conversation"]
    assert (before, said) == (earlier[0], {"role": "assistant", "content": "a"})
    assert "3 more times" in report["content"]
    assert '"success": true' in report["content"]  # of the last tool
    assert earlier == [{"role": "assistant", "content": "before"}]


def test_every_requested_call_has_an_answer() -> None:
    stage = ToolResultStage(AgentConfig(name="A", tools=["x"], max_calls=2))
    calls = [{"id": f"c{n}", "name": "x", "arguments": {"n": n}} for n in range(3)]
    executed = [tried(success=True, result="old", call=0), tried(success=True, result="one", call=1),
                tried(success=False, error="two", call=2)]  # fmt: skip
    earlier = [{"role": "assistant", "content": "", "tool_calls": calls[:1]},
               {"role": "tool", "content": "old", "tool_call_id": "c0"}]  # fmt: skip
    board = {"usage": {"requests": 1}, "answer": {"content": None, "tool_calls": calls}, "tools_executed": executed}
    messages = stage({**board, "conversation": earlier})["conversation"][2:]
    assert [message["role"] for message in messages] == ["assistant", "tool", "tool", "tool"]
    assert [message.get("tool_call_id") for message in messages] == [None, "c0", "c1", "c2"]
    assert [call["id"] for call in messages[0]["tool_calls"]] == ["c0", "c1", "c2"]
    results = [json.loads(message["content"]) for message in messages[1:]]
    assert [result["success"] for result in results] == [True, False, False]
    assert (results[0]["result"], results[1]["error"]) == ("one", "two")
    assert results[2]["error"] == "the tool was not called"
