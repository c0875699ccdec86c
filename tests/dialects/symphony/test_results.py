from __future__ import annotations

import pytest

from agentnb.dialects.symphony.parts.results import AgentResult, TaskOutcome, Times, to_tool_executed, to_usage


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
