"""Models as a session's nodes ask them: calls, retries, timeouts, tokens as they arrive, secrets."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import networkx as nx
import pytest

from agentnb.clock import FrozenClock
from agentnb.dialects.symphony.parts.llm_handler import LLMHandler, Provider
from agentnb.engine.control.listeners import Token
from agentnb.errors import AgentRuntimeError
from agentnb.world.llm.base import LLMMessage, LLMRequest, LLMResponse, Usage
from agentnb.world.llm.direct_call import Pieces, complete
from tests.session.small_sessions import session
from tests.world.llm.model_server import KEY
from tests.world.llm.protocols import PROTOCOLS, Gemini, OpenAI, client

each = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)


def talk(**options):
    graph = nx.DiGraph(name="talk")
    graph.add_node("one", kind="agent", prompt="Be short.", inputs={"q": "q"}, output="a", **options)
    return graph


@each
def test_tokens_and_cost_are_in_the_calls(protocol, serve):
    run = session(talk(), {"q": "why"}, llm=client(protocol, serve(protocol.whole()), prices={"input": 1, "output": 2}))
    run.run()
    row = run.trace.frames.calls.iloc[0]
    assert (run.status, run.board["a"]) == ("finished", "Hello")
    assert (row["tokens_in"], row["tokens_out"], str(row["cost_usd_exact"])) == (7, 3, "0.000013")


@each
def test_only_the_engine_retries(protocol, serve):
    server = serve(protocol.failed(429, "slow"), protocol.failed(500, "oops"), protocol.whole())
    run = session(talk(attempts=3), {"q": "why"}, llm=client(protocol, server))
    run.run()
    calls = run.trace.frames.calls
    assert (run.status, len(server.asked), list(calls["attempt"])) == ("finished", 3, [1, 2, 3])
    assert "answered 429: slow" in calls["error"].iloc[0]


@each
def test_a_timeout_takes_the_timeout_edge(protocol, serve):
    recipe = talk()
    recipe.add_node("late", function=lambda board: {"late": True})
    recipe.add_edge("one", "late", kind="timeout")
    server = serve(protocol.whole()._replace(hold=threading.Event()))
    run = session(recipe, {"q": "why"}, llm=client(protocol, server, request_timeout=0.5))
    run.run()
    assert (run.status, run.board.get("late")) == ("finished", True)


def test_a_node_with_a_timeout_closes_its_connection(serve):
    server = serve(OpenAI.whole()._replace(hold=threading.Event()))
    run = session(talk(timeout=0.5), {"q": "why"}, llm=client(OpenAI, server))
    run.run()
    assert (run.status, len(server.asked)) == ("failed", 1)
    assert "longer than 0.5 s" in str(run.error)


# ----------------------------------------------------------------------------------------------------------- streaming


@each
@pytest.mark.parametrize("way", ["run", "step", "arun", "start"])
def test_tokens_reach_listeners_in_order_in_every_mode(protocol, way, serve):
    run = session(talk(), {"q": "why"}, llm=client(protocol, serve(protocol.stream("Hel", "lo ", "you"))))
    chunks, threads = [], set()

    def listen(token):
        chunks.append((token.node, token.text, run.position))
        threads.add(threading.get_ident())

    run.subscribe(listen, to="token")
    asyncio.run(_awaited(run, way)) if way in {"arun", "start"} else getattr(run, way)()
    assert chunks == [("one", "Hel", 0), ("one", "lo ", 0), ("one", "you", 0)]
    assert (run.board["a"], threads) == ("Hello you", {threading.get_ident()})


async def _awaited(run, way):
    if way == "arun":
        await run.arun()
    else:
        await run.start().wait()


class Plain:
    """A client of one's own that answers at once; it keeps what it was asked."""

    def __init__(self, *pieces, gate=None):
        self.pieces, self.gate, self.asked = pieces, gate, []
        self.over = threading.Event()

    def complete(self, request):
        self.asked.append(request)
        for piece in self.pieces:
            if request.on_token is not None:
                request.on_token(piece)
        if self.gate is not None and len(self.asked) == 1:
            self.gate.wait(10)
            request.on_token("too late")
            self.over.set()
        return LLMResponse("".join(self.pieces), "plain", Usage(1, 1))


def test_without_listeners_nothing_is_notified():
    plain = Plain("a", "b")
    run = session(talk(), {"q": "why"}, llm=plain)
    stop = run.subscribe(print, to="token")
    stop()
    run.run()
    assert plain.asked[0].on_token is None


def test_a_custom_client_notifies_in_its_calling_thread():
    run, chunks = session(talk(timeout=5), {"q": "why"}, llm=Plain("a", "b")), []
    run.subscribe(lambda token: chunks.append((token.text, threading.get_ident())), to="token")
    run.run()
    assert [text for text, _ in chunks] == ["a", "b"]
    assert threading.get_ident() not in {thread for _, thread in chunks}


def test_a_listener_that_raises_is_removed_and_the_answer_is_complete():
    run, chunks = session(talk(), {"q": "why"}, llm=Plain("a", "b")), []

    def breaks(token):
        chunks.append(token.text)
        raise ValueError("no")

    run.subscribe(breaks, to="token")
    with pytest.warns(UserWarning, match="a listener of 'token' raised ValueError and was removed"):
        run.run()
    assert (chunks, run.board["a"]) == (["a"], "ab")


