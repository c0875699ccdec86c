"""Ready-made agents, and the models and tools that nodes call: effects of their step."""

from __future__ import annotations

import asyncio
import warnings

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ModelCallLimitMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from agentnb.load import load
from agentnb.session import Session

CALLS = []


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    CALLS.append(("add", a, b))
    return a + b


@tool
def confirm(what: str) -> str:
    """Ask a person."""
    return f"{what}: {interrupt(f'{what}?')}"


class Model(FakeMessagesListChatModel):
    """A model that says what it is told to say."""

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, messages, *args, **kwargs):
        CALLS.append(("model", messages[-1].content))
        return super()._generate(messages, *args, **kwargs)


def react_agent(model, tools):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has been renamed
        from langgraph.prebuilt import create_react_agent

        return create_react_agent(model, tools)


def asks(name, *arguments):
    calls = [{"name": name, "args": each, "id": f"call{number}"} for number, each in enumerate(arguments)]
    return AIMessage("", tool_calls=calls, usage_metadata={"input_tokens": 7, "output_tokens": 3, "total_tokens": 10})


def model(*messages):
    return Model(responses=list(messages))


@pytest.fixture(autouse=True)
def _no_calls():
    CALLS.clear()


@pytest.mark.parametrize("make", [react_agent, create_agent])
def test_an_agent_runs_as_in_langgraph_and_a_replay_calls_nothing(make):
    def agent():
        return make(model(asks("add", {"a": 2, "b": 3}, {"a": 4, "b": 3}), AIMessage("it is 5")), [add])

    question = {"messages": [HumanMessage("2+3?")]}
    theirs = [(message.type, message.content) for message in agent().invoke(question)["messages"]]
    CALLS.clear()
    session = Session(load(agent()), question)
    session.run()
    assert [(message.type, message.content) for message in session.board["messages"]] == theirs
    calls = session.trace.frames.calls
    assert list(calls.kind) == ["llm", "tool", "tool", "llm"]
    assert calls.arguments[1] == {"a": 2, "b": 3}
    assert list(calls.tokens_in[[0]]) == [7]
    recorded_calls = list(CALLS)
    assert session.replay().ok
    assert recorded_calls == CALLS


@pytest.mark.parametrize("make", [react_agent, create_agent])
def test_a_tools_arguments_are_changed_before_it_is_called(make):
    session = Session(load(make(model(asks("add", {"a": 2, "b": 3}), AIMessage("so"))  , [add])),
                      {"messages": [HumanMessage("2+3?")]})  # fmt: skip
    session.breakpoints.add(call="tool")
    session.run()
    assert session.status == "in_flight"
    session.change(session.pending[0].id, arguments={"a": 100, "b": 3})
    session.run()
    assert [message.content for message in session.board["messages"]] == ["2+3?", "", "103", "so"]
    assert [call for call in CALLS if call[0] == "add"] == [("add", 100, 3)]


def test_limits_of_middleware_start_over_after_an_approval():
    """They count in an `UntrackedValue`, which is lost when LangGraph waits for a person."""

    def agent():
        middleware = [HumanInTheLoopMiddleware(interrupt_on={"add": True}), ModelCallLimitMiddleware(run_limit=2)]
        responses = asks("add", {"a": 2, "b": 3}), asks("add", {"a": 5, "b": 3}), AIMessage("it is 8")
        return create_agent(model(*responses), [add], middleware=middleware, checkpointer=InMemorySaver())

    question, approval = {"messages": [HumanMessage("2+3+3?")]}, {"decisions": [{"type": "approve"}]}
    their_agent, thread = agent(), {"configurable": {"thread_id": "one"}}
    result = their_agent.invoke(question, thread)
    while "__interrupt__" in result:
        result = their_agent.invoke(Command(resume=approval), thread)
    session = Session(load(agent()), question)
    session.run()
    while session.pending:
        session.answer(approval)
        session.run()
    assert [message.content for message in result["messages"]] == ["2+3+3?", "", "5", "", "8", "it is 8"]
    assert [message.content for message in session.board["messages"]] == ["2+3+3?", "", "5", "", "8", "it is 8"]
    assert session.replay().ok


