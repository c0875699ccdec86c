from __future__ import annotations

import pytest

from agentnb.dialects.symphony.parts.results import AgentResult, TaskOutcome, Times, to_tool_executed, to_usage


def test_a_part_that_is_not_there_is_no_key() -> None:
    done = AgentResult(success=True, result=TaskOutcome("x"))
    with pytest.raises(KeyError):
        done["nothing"]
    assert list(done) == ["success", "result", "error", "metrics"]
    assert done.result.get("nothing", 1) == 1


def test_a_tools_own_times_come_before_its_steps() -> None:
    row = {"name": "a", "parameters": {}, "success": True, "metrics": {"duration": 2.0}}
    assert to_tool_executed(row, Times(5.0)).metrics.duration == 2.0
    assert to_tool_executed({**row, "metrics": None}, Times(5.0)).metrics.duration == 5.0


def test_nothing_is_known_of_usage_where_nobody_was_asked() -> None:
    assert (to_usage(None).requests, to_usage(None).tokens_in) == (0, None)
