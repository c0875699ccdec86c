from __future__ import annotations

import asyncio
import json

import networkx as nx
import pytest

import agentnb as nb
from agentnb.engine.control.listeners import Token
from agentnb.secrets import hide
from agentnb.ui import token_streams
from agentnb.ui.debugger import Debugger
from agentnb.ui.token_streams import DROPPED, LONGEST, Streams
from agentnb.world.llm import LLMResponse
from tests.ui import ticket_recipe
from tests.world.llm.model_server import Server
from tests.world.llm.protocols import PROTOCOLS, client

KEY = "sk-4711-never-shown"


class Slow:
    """A model that streams as it is told: each text is a piece, an event is waited for before the next one."""

    model = "slow-1"

    def __init__(self, *pieces):
        self.pieces = pieces

    async def complete(self, request):
        text = ""
        for piece in self.pieces:
            if isinstance(piece, asyncio.Event):
                await piece.wait()
                continue
            text += piece
            if request.on_token is not None:
                request.on_token(piece)
        return LLMResponse(text)


def session(model):
    graph = nx.DiGraph(name="talk")
    graph.add_node("ask", kind="agent", prompt="Say something", output="said")
    return nb.Session(nb.load(graph), llm=model)


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(token_streams, "INTERVAL", 0.0)


@pytest.fixture
def hearing(at_once):
    """Streams of a session whose step is in flight, as its pages hear it, and how to say a piece."""

    class Hearing:
        def __init__(self):
            self.session, self.rows = ticket_recipe.session(), []
            self.streams = Streams(self.session, self.rows.extend)

        def say(self, text, attempt=1, call=0):
            self.session._parts.state.hooks.notify("token", Token("ask", text, attempt, call, "m"))

        def shown(self):
            text = ""
            for row in self.rows:
                text = (text if row["at"] else "") + row["text"]
            return text

    return Hearing()


def test_a_text_arrives_in_consecutive_chunks(hearing):
    for word in ("one ", "two ", "\U0001f426 three"):
        hearing.say(word)
    assert [(row["at"], row["text"]) for row in hearing.rows] == [(0, "one "), (4, "two "), (8, "\U0001f426 three")]
    assert (hearing.rows[-1]["size"], hearing.rows[-1]["pieces"], hearing.rows[-1]["model"]) == (15, 3, "m")
    assert hearing.streams.get_full_text("0/ask")["text"] == "one two \U0001f426 three"
    assert hearing.streams.get_full_text("7/ask") is None


def test_a_secret_is_never_sent_even_in_parts(hearing):
    hide(KEY)
    for piece in ("key: ", KEY[:3], KEY[3:9], KEY[9:] + ", and sk", "i. ", "sk-4711-never"):
        hearing.say(piece)
        assert "4711" not in json.dumps(hearing.rows)
    assert hearing.shown() == "key: ********, and ski. "
    hearing.streams.settle()
    assert hearing.shown() == "key: ********, and ski. sk-4711-never"


def test_a_retry_starts_over(hearing):
    hearing.say("half an ans")
    hearing.say("all of it", attempt=2)
    assert (hearing.rows[-1]["at"], hearing.rows[-1]["attempt"], hearing.shown()) == (0, 2, "all of it")


def test_a_very_long_text_is_truncated_and_its_length_reported(hearing):
    for _ in range(3):
        hearing.say("x" * LONGEST)
    assert len(hearing.shown()) == LONGEST
    assert hearing.rows[-1]["size"] == 3 * LONGEST


def test_a_stream_that_ends_early_is_never_shown():
    run, rows = session(["at once"]), []
    streams = Streams(run, rows.extend)
    run.step()
    streams.settle()
    assert (run.board["said"], rows) == ("at once", [])


def test_a_removed_listener_receives_nothing(hearing):
    hearing.streams.close()
    hearing.say("late")
    assert hearing.rows == []


async def until(holds):
    for _ in range(2000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came to that")


def beside(model, does):
    """Begin a step that a model streams to, and do something beside it: `does(cockpit, sent)`, what it has sent."""

    async def main():
        cockpit, sent = Debugger(session(model)), []
        cockpit.send = lambda message, *_: sent.extend(message.get("streams", ()))
        cockpit.session.start()
        await asyncio.wait_for(does(cockpit, sent), 30)
        await asyncio.wait_for(cockpit.session.wait(), 30)
        cockpit._command_queue.refresh()
        cockpit.close()
        return cockpit.session, sent

    return asyncio.run(main())


def text_of(rows):
    return "".join(row["text"] for row in rows)


def test_the_cockpit_receives_streamed_text_including_the_last_chunk():
    gate = asyncio.Event()

    async def reads(cockpit, sent):
        await until(lambda: text_of(sent) == "Once upon a time")
        assert (sent[0]["node"], sent[0]["model"], sent[-1]["over"]) == ("ask", "slow-1", None)
        assert "said" not in cockpit.session.board
        gate.set()

    run, sent = beside(Slow("Once ", "upon ", "a time", gate, "."), reads)
    assert run.board["said"] == text_of(sent) == "Once upon a time."
    assert (sent[-1]["over"], len(sent) <= 4) == (1, True)


def test_an_abandoned_call_is_dropped():
    async def leaves(cockpit, sent):
        await until(lambda: sent)
        cockpit.session.stop()

    _, sent = beside(Slow("never ", asyncio.Event()), leaves)
    assert (sent[-1]["text"], sent[-1]["over"]) == ("", DROPPED)


def test_a_page_that_missed_a_chunk_receives_the_complete_text():
    gate = asyncio.Event()

    async def asks(cockpit, sent):
        await until(lambda: sent)
        cockpit._handle_message(None, {"do": "text", "target": sent[0]["id"]})
        assert (sent[-1]["at"], sent[-1]["text"]) == (0, "Hello")
        gate.set()

    beside(Slow("Hello", gate), asks)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_streamed_text_of_a_server_is_shown_as_it_arrives(protocol, at_once):
    server = Server(protocol.stream("Hel", "lo ", "you"))
    try:
        run, rows = session(client(protocol, server)), []
        streams = Streams(run, rows.extend)
        run.step()
        streams.settle()
    finally:
        server.close()
    assert (text_of(rows), rows[0]["model"]) == ("Hello you", "m-1")
    assert (len(rows) > 2, rows[-1]["over"], run.status) == (True, 1, "finished")
