"""Models and tools of LangChain that actions call: effects of their step."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from burr.core import ApplicationBuilder, State, action
from burr.core.action import streaming_action
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool

import agentnb as nb
from agentnb import Session, load

MADE = []


class Model(FakeListChatModel):
    """A model that notes that it was called."""

    def _call(self, messages, *args, **kwargs):
        MADE.append(("model", messages[-1].content))
        return super()._call(messages, *args, **kwargs)


@tool
def shout(text: str) -> str:
    """Say it louder."""
    MADE.append(("tool", text))
    return text.upper()


@pytest.fixture(autouse=True)
def _no_calls():
    MADE.clear()


def make_chain():
    prompt = ChatPromptTemplate.from_template("about {topic}")
    return prompt | Model(responses=["one", "two"]) | RunnableLambda(lambda said: said.content)


def at_once():
    chain = make_chain()

    @action(reads=["topic"], writes=["text", "seen"])
    def say(state: State) -> State:
        result = chain.invoke({"topic": state["topic"]})
        return state.update(text=shout.invoke({"text": result}), seen=state["topic"])

    return say


def awaited():
    chain = make_chain()

    @action(reads=["topic"], writes=["text", "seen"])
    async def say(state: State) -> State:
        result = await chain.ainvoke({"topic": state["topic"]})
        return state.update(text=await shout.ainvoke({"text": result}), seen=state["topic"])

    return say


def streamed():
    chain = make_chain()

    @streaming_action(reads=["topic"], writes=["text", "seen"])
    def say(state: State):
        yield {"item": "begins"}, None
        result = chain.invoke({"topic": state["topic"]})
        yield {"item": result}, None
        text = shout.invoke({"text": result})
        yield {"text": text}, state.update(text=text, seen=state["topic"])

    return say


def streamed_async():
    chain = make_chain()

    @streaming_action(reads=["topic"], writes=["text", "seen"])
    async def say(state: State):
        yield {"item": "begins"}, None
        result = await chain.ainvoke({"topic": state["topic"]})
        yield {"item": result}, None
        text = await shout.ainvoke({"text": result})
        yield {"text": text}, state.update(text=text, seen=state["topic"])

    return say


ACTIONS = [at_once, awaited, streamed, streamed_async]


def application(make):
    return ApplicationBuilder().with_actions(say=make()).with_state(topic="rain").with_entrypoint("say").build()


def items(session):
    events = session.trace.frames.events
    return [payload["item"] for payload in events[events.type == "stream_item"].payload]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("make", ACTIONS)
def test_calls_are_recorded_and_a_replay_makes_none(make, is_async):
    session = Session(load(application(make)))
    if is_async:
        asyncio.run(session.arun())
    else:
        session.run()
    assert session.status == "finished", session.error
    assert dict(session.board) == {"topic": "rain", "text": "ONE", "seen": "rain"}
    calls = session.trace.frames.calls
    assert list(calls.kind) == ["llm", "tool"]
    assert list(calls.node) == ["say", "say"]
    assert calls.arguments[1] == {"text": "one"}
    assert len(MADE) == 2
    assert session.replay().ok
    assert len(MADE) == 2


@pytest.mark.parametrize("make", ACTIONS)
def test_a_breakpoint_pauses_a_call_and_an_edited_answer_is_used(make):
    session = Session(load(application(make)))
    session.breakpoints.add(call="llm")
    session.run()
    assert (session.status, MADE) == ("in_flight", [])
    session.change(session.pending[0].id, answer="mine")
    session.run()
    assert session.status == "finished", session.error
    assert session.board["text"] == "MINE"
    assert MADE == [("tool", "mine")]
    if "stream" in make.__name__:
        assert items(session) == ["begins", "mine"]
    assert session.replay().ok
    assert MADE == [("tool", "mine")]


@pytest.mark.parametrize("make", ACTIONS)
def test_a_tools_arguments_are_edited_after_a_call_that_has_ended(make):
    session = Session(load(application(make)))
    session.breakpoints.add(call="tool")
    session.run()
    assert [call[0] for call in MADE] == ["model"]
    session.change(session.pending[0].id, arguments={"text": "other"})
    session.run()
    assert session.board["text"] == "OTHER"
    assert [call[0] for call in MADE] == ["model", "tool"]
    if "stream" in make.__name__:
        assert items(session) == ["begins", "one"]


def test_a_call_that_fails_is_recorded():
    @tool
    def breaks(text: str) -> str:
        """Fail."""
        raise ConnectionError("no line")

    @action(reads=["topic"], writes=["text"])
    def say(state: State) -> State:
        return state.update(text=breaks.invoke({"text": state["topic"]}))

    session = Session(load(application(lambda: say)))
    session.run()
    assert session.status == "failed"
    [row] = session.trace.frames.calls.itertuples()
    assert (row.kind, row.name) == ("tool", "breaks")
    assert "no line" in str(row.error)


def test_a_reopened_run_is_replayed_without_calls(tmp_path):
    session = Session(load(application(at_once)), store=tmp_path / "runs.db")
    session.run()
    session.close()
    MADE.clear()
    assert nb.open(tmp_path / "runs.db", recipe=load(application(at_once))).replay().ok
    assert MADE == []


def test_outside_of_a_step_models_and_tools_are_unchanged():
    Session(load(application(at_once))).run()
    MADE.clear()
    assert make_chain().invoke({"topic": "x"}) == "one"
    assert shout.invoke({"text": "a"}) == "A"
    assert application(at_once).run(halt_after=["say"])[2]["text"] == "ONE"


@pytest.mark.starts_programs
def test_langchain_is_not_imported_for_an_application_without_it():
    code = """if True:
        import sys
        from burr.core import ApplicationBuilder, State, action
        import agentnb as nb
        @action(reads=[], writes=["n"])
        def one(state: State) -> State:
            return state.update(n=1)
        session = nb.Session(nb.load(ApplicationBuilder().with_actions(one).with_entrypoint("one").build()))
        session.run()
        assert session.board["n"] == 1
        assert "langchain_core.language_models.chat_models" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)
