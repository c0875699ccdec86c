"""Records of calls: what a tool, a model or a task writes to channels besides its answer, and the types of answers."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.func import task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import push_message
from langgraph.prebuilt import ToolNode
from langgraph.types import CachePolicy, Command, Send, interrupt

import agentnb as nb
from agentnb.dialects.langgraph.api import load_graph
from agentnb.load import load
from agentnb.session import Session
from tests.dialects.langgraph.judge import compare

CALLS = []


class Files(MessagesState):
    files: Annotated[dict, operator.or_]


@pytest.fixture(autouse=True)
def _no_calls():
    CALLS.clear()


def write(*writes):
    """Write to channels as LangGraph's own helpers do."""
    get_config()["configurable"]["__pregel_send"](list(writes))


@tool
def save(path: str) -> str:
    """Write a file."""
    CALLS.append(path)
    write(("files", {path: "text"}))
    return "saved"


@tool
def save_and_fail(path: str) -> str:
    """Write a file, and fail."""
    CALLS.append(path)
    write(("files", {path: "text"}))
    raise ValueError(path)


def chain(*nodes, schema=Files, **options):
    graph = StateGraph(schema)
    before = START
    for number, node in enumerate(nodes):
        graph.add_node(f"n{number}", node)
        graph.add_edge(before, f"n{number}")
        before = f"n{number}"
    return graph.compile(**options)


def call_tools(*names):
    """Return a node that calls tools, each with the path /NAME."""
    calls = [{"name": name, "args": {"path": f"/{name}"}, "id": name} for name in names]
    return lambda state: {"messages": [AIMessage("", id="calls", tool_calls=calls)]}


def saves(_state):
    return {"messages": [ToolMessage(save.invoke({"path": "/a"}), tool_call_id="1", id="1")]}


async def saves_async(_state):
    return {"messages": [ToolMessage(await save.ainvoke({"path": "/a"}), tool_call_id="1", id="1")]}


def asks_afterwards(_state):
    result = save.invoke({"path": "/a"})
    return {"messages": [ToolMessage(result + interrupt("ok?"), tool_call_id="1", id="1")]}


ONE_BY_ONE = {"max_concurrency": 1}  # a ToolNode calls its tools in order
INPUTS = {"messages": [], "files": {}}
WRITTEN = {"/a": "text"}


# -- what a call writes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("node", [saves, saves_async, asks_afterwards])
def test_what_a_tool_writes_to_channels_is_repeated_by_a_replay(node):
    _, session = compare(chain(node), INPUTS, answers=lambda _: "!", is_async=node is saves_async)
    assert session.board["files"] == WRITTEN
    made = len(CALLS)
    assert session.replay().ok
    assert len(CALLS) == made


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("node", [saves, saves_async])
def test_what_a_tool_writes_to_channels_outlasts_a_stop_at_its_call(node, side, tmp_path):
    recipe = load(chain(node))
    session = Session(recipe, INPUTS, store=tmp_path / "runs.db")
    session.breakpoints.add(call="tool", side=side)
    session.run()
    assert session.status == "in_flight"
    session.close()
    opened = nb.open(tmp_path / "runs.db", recipe=recipe)
    opened.breakpoints.clear()
    opened.run()
    assert opened.status == "finished", opened.error
    assert opened.board["files"] == WRITTEN
    assert CALLS == ["/a"]

    session = Session(recipe, INPUTS)
    session.breakpoints.add(call="tool", side=side)
    session.run()
    session.run()
    assert session.status == "finished", session.error
    assert session.board["files"] == WRITTEN
    assert session.replay().ok
    assert session.fork(0).replay().ok
    assert CALLS == ["/a"] * 2


def test_what_a_tool_writes_to_channels_can_be_edited():
    session = Session(load(chain(saves)), INPUTS)
    session.breakpoints.add(call="tool", side="after")
    session.run()
    session.change(session.pending[0].id, answer={"value": "saved", "writes": [["files", {"/b": "mine"}]]})
    session.run()
    assert session.board["files"] == {"/b": "mine"}
    assert session.replay().ok


