"""Nodes made of a sync function and an async one: the session calls the one that LangGraph calls, driven that way."""

from __future__ import annotations

import asyncio
import operator
import warnings
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, wrap_model_call, wrap_tool_call
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph._internal._runnable import RunnableCallable
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy

import agentnb as nb
from agentnb import Session, load
from tests.dialects.langgraph.test_agents import asks, model


class State(TypedDict):
    log: Annotated[list, operator.add]


def plain(state):
    return {"log": ["plain"]}


async def awaited(state):
    await asyncio.sleep(0)
    return {"log": ["awaited"]}


async def only_awaited(state):
    return {"log": ["only awaited"]}


def chain(*nodes: Any, retry_policy: Any = None):
    graph = StateGraph(State)
    for number, node in enumerate(nodes):
        graph.add_node(f"n{number}", node, retry_policy=retry_policy)
    graph.add_edge(START, "n0")
    for number in range(len(nodes) - 1):
        graph.add_edge(f"n{number}", f"n{number + 1}")
    return graph.compile()


BOTH = {"callable": lambda: RunnableCallable(plain, awaited), "lambda": lambda: RunnableLambda(plain, awaited)}


def drive(graph: Any, inputs: Any, way: str) -> Session:
    session = Session(load(graph), inputs)
    if way == "run":
        session.run()
    elif way == "step":
        while session.step() is not None:
            pass
    else:
        asyncio.run(session.arun())
    assert session.status == "finished", session.error
    return session


@pytest.mark.parametrize("make", BOTH.values(), ids=BOTH)
def test_the_sync_function_is_called_by_invoke_and_the_async_one_by_ainvoke(make):
    graph = chain(make(), plain, make())
    invoked, known = graph.invoke({"log": []}), asyncio.run(graph.ainvoke({"log": []}))
    assert invoked != known
    assert dict(drive(graph, {"log": []}, "run").board) == invoked
    assert dict(drive(graph, {"log": []}, "step").board) == invoked
    assert dict(drive(graph, {"log": []}, "arun").board) == known


@pytest.mark.parametrize("make", BOTH.values(), ids=BOTH)
@pytest.mark.parametrize("way", ["run", "step", "arun"])
def test_an_async_only_graph_calls_every_async_function(make, way):
    graph = chain(make(), only_awaited)
    with pytest.raises(TypeError):
        graph.invoke({"log": []})
    assert dict(drive(graph, {"log": []}, way).board) == asyncio.run(graph.ainvoke({"log": []}))


@pytest.mark.parametrize("way", ["run", "arun"])
def test_a_condition_may_have_a_sync_and_an_async_function(way):
    async def choose_async(state):
        return "right"

    def choose(state):
        return "left"

    def made():
        graph = StateGraph(State)
        for name in ("first", "left", "right"):
            graph.add_node(name, lambda state, name=name: {"log": [name]})
        graph.add_edge(START, "first")
        graph.add_conditional_edges("first", RunnableCallable(choose, choose_async), ["left", "right"])
        return graph.compile()

    known = made().invoke({"log": []}) if way == "run" else asyncio.run(made().ainvoke({"log": []}))
    assert dict(drive(made(), {"log": []}, way).board) == known


def test_a_replay_calls_the_same_functions():
    session = drive(chain(RunnableCallable(plain, awaited)), {"log": []}, "arun")
    report = session.replay()
    assert report.ok, report
    session = drive(chain(RunnableCallable(plain, awaited)), {"log": []}, "run")
    assert session.replay().ok


def test_every_attempt_calls_the_same_function():
    seen = []

    async def fails_once(state):
        seen.append("awaited")
        if len(seen) == 1:
            raise ConnectionError("down")
        return {"log": ["awaited"]}

    policy = RetryPolicy(initial_interval=0.0001, jitter=False)
    session = drive(chain(RunnableCallable(plain, fails_once), retry_policy=policy), {"log": []}, "arun")
    assert session.board["log"] == ["awaited"]
    assert seen == ["awaited"] * 2
    seen.clear()
    assert session.replay().ok


def fails_sync(state):
    raise ValueError("sync")


async def fails_awaited(state):
    get_stream_writer()("a token")
    raise ConnectionError("awaited")


FAILING = {
    "node": lambda: chain(RunnableCallable(fails_sync, fails_awaited)),
    "retried": lambda: chain(
        RunnableCallable(fails_sync, fails_awaited),
        retry_policy=RetryPolicy(initial_interval=0.0001, max_attempts=2, jitter=False),
    ),
}


@pytest.mark.parametrize("make", FAILING.values(), ids=FAILING)
@pytest.mark.parametrize("way", ["run", "arun"])
def test_a_replay_of_a_failure_calls_the_function_that_failed(make, way, tmp_path):
    session = Session(load(make()), {"log": []}, store=tmp_path / "runs.db", name=way)
    session.run() if way == "run" else asyncio.run(session.arun())
    assert session.error is not None
    error = "ValueError: sync" if way == "run" else "ConnectionError: awaited"
    assert session.trace.frames.steps.error[0].startswith(f"{error} (")
    report = session.replay()
    assert report.ok, report
    run_id = session.run_id
    session.close()
    opened = nb.open(tmp_path / "runs.db", run_id, recipe=load(make()))
    report = opened.replay()
    assert report.ok, report
    opened.close()


