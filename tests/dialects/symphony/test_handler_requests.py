"""What becomes of requests to an LLMHandler: their settings, streams, those of sessions."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import networkx as nx
import pytest

from agentnb.dialects.symphony.parts.llm_handler import LLMHandler
from agentnb.dialects.symphony.parts.llm_types import LLMRequest, LLMResponse
from agentnb.recipe.model import ROOT, Node, Recipe, Region
from agentnb.session import Session
from agentnb.world.llm import base
from agentnb.world.llm.base import LLMClient, LLMError
from tests.dialects.symphony.providers import HI, Meeting, Own, no_keys, serve, served
from tests.session.small_sessions import session
from tests.world.llm.model_server import KEY
from tests.world.llm.protocols import PROTOCOLS, Anthropic, Gemini, OpenAI

__all__ = ["no_keys", "serve"]  # fixtures

each = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)

# ------------------------------------------------------------------------------------------------------------ requests


def test_the_settings_of_a_request_are_sent_and_not_retained(serve):
    handler, server = served(serve, OpenAI.whole(), temperature=0.5, max_tokens=100)
    settings = {"model": "m-9", "temperature": 0.1, "maxTokens": 7}
    for config in (None, settings, None):
        handler.complete(LLMRequest(HI, config))
    sent = [
        (received.body["model"], received.body["temperature"], received.body["max_tokens"]) for received in server.asked
    ]
    assert sent == [("m-1", 0.5, 100), ("m-9", 0.1, 7), ("m-1", 0.5, 100)]


CALL, OTHER = base.ToolCall("1", "search", {"q": "rain"}), base.ToolCall("2", "look_up", {})
CONFIGS = ({"model": "left", "temperature": 0.1}, {"model": "right", "temperature": 0.9, "max_tokens": 5})


@pytest.mark.parametrize("way", ["threads", "tasks", "streams", "session's"])
def test_two_concurrent_requests_keep_their_own_settings(way, serve):
    meeting = Meeting(2)
    response = OpenAI.stream("Hello") if way == "streams" else OpenAI.whole()
    handler, server = served(serve, response._replace(hold=meeting), temperature=0.5)
    message_request = [LLMRequest(HI, config) for config in CONFIGS]

    async def together():
        if way == "session's":
            return await asyncio.gather(*(handler.client().complete(request) for request in message_request))
        return await asyncio.gather(*(handler.acomplete(request) for request in message_request))

    if way in {"threads", "streams"}:
        with ThreadPoolExecutor(2) as pool:
            ask = handler.complete if way == "threads" else lambda request: [*handler.complete_stream(request)]
            list(pool.map(ask, message_request))
    else:
        asyncio.run(together())
    assert meeting.broken is False
    sent = {row.body["model"]: (row.body["temperature"], row.body.get("max_tokens")) for row in server.asked}
    assert sent == {"left": (0.1, None), "right": (0.9, 5)}
    server.answers[:] = [OpenAI.whole()]
    handler.complete(LLMRequest(HI))
    assert (server.asked[-1].body["model"], server.asked[-1].body["temperature"]) == ("m-1", 0.5)


def test_a_sync_caller_can_call_a_model_in_a_running_loop(serve):
    handler, _ = served(serve, OpenAI.whole())

    async def main():
        return handler.complete(LLMRequest(HI)).content

    assert asyncio.run(main()) == "Hello"


def test_the_timeout_of_a_request_applies_to_any_provider(serve):
    handler, _ = served(serve, OpenAI.whole()._replace(hold=threading.Event()))
    held = threading.Event()
    handler.register_provider("slow", lambda request: held.wait(10))
    for name in ("openai", "slow"):
        with pytest.raises(TimeoutError, match=r"has not answered within 0.2 s"):
            handler.complete(LLMRequest(HI, {"timeout": 0.2}, provider=name))
    held.set()


@each
def test_json_mode_is_requested_from_providers_that_support_it(protocol, serve):
    server, handler = serve(protocol.whole('{"a": 1}')), LLMHandler()
    handler.register_provider(
        {"provider": protocol.name, "model": "m-1", "api_key": KEY, "base_url": server.url + protocol.prefix}
    )
    assert handler.complete(LLMRequest(HI, expects_json_response=True)).content == '{"a": 1}'
    body = server.asked[0].body
    assert body.get("response_format") == ({"type": "json_object"} if protocol is OpenAI else None)
    assert body.get("generationConfig", {}).get("responseMimeType") == (
        "application/json" if protocol is Gemini else None
    )
    assert protocol is not Anthropic or "json" not in str(body)


# ------------------------------------------------------------------------------------------------------------- streams


def test_a_stream_yields_its_chunks_and_then_the_response(serve):
    handler, _ = served(serve, OpenAI.stream("Hel", "lo"), prices={"input": 1, "output": 1})
    stream = handler.complete_stream(LLMRequest(HI))
    assert [*stream] == ["Hel", "lo"]
    assert (stream.response.content, stream.response.usage.tokens_out) == ("Hello", 3)

    async def main():
        return [piece async for piece in handler.acomplete_stream(LLMRequest(HI))]

    assert asyncio.run(main()) == ["Hel", "lo"]


def test_a_provider_without_streaming_yields_one_chunk():
    handler = LLMHandler.of(lambda request: "Hello")
    assert [*handler.complete_stream(LLMRequest(HI))] == ["Hello"]


class Streaming(Own):
    def complete_stream(self, request):
        yield "Hel"
        yield LLMResponse("lo", "own-1", {"prompt_tokens": 1, "completion_tokens": 2})


class StreamingLater(Own):
    async def complete_stream(self, request):
        for piece in ("Hel", {"content": "lo", "model": "own-1", "usage": {"total_tokens": 3}}):
            await asyncio.sleep(0)
            yield piece


class StreamingInAList(Own):
    def complete_stream(self, request):
        return ["Hel", LLMResponse("lo", "own-1", {"prompt_tokens": 1, "completion_tokens": 2})]


@pytest.mark.parametrize("provider", [Streaming(), StreamingLater(), StreamingInAList()], ids=["now", "later", "list"])
def test_a_provider_with_its_own_stream_is_supported(provider):
    handler = LLMHandler.of(provider)
    stream = handler.complete_stream(LLMRequest(HI))
    assert [*stream] == ["Hel", "lo"]
    assert (stream.response.model, stream.response.usage.total_tokens) == ("own-1", 3)
    assert handler.complete(LLMRequest(HI)).content == "None: Hi"


def test_an_abandoned_stream_of_a_custom_provider_is_closed():
    over = threading.Event()

    class Endless(Own):
        def complete_stream(self, request):
            try:
                while True:
                    yield "one"
            finally:
                over.set()

    for piece in LLMHandler.of(Endless()).complete_stream(LLMRequest(HI)):
        assert piece == "one"
        break
    assert over.wait(10)


USED = [{"prompt_tokens": 1, "completion_tokens": 2}, {"prompt_tokens": 3, "completion_tokens": 4}]
PIECES = [
    "Hel",
    "",
    None,
    LLMResponse("lo", "first", USED[0], tool_calls=[CALL], finish_reason="stop", provider="one"),
    LLMResponse("", "last", USED[1], tool_calls=[OTHER], finish_reason="length", provider="two"),
    LLMResponse("!", "", {"prompt_tokens": 5}),
]


@pytest.mark.parametrize("later", [False, True], ids=["now", "later"])
def test_the_pieces_of_a_stream_add_up_to_a_response(later):
    class Now(Own):
        def complete_stream(self, request):
            yield from PIECES

    class Later(Own):
        async def complete_stream(self, request):
            for piece in PIECES:
                yield piece

    heard = []
    client = LLMHandler.of(Later() if later else Now()).get_provider().client
    response = client.complete(LLMRequest(HI, on_token=heard.append))
    response = asyncio.run(response) if later else response
    assert heard == ["Hel", "lo", "!"]
    assert (response.content, response.model, response.usage.total_tokens) == ("Hello!", "last", 7)
    assert (response.tool_calls, response.finish_reason, response.provider) == ((CALL, OTHER), "length", "two")


def test_a_stream_without_pieces_is_an_empty_response():
    class Silent(Own):
        def complete_stream(self, request):
            return iter(())

    response = LLMHandler.of(Silent()).get_provider().client.complete(LLMRequest(HI, on_token=print))
    assert (response.content, response.model, response.usage.total_tokens) == ("", "", None)
    assert (response.tool_calls, response.finish_reason, response.provider) == ((), "", "")


def test_a_provider_counts_its_requests():
    numbers = []
    provider = LLMHandler.of(lambda request: numbers.append((request.number, request.of_node)) or "x").get_provider()
    provider.complete(LLMRequest(HI, number=9))
    asyncio.run(provider.acomplete(LLMRequest(HI)))
    list(provider.complete_stream(LLMRequest(HI)))
    assert numbers == [(0, 0), (1, 1), (2, 2)]
    assert LLMHandler.of(["one", "two"]).is_simulated


def test_an_error_in_a_stream_is_raised_where_it_is_read(serve):
    handler, _ = served(serve, OpenAI.stream_fails("Hel", "it is too much"))
    stream = handler.complete_stream(LLMRequest(HI))
    assert next(stream) == "Hel"
    with pytest.raises(LLMError, match="it is too much"):
        next(stream)


# ---------------------------------------------------------------------------------------------------------- in sessions


def talk(**model):
    params = {"ref": "one", "prompt": "Be short.", "output": "a", "model": model}
    node = Node("one", "agent", inputs={"q": ("q",)}, params=params)
    return Recipe(
        "talk", "agentnb", nodes={"one": node}, edges=(), entry=("one",), regions={ROOT: Region(ROOT, ("one",), "one")}
    )


@pytest.mark.parametrize("client", [False, True], ids=["itself", "as a client"])
def test_a_handler_can_be_the_model_of_a_session(client, serve):
    handler, server = served(serve, OpenAI.whole(), prices={"input": 1, "output": 2})
    handler.register_provider("other", lambda request: LLMResponse("other", "o-1", {"prompt_tokens": 4}))
    llm = handler.client() if client else handler
    assert isinstance(llm, LLMClient)
    run = Session(talk(model="m-7", temperature=0.3), {"q": "why"}, llm=llm)
    run.run()
    row = run.trace.frames.calls.iloc[0]
    assert (run.board["a"], row["tokens_in"], str(row["cost_usd_exact"])) == ("Hello", 7, "0.000013")
    assert (server.asked[0].body["model"], server.asked[0].body["temperature"]) == ("m-7", 0.3)
    run = Session(talk(provider="Other"), {"q": "why"}, llm=llm)
    run.run()
    assert (run.board["a"], run.trace.frames.calls.iloc[0]["tokens_in"]) == ("other", 4)
    assert len(server.asked) == 1


def test_a_session_receives_the_chunks_and_its_time_limit_applies(serve):
    handler, _ = served(serve, OpenAI.stream("Hel", "lo"))
    run, chunks = Session(talk(), {"q": "why"}, llm=handler), []
    run.subscribe(lambda token: chunks.append(token.text), to="token")
    run.run()
    assert (chunks, run.board["a"]) == (["Hel", "lo"], "Hello")

    slow, _ = served(serve, OpenAI.whole()._replace(hold=threading.Event()))
    run = Session(talk(request_timeout=0.2), {"q": "why"}, llm=slow)
    run.run()
    assert (run.status, "did not answer within 0.2 s" in str(run.error)) == ("failed", True)


@pytest.mark.parametrize("whole", [lambda handler: handler, LLMHandler.get_provider], ids=["handler", "provider"])
def test_a_script_continues_with_a_run_and_is_marked_as_scripted(whole):
    handler = whole(LLMHandler.of(["first", "second"]))
    graph = nx.DiGraph(name="two")
    for name in ("one", "two"):
        graph.add_node(name, kind="agent", prompt="Go.", output=name)
    graph.add_edge("one", "two")
    run = session(graph, {}, llm=handler)
    run.run()
    run.back()
    run.run()
    assert (run.board["one"], run.board["two"]) == ("first", "second")
    assert handler.is_simulated
    assert not LLMHandler.of(lambda request: "").is_simulated
    assert not LLMHandler().is_simulated


def test_a_value_is_not_converted_in_a_session_unless_json_text_is_requested():
    client = LLMHandler.of([{"a": 1}]).client()
    plain, json_request = (base.LLMRequest((), settings=settings) for settings in ({}, {"json_object": True}))
    assert (client.complete(plain).content, client.complete(json_request).content) == ({"a": 1}, '{"a": 1}')


def test_an_unknown_provider_in_a_session_is_reported():
    handler = LLMHandler()
    handler.register_provider("mine", ["x"])
    run = Session(talk(provider="yours"), {"q": "why"}, llm=handler)
    run.run()
    assert (run.status, "X465" in str(run.error)) == ("failed", True)