def test_attempts_are_distinguished_and_late_chunks_are_dropped():
    plain = Plain("a", "b", gate=threading.Event())
    run, chunks = session(talk(timeout=0.3, attempts=2), {"q": "why"}, llm=plain), []
    run.subscribe(lambda token: chunks.append((token.attempt, token.text)), to="token")
    run.run()
    plain.gate.set()  # the first attempt still holds its thread
    assert plain.over.wait(10)
    assert chunks == [(1, "a"), (1, "b"), (2, "a"), (2, "b")]


def test_an_abandoned_attempt_is_no_longer_reported():
    requests = []

    def answer(request):
        requests.append(request)
        if len(requests) == 1:
            raise ValueError("try again")
        requests[0].on_token("stale")
        request.on_token("fresh")
        return "fresh"

    run, chunks = session(talk(attempts=2), {"q": "why"}, llm=answer), []
    run.subscribe(chunks.append, to="token")
    run.run()
    assert chunks == [Token("one", "fresh", 2)]


def test_a_fork_has_its_own_listeners():
    run, chunks = session(talk(), {"q": "why"}, llm=Plain("a")), []
    run.subscribe(chunks.append, to="token")
    run.fork(at=0).run()
    assert chunks == []
    run.run()
    run.reset().run()
    assert len(chunks) == 2


# ------------------------------------------------------------------------------------------------------------- secrets


def everything_shown(run):
    frames = run.trace.frames
    return [
        run.trace.to_json(), repr(run), repr(run.trace), str(run.error), run.draw().svg, run.trace._repr_html_(),
        repr(run._parts.run.world.llm), *(frames[name].to_string() for name in frames), str(run.trace.outcome),
    ]  # fmt: skip


@each
@pytest.mark.parametrize("fails", [False, True])
def test_the_key_is_masked_everywhere(protocol, fails, serve):
    answer = protocol.failed(401, f"wrong key {KEY}") if fails else protocol.whole(f"your key is {KEY}")
    run = session(talk(), {"q": f"is {KEY} my key?"}, llm=client(protocol, serve(answer)))
    run.run()
    assert run.status == ("failed" if fails else "finished")
    assert [text for text in everything_shown(run) if KEY in text] == []


def test_a_key_from_the_environment_is_masked_too(serve, monkeypatch):
    monkeypatch.setenv("OWN_LLM_KEY", "key-of-the-environment")
    server = serve(Gemini.whole("it is key-of-the-environment"))
    run = session(talk(), {"q": "why"}, llm=client(Gemini, server, api_key="{{env.OWN_LLM_KEY}}"))
    run.run()
    assert server.asked[0].headers["x-goog-api-key"] == "key-of-the-environment"
    assert [text for text in everything_shown(run) if "key-of-the-environment" in text] == []


def test_a_missing_key_is_reported_before_the_first_step(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(AgentRuntimeError, match="X332"):
        session(talk(), {"q": "why"}, llm="openai:gpt")


def test_a_session_accepts_a_text_as_its_model(serve, monkeypatch):
    server = serve(OpenAI.whole())
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    run = session(talk(model="gpt-of-the-node"), {"q": "why"}, llm="openai:gpt")
    run.run()
    assert (run.board["a"], run.simulated) == ("Hello", ())
    assert server.asked[0].body["model"] == "gpt-of-the-node"


class Stopwatch(FrozenClock):
    """Stands still but for what adds to it."""

    def add(self, seconds):
        self._ns += round(seconds * 1e9)


@each
def test_building_the_client_of_the_sdk_does_not_count_towards_the_duration_of_a_call(protocol, serve, monkeypatch):
    clock, llm = Stopwatch(), client(protocol, serve(protocol.whole()))
    connected = llm.connect
    monkeypatch.setattr(llm._open, "_make", lambda: clock.add(100) or connected())
    run = session(talk(), {"q": "why"}, llm=llm, clock=clock)
    run.run()
    assert (run.status, run.trace.frames.calls["seconds"].tolist()) == ("finished", [0.0])
    assert run.trace.frames.steps["seconds"].sum() == 0


def test_building_a_client_does_not_count_towards_a_timeout(serve, monkeypatch):
    def ask(protocol, server):
        def slow():
            llm = client(protocol, server, request_timeout=5)
            connected = llm.connect
            monkeypatch.setattr(llm._open, "_make", lambda: time.sleep(1) or connected())
            return llm

        run = session(talk(timeout=0.9), {"q": "why"}, llm=slow())
        run.run()
        request = LLMRequest((LLMMessage("user", "Hi"),), timeout=0.9)
        handler = LLMHandler.of(Provider("p", slow()))
        return (
            run.status, run.board["a"], complete(slow(), request).content, list(Pieces(slow(), request)),
            complete(handler.client(), request).content,
        )  # fmt: skip

    servers = [serve(each.whole(), each.whole(), each.stream("Hello"), each.whole()) for each in PROTOCOLS]
    with ThreadPoolExecutor() as threads:  # they wait together
        for answers in threads.map(ask, PROTOCOLS, servers):
            assert answers == ("finished", "Hello", "Hello", ["Hello"], "Hello")


def test_a_client_that_cannot_be_built_fails_at_the_first_call(serve, monkeypatch):
    llm = client(OpenAI, serve(OpenAI.whole()))
    monkeypatch.setattr(llm._open, "_make", lambda: 1 / 0)
    run = session(talk(), {"q": "why"}, llm=llm)
    run.run()
    assert run.status == "failed"
    assert len(run.trace.frames.calls) == 1
