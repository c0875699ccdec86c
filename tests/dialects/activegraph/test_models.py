from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from pydantic import BaseModel

from agentnb.dialects.activegraph import LLMBehavior, LLMMessage, LLMResponse, Tool, ToolCall
from agentnb.dialects.activegraph.parts.models import parse_messages, read, to_provider, to_response, to_response_dict
from agentnb.world.llm.base import LLMResponse as Answer
from agentnb.world.llm.base import Usage
from tests.dialects.activegraph.judge import assert_same_signatures
from tests.dialects.activegraph.runtimes import runtime


class Note(BaseModel):
    text: str
    stars: int = 0


class Client:
    """A client of agentnb that keeps what it is asked."""

    def __init__(self, answer):
        self.answer, self.requests = answer, []

    def complete(self, request):
        self.requests.append(request)
        return Answer(self.answer, "small", Usage(3, 4, Decimal("0.01")))


def make_asking_runtime(provider, retries=3, **words):
    """Return a runtime whose behavior has asked a model once."""

    def keep(event, graph, ctx, answer):
        graph.add_object("note", {} if answer is None else answer.model_dump())

    asks = LLMBehavior("ask", keep, on=["goal.created"], handler=keep, **words)
    team = runtime(asks, llm_provider=provider, llm_retry_max_attempts=retries)
    team.run_goal("go")
    return team


@pytest.mark.parametrize(
    "text",
    [
        '{"text": "x", "stars": 2}',
        '```json\n{"text": "x", "stars": 2}\n```',
        'Here it is:\n```\n{"text": "x", "stars": 2}\n```\nI hope that helps.',
        'The answer is {"text": "x", "stars": 2}.',
    ],
)
@pytest.mark.parametrize("provider", [lambda text: lambda request: text, Client])
def test_json_is_read_from_an_answer_however_it_is_wrapped(provider, text):
    team = make_asking_runtime(provider(text), output_schema=Note)
    assert (team.errors, team.graph.objects("note")[0].data) == ([], {"text": "x", "stars": 2})


class Package:
    """A provider as the package has them, which reads nothing itself."""

    default_model = "model-1"

    def complete(self, *, system, messages, **words):
        return LLMResponse('```json\n{"text": "fenced"}\n```')


def test_a_code_fence_is_parsed_if_the_provider_has_parsed_nothing():
    assert make_asking_runtime(Package(), output_schema=Note).graph.objects("note")[0].data["text"] == "fenced"


@pytest.mark.parametrize(("text", "reason"), [("not JSON", "llm.parse_error"), ("[1]", "llm.schema_violation"),
                                              ('{"text": ', "llm.parse_error")])  # fmt: skip
def test_an_invalid_answer_fails_with_the_reason(text, reason):
    (error,) = make_asking_runtime(lambda request: text, output_schema=Note).errors
    assert (error.behavior, error.reason) == ("ask", reason)


def test_a_client_receives_the_schema_and_the_non_default_settings_of_the_behavior():
    client = Client('{"text": "x"}')
    make_asking_runtime(client, output_schema=Note, temperature=0.0, max_tokens=50, timeout_seconds=5, model="small")
    (request,) = client.requests
    assert request.settings == {"schema": Note.model_json_schema(), "temperature": 0.0, "max_tokens": 50}
    assert (request.model, request.timeout) == ("small", 5)
    assert [message.role for message in request.messages] == ["system", "user"]


@pytest.mark.parametrize("seconds", [59, 61])
def test_a_client_receives_a_non_default_timeout(seconds):
    client = Client("text")
    make_asking_runtime(client, timeout_seconds=seconds)
    assert [request.timeout for request in client.requests] == [seconds]


def test_settings_that_the_behavior_omits_are_left_to_the_client():
    client = Client("text")
    make_asking_runtime(client)
    (request,) = client.requests
    assert (dict(request.settings), request.model, request.timeout) == ({}, None, None)


def test_the_simulated_model_answers_as_the_schema_says():
    team = make_asking_runtime("simulated", output_schema=Note)
    second = make_asking_runtime("simulated", output_schema=Note)
    (note,) = team.graph.objects("note")
    assert isinstance(note.data["text"], str)
    assert note.data == second.graph.objects("note")[0].data


def test_time_and_tokens_of_an_answer_are_counted():
    team = make_asking_runtime(Client("text"))
    (row,) = team.session.trace.frames.calls.to_dict("records")
    assert (row["tokens_in"], row["tokens_out"], row["cost_usd_exact"]) == (3, 4, Decimal("0.01"))


