from __future__ import annotations

import pytest

from agentnb.dialects.symphony.parts.results import (
    AgentResult,
    TaskOutcome,
    Times,
    ToolExecuted,
    to_tool_executed,
    to_usage,
)


def test_a_missing_part_is_not_a_key() -> None:
    done = AgentResult(success=True, result=TaskOutcome("x"))
    with pytest.raises(KeyError):
        done["nothing"]
    assert list(done) == ["success", "result", "error", "metrics"]
    assert done.result.get("nothing", 1) == 1


def test_times_of_a_tool_take_precedence_over_those_of_its_step() -> None:
    row = {"name": "a", "parameters": {}, "success": True, "metrics": {"duration": 2.0}}
    assert to_tool_executed(row, Times(5.0)).metrics.duration == 2.0
    assert to_tool_executed({**row, "metrics": None}, Times(5.0)).metrics.duration == 5.0


def test_usage_is_unknown_without_a_model_call() -> None:
    assert (to_usage(None).requests, to_usage(None).tokens_in) == (0, None)


def test_results_have_defaults_and_are_plain_as_a_dict() -> None:
    tool = ToolExecuted("x", {"n": 1}, success=True)
    done = AgentResult(success=True, result=TaskOutcome("hi", tools_executed=(tool,)))
    times: dict[str, object] = {"duration": 0.0, "start_time": None, "end_time": None}
    usage = {"requests": 0, "tokens_in": None, "tokens_out": None, "cost_usd": None}
    assert done.to_dict() == {
        "success": True,
        "result": {
            "response": "hi",
            "reasoning": "",
            "tools_executed": [
                {"name": "x", "parameters": {"n": 1}, "success": True, "result": None, "error": None, "details": None,
                 "metrics": times}
            ],
            "agent": "",
            "model": None,
            "token_usage": usage,
            "timestamp": None,
            "fallback": False,
        },
        "error": None,
        "metrics": {**times, "tool_calls": 0, "llm_usage": usage},
    }  # fmt: skip
    assert (len(done), len(done.result), done["result"]["tools_executed"][0]["name"]) == (4, 8, "x")


def test_an_edited_tool_call_may_lack_fields() -> None:
    assert to_tool_executed({}, Times(1.0)) == ToolExecuted("", None, success=False, metrics=Times(1.0))
    row = {"name": "a", "success": True, "error": "e", "details": 1, "result": 2, "parameters": {}, "call": 3}
    assert to_tool_executed(row, Times()) == ToolExecuted("a", {}, success=True, result=2, error="e", details=1)


def test_usage_has_what_is_known_of_it() -> None:
    assert to_usage({"requests": 2, "tokens_in": 5, "more": 1}).to_dict() == {
        "requests": 2, "tokens_in": 5, "tokens_out": None, "cost_usd": None,
    }  # fmt: skip
    assert to_usage(["edited"]).requests == 0
