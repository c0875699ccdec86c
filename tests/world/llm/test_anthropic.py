from __future__ import annotations

import pytest

from agentnb.world.llm.base import LLMError
from tests.world.llm.protocols import Anthropic, ask, client, request

SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}}


def sent(serve, made=None, answer=None, **settings):
    server = serve(answer or Anthropic.whole())
    ask(client(Anthropic, server, **settings), made)
    return server.asked[0]


def called(value):
    """Answer with a call of the tool that takes the answer."""
    return Anthropic.whole(content=[{"type": "tool_use", "id": "t", "name": "answer", "input": value}])


def test_the_request_follows_the_protocol(serve):
    body = sent(serve, request(("system", "Be kind."), ("user", "Hi")), temperature=0, top_p=0.9, top_k=5, stop="END")
    assert body.path == "/v1/messages"
    assert body.body == {
        "model": "m-1", "messages": [{"role": "user", "content": "Hi"}], "system": "Be kind.", "max_tokens": 1024,
        "temperature": 0, "top_p": 0.9, "top_k": 5, "stop_sequences": ["END"],
    }  # fmt: skip


def test_without_a_json_mode_the_answer_is_text(serve):
    server = serve(Anthropic.whole('{"n": 1}'))
    answer = ask(client(Anthropic, server), request(settings={"json_object": True}))
    assert (answer.content, sorted(server.asked[0].body)) == ('{"n": 1}', ["max_tokens", "messages", "model"])


def test_max_tokens_may_be_set_and_has_a_default(serve):
    assert sent(serve, max_tokens=50_000).body["max_tokens"] == 50_000
    assert sent(serve).body["max_tokens"] == 1024


def test_a_tool_message_is_sent_as_the_user(serve):
    assert Anthropic.said(sent(serve, request(("user", "Hi"), ("tool", "42"))).body) == [("user", "Hi"), ("user", "42")]


def test_kwargs_override_everything_and_may_be_unknown_options(serve):
    body = sent(serve, kwargs={"max_tokens": 7, "brand_new": True, "metadata": {"user_id": "u"}}).body
    assert (body["max_tokens"], body["brand_new"], body["metadata"]) == (7, True, {"user_id": "u"})


def test_cached_tokens_count(serve):
    answer = Anthropic.whole(cache_creation_input_tokens=10, cache_read_input_tokens=100)
    assert ask(client(Anthropic, serve(answer))).usage.tokens_in == 117


def test_thinking_is_not_part_of_the_answer(serve):
    content = [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "Hi"}]
    assert ask(client(Anthropic, serve(Anthropic.whole(content=content)))).content == "Hi"


def test_a_schema_is_a_tool_that_must_be_called(serve):
    server = serve(called({"title": "Rain"}))
    answer = ask(client(Anthropic, server), request(settings={"schema": SCHEMA}))
    body = server.asked[0].body
    assert answer.content == {"title": "Rain"}
    assert body["tools"][0]["input_schema"] == SCHEMA
    assert body["tool_choice"] == {"type": "tool", "name": body["tools"][0]["name"]}


def test_a_schema_that_is_not_an_object_is_wrapped_and_unwrapped(serve):
    server = serve(called({"answer": [1, 2]}))
    answer = ask(client(Anthropic, server), request(settings={"schema": {"type": "array"}}))
    assert answer.content == [1, 2]
    wrapped = server.asked[0].body["tools"][0]["input_schema"]
    assert (wrapped["type"], wrapped["properties"]["answer"]) == ("object", {"type": "array"})


def test_the_json_of_a_schema_is_streamed_too(serve):
    server, chunks = serve(Anthropic.stream('{"tit', 'le": "Rain"}', tool=True)), []
    answer = ask(client(Anthropic, server), request(settings={"schema": SCHEMA}, on_token=chunks.append))
    assert (answer.content, chunks) == ({"title": "Rain"}, ['{"tit', 'le": "Rain"}'])


def test_incomplete_json_in_a_stream_is_an_error(serve):
    server = serve(Anthropic.stream('{"tit', tool=True))
    with pytest.raises(LLMError, match="X338"):
        ask(client(Anthropic, server), request(settings={"schema": SCHEMA}, on_token=[].append))


@pytest.mark.parametrize("arguments", [{}, {"title": "Ra"}])
def test_the_json_of_a_schema_that_breaks_off_is_an_error(arguments, serve):
    content = [{"type": "tool_use", "id": "t", "name": "answer", "input": arguments}]
    server = serve(Anthropic.whole(content=content, stop_reason="max_tokens"))
    with pytest.raises(LLMError, match=r"X339(.|\n)*breaks off; it ended with 'max_tokens'"):
        ask(client(Anthropic, server), request(settings={"schema": SCHEMA}))


def test_a_refusal_is_reported(serve):
    with pytest.raises(LLMError, match="X344: anthropic:m-1 gave no answer: refusal"):
        ask(client(Anthropic, serve(Anthropic.whole(content=[], stop_reason="refusal"))))
