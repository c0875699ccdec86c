from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agentnb.secrets import hide
from agentnb.world.tools.tool_result import ToolMetrics, ToolResult, make_failure, to_result

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
METRICS = ToolMetrics.between(START, START + timedelta(seconds=1.5))


class Odd(Exception):
    def __str__(self):
        raise RuntimeError("cannot even be told")


def test_metrics_are_in_seconds_and_in_utc():
    assert METRICS.duration == 1.5
    assert METRICS.end_time - METRICS.start_time == timedelta(seconds=1.5)
    ns = int(START.timestamp()) * 10**9
    assert ToolMetrics.of_ns(ns, ns + 1_500_000_000) == METRICS


@pytest.mark.parametrize(
    ("answer", "success", "result", "error"),
    [
        (None, True, None, None),
        (0, True, 0, None),
        ("text", True, "text", None),
        ({"answer": 42}, True, {"answer": 42}, None),
        ([1], True, [1], None),
        (ToolResult(success=True, result=5), True, 5, None),
        (ToolResult(success=False, error="sold out"), False, None, "sold out"),
        (ToolResult(success=False, result=5), False, 5, "Tool 'order' failed without a message"),
        ({"success": True, "result": 5}, True, 5, None),
        ({"success": True, "result": None}, True, None, None),
        ({"success": True}, True, None, None),
        ({"success": True, "left": 3}, True, {"left": 3}, None),
        ({"success": True, "result": 5, "left": 3}, True, 5, None),
        ({"success": False, "error": "sold out", "left": 0}, False, {"left": 0}, "sold out"),
        ({"success": None}, False, None, "Tool 'order' failed without a message"),
        ({"success": False, "error": ""}, False, None, "Tool 'order' failed without a message"),
        ({"success": False, "error": ValueError("no")}, False, None, "ValueError: no"),
        ({"success": False, "error": {"type": "quota", "message": "gone"}}, False, None, "quota: gone"),
        (ValueError("no"), False, None, "Tool 'order' failed: ValueError: no"),
        (ValueError(), False, None, "Tool 'order' failed: ValueError"),
        (StopIteration(), False, None, "Tool 'order' failed: StopIteration"),
        (SystemExit(3), False, None, "Tool 'order' failed: it called sys.exit(3)"),
        (TimeoutError("it took longer than 2 s"), False, None, "Tool 'order' failed: it took longer than 2 s"),
        (Odd(), False, None, "Tool 'order' failed: Odd: <Odd that cannot be shown: RuntimeError>"),
    ],
)
def test_answers_are_converted_to_results(answer, success, result, error):
    assert to_result(answer, "order", METRICS) == ToolResult(success, result, error, metrics=METRICS)


def test_details_are_kept():
    details = [{"path": "a", "message": "b"}]
    assert to_result({"success": False, "error": "e", "details": details}, "order").details == details


def test_measured_metrics_override_those_of_the_answer():
    own_metrics = ToolMetrics.between(START, START)
    answer = ToolResult(success=True, metrics=own_metrics)
    assert to_result(answer, "order", METRICS).metrics == METRICS
    assert to_result(answer, "order").metrics == own_metrics
    assert to_result(answer.to_dict(), "order").metrics == own_metrics
    assert to_result({"success": True, "metrics": {"duration": 3}}, "order").metrics is None


def test_a_result_survives_conversion_to_a_dict():
    result = ToolResult(success=False, result=5, error="why", details=[{"path": "a", "message": "b"}], metrics=METRICS)
    assert result.to_dict()["metrics"] == {"duration": 1.5, "start_time": START, "end_time": METRICS.end_time}
    assert to_result(result.to_dict(), "order") == result
    assert make_failure("why", METRICS).to_dict()["success"] is False


def test_errors_contain_no_secrets():
    hide("s3cr3t-4711")
    for answer in (ValueError("key s3cr3t-4711"), {"success": False, "error": "key s3cr3t-4711"}):
        assert "s3cr3t" not in to_result(answer, "order").error