def test_the_events_of_a_node_that_fails_are_stored():
    session = Session(load(FAILING["retried"]()), {"log": []})
    asyncio.run(session.arun())
    events = session.trace.frames.events
    assert events.type.tolist() == ["awaited", "custom", "retry", "custom"]
    assert events.step.tolist() == [1] * 4


@tool
async def look_up(what: str) -> str:
    """Look something up."""
    return f"{what} is found"


def react_agent(prompt=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has been renamed
        from langgraph.prebuilt import create_react_agent

        return create_react_agent(model(asks("look_up", {"what": "it"}), AIMessage("so")), [look_up], prompt=prompt)


async def prompt(state):
    return [SystemMessage("be brief"), *state["messages"]]


class Awaits(AgentMiddleware):
    """Middleware that has no sync form."""

    async def abefore_model(self, state, runtime):
        return None

    async def awrap_model_call(self, request, handler):
        return await handler(request)


class Wraps(AgentMiddleware):
    """Middleware of which only the function around the model has a form, the async one."""

    async def awrap_model_call(self, request, handler):
        return await handler(request)


class WrapsTools(AgentMiddleware):
    """The same of the function around the tools."""

    async def awrap_tool_call(self, request, handler):
        return await handler(request)


@wrap_model_call
async def wraps(request, handler):
    return await handler(request)


@tool
def find(what: str) -> str:
    """Find something."""
    return f"{what} is found"


def agent(*middleware, uses=look_up):
    answers = model(asks(uses.name, {"what": "it"}), AIMessage("so"))
    return create_agent(answers, [uses], middleware=middleware)


AGENTS = {
    "tool": react_agent,
    "prompt": lambda: react_agent(prompt),
    "middleware": lambda: agent(Awaits()),
    "around a model": lambda: agent(Wraps(), uses=find),
    "around a model, by a decorator": lambda: agent(wraps, uses=find),
    "around a model, two": lambda: agent(Wraps(), wraps, uses=find),
    "around a tool": lambda: agent(WrapsTools(), uses=find),
    "around a tool, two": lambda: agent(WrapsTools(), Awaits(), uses=find),
}


@pytest.mark.parametrize("way", ["run", "step", "arun"])
@pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS)
def test_agents_with_an_async_prompt_tool_or_middleware_run_as_with_ainvoke(make, way):
    question = {"messages": [HumanMessage("what?")]}
    with pytest.raises((TypeError, NotImplementedError)):
        make().invoke(question)
    known = [(message.type, message.content) for message in asyncio.run(make().ainvoke(question))["messages"]]
    session = drive(make(), question, way)
    assert [(message.type, message.content) for message in session.board["messages"]] == known
    assert list(session.trace.frames.calls.kind) == ["llm", "tool", "llm"]
    assert session.replay().ok


@wrap_model_call
def wraps_a_model(request, handler):
    return handler(request)


@wrap_tool_call
def wraps_a_tool(request, handler):
    return handler(request)


@pytest.mark.parametrize("way", ["run", "step", "arun"])
@pytest.mark.parametrize("middleware", [[wraps_a_model], [wraps_a_tool], [wraps_a_model, wraps_a_tool]],
                         ids=["around a model", "around a tool", "both"])  # fmt: skip
def test_agents_with_sync_middleware_run_as_with_invoke(middleware, way):
    question = {"messages": [HumanMessage("what?")]}
    with pytest.raises(NotImplementedError):
        asyncio.run(agent(*middleware, uses=find).ainvoke(question))
    known = [(message.type, message.content) for message in agent(*middleware, uses=find).invoke(question)["messages"]]
    session = drive(agent(*middleware, uses=find), question, way)
    assert [(message.type, message.content) for message in session.board["messages"]] == known
    assert session.replay().ok


@pytest.mark.parametrize("way", ["run", "arun"])
def test_calls_in_the_tasks_of_an_async_function_are_paused_and_edited(way):
    @tool
    async def shout(text: str) -> str:
        """Say it louder."""
        results.append(text)
        return text.upper()

    def move(session):
        if way == "run":
            session.run()
        else:
            asyncio.run(session.arun())

    results: list[str] = []
    several = asks("shout", {"text": "a"}, {"text": "b"}, {"text": "c"})
    agent = create_agent(model(several, AIMessage("so")), [shout], middleware=[Awaits()])
    session = Session(load(agent), {"messages": [HumanMessage("what?")]})
    session.breakpoints.add(call="tool")
    move(session)
    for text in ("A", "B", "C"):
        assert session.status == "in_flight", session.error
        assert session.pending[0].arguments == {"text": text.lower()}
        session.change(session.pending[0].id, arguments={"text": text.lower() * 2})
        move(session)
    assert session.status == "finished", session.error
    assert results == ["aa", "bb", "cc"]
    assert [message.content for message in session.board["messages"]][2:] == ["AA", "BB", "CC", "so"]
    assert session.replay().ok
    assert len(results) == 3


def test_an_async_prompt_and_its_model_are_paused():
    session = Session(load(react_agent(prompt)), {"messages": [HumanMessage("what?")]})
    session.breakpoints.add(call="llm")
    asyncio.run(session.arun())
    assert session.status == "in_flight", session.error
    session.change(session.pending[0].id, answer="mine")
    asyncio.run(session.arun())
    assert session.status == "finished", session.error
    assert session.board["messages"][-1].content == "mine"
