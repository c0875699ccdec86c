"""Providers and tool invokers that record answers to files, and answer from them."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from pydantic import BaseModel

from agentnb.dialects.activegraph import (
    CachedToolResponse,
    DirectToolInvoker,
    LLMBehaviorError,
    LLMMessage,
    LLMResponse,
    RecordedLLMProvider,
    RecordedToolProvider,
    RecordingLLMProvider,
    RecordingToolProvider,
    Tool,
    ToolContext,
    ToolError,
)
from tests.dialects.activegraph.runtimes import log, runtime, thinking


class Note(BaseModel):
    text: str


class Add(BaseModel):
    a: int
    b: int = 1


CONTEXT = ToolContext("b", "evt_001", None, "key", 1.0)
ADD = Tool("add", lambda args, ctx: {"sum": args.a + args.b}, input_schema=Add)


def test_a_recorded_run_is_repeated_without_its_provider(tmp_path):
    behaviors, options = thinking(("one", None, ()))
    provider = RecordingLLMProvider(options.pop("llm_provider"), tmp_path / "answers")
    first = runtime(*behaviors, llm_provider=provider, **options)
    first.run_goal("go")
    (file,) = (tmp_path / "answers").iterdir()
    fields = json.loads(file.read_text())
    requested = next(event for event in first.graph.events if event.type == "llm.requested")
    assert file.stem == fields["prompt_hash"] == requested.payload["prompt_hash"]
    assert "recorded_at" in fields
    assert "recorded_at" not in fields["prompt"]
    recorded = RecordedLLMProvider(tmp_path / "answers", default_model=provider.default_model)
    second = runtime(*behaviors, llm_provider=recorded, **options)
    second.run_goal("go")
    answered = [[event.payload["raw_text"] for event in team.graph.events if event.type == "llm.responded"]
                for team in (first, second)]  # fmt: skip
    assert answered[0] == answered[1] == ["one"]
    assert len(log(second)) == len(log(first))


def test_a_recorded_answer_costs_nothing_and_tokens_are_estimated(tmp_path):
    provider, messages = RecordedLLMProvider(tmp_path), [LLMMessage("user", "four"), LLMMessage("user", "eight...")]
    assert provider.estimate_cost(input_tokens=1000, output_tokens=1000, model="m") == 0
    assert provider.count_tokens(system="12345678", messages=messages, model="m") == 5
    assert provider.count_tokens(system="", messages=[], model="m") == 1


def test_an_unrecorded_request_fails(tmp_path):
    request = {"system": "", "messages": [LLMMessage("user", "hi")], "model": "m", "max_tokens": 1, "temperature": 0.0,
               "top_p": 1.0, "output_schema": Note, "timeout_seconds": 1.0}  # fmt: skip
    with pytest.raises(LLMBehaviorError) as raised:
        RecordedLLMProvider(tmp_path).complete(**request)
    assert (raised.value.reason, "prompt_hash" in raised.value.payload_extras) == ("llm.fixture_missing", True)
    with pytest.raises(ToolError) as failed:
        RecordedToolProvider(tmp_path).invoke(ADD, Add(a=1), CONTEXT)
    assert failed.value.reason == "tool.fixture_missing"


def test_a_tool_is_recorded_and_repeated(tmp_path):
    recording = RecordingToolProvider(DirectToolInvoker(), tmp_path)
    assert recording.invoke(ADD, Add(a=2), CONTEXT).output == {"sum": 3}
    assert RecordedToolProvider(tmp_path).invoke(ADD, {"b": 1, "a": 2}, CONTEXT).output == {"sum": 3}


def test_an_invoker_measures_a_call(monkeypatch):
    times = iter([2.0, 5.0])
    monkeypatch.setattr("agentnb.dialects.activegraph.parts.recorded.perf_counter", lambda: next(times))
    tool = Tool("add", lambda args, ctx: {1, 2}, cost_per_call=Decimal("0.5"))
    assert DirectToolInvoker().invoke(tool, {}, CONTEXT) == CachedToolResponse([1, 2], None, 3.0, Decimal("0.5"))


def test_an_invoker_maps_what_a_tool_raises():
    def fails(args, ctx):
        raise args

    with pytest.raises(ToolError) as raised:
        DirectToolInvoker().invoke(Tool("fails", fails), ValueError("no"), CONTEXT)
    assert raised.value.reason == "tool.execution_error"
    with pytest.raises(ToolError) as raised:
        DirectToolInvoker().invoke(Tool("fails", fails), ToolError("tool.timeout", "slow"), CONTEXT)
    assert raised.value.reason == "tool.timeout"


class Invoker:
    def __init__(self, answer):
        self.answer, self.calls = answer, []

    def invoke(self, tool, args, ctx):
        self.calls.append((tool.name, args, ctx.behavior_name))
        return self.answer


@pytest.mark.parametrize(
    ("answer", "output", "reason"),
    [
        (CachedToolResponse({"sum": 9}), {"sum": 9}, None),
        (CachedToolResponse(None, {"reason": "tool.network_error", "message": "down"}), None, "tool.network_error"),
    ],
)
def test_a_runtime_calls_tools_through_its_invoker(answer, output, reason):
    behaviors, options = thinking(("", None, (("c1", "add", {"a": 1}),)), ("done", None, ()), tools=[ADD])
    invoker = Invoker(answer)
    team = runtime(*behaviors, tool_invoker=invoker, **options)
    team.run_goal("go")
    responded = next(event.payload for event in team.graph.events if event.type == "tool.responded")
    assert invoker.calls == [("add", Add(a=1), "think")]
    assert (responded.get("output"), (responded.get("error") or {}).get("reason")) == (output, reason)
    assert team.replay().ok
    assert len(invoker.calls) == 1


def test_each_call_has_a_file(tmp_path):
    recording = RecordingToolProvider(DirectToolInvoker(), tmp_path)
    for number in (1, 2):
        recording.invoke(ADD, Add(a=number), CONTEXT)
    recorded = RecordedToolProvider(tmp_path)
    assert [recorded.invoke(ADD, Add(a=number), CONTEXT).output for number in (1, 2)] == [{"sum": 2}, {"sum": 3}]


@pytest.mark.parametrize(("parsed", "schema"), [({"text": "x"}, Note), ({"text": "x"}, None), (None, Note)])
def test_a_recorded_answer_is_parsed_if_it_was_and_its_schema_is_known(parsed, schema, tmp_path):
    class Provider:
        def complete(self, **request):
            return LLMResponse("text", parsed, 3, 2, model="m")

    request = {"system": "", "messages": [], "model": "m", "output_schema": schema}
    RecordingLLMProvider(Provider(), tmp_path).complete(**request)
    expected = Note(**parsed) if parsed and schema else parsed
    assert RecordedLLMProvider(tmp_path).complete(**request) == LLMResponse("text", expected, 3, 2, model="m")
