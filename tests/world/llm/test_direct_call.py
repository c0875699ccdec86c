from __future__ import annotations

import asyncio
import contextvars
import gc
import socket
import threading
from dataclasses import replace

import pytest

from agentnb.errors import AgentRuntimeError
from agentnb.world.llm.base import LLMError, LLMResponse
from agentnb.world.llm.direct_call import Pieces, acomplete, complete
from agentnb.world.llm.providers import client_of
from agentnb.world.llm.scripted import ScriptedClient
from tests.world.llm.protocols import OpenAI, client, request


class Telling:
    """Tells its pieces, and answers with them, or with something else."""

    def __init__(self, *pieces, content=None):
        self.pieces, self.content = pieces, "".join(pieces) if content is None else content

    def complete(self, asked):
        for piece in self.pieces:
            asked.on_token(piece)
        return LLMResponse(self.content, "telling")


class Later(Telling):
    async def complete(self, asked):
        for piece in self.pieces:
            await asyncio.sleep(0)
            asked.on_token(piece)
        return LLMResponse(self.content, "later")


class Endless:
    """Tells one piece, and then waits for ever; `over` says that it was ended."""

    def __init__(self):
        self.over = threading.Event()

    async def complete(self, asked):
        asked.on_token("one")
        try:
            await asyncio.Event().wait()
        finally:
            self.over.set()


class EndlessThread:
    """Blocks its thread, telling, until it is ended."""

    def __init__(self):
        self.over = threading.Event()

    def complete(self, asked):
        try:
            while True:
                asked.on_token("one")
        finally:
            self.over.set()


def both(made, *, loop):
    """Return the pieces of an answer, by `for` or by `async for`, and what stands at their end."""
    if not loop:
        return list(made), made.response

    async def main():
        return [piece async for piece in made], made.response

    return asyncio.run(main())


in_a_loop = pytest.mark.parametrize("loop", [False, True], ids=["for", "async for"])

# ---------------------------------------------------------------------------------------------------------- as a whole


@pytest.mark.parametrize("limit", [None, 30])
@pytest.mark.parametrize("made", [Telling("a"), Later("a"), ScriptedClient(["a"])], ids=["now", "later", "script"])
def test_clients_of_every_kind_are_supported(made, limit):
    streamed = replace(request(timeout=limit), on_token=[].append)
    assert complete(made, streamed).content == "a"
    assert asyncio.run(acomplete(made, streamed)).content == "a"


def test_a_sync_caller_can_call_a_client_inside_an_event_loop(serve):
    llm = client(OpenAI, serve(OpenAI.whole()))

    async def main():
        return complete(llm, request()).content

    assert asyncio.run(main()) == "Hello"


def test_any_answer_is_converted_to_a_response():
    class Bare:
        def complete(self, asked):
            return "bare"

    assert complete(Bare(), request()) == LLMResponse("bare")


@pytest.mark.parametrize("ask", [complete, lambda *given: asyncio.run(acomplete(*given))], ids=["now", "awaited"])
def test_a_timeout_applies_to_a_client_without_timeouts(ask):
    held = threading.Event()

    class Blocking:
        def complete(self, asked):
            held.wait(10)
            return LLMResponse("late")

    class Waiting:
        async def complete(self, asked):
            await asyncio.Event().wait()

    for llm in (Blocking(), Waiting()):
        with pytest.raises(TimeoutError, match=r"the model has not answered within 0.05 s"):
            ask(llm, request(settings={"request_timeout": 0.05}))
    held.set()


def test_a_timeout_of_the_client_has_the_message_of_the_client():
    class Slow:
        def complete(self, asked):
            raise TimeoutError("its own words")

    with pytest.raises(TimeoutError, match="its own words"):
        complete(Slow(), request(timeout=30))


@pytest.mark.parametrize("limit", [None, 30])
def test_errors_of_a_client_are_raised(limit, serve):
    with pytest.raises(LLMError, match="slow down"):
        complete(client(OpenAI, serve(OpenAI.failed(429, "slow down"))), request(timeout=limit))


def test_blocking_clients_are_called_concurrently():
    both_are_in = threading.Barrier(2, timeout=10)

    class Meets:
        def complete(self, asked):
            both_are_in.wait()
            return LLMResponse("met")

    async def main():
        return await asyncio.gather(acomplete(Meets(), request()), acomplete(Meets(), request()))

    assert [answer.content for answer in asyncio.run(main())] == ["met", "met"]


def test_a_client_sees_the_context_of_its_caller():
    user = contextvars.ContextVar("user")

    class Seeing:
        def complete(self, asked):
            return LLMResponse(user.get())

    user.set("ann")
    assert complete(Seeing(), request(timeout=30)).content == "ann"


# ------------------------------------------------------------------------------------------------------ piece by piece


