"""What was answered before is not asked again, where that is wished for; failures are no answers."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace

import pytest

from agentnb.dialects.activegraph import LLMCache, LLMResponse, Runtime, Tool, ToolCache, ToolCall
from agentnb.dialects.activegraph.parts.caches import CachedToolResponse
from tests.dialects.activegraph.runtimes import graph, thinking, types

ASKS = (("", None, (("c1", "look", {"q": "swifts"}),)), ("done", None, ()))


def looking(*, deterministic):
    """Return a team that asks for a tool once, and what that tool was called with."""
    called = []
    look = Tool("look", lambda args, ctx: called.append(args) or {"found": args["q"]}, deterministic=deterministic)
    behaviors, options = thinking(*ASKS, *ASKS, tools=[look])
    return behaviors, options, called


def events_of(behaviors, options):
    first = Runtime(graph(), behaviors=behaviors, **options)
    first.run_goal("go")
    return first.graph.events


@pytest.mark.parametrize(
    ("words", "deterministic", "calls"),
    [({}, True, 2), ({"replay_reinvoke_deterministic": True}, True, 2),
     ({"cache": True}, True, 1), ({"cache": True}, False, 1), ({"cache": True, "replay_tool_cache": False}, True, 1),
     ({"cache": True, "replay_reinvoke_deterministic": True}, True, 2),
     ({"cache": True, "replay_reinvoke_deterministic": True}, False, 1)],
)  # fmt: skip
def test_a_tool_result_is_cached_only_on_request(words, deterministic, calls):
    behaviors, options, called = looking(deterministic=deterministic)
    known = events_of(behaviors, options)
    words = dict(words)
    if words.pop("cache", False):
        words = {"tool_cache": ToolCache.from_events(known), "replay_tool_cache": True, **words}
    second = Runtime(graph(), behaviors=behaviors, **{**options, **words})
    second.run_goal("go")
    assert (len(called), types(second)[-1], second.errors) == (calls, "thought", [])
    hit = next(event.payload["cache_hit"] for event in second.graph.events if event.type == "tool.responded")
    assert hit == (calls == 1)


def test_a_cached_model_answer_is_reused():
    behaviors, options, _ = looking(deterministic=True)
    known = events_of(behaviors, options)
    left = len(options["llm_provider"].answers)
    cache = LLMCache.from_events(known)
    second = Runtime(graph(), behaviors=behaviors, replay_llm_cache=True, llm_cache=cache, **options)
    second.run_goal("go")
    assert len(options["llm_provider"].answers) == left
    hits = [event.payload["cache_hit"] for event in second.graph.events if event.type == "llm.responded"]
    assert hits == [True, True]
    assert second.status().budget.cost_used_usd == "0"


def test_a_different_prompt_is_not_answered_from_the_cache():
    behaviors, options, _ = looking(deterministic=True)
    cache = LLMCache.from_events(events_of(behaviors, options))
    second = Runtime(graph(), behaviors=behaviors, replay_llm_cache=True, llm_cache=cache, **options)
    second.run_goal("something else")
    assert options["llm_provider"].answers == []


def test_an_answer_is_looked_up_and_recorded_by_its_digest():
    behaviors, options, _ = looking(deterministic=True)
    events = events_of(behaviors, options)
    llm, tools = LLMCache.from_events(events), ToolCache.from_events(events)
    (requested, _), (called,) = ([event.payload[key] for event in events if event.type == kind] for kind, key in
                             (("llm.requested", "prompt_hash"), ("tool.requested", "args_hash")))  # fmt: skip
    assert (len(llm), len(tools), llm.has(requested), llm.has("other"), llm.get("other")) == (2, 1, True, False, None)
    answer, output = llm.get(requested), tools.get(called)
    assert (answer.cache_hit, answer.tool_calls[0].name, answer.cost_usd) == (True, "look", Decimal("0.002"))
    assert (output.cache_hit, output.output, output.error) == (True, {"found": "swifts"}, None)
    other = LLMCache()
    other.record("digest", answer)
    assert (other.get("digest"), len(other)) == (answer, 1)


def test_an_incomplete_answer_event_has_no_cost_and_no_time_and_the_first_of_two_counts():
    def event(kind, **payload):
        return SimpleNamespace(type=kind, payload=payload)

    events = [event("llm.responded", prompt_hash="a", error="busy"), event("tool.responded", args_hash="a", error={}),
              *(event(kind, **{key: "a", name: value}) for value in ("first", "second") for kind, key, name in
                (("llm.responded", "prompt_hash", "raw_text"), ("tool.responded", "args_hash", "output")))]  # fmt: skip
    assert LLMCache.from_events(events).get("a") == LLMResponse("first", None, 0, 0, Decimal(0), 0.0, "", "stop",
                                                                cache_hit=True)  # fmt: skip
    known = ToolCache.from_events(events[2:]).get("a")
    assert known == CachedToolResponse("first", None, 0.0, Decimal(0), cache_hit=True)


def test_a_manually_recorded_answer_is_returned_unchanged():
    answer = LLMResponse("text", {"n": 1}, 3, 2, Decimal("0.5"), 1.5, "model", "length", 7,
                         provider_meta={"id": "x"}, tool_calls=[ToolCall("c1", "look", {"q": 1})])  # fmt: skip
    models, tools = LLMCache(), ToolCache()
    models.record("a", answer)
    tools.record("a", CachedToolResponse({"n": 1}, None, 2.5, Decimal("0.25")))
    assert models.get("a") == replace(answer, cache_hit=True)
    assert tools.get("a") == CachedToolResponse({"n": 1}, None, 2.5, Decimal("0.25"), cache_hit=True)
