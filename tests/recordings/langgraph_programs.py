"""LangGraph programs whose checkpoints the tests open; LangGraph's own state history is the judge."""

from __future__ import annotations

import contextlib
import dataclasses
import operator
from decimal import Decimal
from typing import Annotated, Any, TypedDict
from uuid import UUID

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel


class State(TypedDict, total=False):
    n: int
    log: Annotated[list, operator.add]
    extra: Any


def said(word):
    return lambda _state: {"log": [word]}


def config(thread, **more):
    return {"configurable": {"thread_id": thread, **more}}


def line(saver):
    graph = StateGraph(State)
    graph.add_node("a", lambda state: {"n": state["n"] + 1, "log": ["a"]})
    graph.add_node("b", lambda state: {"n": state["n"] * 2})
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    graph.add_conditional_edges("b", lambda state: "a" if state["n"] < 20 else END)
    app = graph.compile(checkpointer=saver)
    app.invoke({"n": 1, "log": ["begin"]}, config("line"))
    return app, "line"


def parallel(saver):
    graph = StateGraph(State)
    for name in "abcdz":
        graph.add_node(name, said(name))
    graph.add_node("each", lambda state: {"log": [f"each {state['k']}"]})
    graph.add_edge(START, "a")
    for name in "bcd":
        graph.add_edge("a", name)
    graph.add_conditional_edges("d", lambda _state: [Send("each", {"k": k}) for k in range(12)])
    graph.add_edge(["b", "c", "d"], "z")
    app = graph.compile(checkpointer=saver)
    app.invoke({"log": ["begin"]}, config("parallel"))
    return app, "parallel"


def several_turns(saver):
    app, _ = line(saver)
    app.update_state(config("line"), {"n": 3, "log": ["by hand"]})
    app.invoke({"n": 5}, config("line"))
    return app, "line"


def asks(saver):
    graph = StateGraph(State)
    graph.add_node("a", said("a"))
    graph.add_node("ask", lambda _state: {"log": [interrupt("go on?"), interrupt("sure?")]})
    graph.add_node("end", said("end"))
    graph.add_edge(START, "a")
    graph.add_edge("a", "ask")
    graph.add_edge("ask", "end")
    app = graph.compile(checkpointer=saver)
    app.invoke({"log": ["begin"]}, config("asks"))
    return app, "asks"


def answered(saver):
    app, thread = asks(saver)
    app.invoke(Command(resume="yes"), config(thread))
    app.invoke(Command(resume="quite"), config(thread))
    return app, thread


def fails(saver):
    def broken(_state):
        raise ValueError("no such city")

    graph = StateGraph(State)
    graph.add_node("a", said("a"))
    graph.add_node("broken", broken)
    graph.add_edge(START, "a")
    graph.add_edge("a", "broken")
    app = graph.compile(checkpointer=saver)
    with contextlib.suppress(ValueError):
        app.invoke({"log": ["begin"]}, config("fails"))
    return app, "fails"


def nested(saver):
    inmost = StateGraph(State)
    inmost.add_node("deep", said("deep"))
    inmost.add_edge(START, "deep")
    inner = StateGraph(State)
    inner.add_node("one", said("one"))
    inner.add_node("inmost", inmost.compile())
    inner.add_edge(START, "one")
    inner.add_edge("one", "inmost")
    graph = StateGraph(State)
    graph.add_node("a", lambda state: {"n": state["n"] + 1})
    graph.add_node("inner", inner.compile())
    graph.add_node("z", said("z"))
    graph.add_edge(START, "a")
    graph.add_edge("a", "inner")
    graph.add_conditional_edges("inner", lambda state: "a" if state["n"] < 3 else "z")
    app = graph.compile(checkpointer=saver)
    app.invoke({"n": 1, "log": []}, config("nested"))
    return app, "nested"


def asks_inside(saver):
    inner = StateGraph(State)
    inner.add_node("one", said("one"))
    inner.add_node("ask", lambda _state: {"log": [interrupt({"question": "go on?"})]})
    inner.add_edge(START, "one")
    inner.add_edge("one", "ask")
    graph = StateGraph(State)
    graph.add_node("a", said("a"))
    graph.add_node("inner", inner.compile())
    graph.add_edge(START, "a")
    graph.add_edge("a", "inner")
    app = graph.compile(checkpointer=saver)
    app.invoke({"log": ["begin"]}, config("inside"))
    return app, "inside"


def forked(saver):
    app, thread = line(saver)
    history = list(app.get_state_history(config(thread)))
    app.invoke(None, history[-3].config)
    app.update_state(history[-4].config, {"n": 100})
    return app, thread


class Order(BaseModel):
    city: str
    amount: Decimal


@dataclasses.dataclass
class Note:
    text: str


def values(saver):
    graph = StateGraph(State)
    values = {
        "order": Order(city="Rome", amount=Decimal("2.50")),
        "note": Note("hello"),
        "id": UUID(int=7),
        "tags": {"x"},
        "pair": (1, 2),
        "none": None,
        "bytes": b"\x00\x01",
        "big": 2**60,
    }
    graph.add_node("a", lambda _state: {"extra": values})
    graph.add_edge(START, "a")
    app = graph.compile(checkpointer=saver)
    app.invoke({"log": ["begin"]}, config("values"))
    return app, "values"


def messages(saver):
    graph = StateGraph(MessagesState)
    graph.add_node("answer", lambda _state: {"messages": [AIMessage("hello", id="2")]})
    graph.add_edge(START, "answer")
    app = graph.compile(checkpointer=saver)
    app.invoke({"messages": [HumanMessage("hi", id="1")]}, config("messages"))
    return app, "messages"


PROGRAMS = [line, parallel, several_turns, asks, answered, fails, nested, asks_inside, forked, values, messages]
