"""Awaited calls of clients that open connections: paused, continued and cancelled, however the session is driven."""

from __future__ import annotations

import asyncio
import ssl
import threading
from contextvars import ContextVar
from typing import TypedDict

import httpx
import httpx2
import networkx as nx
import pytest
from burr.core import ApplicationBuilder, State, action
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from openai import AsyncOpenAI

from agentnb import Session, load
from agentnb.event_loops import run_in_own_loop
from agentnb.ui.command_queue import CommandQueue, Request
from tests.world.llm.model_server import serve
from tests.world.llm.protocols import OpenAI

__all__ = ["serve"]

TLS = ssl.create_default_context()  # shared, because it takes longer than all requests
WHO = ContextVar("WHO", default="nobody")


class Asked(TypedDict):
    question: str
    reply: str


class Web(BaseChatModel):
    """A model on a server, which an async client asks: `post` sends a question and returns the answer."""

    post: object

    @property
    def _llm_type(self):
        return "web"

    def _generate(self, *_, **__):
        raise NotImplementedError

    async def _agenerate(self, messages, *_, **__):
        text = await self.post(messages[-1].content)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def asks_with(library, url):
    """Return a function that asks the server with a new client of an HTTP library."""

    async def post(question):
        async with library.AsyncClient(verify=TLS) as client:
            answer = await client.post(url, json={"content": question})
        return answer.json()["choices"][0]["message"]["content"]

    return post


def asks_with_openai(url):
    async def post(question):
        async with AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
            answer = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": question}])
        return answer.choices[0].message.content

    return post


# -- the calls of a node: each is given a function that makes one ------------------------------------------------------


async def alone(ask):
    return await ask("hi")


async def in_a_task(ask):
    return await asyncio.create_task(ask("hi"))


async def gathered(ask):
    return " ".join(await asyncio.gather(ask("hi"), ask("again")))


def call_of_model(post):
    model = Web(post=post)

    async def ask(question):
        return (await model.ainvoke(question)).content

    return ask


def call_of_tool(post):
    @tool
    async def look_up(question: str) -> str:
        """Look it up."""
        return await post(question)

    return lambda question: look_up.ainvoke({"question": question})


# -- programs ----------------------------------------------------------------------------------------------------------


def in_langgraph(calls, ask):
    async def node(_state):
        return {"reply": await calls(ask)}

    graph = StateGraph(Asked)
    graph.add_node("say", node)
    graph.add_edge(START, "say")
    return Session(load(graph), {"question": "hi"})


def in_burr(calls, ask):
    @action(reads=["question"], writes=["reply"])
    async def say(state: State) -> State:
        return state.update(reply=await calls(ask))

    application = ApplicationBuilder().with_actions(say=say).with_state(question="hi").with_entrypoint("say").build()
    return Session(load(application))


# -- ways to drive a session: to its stop, and on ----------------------------------------------------------------------


def by_run(session, meet):
    session.run()
    meet()
    session.run()


def by_run_in_a_loop(session, meet):
    """Drive it as a cell of a notebook does."""

    async def main():
        by_run(session, meet)

    asyncio.run(main())


def by_arun(session, meet):
    async def main():
        await session.arun()
        meet()
        await session.arun()

    asyncio.run(main())


def by_start(session, meet):
    async def main():
        session.start()
        await session.wait()
        meet()
        session.start()
        await session.wait()

    asyncio.run(main())


def by_the_cockpit(session, meet):
    async def press(queue, button):
        pressed = asyncio.Event()
        queue.ask(Request(button, done=pressed.set))
        await pressed.wait()
        await session.wait()

    async def main():
        queue = CommandQueue(session, lambda: None)
        await press(queue, "run")
        meet()
        await press(queue, "step")
        assert queue.problems == ()
        queue.close()

    asyncio.run(main())


WAYS = [by_run, by_run_in_a_loop, by_arun, by_start, by_the_cockpit]


def stop_and_continue(session, drive, kind):
    """Stop at the first call, and continue without breakpoints."""
    stopped = []

    def meet():
        stopped.append((session.status, [each.kind for each in session.pending]))
        session.breakpoints.clear()

    session.breakpoints.add(call=kind)
    drive(session, meet)
    assert stopped == [("in_flight", ["call"])]


@pytest.mark.parametrize("drive", WAYS)
@pytest.mark.parametrize("calls", [alone, in_a_task, gathered])
@pytest.mark.parametrize("program", [in_langgraph, in_burr])
@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
def test_a_stop_at_an_awaited_model_call_continues(serve, library, program, calls, drive):
    server = serve(OpenAI.whole("hello"))
    session = program(calls, call_of_model(asks_with(library, server.url)))
    stop_and_continue(session, drive, "llm")
    assert session.status == "finished", session.error
    assert session.board["reply"] == " ".join(["hello"] * len(server.asked))
    assert len(server.asked) == (2 if calls is gathered else 1)
    assert session.replay().ok
    assert len(session.trace.frames.calls) == len(server.asked)


