from __future__ import annotations

import pytest

from agentnb.errors import AgentRuntimeError
from agentnb.world.llm.base import LLMError
from agentnb.world.llm.openai import OpenAICompatibleClient
from agentnb.world.llm.providers import client_of
from tests.world.llm.model_server import KEY, of_json
from tests.world.llm.protocols import OpenAI, ask, client, request

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


def sent(serve, made=None, answer=None, **settings):
    """Ask a server and return what it was asked."""
    server = serve(answer or OpenAI.whole())
    ask(client(OpenAI, server, **settings), made)
    return server.asked[0]


def test_the_request_follows_the_protocol(serve):
    body = sent(serve, temperature=0, max_tokens=50, top_p=0.9, stop=["END"], seed=7)
    assert body.path == "/v1/chat/completions"
    assert body.body == {
        "model": "m-1", "messages": [{"role": "user", "content": "Hi"}],
        "temperature": 0, "max_tokens": 50, "top_p": 0.9, "stop": ["END"], "seed": 7,
    }  # fmt: skip


def test_a_tool_message_has_the_role_tool(serve):
    body = sent(serve, request(("user", "Hi"), ("tool", "42")))
    assert OpenAI.said(body.body) == [("user", "Hi"), ("tool", "42")]


def test_kwargs_override_everything_and_none_removes_an_option(serve):
    body = sent(serve, temperature=0.5, max_tokens=50, kwargs={"model": "m-9", "max_tokens": None, "n": 1})
    assert (body.body["model"], body.body["temperature"], body.body["n"]) == ("m-9", 0.5, 1)
    assert "max_tokens" not in body.body


def test_unknown_options_are_sent_unchanged(serve):
    body = sent(serve, top_k=5, kwargs={"min_p": 0.05, "extra_body": {"own": 1}})
    assert (body.body["top_k"], body.body["min_p"], body.body["own"]) == (5, 0.05, 1)


def test_kwargs_of_a_request_override_those_of_the_client(serve):
    body = sent(serve, request(settings={"kwargs": {"user": "b"}}), kwargs={"user": "a", "n": 1})
    assert (body.body["user"], body.body["n"]) == ("b", 1)


def test_a_request_cannot_send_the_key_to_another_server(serve):
    own_server, other = serve(OpenAI.whole()), serve(OpenAI.whole())
    prepared = request(settings={"base_url": other.url, "api_key": "none", "client_kwargs": {"base_url": other.url}})
    ask(client(OpenAI, own_server), prepared)
    assert (len(own_server.asked), len(other.asked)) == (1, 0)


def test_a_stream_requests_its_usage(serve):
    body = sent(serve, request(on_token=[].append), OpenAI.stream("Hi")).body
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})


def test_a_stream_requested_by_kwargs_is_read_as_a_stream(serve):
    server = serve(OpenAI.stream("Hel", "lo"))
    assert ask(client(OpenAI, server, kwargs={"stream": True})).content == "Hello"


def test_a_schema_is_sent_as_the_format_of_the_answer(serve):
    body = sent(serve, request(settings={"schema": SCHEMA}), OpenAI.whole('{"n": 1}')).body
    assert body["response_format"] == {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}


def test_json_mode_is_requested_and_the_answer_is_text(serve):
    server = serve(OpenAI.whole('{"n": 1}'))
    answer = ask(client(OpenAI, server), request(settings={"json_object": True}))
    assert (server.asked[0].body["response_format"], answer.content) == ({"type": "json_object"}, '{"n": 1}')


@pytest.mark.parametrize(
    ("own", "asked", "sent"),
    [
        ({}, {}, None),
        ({"json_object": True}, {}, "json_object"),
        ({"json_object": True}, {"json_object": False}, None),
        ({"json_object": False}, {"json_object": True}, None),
        ({}, {"json_object": True, "schema": SCHEMA}, "json_schema"),
        ({}, {"json_object": True, "kwargs": {"response_format": {"type": "text"}}}, "text"),
    ],
)
def test_json_mode_is_requested_if_the_prompt_mentions_json(own, asked, sent, serve):
    body = sent_of(serve, own, asked)
    assert body.get("response_format", {}).get("type") == sent


