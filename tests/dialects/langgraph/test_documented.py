"""The kinds of programs that LangGraph's documentation teaches run as they do there. Models answer by rules."""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    SummarizationMiddleware,
    dynamic_prompt,
    wrap_tool_call,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode, tools_condition
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel

from agentnb.dialects.langgraph.api import load_graph
from agentnb.load import load
from agentnb.session import Session
from tests.dialects.langgraph.judge import compare


class Model(BaseChatModel):
    """A model that answers by a rule: a function of the messages."""

    rule: Callable[[list[BaseMessage]], Any]

    @property
    def _llm_type(self) -> str:
        return "rule"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        answer = self.rule(messages)
        message = answer if isinstance(answer, AIMessage) else AIMessage(answer)
        return ChatResult(generations=[ChatGeneration(message=message.model_copy(deep=True))])


def uses(name: str, **arguments: Any) -> AIMessage:
    """Return a request to use a tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"use {name}"}])


def shape(state: Any) -> Any:
    """Return a state without the random ids of its messages."""
    if isinstance(state, BaseMessage):
        calls = [(call["name"], call["args"]) for call in getattr(state, "tool_calls", [])]
        return type(state).__name__, state.content, state.name, calls
    if isinstance(state, dict) or hasattr(state, "keys"):
        return {key: shape(state[key]) for key in state}
    return [shape(each) for each in state] if isinstance(state, list | tuple) else state


@tool
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


@tool
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"sent to {to}: {text}"


def calculates(messages: list[BaseMessage]) -> Any:
    """Use the tool for a product, and tell the result of a tool."""
    last = messages[-1]
    if isinstance(last, ToolMessage):
        return f"It is {last.content}."
    matches = re.findall(r"\d+", str(last.content))
    return uses("multiply", a=int(matches[0]), b=int(matches[1])) if len(matches) == 2 else f"{len(messages)} messages"


def ask(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def chatbot_with_tools() -> Any:
    model = Model(rule=calculates).bind_tools([multiply])
    graph = StateGraph(MessagesState)
    graph.add_node("chatbot", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([multiply]))
    graph.add_edge(START, "chatbot")
    graph.add_conditional_edges("chatbot", tools_condition)
    graph.add_edge("tools", "chatbot")
    return graph.compile()


class Draft(TypedDict, total=False):
    topic: str
    text: str
    critique: Annotated[list[str], operator.add]
    rounds: Annotated[int, operator.add]


def reflection() -> Any:
    """A writer and a critic take turns."""
    writer = Model(rule=lambda messages: f"essay on {messages[-1].content}")
    critic = Model(rule=lambda messages: f"more depth in: {messages[-1].content}")
    graph = StateGraph(Draft)
    graph.add_node("write", lambda state: {
        "text": writer.invoke([*state.get("critique", []), state["topic"]]).content, "rounds": 1,
    })  # fmt: skip
    graph.add_node("reflect", lambda state: {"critique": [critic.invoke(state["text"]).content]})
    graph.add_edge(START, "write")
    graph.add_conditional_edges("write", lambda state: END if state["rounds"] > 2 else "reflect")
    graph.add_edge("reflect", "write")
    return graph.compile()


class Planned(TypedDict, total=False):
    goal: str
    plan: list[str]
    past: Annotated[list[tuple[str, str]], operator.add]
    response: str


def plan_and_execute() -> Any:
    planner = Model(rule=lambda messages: "search, compare, decide")
    agent = Model(rule=lambda messages: f"did {messages[-1].content}")
    graph = StateGraph(Planned)
    graph.add_node("planner", lambda state: {"plan": planner.invoke(state["goal"]).content.split(", ")})
    graph.add_node("agent", lambda state: {"past": [[state["plan"][0], agent.invoke(state["plan"][0]).content]]})

    def replan(state: Planned) -> Any:
        rest = state["plan"][1:]
        return {"plan": rest} if rest else {"response": state["past"][-1][1]}

    graph.add_node("replan", replan)
    graph.add_edge(START, "planner")
    graph.add_edge("planner", "agent")
    graph.add_edge("agent", "replan")
    graph.add_conditional_edges("replan", lambda state: END if state.get("response") else "agent", ["agent", END])
    return graph.compile()


class Jokes(TypedDict, total=False):
    topic: str
    subjects: list[str]
    jokes: Annotated[list[str], operator.add]
    best: str


def map_reduce() -> Any:
    model = Model(rule=lambda messages: f"joke: {messages[-1].content}")
    graph = StateGraph(Jokes)
    graph.add_node("subjects", lambda state: {"subjects": [f"{state['topic']} {n}" for n in range(3)]})
    graph.add_node("joke", lambda state: {"jokes": [model.invoke(state["subject"]).content]})
    graph.add_node("best", lambda state: {"best": max(state["jokes"])})
    graph.add_edge(START, "subjects")
    graph.add_conditional_edges(
        "subjects", lambda state: [Send("joke", {"subject": subject}) for subject in state["subjects"]], ["joke"]
    )
    graph.add_edge("joke", "best")
    graph.add_edge("best", END)
    return graph.compile()


class Inner(TypedDict, total=False):
    question: str
    answer: str


class Outer(TypedDict, total=False):
    topic: str
    answer: str
    notes: Annotated[list[str], operator.add]


def subgraphs() -> Any:
    """One graph shares keys with the outer one and is a node; another has its own, and a function calls it."""
    model = Model(rule=lambda messages: messages[-1].content.upper())
    research = StateGraph(Inner)
    research.add_node("answer", lambda state: {"answer": model.invoke(state["question"]).content})
    research.add_edge(START, "answer")
    called = research.compile()
    notes = StateGraph(Outer)
    notes.add_node("one", lambda state: {"notes": ["one"]})
    notes.add_node("two", lambda state: {"notes": [f"two after {len(state['notes'])}"]})
    notes.add_edge(START, "one")
    notes.add_edge("one", "two")
    graph = StateGraph(Outer)
    graph.add_node("research", lambda state: {"answer": called.invoke({"question": state["topic"]})["answer"]})
    graph.add_node("notes", notes.compile())
    graph.add_edge(START, "research")
    graph.add_edge("research", "notes")
    return graph.compile()


def handoff(to: str) -> Any:
    """Return a tool by which an agent hands over to another one."""

    @tool(f"transfer_to_{to}", description=f"Hand over to {to}.")
    def transfer(state: Annotated[dict, InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        done = ToolMessage(f"handed over to {to}", name=f"transfer_to_{to}", tool_call_id=tool_call_id)
        return Command(goto=to, graph=Command.PARENT, update={"messages": [*state["messages"], done]})

    return transfer


def agent(rule: Any, tools: list[Any], **words: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has been renamed
        from langgraph.prebuilt import create_react_agent

        return create_react_agent(Model(rule=rule), tools, **words)


def swarm() -> Any:
    def travels(messages: list[BaseMessage]) -> Any:
        return uses("transfer_to_hotel") if "hotel" in str(messages[-1].content) else "no"

    graph = StateGraph(MessagesState)
    graph.add_node("travel", agent(travels, [handoff("hotel")], name="travel"))
    graph.add_node("hotel", agent(lambda messages: f"booked after {len(messages)}", [handoff("travel")], name="hotel"))
    graph.add_edge(START, "travel")
    return graph.compile()


def supervisor() -> Any:
    """A supervisor sends workers to work, until it is content."""

    def decides(state: MessagesState) -> Command[Literal["maths", "prose", "__end__"]]:
        done = sum(message.name in {"maths", "prose"} for message in state["messages"])
        return Command(goto=["maths", "prose", END][done])

    def worker(name: str, rule: Any, tools: list[Any]) -> Any:
        works = create_agent(Model(rule=rule), tools)

        def run(state: MessagesState) -> Command[Literal["supervisor"]]:
            reply = works.invoke({"messages": state["messages"][:1]})["messages"][-1].content
            return Command(update={"messages": [HumanMessage(reply, name=name)]}, goto="supervisor")

        return run

    graph = StateGraph(MessagesState)
    graph.add_node("supervisor", decides)
    graph.add_node("maths", worker("maths", calculates, [multiply]))
    graph.add_node("prose", worker("prose", lambda messages: "once upon a time", []))
    graph.add_edge(START, "supervisor")
    return graph.compile()


def supervisor_with_handoffs() -> Any:
    """A supervisor whose tools send packets to agents, which come back to it."""

    @tool("assign_to_maths", description="Assign a task.")
    def assign(task: str) -> Command:
        return Command(goto=[Send("maths", {"messages": [HumanMessage(task)]})], graph=Command.PARENT)

    def decides(messages: list[BaseMessage]) -> Any:
        last = messages[-1]
        return uses("assign_to_maths", task="6 times 7") if last.type == "human" else f"done: {last.content}"

    graph = StateGraph(MessagesState)
    graph.add_node("supervisor", create_agent(Model(rule=decides), [assign], name="supervisor"))
    graph.add_node("maths", create_agent(Model(rule=calculates), [multiply], name="maths"))
    graph.add_edge(START, "supervisor")
    graph.add_edge("maths", "supervisor")
    return graph.compile()


class Question(TypedDict, total=False):
    question: str
    documents: list[str]
    answer: str
    tries: Annotated[int, operator.add]


def agentic_rag() -> Any:
    """Retrieve, grade, rewrite the question if nothing fits, and answer."""
    corpus = {"cats": "cats purr", "dogs": "dogs bark"}
    grader = Model(rule=lambda messages: "yes" if "purr" in str(messages[-1].content) else "no")
    writer = Model(rule=lambda messages: f"As we know, {messages[-1].content}.")
    graph = StateGraph(Question)
    graph.add_node("retrieve", lambda state: {
        "documents": [text for word, text in corpus.items() if word in state["question"]], "tries": 1,
    })  # fmt: skip
    graph.add_node("rewrite", lambda state: {"question": state["question"].replace("felines", "cats")})
    graph.add_node("generate", lambda state: {"answer": writer.invoke(", ".join(state["documents"])).content})

    def grades(state: Question) -> str:
        fit = grader.invoke(", ".join(state["documents"])).content == "yes"
        return "generate" if fit or state["tries"] > 2 else "rewrite"

    graph.add_edge(START, "retrieve")
    graph.add_conditional_edges("retrieve", grades, ["generate", "rewrite"])
    graph.add_edge("rewrite", "retrieve")
    graph.add_edge("generate", END)
    return graph.compile()


def human_in_the_loop() -> Any:
    """Approve or reject, edit, and ask until an answer is valid."""

    def approves(state: Draft) -> Command[Literal["edit", "__end__"]]:
        return Command(goto="edit" if interrupt({"approve": state["topic"]}) == "yes" else END)

    def asks_age(state: Draft) -> dict[str, Any]:
        question = "how many rounds?"
        while True:
            answer = interrupt(question)
            if isinstance(answer, int):
                return {"rounds": answer}
            question = f"{answer!r} is no number"

    graph = StateGraph(Draft)
    graph.add_node("approve", approves)
    graph.add_node("edit", lambda state: {"text": interrupt({"edit": state["topic"]})})
    graph.add_node("age", asks_age)
    graph.add_edge(START, "approve")
    graph.add_edge("edit", "age")
    return graph.compile()


HUMAN: dict[str, Any] = {
    "{'approve': 'cats'}": "yes",
    "{'edit': 'cats'}": "big cats",
    "how many rounds?": "three",
    "'three' is no number": 3,
}


def orchestrator_and_workers() -> Any:
    class Report(TypedDict, total=False):
        topic: str
        sections: list[str]
        done: Annotated[list[str], operator.add]
        report: str

    planner = Model(rule=lambda messages: "intro,body,end")
    writer = Model(rule=lambda messages: f"<{messages[-1].content}>")
    graph = StateGraph(Report)
    graph.add_node("orchestrator", lambda state: {"sections": planner.invoke(state["topic"]).content.split(",")})
    graph.add_node("worker", lambda state: {"done": [writer.invoke(state["section"]).content]})
    graph.add_node("synthesizer", lambda state: {"report": " ".join(state["done"])})
    graph.add_edge(START, "orchestrator")
    graph.add_conditional_edges(
        "orchestrator", lambda state: [Send("worker", {"section": each}) for each in state["sections"]], ["worker"]
    )
    graph.add_edge("worker", "synthesizer")
    return graph.compile()


def evaluator_and_optimizer() -> Any:
    writer = Model(rule=lambda messages: f"joke {len(messages[-1].content)}")
    judge = Model(rule=lambda messages: "funny" if int(messages[-1].content.split()[-1]) > 10 else "not funny")
    graph = StateGraph(Draft)
    graph.add_node("write", lambda state: {
        "text": writer.invoke(state["topic"] + "".join(state.get("critique", []))).content
    })  # fmt: skip
    graph.add_node("evaluate", lambda state: {"critique": [judge.invoke(state["text"]).content]})
    graph.add_edge(START, "write")
    graph.add_edge("write", "evaluate")
    graph.add_conditional_edges("evaluate", lambda state: state["critique"][-1], {"funny": END, "not funny": "write"})
    return graph.compile()


def routing() -> Any:
    router = Model(rule=lambda messages: "poem" if "poem" in str(messages[-1].content) else "story")
    graph = StateGraph(Draft)
    for kind in ("story", "poem"):
        graph.add_node(kind, lambda state, kind=kind: {"text": f"a {kind}"})
    graph.add_conditional_edges(START, lambda state: router.invoke(state["topic"]).content, ["story", "poem"])
    return graph.compile()


def parallelization() -> Any:
    model = Model(rule=lambda messages: f"[{messages[-1].content}]")
    graph = StateGraph(Draft)
    for kind in ("joke", "poem", "story"):
        graph.add_node(kind, lambda state, kind=kind: {"critique": [model.invoke(f"{kind} {state['topic']}").content]})
        graph.add_edge(START, kind)
    graph.add_node("all", lambda state: {"text": "; ".join(state["critique"])})
    graph.add_edge(["joke", "poem", "story"], "all")
    return graph.compile()


class Weather(BaseModel):
    """The weather."""

    place: str
    degrees: int


def structured() -> Any:
    return create_agent(
        Model(rule=lambda messages: uses("Weather", place="Bern", degrees=20)),
        [],
        response_format=ToolStrategy(Weather),
    )


class Counts(AgentMiddleware):
    """Count the calls of the model, by hooks before and after it."""

    class Own(TypedDict, total=False):
        messages: list
        calls: int

    state_schema = Own

    def before_model(self, state: Any, runtime: Any) -> Any:
        return {"calls": state.get("calls", 0) + 1}

    def after_model(self, state: Any, runtime: Any) -> Any:
        return {"jump_to": "end"} if state["calls"] > 3 else None


def with_middleware() -> Any:
    @dynamic_prompt
    def prompt(request: Any) -> str:
        return f"{len(request.messages)} so far"

    @wrap_tool_call
    def doubles(request: Any, handler: Any) -> Any:
        response = handler(request)
        return response.model_copy(update={"content": response.content + "!"})

    def rule(messages: list[BaseMessage]) -> Any:
        assert isinstance(messages[0], SystemMessage)
        return calculates(messages)

    return create_agent(Model(rule=rule), [multiply], middleware=[Counts(), prompt, doubles])  # fmt: skip


def with_approval() -> Any:
    def rule(messages: list[BaseMessage]) -> Any:
        last = messages[-1]
        return last.content if isinstance(last, ToolMessage) else uses("send_mail", to="Ada", text="hi")

    asks = HumanInTheLoopMiddleware(interrupt_on={"send_mail": True})
    return create_agent(Model(rule=rule), [send_mail], middleware=[asks])


def edits(_question: Any) -> Any:
    action = {"name": "send_mail", "args": {"to": "Bob", "text": "hello"}}
    return {"decisions": [{"type": "edit", "edited_action": action}]}


def with_summaries() -> Any:
    model = Model(rule=lambda messages: f"said {len(messages)}")
    return create_agent(
        model, [], middleware=[SummarizationMiddleware(model, trigger=("messages", 3), keep=("messages", 1))]
    )


CHAT = [HumanMessage("one", id="1"), AIMessage("two", id="2"), HumanMessage("three", id="3"), HumanMessage("4", id="4")]
PROGRAMS: dict[str, tuple[Any, Any, Any]] = {
    "chatbot with tools": (chatbot_with_tools, ask("What is 6 times 7?"), None),
    "prebuilt agent": (lambda: agent(calculates, [multiply], prompt="be brief"), ask("6 times 7"), None),
    "reflection": (reflection, {"topic": "cats"}, None),
    "plan and execute": (plan_and_execute, {"goal": "a house"}, None),
    "map and reduce": (map_reduce, {"topic": "cats"}, None),
    "subgraphs": (subgraphs, {"topic": "cats"}, None),
    "swarm": (swarm, ask("a hotel"), None),
    "supervisor": (supervisor, ask("6 times 7"), None),
    "supervisor with handoffs": (supervisor_with_handoffs, ask("work"), None),
    "agentic RAG": (agentic_rag, {"question": "what do felines do?"}, None),
    "human in the loop": (human_in_the_loop, {"topic": "cats"}, lambda question: HUMAN[str(question)]),
    "orchestrator and workers": (orchestrator_and_workers, {"topic": "cats"}, None),
    "evaluator and optimizer": (evaluator_and_optimizer, {"topic": "cats"}, None),
    "routing": (routing, {"topic": "a poem"}, None),
    "parallelization": (parallelization, {"topic": "cats"}, None),
    "structured output": (structured, ask("weather?"), None),
    "middleware": (with_middleware, ask("6 times 7"), None),
    "approval of a tool": (with_approval, ask("mail"), edits),
    "summaries": (with_summaries, {"messages": CHAT}, None),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_documented_program_runs_as_in_langgraph(name):
    make, inputs, answers = PROGRAMS[name]
    _, session = compare(make(), inputs, 40, answers, shape=shape)
    assert session.status == "finished"
    report = session.replay()
    assert report.ok, report


def test_memory_persists_over_the_turns_of_a_thread():
    graph = chatbot_with_tools().copy(update={"checkpointer": InMemorySaver()})
    config: Any = {"configurable": {"thread_id": "t"}}
    state: Any = {}
    for text in ("hi", "6 times 7", "thanks"):
        theirs = graph.invoke(ask(text), config)
        session = Session(load_graph(graph, state=state), ask(text))
        session.run()
        state = session.board
        assert shape(state) == shape(theirs)
    assert len(state["messages"]) == 8


def test_time_travel_with_an_edit():
    graph = plan_and_execute().copy(update={"checkpointer": InMemorySaver()})
    config: Any = {"configurable": {"thread_id": "t"}}
    graph.invoke({"goal": "a house"}, config)
    past = next(each for each in reversed([*graph.get_state_history(config)]) if each.next == ("agent",))
    theirs = graph.invoke(None, graph.update_state(past.config, {"plan": ["buy", "move"]}))
    session = Session(load(graph), {"goal": "a house"})
    session.run()
    fork = session.fork(at=1, edit={"plan": ["buy", "move"]})
    fork.run()
    assert shape(fork.board) == shape(theirs)
    assert fork.board["response"] == "did move" != session.board["response"]