@pytest.mark.parametrize("drive", WAYS)
@pytest.mark.parametrize("program", [in_langgraph, in_burr])
def test_a_stop_at_an_awaited_tool_that_asks_a_model_continues(serve, program, drive):
    server = serve(OpenAI.whole("hello"))
    session = program(in_a_task, call_of_tool(asks_with_openai(server.url)))
    stop_and_continue(session, drive, "tool")
    assert session.status == "finished", session.error
    assert (session.board["reply"], len(server.asked)) == ("hello", 1)


@pytest.mark.parametrize("program", [in_langgraph, in_burr])
def test_stop_cancels_a_call_that_continued(serve, program):
    answered = threading.Event()
    server = serve(OpenAI.whole("late")._replace(hold=answered), OpenAI.whole("hello"))
    left = []

    async def post(question):
        try:
            return await asks_with(httpx, server.url)(question)
        finally:
            left.append(len(server.asked))

    session = program(alone, call_of_model(post))

    async def main():
        session.breakpoints.add(call="llm")
        session.start()
        await session.wait()
        session.breakpoints.clear()
        session.start()
        while not server.asked and session.status == "running":  # noqa: ASYNC110  (the server runs in a thread)
            await asyncio.sleep(0.005)
        session.stop()
        await session.wait()
        assert (session.status, left) == ("ready", [1])
        answered.set()
        session.start()
        await session.wait()

    asyncio.run(main())
    assert session.status == "finished", session.error
    assert (session.board["reply"], left) == ("hello", [1, 2])


@pytest.mark.parametrize("pauses", [False, True])
@pytest.mark.parametrize("program", [in_langgraph, in_burr])
def test_a_call_that_continues_runs_in_the_context_in_which_it_was_made(program, pauses):
    async def post(_question):
        return WHO.get()

    async def calls(ask):
        WHO.set("the node")
        return await ask("hi")

    session = program(calls, call_of_model(post))
    if pauses:
        stop_and_continue(session, by_run, "llm")
    else:
        session.run()
    assert session.board["reply"] == "the node", session.error


# -- one client for all nodes, as most programs have -------------------------------------------------------------------


def two_langgraph_nodes(post):
    async def first(_state):
        return {"question": await post("hi")}

    async def second(_state):
        return {"reply": await post("again")}

    graph = StateGraph(Asked)
    graph.add_node("first", first)
    graph.add_node("second", second)
    graph.add_edge(START, "first")
    graph.add_edge("first", "second")
    return Session(load(graph), {"question": "hi"})


def two_burr_actions(post):
    @action(reads=[], writes=["question"])
    async def first(state: State) -> State:
        return state.update(question=await post("hi"))

    @action(reads=["question"], writes=["reply"])
    async def second(state: State) -> State:
        return state.update(reply=await post("again"))

    application = (
        ApplicationBuilder().with_actions(first, second).with_transitions(("first", "second")).with_entrypoint("first")
        .build()
    )  # fmt: skip
    return Session(load(application))


def two_networkx_tools(post):
    graph = nx.DiGraph(name="tools", entry="question")
    graph.add_node("question", kind="tool", function="post", inputs={"question": "hi"})
    graph.add_node("reply", kind="tool", function="post", inputs={"question": "hi"})
    graph.add_edge("question", "reply")
    return Session(load(graph), {"hi": "hi"}, tools={"post": post})


def by_steps(session, client):
    session.step()
    session.step()
    run_in_own_loop(client.aclose)


def by_steps_in_a_loop(session, client):
    async def main():
        by_steps(session, client)

    asyncio.run(main())


def by_async_steps(session, client):
    async def main():
        await session.astep()
        await session.astep()
        await client.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("drive", [by_steps, by_steps_in_a_loop, by_async_steps])
@pytest.mark.parametrize("program", [two_langgraph_nodes, two_burr_actions, two_networkx_tools])
def test_nodes_that_share_a_client_are_stepped_one_by_one(serve, program, drive):
    server = serve(OpenAI.whole("hello"))
    client = httpx.AsyncClient(verify=TLS)

    async def post(question):
        answer = await client.post(server.url, json={"content": question})
        return answer.json()["choices"][0]["message"]["content"]

    session = program(post)
    drive(session, client)
    assert session.status == "finished", session.error
    assert (session.board["reply"], len(server.asked)) == ("hello", 2)