def test_a_tool_that_fails_keeps_what_it_has_written():
    graph = chain(call_tools("save", "save_and_fail"), ToolNode([save, save_and_fail], handle_tool_errors=True))
    theirs = graph.invoke(INPUTS)["files"]
    session = Session(load_graph(graph, config=ONE_BY_ONE), INPUTS)
    session.run()
    assert session.board["files"] == theirs == {"/save": "text", "/save_and_fail": "text"}
    made = len(CALLS)
    assert session.replay().ok
    assert len(CALLS) == made


def test_a_tool_may_choose_the_next_nodes_by_writing():
    @tool
    def send(text: str) -> str:
        """Send it."""
        write(("__pregel_tasks", Send("receive", {"files": {text: "sent"}})))
        return "sent"

    graph = StateGraph(Files)
    graph.add_node("start", lambda state: {"files": {send.invoke({"text": "hi"}): "yes"}})
    graph.add_node("receive", lambda state: state)
    graph.add_edge(START, "start")
    _, session = compare(graph.compile(), INPUTS)
    assert session.board["files"] == {"hi": "sent", "sent": "yes"}
    assert session.replay().ok


class Pushing(BaseChatModel):
    """A model that pushes a message while it answers."""

    @property
    def _llm_type(self):
        return "pushing"

    def _generate(self, *_, **__):
        push_message(AIMessage("thinking", id="0"))
        return ChatResult(generations=[ChatGeneration(message=AIMessage("done", id="1"))])


@pytest.mark.parametrize("side", [None, "before", "after"])
def test_what_a_model_pushes_is_part_of_its_call(side):
    model = Pushing()
    graph = chain(lambda state: {"messages": [model.invoke("go")]}, schema=MessagesState)
    theirs = graph.invoke({"messages": []})["messages"]
    session = Session(load(graph), {"messages": []})
    if side is not None:
        session.breakpoints.add(call="llm", side=side)
        session.run()
    session.run()
    assert [message.content for message in session.board["messages"]] == [message.content for message in theirs]
    assert session.replay().ok


def saver(is_async=False, **options):
    """Return a task that writes a file."""

    def now(path):
        CALLS.append(path)
        write(("files", {path: "text"}))
        if path == "/bad":
            raise ValueError(path)
        return "saved"

    async def soon(path):
        return now(path)

    return task(soon if is_async else now, name="saves", **options)


def run_like_langgraph(graph, answer="!"):
    """Return a session that has run, with one answer, to the result that LangGraph has."""
    thread = {"configurable": {"thread_id": "one"}}
    theirs = graph.copy(update={"checkpointer": InMemorySaver()})
    result = asyncio.run(theirs.ainvoke(INPUTS, thread))
    if "__interrupt__" in result:
        result = asyncio.run(theirs.ainvoke(Command(resume=answer), thread))
    session = Session(load(graph), INPUTS)
    asyncio.run(session.arun())
    if session.status == "waiting":
        session.answer(answer)
        asyncio.run(session.arun())
    assert session.status == "finished", session.error
    assert session.board["files"] == result["files"]
    return session


@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_task_writes_to_channels_is_kept_when_it_is_not_called_again(is_async):
    save_task = saver(is_async)

    def node(_state):
        save_task("/a").result()
        return {"files": {interrupt("ok?"): "asked"}}

    async def async_node(_state):
        await save_task("/a")
        return {"files": {interrupt("ok?"): "asked"}}

    session = run_like_langgraph(chain(async_node if is_async else node))
    assert session.board["files"] == {"/a": "text", "!": "asked"}
    assert session.replay().ok
    assert CALLS == ["/a"] * 2


def test_what_a_failed_task_writes_to_channels_is_kept_if_its_caller_goes_on():
    save_task = saver()

    def node(_state):
        with pytest.raises(ValueError, match="/bad"):
            save_task("/bad").result()
        return {"files": {"a": "b"}}

    session = run_like_langgraph(chain(node))
    assert session.board["files"] == {"/bad": "text", "a": "b"}
    assert session.replay().ok
    assert CALLS == ["/bad"] * 2