@in_a_loop
@pytest.mark.parametrize("sort", [Telling, Later])
def test_chunks_arrive_as_reported_and_add_up_to_the_answer(loop, sort):
    pieces, response = both(Pieces(sort("Hel", "lo ", "you"), request()), loop=loop)
    assert pieces == ["Hel", "lo ", "you"]
    assert response.content == "Hello you"


@in_a_loop
def test_chunks_of_a_server_include_its_tokens(loop, serve):
    stream = Pieces(client(OpenAI, serve(OpenAI.stream("Hel", "lo"))), request())
    pieces, response = both(stream, loop=loop)
    assert (pieces, response.usage.tokens_out) == (["Hel", "lo"], 3)


@in_a_loop
@pytest.mark.parametrize(
    ("content", "pieces"), [("whole", ["whole"]), ({"a": 1}, ['{"a": 1}']), (None, []), ("", [])], ids=repr
)
def test_an_answer_without_streaming_is_one_chunk(loop, content, pieces):
    assert both(Pieces(ScriptedClient(lambda _: content), request()), loop=loop)[0] == pieces


@in_a_loop
def test_an_unreported_end_comes_last(loop):
    assert both(Pieces(Telling("Hel", content="Hello"), request()), loop=loop)[0] == ["Hel", "lo"]


@in_a_loop
def test_chunks_that_differ_from_the_answer_are_an_error_of_the_client(loop):
    with pytest.raises(AgentRuntimeError, match="X466"):
        both(Pieces(Telling("Hal", content="Hello"), request()), loop=loop)


@in_a_loop
def test_existing_listeners_are_notified_too(loop):
    chunks = []
    both(Pieces(Telling("a", "b"), request(on_token=chunks.append)), loop=loop)
    assert chunks == ["a", "b"]


@in_a_loop
def test_an_error_in_a_stream_arrives_after_the_earlier_chunks(loop, serve):
    stream, pieces = Pieces(client(OpenAI, serve(OpenAI.stream_fails("Hel", "it is too much"))), request()), []

    async def main():
        while True:
            pieces.append(await anext(stream))

    with pytest.raises(LLMError, match="it is too much"):
        asyncio.run(main()) if loop else pieces.extend(stream)
    assert stream.response is None
    assert pieces == ["Hel"]


def test_no_request_is_sent_before_the_first_chunk(serve):
    server = serve(OpenAI.stream("Hi"))
    stream = Pieces(client(OpenAI, server), request())
    assert server.asked == []
    assert next(stream) == "Hi"
    stream.close()


@pytest.mark.parametrize("sort", [Endless, EndlessThread])
@pytest.mark.parametrize("how", ["closed", "let go", "left"])
def test_a_stream_that_is_abandoned_ends_its_request(sort, how):
    llm = sort()
    stream = Pieces(llm, request())
    if how == "left":
        for _ in Pieces(llm, request()):
            break
    else:
        assert next(stream) == "one"
    if how == "closed":
        stream.close()
    del stream
    gc.collect()
    assert llm.over.wait(10)


@pytest.mark.parametrize("sort", [Endless, EndlessThread])
@pytest.mark.parametrize("how", ["closed", "let go", "cancelled"])
def test_an_awaited_stream_that_is_abandoned_ends_its_request(sort, how):
    llm = sort()

    async def main():
        stream = Pieces(llm, request())
        assert await anext(stream) == "one"
        if how == "closed":
            await stream.aclose()
            return True
        if how == "cancelled":
            waits = asyncio.create_task(_all(stream))
            await asyncio.sleep(0)
            waits.cancel()
            await asyncio.wait([waits])
        del stream
        gc.collect()
        return await asyncio.to_thread(llm.over.wait, 10)

    assert asyncio.run(main())
    assert llm.over.wait(10)


async def _all(pieces):
    return [piece async for piece in pieces]


@in_a_loop
def test_an_abandoned_stream_closes_its_connection(loop):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        hung_up = threading.Event()
        threading.Thread(target=_says_one_piece, args=(listening, hung_up), daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        stream = Pieces(client_of("lmstudio:m", {"base_url": url}), request())

        async def main():
            first = await anext(stream)
            await stream.aclose()
            return first, await asyncio.to_thread(hung_up.wait, 10)

        if loop:
            assert asyncio.run(main()) == ("Hel", True)
        else:
            assert next(stream) == "Hel"
            stream.close()
            assert hung_up.wait(10)


def _says_one_piece(listening, hung_up):
    """Answer with the first piece of a stream, and wait until who asked has gone."""
    line, _ = listening.accept()
    with line:
        line.recv(65536)
        event = OpenAI.stream("Hel", ends=False).body
        line.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + event)
        while line.recv(65536):
            pass
    hung_up.set()


def test_a_stream_is_read_synchronously_in_a_running_event_loop():
    async def main():
        return list(Pieces(Later("a", "b"), request()))

    assert asyncio.run(main()) == ["a", "b"]
