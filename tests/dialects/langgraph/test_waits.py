"""What changes when a run waits for a person: keys that checkpoints do not keep are lost, limits count anew."""

from __future__ import annotations

import itertools
import operator
from typing import Annotated, TypedDict

import pytest
from langgraph.channels import UntrackedValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, StateGraph
from langgraph.managed import IsLastStep, RemainingSteps  # noqa: TC002  (LangGraph reads the annotations)
from langgraph.types import Send, interrupt

from agentnb.dialects.langgraph.api import load_graph
from agentnb.session import Session
from tests.dialects.langgraph.judge import compare


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]
    secret: Annotated[str, UntrackedValue]
    shared: Annotated[str, UntrackedValue(str, guard=False)]


def node(name, asks=0, **writes):
    """Return a node that records which keys it sees, after its questions."""

    def run(state):
        for number in range(asks):
            interrupt(f"{name}{number}")
        seen = sorted((key, str(value)) for key, value in state.items() if key != "log")
        return {"log": [f"{name} {seen}"], **writes}

    return run


def graph_of(nodes, *edges, schema=State, **options):
    graph = StateGraph(schema)
    for name, function in nodes.items():
        graph.add_node(name, function)
    for source, target in edges:
        graph.add_edge(source, target)
    return graph.compile(**options)


def line(*names):
    return list(zip([START, *names], names, strict=False))


