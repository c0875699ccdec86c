"""Native calls of tools by behaviors: how a client is asked, and that the log stays as it is otherwise."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from agentnb.dialects.activegraph import Graph, LLMBehavior, Runtime, Tool
from agentnb.world.llm.base import LLMResponse, ToolCall
from agentnb.world.llm.vendor import name_sent
from tests.dialects.activegraph.runtimes import runtime
from tests.world.llm.model_server import serve
from tests.world.llm.protocols import Anthropic, Gemini, OpenAI, client
from tests.world.llm.test_in_sessions import Stopwatch

__all__ = ["serve"]


class Args(BaseModel):
    n: int = 0


class Note(BaseModel):
    text: str


TWICE = Tool(name="math.twice", fn=lambda args, ctx: {"twice": 2 * args.n}, description="Doubles.", input_schema=Args)


def make_asking_runtime(provider, **words):
    """Return a runtime whose behavior has asked a model that may call a tool."""
    answers = []
    asks = LLMBehavior(
        "ask", lambda *a: None, on=["goal.created"], tools=[TWICE],
        handler=lambda event, graph, ctx, answer: answers.append(answer), **words,
    )  # fmt: skip
    team = runtime(asks, llm_provider=provider, tools=[TWICE])
    team.run_goal("go")
    return team, answers


def shape(found):
    """Return the log without what a server says of itself: types, and the keys of their payloads."""
    return [(event.type, sorted(event.payload)) for event in found.graph.events]


@pytest.mark.parametrize("protocol", [OpenAI, Anthropic], ids=lambda each: each.name)
def test_tools_are_offered_natively_where_the_client_takes_plain_calls(protocol, serve):
    name = name_sent(TWICE.name)
    server = serve(protocol.calls((name, '{"n": 1}'), (name, '{"n": 2}')), protocol.whole('{"text": "done"}'))
    actual, answers = make_asking_runtime(client(protocol, server), output_schema=Note)
    assert actual.errors == []
    assert answers == [Note(text="done")]
    bodies = [each.body for each in server.asked]
    assert len(bodies) == 2
    assert name in json.dumps(bodies[0]["tools"])
    assert "tool_name" not in json.dumps(bodies)
    requested = [event for event in actual.graph.events if event.type == "tool.requested"]
    assert [(each.payload["tool"], each.payload["args"], each.payload["call_id"]) for each in requested] == [
        ("math.twice", {"n": 1}, "t-0"), ("math.twice", {"n": 2}, "t-1"),
    ]  # fmt: skip
    assert '{"twice": 4}' in json.dumps(bodies[1]["messages"]).replace('\\"', '"')


def test_gemini_receives_the_tools_in_the_prompt_because_the_log_cannot_hold_its_signatures(serve):
    server = serve(Gemini.whole('{"tool_name": "math.twice", "parameters": {"n": 1}}'), Gemini.whole("done"))
    actual, answers = make_asking_runtime(client(Gemini, server))
    assert (actual.errors, answers) == ([], [None])
    assert "tools" not in server.asked[0].body
    assert "math.twice" in json.dumps(server.asked[0].body)


def test_the_log_has_the_same_events_and_keys_in_both_forms(serve):
    server = serve(OpenAI.calls((name_sent(TWICE.name), '{"n": 1}')), OpenAI.whole("done"))
    native, _ = make_asking_runtime(client(OpenAI, server))
    answers = iter(['{"tool_name": "math.twice", "parameters": {"n": 1}}', "done"])
    worded, _ = make_asking_runtime(lambda request: next(answers))
    assert shape(native) == shape(worded)


def test_a_custom_client_may_answer_with_calls():
    answers = iter([LLMResponse("", tool_calls=(ToolCall("c", "math.twice", {"n": 3}),)), LLMResponse("done")])
    team, _ = make_asking_runtime(lambda request: next(answers))
    (responded,) = [event for event in team.graph.events if event.type == "tool.responded"]
    assert responded.payload["output"] == {"twice": 6}


def test_a_call_without_offered_tools_is_an_error():
    asks = LLMBehavior("ask", lambda *a: None, on=["goal.created"], handler=lambda *a: None)
    team = runtime(asks, llm_provider=lambda request: LLMResponse("", tool_calls=(ToolCall("c", "x", {}),)))
    team.run_goal("go")
    (error,) = team.errors
    assert "'x'" in str(error)


def test_a_run_with_native_calls_is_replayed_without_calling_the_model(serve):
    server = serve(OpenAI.calls((name_sent(TWICE.name), '{"n": 1}')), OpenAI.whole("done"))
    team, _ = make_asking_runtime(client(OpenAI, server))
    assert team.session.replay().ok
    assert len(server.asked) == 2


def test_building_a_client_does_not_count_towards_the_duration_of_a_call(serve, monkeypatch):
    clock, llm = Stopwatch(), client(OpenAI, serve(OpenAI.whole("done")))
    connect = llm.connect
    monkeypatch.setattr(llm._open, "_make", lambda: clock.add(100) or connect())
    asks = LLMBehavior("ask", lambda *a: None, on=["goal.created"], handler=lambda *a: None)
    team = Runtime(Graph(clock=clock), behaviors=[asks], llm_provider=llm)
    team.run_goal("go")
    assert team.errors == []
    frames = team.session.trace.frames
    assert (frames.calls["seconds"].tolist(), frames.steps["seconds"].sum()) == ([0.0], 0.0)
