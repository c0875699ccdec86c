from __future__ import annotations

import pytest

from agentnb.errors import AgentRuntimeError
from agentnb.world.llm.base import LLMError
from tests.world.llm.model_server import of_json
from tests.world.llm.protocols import Gemini, ask, client, request

SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}}


def sent(serve, made=None, answer=None, **settings):
    server = serve(answer or Gemini.whole())
    ask(client(Gemini, server, **settings), made)
    return server.asked[0]


def test_the_request_follows_the_protocol(serve):
    sent_request = request(("system", "Be kind."), ("user", "Hi"), ("assistant", "Yes?"), ("tool", "42"))
    body = sent(serve, sent_request, temperature=0, top_p=0.9, top_k=5, max_tokens=50, stop="END", seed=7)
    assert body.path.endswith("/models/m-1:generateContent")
    assert body.body["generationConfig"] == {
        "temperature": 0, "topP": 0.9, "topK": 5, "maxOutputTokens": 50, "stopSequences": ["END"], "seed": 7,
    }  # fmt: skip
    assert Gemini.said(body.body) == [("system", "Be kind."), ("user", "Hi"), ("model", "Yes?"), ("user", "42")]


@pytest.mark.parametrize("streams", [False, True])
def test_json_mode_sets_the_response_type_and_the_answer_is_text(streams, serve):
    server = serve(Gemini.stream('{"n"', ": 1}") if streams else Gemini.whole('{"n": 1}'))
    prepared = request(settings={"json_object": True}, on_token=[].append if streams else None)
    assert ask(client(Gemini, server), prepared).content == '{"n": 1}'
    assert server.asked[0].body["generationConfig"] == {"responseMimeType": "application/json"}


def test_a_stream_is_requested_at_its_own_url(serve):
    body = sent(serve, request(on_token=[].append), Gemini.stream("Hi"))
    assert ":streamGenerateContent" in body.path


def test_kwargs_override_everything(serve):
    body = sent(serve, temperature=0.5, kwargs={"model": "m-9", "temperature": 0.1, "candidate_count": 1})
    assert "/m-9:" in body.path
    assert (body.body["generationConfig"]["temperature"], body.body["generationConfig"]["candidateCount"]) == (0.1, 1)


def test_kwargs_that_the_sdk_does_not_know_are_a_problem(serve):
    server = serve(Gemini.whole())
    with pytest.raises(AgentRuntimeError, match=r"X334: gemini:m-1 cannot be used(.|\n)*color"):
        ask(client(Gemini, server, kwargs={"color": "blue"}))
    assert server.asked == []


def test_a_request_does_not_change_the_address(serve):
    server, other = serve(Gemini.whole()), serve(Gemini.whole())
    elsewhere = request(settings={"kwargs": {"http_options": {"base_url": other.url}}})
    with pytest.raises(AgentRuntimeError, match="X334: a request sets 'http_options'"):
        ask(client(Gemini, server), elsewhere)
    assert (server.asked, other.asked) == ([], [])
    ask(client(Gemini, server, kwargs={"http_options": {"timeout": 9_000}}))
    assert len(server.asked) == 1


def test_a_schema_is_sent_with_the_type_of_the_answer(serve):
    config = sent(serve, request(settings={"schema": SCHEMA}), Gemini.whole("{}")).body["generationConfig"]
    assert (config["responseMimeType"], config["responseJsonSchema"]) == ("application/json", SCHEMA)


def test_thoughts_are_not_part_of_the_answer_and_count_as_tokens(serve):
    answer = ask(client(Gemini, serve(Gemini.whole(thoughts=40))))
    assert (answer.content, answer.usage.tokens_out) == ("Hello", 43)


def test_an_answer_truncated_at_max_tokens_is_accepted(serve):
    assert ask(client(Gemini, serve(Gemini.whole("Hel", reason="MAX_TOKENS")))).content == "Hel"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Gemini.whole("", reason="SAFETY"), "SAFETY"),
        (of_json({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}), "PROHIBITED_CONTENT"),
    ],
)
def test_a_refusal_is_reported(answer, said, serve):
    with pytest.raises(LLMError, match=f"X344: gemini:m-1 gave no answer: {said}"):
        ask(client(Gemini, serve(answer)))


def test_a_rate_limit_may_be_reported_in_the_answer(serve):
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.5s"}
    error = {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED", "details": [{"@type": "x"}, info]}
    with pytest.raises(LLMError, match=r"after 3\.5 s") as raised:
        ask(client(Gemini, serve(of_json({"error": error}, status=429))))
    assert raised.value.retry_after == 3.5


def test_the_ai_platform_is_never_used_despite_the_environment(serve, monkeypatch):
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    assert sent(serve).headers["x-goog-api-key"]