INNER = {
    "x": node("x", secret="x's"),
    "y": node("y", asks=1),
    "z": node("z"),
}
GRAPHS = {
    "one asks": graph_of({"a": node("a", secret="a's"), "b": node("b", 1), "c": node("c")}, *line("a", "b", "c")),
    "one asks and writes": graph_of(
        {"a": node("a", secret="a's"), "b": node("b", 2, secret="b's"), "c": node("c")}, *line("a", "b", "c")
    ),
    "siblings": graph_of(
        {"a": node("a", secret="a's"), "b": node("b", 1), "c": node("c", shared="c's"), "d": node("d")},
        *line("a", "b", "d"), ("a", "c"), ("c", "d"),
    ),
    "the first sibling writes": graph_of(
        {"a": node("a", secret="a's"), "b": node("b", shared="b's"), "c": node("c", 1), "d": node("d")},
        *line("a", "b", "d"), ("a", "c"),
    ),
    "siblings ask": graph_of(
        {"a": node("a"), "b": node("b", 1, shared="b's"), "c": node("c", 2, shared="c's"), "d": node("d")},
        *line("a", "b", "d"), ("a", "c"), ("c", "d"),
    ),
    "siblings ask equally often": graph_of(
        {"a": node("a"), "b": node("b", 1, shared="b's"), "c": node("c", 1, secret="c's"), "d": node("d")},
        *line("a", "b", "d"), ("a", "c"), ("c", "d"),
    ),
    "a graph inside asks": graph_of(
        {"a": node("a", secret="a's"), "b": graph_of(INNER, *line("x", "y", "z")), "c": node("c")}, *line("a", "b", "c")
    ),
    "a graph inside asks beside a node": graph_of(
        {"a": node("a", secret="a's"), "b": graph_of(INNER, *line("x", "y", "z")), "c": node("c", 1, shared="c's"),
         "d": node("d")}, *line("a", "b", "d"), ("a", "c"), ("c", "d"),
    ),
    "no one asks": graph_of(
        {"a": node("a", secret="a's"), "b": graph_of({"x": node("x", shared="x's")}, *line("x"))}, *line("a", "b")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_an_answer_drops_values_that_checkpoints_do_not_store(name):
    _, session = compare(GRAPHS[name], {"secret": "in"}, answers=lambda question: question)
    assert session.status == "finished"
    assert session.replay().ok


def test_a_condition_sees_no_such_keys_after_a_subgraph_has_asked():
    seen = []

    def choose(state):
        seen.append(sorted(state))
        return "c"

    graph = StateGraph(State)
    graph.add_node("a", node("a", secret="a's"))
    graph.add_node("b", graph_of({"y": node("y", 1)}, *line("y")))
    graph.add_node("c", node("c"))
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    graph.add_conditional_edges("b", choose, ["c"])
    compare(graph.compile(), {"log": []}, answers=lambda question: question)
    assert seen == [["log"], ["log"]]


def test_the_input_of_a_send_loses_such_values_too():
    graph = StateGraph(State)
    graph.add_node("a", node("a", secret="a's"))
    graph.add_node("b", node("b", 1))
    graph.add_edge(START, "a")
    graph.add_conditional_edges("a", lambda state: [Send("b", dict(state))], ["b"])
    _, session = compare(graph.compile(), {"log": []}, answers=lambda question: question)
    assert session.board["log"][-1] == "b []"


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("where", [["a"], ["b"], ["c"], "*"])
def test_a_breakpoint_of_the_graph_drops_such_values(side, where):
    graph = graph_of(
        {"a": node("a", secret="a's"), "b": node("b"), "c": node("c")}, *line("a", "b", "c"),
        checkpointer=InMemorySaver(), **{f"interrupt_{side}": where},
    )  # fmt: skip
    config = {"configurable": {"thread_id": "one"}}
    session = Session(load_graph(graph), {"secret": "in"})
    result = graph.invoke({"secret": "in"}, config)
    session.run()
    while graph.get_state(config).next:
        assert session.board == {"log": [], **result}
        result = graph.invoke(None, config)
        session.run()
    session.run()
    assert (session.status, dict(session.board)) == ("finished", result)


@pytest.mark.parametrize("where", [["a"], ["b"], ["c"], "*"])
def test_a_breakpoint_after_the_last_node_of_a_subgraph_drops_them(where):
    inner = graph_of(
        {"a": node("a", shared="a's"), "b": node("b"), "c": node("c", secret="c's")}, *line("a", "b", "c"),
        interrupt_after=where,
    )  # fmt: skip
    graph = graph_of({"inner": inner, "d": node("d")}, *line("inner", "d"))
    _, session = compare(graph, {"log": []})
    assert session.status == "finished"


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("where", ["a", "inner", "o", "d"])
def test_a_breakpoint_beside_a_subgraph_drops_nothing_inside_it(where, side):
    inner = graph_of({"x": node("x", secret="x's"), "y": node("y"), "z": node("z")}, *line("x", "y", "z"))
    graph = graph_of(
        {"a": node("a", secret="a's"), "inner": inner, "o": node("o"), "d": node("d")},
        *line("a", "inner", "d"), ("a", "o"), ("o", "d"), **{f"interrupt_{side}": [where]},
    )  # fmt: skip
    _, session = compare(graph, {"log": []})
    assert session.status == "finished"
    assert sum("x's" in text for text in session.board["log"] if text[0] in "yz") == 2


ASKING = [counts for counts in itertools.product([0, 1, 2], repeat=3) if counts[2] < 2]
STOPPING = [{}, {"interrupt_before": ["c"]}, {"interrupt_before": ["b"]}, {"interrupt_after": ["a"]}]


@pytest.mark.parametrize("first", [[], ["z"]])
@pytest.mark.parametrize("stops", STOPPING, ids=str)
@pytest.mark.parametrize("asking", ASKING, ids=str)
def test_a_wait_drops_them_from_what_was_sent_before(asking, stops, first):
    """`a` and `b` run in one superstep; `a` sends what it sees to `c`."""
    built_graph = StateGraph(State)
    for name, asks in zip("abc", asking, strict=True):
        built_graph.add_node(name, node(name, asks, **({"secret": "a's", "shared": "a's"} if name == "a" else {})))
    for name in first:
        built_graph.add_node(name, node(name))
    for source, target in [*line(*first), ([START, *first][-1], "a"), ([START, *first][-1], "b")]:
        built_graph.add_edge(source, target)
    sends = [Send("c", {"other": 1}), Send("c", {"secret": "sent", "other": 2})]
    built_graph.add_conditional_edges("a", lambda state: [Send("c", dict(state)), *sends], ["c"])
    _, session = compare(built_graph.compile(**stops), {"secret": "in"}, answers=lambda question: question)
    assert session.status == "finished"
    assert session.replay().ok


def test_going_back_restores_such_values():
    session = Session(load_graph(GRAPHS["one asks"]), {"secret": "in"})
    session.run()
    assert session.board["secret"] == "a's"
    session.answer("yes")
    assert "secret" not in session.board
    assert session.who_wrote("secret") == 2
    session.back()
    assert session.board["secret"] == "a's"


class Counted(TypedDict, total=False):
    log: Annotated[list, operator.add]
    left: RemainingSteps
    last: IsLastStep


def rounds(most, *, asks=0, inner=None, **options):
    """Return a graph of three nodes that runs `most` rounds; the second one asks, or is a graph."""

    def choose(state):
        return "a" if len(state["log"]) < 3 * most else END

    graph = StateGraph(Counted)
    for name, function in {"a": node("a"), "b": inner or node("b", asks), "c": node("c")}.items():
        graph.add_node(name, function)
    graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c")
    graph.add_conditional_edges("c", choose, ["a", END])
    return graph.compile(**options)


ASKING = graph_of({"x": node("x"), "y": node("y", 1)}, *line("x", "y"), ("y", END), schema=Counted)


@pytest.mark.parametrize("limit", [2, 3, 4, 5])
@pytest.mark.parametrize("graph", [rounds(3, asks=1), rounds(2, asks=2), rounds(5, inner=ASKING), rounds(3)])
def test_limits_start_over_after_an_answer(graph, limit):
    theirs, session = compare(graph, {"log": []}, limit, answers=lambda question: question)
    assert bool(theirs.asked) == any(session.trace.frames.calls.kind == "human")
    assert session.replay().ok


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
@pytest.mark.parametrize("where", [{"interrupt_before": ["b"]}, {"interrupt_after": ["b"]}, {"interrupt_before": "*"}])
def test_limits_start_over_after_a_breakpoint(where, limit):
    graph = rounds(3, checkpointer=InMemorySaver(), **where)
    config = {"configurable": {"thread_id": "one"}, "recursion_limit": limit}
    session = Session(load_graph(graph, config=config), {"log": []})
    try:
        graph.invoke({"log": []}, config)
        while graph.get_state(config).next:
            graph.invoke(None, config)
    except GraphRecursionError:
        pass
    while session.status in ("ready", "paused"):
        session.run()
    state = graph.get_state(config)
    assert (session.status == "failed", session.board["log"]) == (bool(state.next), state.values["log"])
