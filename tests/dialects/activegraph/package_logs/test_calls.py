"""What a log tells of models and tools, as rows of calls."""

from __future__ import annotations

from decimal import Decimal

import pandas as pd

import agentnb as nb
from agentnb.dialects.activegraph.parts.package_logs.calls import iter_calls
from agentnb.dialects.activegraph.parts.package_logs.records import LogEvent


def test_each_attempt_of_a_model_and_each_tool_is_a_row(model_path):
    calls = nb.open_activegraph(model_path).trace.frames.calls
    rows = calls[["step", "node", "call", "kind", "name", "attempt"]].itertuples(index=False, name=None)
    assert list(rows) == [
        (1, "think", 0, "llm", "fake-1", 1),
        (1, "think", 0, "llm", "fake-1", 2),
        (1, "think", 1, "tool", "add", 1),
        (1, "think", 2, "llm", "fake-1", 1),
    ]
    assert "llm.network_error" in calls.error[0]
    assert calls.error[1:].isna().all()
    assert calls.result[1] == {"tool_calls": [{"id": "use_1", "name": "add", "args": {"a": 2, "b": 3}}]}
    assert (calls.arguments[2], calls.result[2], calls.result[3]) == ({"a": 2, "b": 3}, {"total": 5}, {"said": "five"})
    assert calls.tokens_in.tolist() == [pd.NA, 12, pd.NA, 12]
    assert calls.cost_usd_exact.tolist() == [Decimal(0), Decimal("0.0042"), Decimal(0), Decimal("0.0042")]
    assert calls.seconds.tolist()[1::2] == [0.25, 0.25]
    assert "Add" in str(calls.arguments[0]["prompt"])


def event(id, type, cause=None, **payload):
    return LogEvent(id, type, "a", payload, None, cause, "")


def test_a_request_without_an_answer_is_marked():
    (call,) = iter_calls([event("e1", "tool.requested", tool="add", args={"a": 1})], 3, 0)
    assert (call.step, call.name, call.error, call.result) == (3, "add", "no answer is in the log", None)


def test_a_tool_that_failed_has_its_error():
    requested = event("e1", "tool.requested", tool="add", args={})
    for error, message in (({"reason": "tool.timeout", "message": "too slow"}, "tool.timeout: too slow"), ("no", "no")):
        (call,) = iter_calls([requested, event("e2", "tool.responded", "e1", error=error, output=None)], 1, 0)
        assert call.error == message


def test_invalid_numbers_are_omitted():
    back = event("e2", "llm.responded", "e1", cost_usd="much", input_tokens="12", latency_seconds=True, raw_text="x")
    (call,) = iter_calls([event("e1", "llm.requested"), back], 1, 0)
    assert (call.name, call.cost_usd, call.tokens_in, call.seconds, call.result) == ("llm", None, None, 0.0, "x")


def test_embeddings_are_calls_too():
    back = event("e2", "embedding.responded", "e1", vectors=[[0.5]], error=None)
    (call,) = iter_calls([event("e1", "embedding.requested", model="m", input_count=1), back], 1, 0)
    assert (call.kind, call.name, call.result[0][0]) == ("embedding", "m", 0.5)