def test_an_answer_by_a_person_counts_as_an_answer():
    assert to_response({"text": "x"}, "m")["parsed"] == {"text": "x"}
    assert to_response("words", "m")["parsed"] is None
    response = to_response_dict(LLMResponse("x", Note(text="x"), tool_calls=[ToolCall("1", "look", {"q": 1})]))
    assert (response["parsed"], response["tool_calls"]) == (
        {"text": "x", "stars": 0},
        [{"id": "1", "name": "look", "args": {"q": 1}}],
    )
    assert to_response(response, "m") == response
    assert to_response("words", "m") == LLMResponse("words", model="m").to_dict() == {
        "raw_text": "words", "parsed": None, "input_tokens": 0, "output_tokens": 0, "cost_usd": "0",
        "latency_seconds": 0.0, "model": "m", "finish_reason": "stop", "seed": None, "cache_hit": False,
        "provider_meta": {}, "tool_calls": None,
    }  # fmt: skip


def test_messages_survive_a_round_trip():
    calls = (ToolCall("1", "look", {"q": 1}),)
    sent = [LLMMessage("assistant", "", tool_calls=calls), LLMMessage("tool", "{}", "1")]
    assert parse_messages([each.to_dict() for each in sent]) == sent


def test_a_provider_is_used_as_it_is_and_any_client_becomes_one():
    provider = Package()
    assert to_provider(provider) is provider
    assert to_provider(["a"]).complete(system="s", messages=[], model="default").raw_text == "a"
    assert read({"a": 1}) == {"a": 1}


class Later(Client):
    """Answers when it is awaited, as those of vendors do."""

    def complete(self, request):
        async def answer():
            if isinstance(self.answer, Exception):
                raise self.answer
            return super(Later, self).complete(request)

        return answer()


def test_a_client_may_answer_later():
    team = make_asking_runtime(Later('{"text": "x"}'), output_schema=Note)
    assert (team.errors, team.graph.objects("note")[0].data["text"]) == ([], "x")
    assert team.session.trace.frames.calls["tokens_in"].tolist() == [3]
    assert team.replay().ok


def test_a_late_failure_is_reported_like_an_immediate_one():
    now, later = (
        make_asking_runtime(client) for client in (lambda request: 1 / 0, Later(ZeroDivisionError("division by zero")))
    )
    assert [error[2:5] for error in now.errors] == [error[2:5] for error in later.errors]
    assert now.errors[0].reason == "llm.network_error"


def test_a_script_answers_by_behavior_and_position_of_the_run():
    team = make_asking_runtime({"ask": ['{"text": "one"}', '{"text": "two"}']}, output_schema=Note)
    session = team.session
    session.back()
    session.step()
    assert team.graph.objects("note")[0].data["text"] == "one"
    team.run_goal("again")
    assert [note.data["text"] for note in team.graph.objects("note")] == ["one", "two"]


def test_chunks_of_a_streaming_model_reach_listeners():
    chunks = []
    client = lambda request: (request.on_token and request.on_token("some"), "some text")[1]  # noqa: E731

    def keep(event, graph, ctx, answer):
        graph.emit("kept", {})

    team = runtime(LLMBehavior("ask", keep, on=["go"], handler=keep), llm_provider=client)
    team.session.subscribe(chunks.append, "token")
    team.session.emit("go", {})
    team.run_until_idle()
    assert [(token.node, token.text) for token in chunks] == [("ask", "some")]


@pytest.mark.parametrize("schema", [None, Note])
def test_a_client_may_call_the_offered_tools(schema):
    client = Client("")
    answers = iter(['```json\n{"tool_name": "look", "parameters": {"q": "rain"}}\n```', '{"text": "wet"}'])

    def complete(request):
        client.answer = next(answers)
        return Client.complete(client, request)

    client.complete = complete
    look = Tool("look", lambda args, ctx: {"found": args["q"]}, "Look it up.")
    team = make_asking_runtime(client, tools=[look], output_schema=schema)
    assert team.errors == []
    first, second = client.requests
    assert "look: Look it up." in first.messages[0].content
    assert "schema" not in first.settings
    assert [message.role for message in second.messages] == ["system", "user", "assistant", "user"]
    assert second.messages[-1].content == """The tool 'look' gave: {"found": "rain"}"""
    (called,) = (event.payload for event in team.graph.events if event.type == "tool.requested")
    assert (called["call_id"], called["args"]) == ("call_1", {"q": "rain"})
    assert team.graph.objects("note")[0].data == ({} if schema is None else {"text": "wet", "stars": 0})
    assert team.replay().ok


def test_without_tools_a_text_that_looks_like_a_call_is_an_answer():
    team = make_asking_runtime(lambda request: '{"tool_name": "look", "parameters": {}}')
    assert (team.errors, [event.type for event in team.graph.events].count("tool.requested")) == ([], 0)


def test_a_client_that_answers_too_late_has_failed():
    class Never(Client):
        async def complete(self, request):
            await asyncio.Event().wait()

    team = make_asking_runtime(Never(""), timeout_seconds=0.01, retries=1)
    assert [(error.reason, error.message) for error in team.errors] == [
        ("llm.network_error", "the model has not answered within 0.01 s")
    ]


def test_signatures_are_those_of_the_package():
    assert_same_signatures("LLMMessage", "ToolCall")