def sent_of(serve, own, settings):
    return sent(serve, request(settings=settings), OpenAI.whole('{"n": 1}'), **own).body


def test_a_model_without_json_mode_is_reported_with_what_to_do(serve):
    refused = OpenAI.failed(400, "Invalid parameter: 'response_format' of type 'json_object' is not supported.")
    server = serve(refused)
    with pytest.raises(LLMError, match=r"X336(.|\n)*do: .*`json_object: false` in its provider's settings"):
        ask(client(OpenAI, server), request(settings={"json_object": True}))
    assert len(server.asked) == 1


@pytest.mark.parametrize("streams", [False, True])
def test_a_refusal_is_reported(streams, serve):
    answer = OpenAI.whole(None, refusal="I will not.")
    if streams:
        streamed = OpenAI.stream("x")
        answer = streamed._replace(body=streamed.body.replace(b'"content": "x"', b'"refusal": "I will not."'))
    with pytest.raises(LLMError, match="X344: openai:m-1 gave no answer: I will not"):
        ask(client(OpenAI, serve(answer)), request(on_token=[].append if streams else None))


def test_an_answer_without_usage_has_no_tokens(serve):
    answer = of_json({"id": "c", "model": "m", "choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]})
    usage = ask(client(OpenAI, serve(answer), prices={"input": 1, "output": 1})).usage
    assert (usage.tokens_in, usage.tokens_out, usage.cost_usd) == (None, None, None)


# ------------------------------------------------------------------------------------------------- compatible servers


@pytest.mark.parametrize("kind", ["lmstudio", "openai_compatible"])
def test_a_compatible_server_needs_no_key_and_never_receives_that_of_openai(kind, serve, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = serve(OpenAI.whole())
    assert ask(client_of(f"{kind}:qwen:8b", {"base_url": f"{server.url}/v1"})).content == "Hello"
    assert server.asked[0].body["model"] == "qwen:8b"
    assert KEY not in str(server.asked[0].headers)


def test_the_default_compatible_server_is_local():
    assert client_of("lmstudio:m").base_url == "http://127.0.0.1:1234/v1"


def test_a_compatible_server_may_ask_for_a_key(serve):
    server = serve(OpenAI.whole())
    ask(OpenAICompatibleClient("m", {"base_url": server.url, "api_key": KEY}))
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


REFUSED = "'response_format.type' must be 'json_schema' or 'text'"


def compatible(server):
    return client_of("lmstudio:m-1", {"base_url": server.url})


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("streams", [False, True])
def test_a_compatible_server_that_rejects_json_mode_is_used_without_it(status, streams, serve):
    answer = OpenAI.stream('{"n"', ": 1}") if streams else OpenAI.whole('{"n": 1}')
    server, chunks = serve(OpenAI.failed(status, REFUSED), answer), []
    llm, words = (
        compatible(server),
        request(settings={"json_object": True}, on_token=chunks.append if streams else None),
    )
    assert [ask(llm, words).content for _ in range(2)] == ['{"n": 1}', '{"n": 1}']
    assert ["response_format" in received.body for received in server.asked] == [True, False, False]
    assert chunks == ['{"n"', ": 1}"] * 2 * streams
    server.answers[:] = [OpenAI.whole()]
    ask(llm, request(model="m-2", settings={"json_object": True}))
    assert server.asked[-1].body["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize("answer", [OpenAI.failed(400, "no such model"), OpenAI.failed(500, REFUSED)])
def test_a_compatible_server_that_rejects_something_else_is_not_retried(answer, serve):
    server = serve(answer)
    with pytest.raises(LLMError, match="X336"):
        ask(compatible(server), request(settings={"json_object": True}))
    assert len(server.asked) == 1


def test_a_schema_rejected_by_a_compatible_server_is_not_dropped(serve):
    server = serve(OpenAI.failed(400, REFUSED))
    with pytest.raises(LLMError, match=r"X336(.|\n)*no schema"):
        ask(compatible(server), request(settings={"schema": SCHEMA, "json_object": True}))
    assert len(server.asked) == 1


def test_invalid_kwargs_are_a_problem(serve):
    with pytest.raises(AgentRuntimeError, match="X334"):
        ask(client(OpenAI, serve(OpenAI.whole()), client_kwargs={"retries": 5}))