def test_what_a_task_writes_inside_a_task_belongs_to_the_outer_call():
    inner = saver()

    @task
    def outer():
        return inner("/a").result()

    graph = chain(lambda state: {"files": {outer().result(): "yes"}})
    assert run_like_langgraph(graph).replay().ok
    session = Session(load(graph), INPUTS)
    session.breakpoints.add(call="task")
    session.run()
    session.run()
    assert session.board["files"] == {"/a": "text", "saved": "yes"}
    assert list(session.trace.frames.calls.name) == ["outer"]
    assert session.replay().ok


@pytest.mark.parametrize("first", ["there", "here"])
def test_a_cached_task_writes_what_it_wrote(first):
    save_task = saver(cache_policy=CachePolicy(key_func=str))
    graph = chain(lambda state: {"files": {save_task("/a").result(): "yes"}}, cache=InMemoryCache())

    def there():
        return graph.invoke(INPUTS)["files"]

    def here():
        session = Session(load(graph), INPUTS)
        session.run()
        assert session.replay().ok
        return session.board["files"]

    courses = [there, here] if first == "there" else [here, there]
    assert [course() for course in courses] == [{"/a": "text", "saved": "yes"}] * 2
    assert CALLS == ["/a"]


# -- the types of answers ----------------------------------------------------------------------------------------------


class Outer(MessagesState):
    a: bool
    b: bool


def leaves(name, **how):
    """Return a tool that updates the parent graph."""

    @tool(name)
    def leave(path: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Leave."""
        done = ToolMessage("ok", tool_call_id=tool_call_id, id=name)
        return Command(graph=Command.PARENT, update={path[1:]: True, "messages": [done]}, **how)

    return leave


def make_team(names, **how):
    """Return a graph with an agent whose tools update its parent graph."""
    agent = chain(call_tools(*names), ToolNode([leaves("a", **how), leaves("b", **how)]), schema=MessagesState)
    graph = StateGraph(Outer)
    graph.add_node("agent", agent)
    graph.add_node("after", lambda state: {"messages": [AIMessage("after", id="after")]})
    graph.add_edge(START, "agent")
    graph.add_edge("after", END)
    return graph.compile()


@pytest.mark.parametrize("names", ["a", "ab"])
@pytest.mark.parametrize(
    "how",
    [{}, {"goto": "after"}, {"goto": ("after",)}, {"goto": ["after"]}, {"goto": Send("after", {})},
     {"goto": [Send("after", {})]}],
    ids=["nowhere", "name", "tuple", "list", "send", "sends"],
)  # fmt: skip
def test_a_tool_that_updates_the_parent_graph_does_so_as_in_langgraph(names, how, tmp_path):
    inputs, team = {"messages": [], "a": False, "b": False}, make_team(names, **how)
    theirs = team.invoke(inputs)
    recipe = load_graph(team, config=ONE_BY_ONE)
    session = Session(recipe, inputs, store=tmp_path / "runs.db")
    session.run()
    assert session.status == "finished", session.error
    assert (session.board["a"], session.board["b"]) == (theirs["a"], theirs["b"])
    assert [message.id for message in session.board["messages"]] == [message.id for message in theirs["messages"]]
    session.close()
    assert nb.open(tmp_path / "runs.db", recipe=recipe).replay().ok


class Found(TypedDict):
    found: list


@pytest.mark.parametrize("is_async", [False, True])
def test_the_artifact_of_a_tool_keeps_its_class(is_async):
    @tool(response_format="content_and_artifact")
    def look_up(query: str):
        """Look it up."""
        return "one", [Document(query), (1, 2)]

    call = {"type": "tool_call", "name": "look_up", "args": {"query": "rain"}, "id": "1"}

    def node(_state):
        return {"found": look_up.invoke(call).artifact}

    async def async_node(_state):
        return {"found": (await look_up.ainvoke(call)).artifact}

    session = Session(load(chain(async_node if is_async else node, schema=Found)), {"found": []})
    asyncio.run(session.arun())
    assert session.board["found"] == [Document("rain"), (1, 2)], session.error
    assert session.replay().ok
