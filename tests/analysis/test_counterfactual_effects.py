"""Counterfactuals reach nothing: calls that did not change are answered from the record, others are only named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypedDict

import networkx as nx
import pandas as pd
import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool as langchain_tool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition

import agentnb as nb
from agentnb.dialects.activegraph import Graph as EventGraph
from agentnb.dialects.activegraph import Runtime, behavior, llm_behavior
from agentnb.dialects.polaris import Graph, Out, system
from tests.analysis.corpus import agent, art_start, art_tool, coreason_start, say, symphony_start, use


def payment(calls, given="recipe"):
    """Return a run that pays an amount; its text does not matter to the payment."""

    def pay(amount):
        calls.append(amount)
        return {"receipt": f"paid {amount}"}

    async def pay_later(amount):
        return pay(amount)

    def pay_from_board(board):
        return pay(board["amount"])

    function = {"session": "pay", "async": "pay", "board": pay_from_board}.get(given, pay)
    tools = {"session": {"pay": pay}, "async": {"pay": pay_later}, "agent": {"pay": pay}}.get(given)
    graph = nx.DiGraph(name="payment", entry="read")
    graph.add_node("read", function=lambda text: {"amount": int(text.split()[-1])}, inputs={"text": "text"})
    inputs = {} if given == "board" else {"inputs": {"amount": "amount"}}
    what = {"kind": "agent", "ref": "pay"} if given == "agent" else {"kind": "tool", "function": function}
    graph.add_node("pay", **what, **inputs)
    graph.add_node("check", function=lambda board: {"fine": board["amount"] == 20 and "20" in board["receipt"]})
    graph.add_edge("read", "pay")
    graph.add_edge("pay", "check")
    session = nb.Session(nb.load(graph), {"text": "pay 10"}, tools=tools)
    session.run()
    return session


def answered_by_model(calls):
    def model(request):
        calls.append(request.messages[-1].content)
        return "yes"

    graph = nx.DiGraph(name="ask", entry="read")
    graph.add_node("read", function=lambda text: {"topic": text}, inputs={"text": "text"})
    graph.add_node("ask", kind="llm", prompt="{{ topic }}?", output="answer")
    graph.add_node("end", kind="noop")
    graph.add_edge("read", "ask")
    graph.add_edge("ask", "end")
    session = nb.Session(nb.load(graph), {"text": "rain"}, llm=model)
    session.run()
    return session


def langgraph_agent(calls):
    class State(TypedDict):
        text: str
        messages: Annotated[list, add_messages]

    @langchain_tool
    def pay(amount: int) -> str:
        """Pay an amount."""
        calls.append(amount)
        return f"paid {amount}"

    class Model(GenericFakeChatModel):
        def _generate(self, *arguments, **options):
            calls.append("model")
            return super()._generate(*arguments, **options)

    def answers():
        while True:
            yield AIMessage("", tool_calls=[{"name": "pay", "args": {"amount": 5}, "id": "1"}])
            yield AIMessage("done")

    model = Model(messages=answers())
    graph = StateGraph(State)
    graph.add_node("read", lambda state: {"messages": [("user", state["text"])]})
    graph.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([pay]))
    graph.add_edge(START, "read")
    graph.add_edge("read", "agent")
    graph.add_conditional_edges("agent", tools_condition, {"tools": "tools", END: END})
    graph.add_edge("tools", "agent")
    session = nb.Session(nb.load(graph), {"text": "pay 5", "messages": []})
    session.run()
    return session


def agentruntime(calls):
    def first(n):
        calls.append(n)
        return n + 1

    def second(n):
        calls.append(n)
        return n * 2

    session = art_start([art_tool("first", "a", "n"), art_tool("second", "out", "a")], ("first", "second"),
                        first=first, second=second)(1)  # fmt: skip
    session.run()
    return session


def coreason(calls):
    def count(text):
        calls.append(text)
        return {"words": len(text.split())}

    def bill(words):
        calls.append(words)
        return {"out": words * 7}

    nodes = [agent("count", text="text"), agent("bill", words="words")]
    session = coreason_start(nodes, ("count", "bill"), count=count, bill=bill)("one two")
    session.run()
    return session


def symphony(calls):
    def model(task, results):
        calls.append(task)
        return say("done") if results else use("price", item=task)

    def price(given):
        calls.append(given)
        return 20

    session = symphony_start(model, price=price)("lamp")
    session.run()
    return session


def polaris(calls):
    @dataclass
    class Order:
        amount: int

    @dataclass
    class Receipt:
        amount: int

    @system
    def read() -> Order:
        calls.append("read")
        return Order(10)

    @system
    def pay(order: Out[Order]) -> Receipt:
        calls.append(order.amount)
        return Receipt(order.amount)

    session = nb.Session(nb.load(Graph("payment").add_system(read).add_system(pay)))
    session.run()
    return session


def activegraph(calls):
    def model(request):
        calls.append("model")
        return "noted"

    @behavior(on=["came"])
    def read(event, graph, ctx):
        graph.add_object("topic", {"text": event.payload["topic"]})

    @llm_behavior(on=["came"], description="Say what it is about.")
    def answer(event, graph, ctx, out):
        graph.add_object("note", {"text": str(out)})

    runtime = Runtime(EventGraph(), behaviors=[read, answer], name="runtime", llm_provider=model)
    session = nb.Session(nb.load(runtime))
    session.emit("came", {"topic": "rain"})
    session.run()
    return session


WAYS = {
    "a tool of the recipe": payment,
    "a tool passed to the session": lambda calls: payment(calls, "session"),
    "an async tool": lambda calls: payment(calls, "async"),
    "a tool that reads the board": lambda calls: payment(calls, "board"),
    "an agent that is a function": lambda calls: payment(calls, "agent"),
    "a model": answered_by_model,
    "langgraph": langgraph_agent,
    "agentruntime": agentruntime,
    "coreason": coreason,
    "symphony": symphony,
    "polaris": polaris,
    "activegraph": activegraph,
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_called_and_what_would_be_is_named(way):
    calls = []
    session = WAYS[way](calls)
    assert session.error is None
    assert calls, "the run has called something"
    calls.clear()
    changes = session.counterfactuals(lambda fork: fork.status == "finished" and "wrong" in fork.board)
    assert calls == []
    ended = changes["would_call"].str.len() > 0
    assert changes.loc[ended, "outcome"].isna().all()
    assert (changes.loc[~ended, "outcome"] == False).all()  # noqa: E712  (a column)
    assert ended.any()


@pytest.mark.parametrize("given", ["recipe", "session", "async", "board", "agent"])
def test_a_tool_is_called_if_effects_are_asked_for(given):
    calls = []
    session = payment(calls, given)
    calls.clear()
    right, wrong = [20], [10.5, 20]
    changes = session.counterfactuals(lambda fork: fork.board["fine"], candidates={"amount": right})
    assert calls == []
    name = "pay" if given != "board" else "pay_from_board"
    arguments = "" if given == "board" else "amount=20"
    assert changes["would_call"].to_list() == [(f"{name}({arguments})",)]
    assert changes["outcome"].to_list() == [pd.NA]
    changes = session.counterfactuals(lambda fork: fork.board["fine"], candidates={"amount": wrong}, effects=True)
    assert sorted(calls) == wrong
    assert changes["outcome"].to_list() == [True, False]
    assert changes["would_call"].to_list() == [(), ()]


@pytest.mark.parametrize("given", ["recipe", "session", "async", "board", "agent"])
@pytest.mark.parametrize("effects", [False, True])
def test_an_unchanged_request_is_answered_from_the_record(given, effects):
    calls = []
    session = payment(calls, given)
    calls.clear()
    changes = session.counterfactuals(lambda fork: fork.board["receipt"] == "paid 10" and fork.status == "finished",
                                      candidates={"text": ["please pay 10"]}, effects=effects)  # fmt: skip
    assert (calls, changes["outcome"].to_list()) == ([], [True])


def test_a_fork_that_ended_at_a_call_is_right_only_if_it_is_right_without_it():
    session = payment([])
    judges = {
        "it holds there and never held in the run": (lambda fork: fork.board["amount"] == 20, True),
        "it held in the run, too, before the call": (lambda fork: fork.board.get("receipt") != "paid 10", pd.NA),
        "it does not hold there": (lambda fork: fork.board["fine"], pd.NA),
    }
    for name, (ok, outcome) in judges.items():
        changes = session.counterfactuals(ok, candidates={"amount": [20]})
        assert changes["outcome"].to_list() == [outcome], name
        assert changes["would_call"].to_list() == [("pay(amount=20)",)], name


def test_equal_requests_get_their_answers_in_the_recorded_order():
    answers = iter("abcdef")
    graph = nx.DiGraph(name="loop", entry="draw")
    graph.add_node("draw", kind="tool", function=lambda: {"letter": next(answers)}, inputs={})
    graph.add_node("note", function=lambda n, letter, told: {"n": n + 1, "told": [*told, letter]},
                   inputs={"n": "n", "letter": "letter", "told": "told"})  # fmt: skip
    graph.add_edge("draw", "note")
    graph.add_edge("note", "draw", when="n < 3")
    session = nb.Session(nb.load(graph), {"n": 0, "told": []})
    session.run()
    changes = session.counterfactuals(lambda fork: "".join(fork.board["told"]) == "xbc", candidates={"letter": ["x"]})
    assert changes["outcome"].to_list() == [True, False, False]
    longer = session.counterfactuals(lambda fork: fork.board["n"] == 4, candidates={"n": [-1]})
    assert set(longer["would_call"]) == {("draw()",)}
    assert longer["outcome"].isna().all()
    assert next(answers) == "d"


def test_a_failed_call_fails_again():
    calls = []

    def fetch(page):
        calls.append(page)
        raise ConnectionError("no route")

    graph = nx.DiGraph(name="fetch", entry="fetch")
    graph.add_node("fetch", kind="tool", function=fetch, inputs={"page": "page"})
    graph.add_node("sorry", function=lambda note: {"said": note}, inputs={"note": "note"})
    graph.add_edge("fetch", "sorry", kind="error")
    session = nb.Session(nb.load(graph), {"page": 1, "note": "x"})
    session.run()
    changes = session.counterfactuals(lambda fork: fork.board["said"] == "y", candidates={"note": ["y"]})
    assert (calls, changes["outcome"].to_list()) == ([1], [True])


@pytest.mark.parametrize("effects", [False, True])
def test_people_are_never_asked(effects):
    graph = nx.DiGraph(name="ask", entry="ask")
    graph.add_node("ask", kind="human", prompt="Pay {{ amount }}?", output="verdict")
    graph.add_node("done", function=lambda verdict: {"done": verdict == "yes"}, inputs={"verdict": "verdict"})
    graph.add_edge("ask", "done")
    session = nb.Session(nb.load(graph), {"amount": 10, "note": "x"})
    session.run()
    session.answer("yes")
    session.run()
    changes = session.counterfactuals(lambda fork: fork.board["done"] and fork.board["note"] == "y",
                                      candidates={"amount": [20], "note": ["y"]}, effects=effects)  # fmt: skip
    assert changes["outcome"].to_list() == [True, pd.NA]
    assert changes["would_call"].to_list() == [(), ("ask(prompt='Pay 20?')",)]


def test_a_reopened_run_is_answered_from_its_store(tmp_path):
    calls = []
    session = payment(calls)
    session.save(tmp_path / "run.db")
    calls.clear()
    opened = nb.open(tmp_path / "run.db", recipe=session.recipe)
    changes = opened.counterfactuals(lambda fork: fork.status == "finished",
                                     candidates={"amount": [20], "text": ["now 10"]})  # fmt: skip
    assert calls == []
    assert changes["outcome"].to_list() == [True, pd.NA]


def test_secrets_in_calls_are_masked():
    graph = nx.DiGraph(name="call", entry="call")
    graph.add_node(
        "call", kind="tool", function=lambda api_key, n: {"done": n}, inputs={"api_key": "api_key", "n": "n"}
    )
    graph.add_node("end", kind="noop")
    graph.add_edge("call", "end")
    session = nb.Session(nb.load(graph), {"api_key": "Zx9q-4711-abcd", "n": 1})
    session.run()
    changes = session.counterfactuals(lambda fork: False, candidates={"n": [2]})
    assert changes["would_call"].to_list() == [("call(api_key='********', n=2)",)]