@pytest.mark.parametrize("way", ["run", "arun"])
def test_arguments_rejected_by_a_tool_are_reported_to_the_model_in_a_replay_too(way):
    agent = create_agent(model(asks("add", {"a": "two", "b": 3}), AIMessage("sorry")), [add])
    session = Session(load(agent), {"messages": [HumanMessage("2+3?")]})
    if way == "run":
        session.run()
    else:
        asyncio.run(session.arun())
    refusal = session.board["messages"][2]
    assert (refusal.status, "valid integer" in refusal.content) == ("error", True)
    assert "ValidationError" in session.trace.frames.calls.error[1]
    report = session.replay()
    assert report.ok, report
    assert [call for call in CALLS if call[0] == "add"] == []


def test_a_model_call_can_be_answered_by_a_person():
    session = Session(load(react_agent(model(AIMessage("wrong")), [add])), {"messages": [HumanMessage("hi")]})
    session.breakpoints.add(call="llm")
    session.run()
    session.change(session.pending[0].id, answer="right")
    session.run()
    assert session.board["messages"][-1].content == "right"
    assert CALLS == []


def test_a_tool_may_ask_a_person():
    agent = react_agent(model(asks("confirm", {"what": "go"}), AIMessage("done")), [confirm])
    session = Session(load(agent), {"messages": [HumanMessage("go")]})
    session.run()
    assert (session.status, session.pending[0].arguments["prompt"]) == ("waiting", "go?")
    session.answer("yes")
    session.run()
    assert [message.content for message in session.board["messages"]] == ["go", "", "go: yes", "done"]
    assert session.replay().ok


def test_an_async_model_in_an_async_node():
    reply = model(AIMessage("one"), AIMessage("two"))

    async def node(state: MessagesState):
        return {"messages": [await reply.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_sequence([("a", node), ("b", node)])
    graph.add_edge(START, "a")
    session = Session(load(graph), {"messages": [HumanMessage("hi")]})
    session.run()
    assert [message.content for message in session.board["messages"]] == ["hi", "one", "two"]
    assert list(session.trace.frames.calls.kind) == ["llm", "llm"]
    assert session.replay().ok


def test_outside_of_a_step_models_and_tools_are_unchanged():
    load(react_agent(model(AIMessage("x")), [add]))
    assert model(AIMessage("plain")).invoke("hi").content == "plain"
    assert add.invoke({"a": 1, "b": 1}) == 2


def test_a_reopened_run_is_replayed_without_calls(tmp_path):
    import agentnb as nb

    agent = react_agent(model(asks("add", {"a": 2, "b": 3}), AIMessage("it is 5")), [add])
    session = Session(load(agent), {"messages": [HumanMessage("2+3?", id="1")]}, store=tmp_path / "runs.db")
    session.run()
    session.close()
    CALLS.clear()
    opened = nb.open(tmp_path / "runs.db", recipe=load(agent))
    assert opened.replay().ok
    assert CALLS == []


class Tempered(BaseChatModel):
    """A model with settings of its own."""

    temperature: float = 0.7

    @property
    def _llm_type(self):
        return "tempered"

    @property
    def _identifying_params(self):
        return {"temperature": self.temperature, "top_p": None}

    def _generate(self, messages, stop=None, run_manager=None, **options):
        text = str(options.get("temperature", self.temperature))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    async def _agenerate(self, messages, stop=None, run_manager=None, **options):
        return self._generate(messages, stop, run_manager, **options)


def tempered(temperature, is_async=False):
    chosen = Tempered(temperature=temperature)

    def say(state):
        return {"messages": [chosen.invoke("hi")]}

    async def asay(state):
        return {"messages": [await chosen.ainvoke("hi")]}

    graph = StateGraph(MessagesState)
    graph.add_node("say", asay if is_async else say)
    graph.add_edge(START, "say")
    return load(graph)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_the_settings_of_a_model_object_are_recorded_compared_and_edited(is_async):
    session = Session(tempered(0.7, is_async), {"messages": []})
    session.run()
    assert session.trace.frames.calls.arguments[0]["invocation_params"] == {"temperature": 0.7}
    assert session.replay().ok
    divergence = session.replay(recipe=tempered(0.2, is_async)).first_divergence
    assert (divergence.what, divergence.path.endswith("invocation_params.temperature")) == ("call", True)
    assert (divergence.recorded, divergence.replayed) == (0.7, 0.2)
    held = Session(tempered(0.7, is_async), {"messages": []})
    held.breakpoints.add(call="llm")
    held.run()
    call = held.pending[0]
    held.change(call.id, arguments={**call.arguments, "invocation_params": {"temperature": 0.1}})
    held.run()
    assert held.board["messages"][-1].content == "0.1"
    assert held.replay().ok
