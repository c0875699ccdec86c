"""The session's model answers in place of the models that a program brings along."""

from __future__ import annotations

from typing import Annotated, TypedDict

import pytest

pytest.importorskip("langgraph")

from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from pydantic import BaseModel

import agentnb as nb
from agentnb.dialects.activegraph import Graph, LLMBehavior, Runtime
from agentnb.samples.chat_models import SimulatedChatModel
from agentnb.world.llm import LLMResponse, ToolDefinition


class State(TypedDict):
    messages: Annotated[list, add_messages]


class Verdict(BaseModel):
    """A verdict."""

    good: bool
    why: str


@tool
def rain(city: str) -> str:
    """Return the chance of rain."""
    return f"70 % in {city}"


def never(_messages):
    raise AssertionError("the program's own model was asked")


def program(node):
    graph = StateGraph(State)
    graph.add_node("say", node)
    graph.add_edge(START, "say")
    graph.add_edge("say", END)
    return nb.load(graph)


def asking(model=None, **options):
    own_model = model or SimulatedChatModel(answer=never)
    return program(lambda state: {"messages": [own_model.invoke(state["messages"], **options)]})


def run(recipe, llm, *messages, **options):
    session = nb.Session(recipe, {"messages": list(messages) or [("user", "Why?")]}, llm=llm, **options)
    session.run()
    assert session.error is None, session.error
    return session


def test_without_a_model_of_the_session_that_of_the_program_answers():
    recipe = asking(FakeListChatModel(responses=["its own"]))
    session = nb.Session(recipe, {"messages": [("user", "Why?")]})
    session.run()
    assert session.board["messages"][-1].content == "its own"


def test_a_script_answers_in_place_of_the_programs_model():
    session = run(asking(), ["Because."])
    assert session.board["messages"][-1].content == "Because."
    (call,) = session.trace.frames.calls.to_dict("records")
    assert (call["kind"], call["provider"], call["name"]) == ("llm", "scripted", "SimulatedChatModel")


def test_an_async_node_uses_the_model_of_the_session_too():
    own_model = SimulatedChatModel(answer=never)

    async def say(state):
        return {"messages": [await own_model.ainvoke(state["messages"])]}

    assert run(program(say), ["Because."]).board["messages"][-1].content == "Because."


def test_the_request_has_roles_tools_and_settings():
    requests = []
    own_model = SimulatedChatModel(answer=never).bind_tools([rain])
    call = {"id": "call-1", "name": "rain", "args": {"city": "Oslo"}}
    before = [SystemMessage("Be brief."), HumanMessage([{"type": "text", "text": "Rain?"}]),
              AIMessage("", tool_calls=[call]), ToolMessage("70 %", tool_call_id="call-1")]  # fmt: skip
    recipe = asking(own_model, stop=["."], temperature=0.5)
    session = run(recipe, lambda request: requests.append(request) or "Yes.", *before)
    (request,) = requests
    assert [(each.role, each.content) for each in request.messages] == [
        ("system", "Be brief."), ("user", "Rain?"), ("assistant", ""), ("tool", "70 %"),
    ]  # fmt: skip
    assert (request.messages[2].tool_calls[0].arguments, request.messages[3].tool_call_id) == (
        {"city": "Oslo"}, "call-1",
    )  # fmt: skip
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    assert request.tools == (ToolDefinition("rain", "Return the chance of rain.", schema),)
    assert (dict(request.settings), request.node) == ({"stop": ["."], "temperature": 0.5}, "say")
    assert session.board["messages"][-1].content == "Yes."


def test_tool_calls_reach_the_program():
    own_model = SimulatedChatModel(answer=never).bind_tools([rain])
    expected = LLMResponse(
        "", tool_calls=[{"id": "c", "name": "rain", "arguments": {"city": "Oslo"}, "signature": "s"}]
    )
    answer = run(asking(own_model), lambda _request: expected).board["messages"][-1]
    assert [(call["name"], call["args"], call["id"]) for call in answer.tool_calls] == [("rain", {"city": "Oslo"}, "c")]
    requests = []
    run(
        asking(own_model),
        lambda request: requests.append(request) or "ok",
        answer,
        ToolMessage("70 %", tool_call_id="c"),
    )
    assert requests[0].messages[0].tool_calls[0].signature == "s"  # the vendor gets it back


@pytest.mark.parametrize("said", [{"good": True, "why": "short"}, 'Here: {"good": true, "why": "short"}'])
def test_structured_output_is_requested_by_its_schema(said):
    requests = []
    own_model = SimulatedChatModel(answer=never).with_structured_output(Verdict)
    recipe = program(lambda state: {"messages": [("ai", own_model.invoke(state["messages"]).model_dump_json())]})
    session = run(recipe, lambda request: requests.append(request) or said)
    assert session.board["messages"][-1].content == '{"good":true,"why":"short"}'
    assert set(requests[0].settings["schema"]["properties"]) == {"good", "why"}
    assert requests[0].tools == ()


SCHEMA = {"type": "object", "properties": {"good": {"type": "boolean"}}, "required": ["good"]}


@pytest.mark.parametrize(
    "option",
    [
        {"response_format": {"type": "json_schema", "json_schema": {"name": "verdict", "schema": SCHEMA}}},
        {"response_format": Verdict},
        {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    ],
    ids=["openai", "class", "anthropic"],
)
def test_vendor_options_for_a_schema_are_supported(option):
    requests = []
    session = run(asking(**option), lambda request: requests.append(request) or {"good": True})
    assert "good" in requests[0].settings["schema"]["properties"]
    message = session.board["messages"][-1]
    assert (message.content, message.additional_kwargs["parsed"]) == ('{"good": true}', {"good": True})


def test_a_fork_can_use_another_model():
    session = run(asking(), ["one"])
    fork = session.fork(at=0, llm=["two"])
    fork.run()
    assert fork.board["messages"][-1].content == "two"
    assert session.board["messages"][-1].content == "one"


def test_a_run_replays_without_the_model_that_answered(tmp_path):
    session = run(asking(), ["one"], store=str(tmp_path / "runs.db"), run_id="a")
    assert session.replay().ok
    session.close()
    opened = nb.open(str(tmp_path / "runs.db"), "a", recipe=asking())
    assert opened.replay(strict="reads").ok
    assert opened.board["messages"][-1].content == "one"


def test_an_edited_call_is_sent_to_the_model_of_the_session():
    requests = []
    recipe = asking()
    session = nb.Session(recipe, {"messages": [("user", "Why?")]}, llm=lambda request: requests.append(request) or "ok")
    session.breakpoints.add(call="llm")
    session.step()
    (pending,) = session.pending
    messages = [{**dict(pending.arguments["messages"][0])}]
    messages[0] = {**messages[0], "data": {**messages[0]["data"], "content": "How?"}}
    session.change(pending.id, arguments={"messages": messages})
    session.run()
    assert [each.messages[-1].content for each in requests] == ["How?"]


def test_an_image_cannot_be_sent_to_the_model_of_a_session():
    message = HumanMessage([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}])
    session = nb.Session(asking(), {"messages": [message]}, llm=["no"])
    session.run()
    assert (session.status, session.error.code) == ("failed", "L545")


def test_a_runtime_uses_the_model_of_the_session():
    class Text(BaseModel):
        text: str

    def store(event, graph, ctx, answer):
        graph.add_object("text", {"text": answer.text, "asked": ctx.llm_provider.complete is not None})

    def own(_request):
        raise AssertionError("the runtime's own model was asked")

    behavior = LLMBehavior("store", store, on=["go"], handler=store, output_schema=Text)
    runtime = Runtime(Graph(), behaviors=[behavior], llm_provider=own)
    session = nb.Session(nb.load(runtime), llm=[{"text": "from the session"}])
    session.emit("go", {})
    session.run()
    assert (session.status, session.error) == ("idle", None)
    assert session.board["text#1"]["data"]["text"] == "from the session"
    assert session.replay().ok
