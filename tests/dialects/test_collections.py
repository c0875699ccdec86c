"""Collections of the standard library on the board: programs find them with the class that they wrote."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any, TypedDict

import networkx as nx
import pytest
from burr.core import ApplicationBuilder, action
from langgraph.graph import END, START, StateGraph

import agentnb as nb


class Labelled(dict):
    """A mapping with an attribute, as programs define."""

    def __init__(self, label: str = "") -> None:
        self.label = label


def group(value):
    value["b"].append(2)
    return sorted(value)


def count(value):
    value.update("ab")
    value["new"] += 1
    return value.most_common(1)[0][1]


def rotate(value):
    value.append(3)
    return [*value]


def move(value):
    value.move_to_end("a")
    return [*value]


def label(value):
    value["x"] = 1
    return value.label


def make_labelled():
    return Labelled("mine")


KINDS = [
    (lambda: defaultdict(list, a=[1]), group),
    (lambda: Counter("a"), count),
    (lambda: deque([1, 2], maxlen=2), rotate),
    (lambda: OrderedDict(a=1, b=2), move),
    (make_labelled, label),
]


@pytest.mark.parametrize(("make", "use"), KINDS)
def test_a_langgraph_program_finds_its_collection(make, use):
    class State(TypedDict):
        value: Any
        n: Any

    def program():
        graph = StateGraph(State)
        graph.add_node("make", lambda state: {"value": make()})
        graph.add_node("use", lambda state: {"n": use(state["value"])})
        graph.add_edge(START, "make")
        graph.add_edge("make", "use")
        graph.add_edge("use", END)
        return graph

    session = nb.Session(nb.load(program()), {"n": 0})
    session.run()
    expected = program().compile().invoke({"n": 0})
    assert dict(session.board) == expected
    assert type(session.board["value"]) is type(expected["value"])


@pytest.mark.parametrize(("make", "use"), KINDS)
def test_a_burr_program_finds_its_collection(make, use):
    @action(reads=[], writes=["value"])
    def first(state):
        return state.update(value=make())

    @action(reads=["value"], writes=["n"])
    def second(state):
        return state.update(n=use(state["value"]))

    def program():
        return (
            ApplicationBuilder().with_actions(first, second).with_transitions(("first", "second")).with_state(n=0)
            .with_entrypoint("first").build()
        )  # fmt: skip

    _, _, state = program().run(halt_after=["second"])
    session = nb.Session(nb.load(program()))
    session.run()
    assert (session.board["value"], session.board["n"]) == (state["value"], state["n"])
    assert type(session.board["value"]) is type(state["value"])


def session_of(make, use, **options):
    graph = nx.DiGraph(name="collections", entry="make")
    graph.add_node("make", function=lambda: {"value": make()})
    graph.add_node("use", function=lambda board: {"n": use(board["value"])})
    graph.add_edge("make", "use")
    return nb.Session(nb.load(graph), **options)


@pytest.mark.parametrize(("make", "use"), KINDS)
def test_a_change_in_place_is_recorded_and_undone(make, use):
    session = session_of(make, use)
    session.run()
    writes = session.trace.frames.writes
    assert [*writes.key[writes.in_place]] == ["value"]
    assert session.who_wrote("value") == 2
    session.goto(1)
    assert session.board["value"] == make()
    assert session.replay().ok


@pytest.mark.parametrize(("make", "use"), KINDS[:4])
def test_a_reopened_run_goes_on_with_the_collection(make, use, tmp_path):
    expected = session_of(make, use)
    expected.run()
    stored = session_of(make, use, store=tmp_path / "runs.db", run_id="one")
    stored.step()
    stored.close()
    session = nb.open(tmp_path / "runs.db", "one", recipe=stored.recipe)
    assert type(session.board["value"]) is type(expected.board["value"])
    session.run()
    assert dict(session.board) == dict(expected.board)
    session.trace.to_json(tmp_path / "run.json")
    assert nb.open(tmp_path / "run.json").goto(1).board["value"] == make()


def test_items_are_parts():
    session = session_of(lambda: Counter("a"), count)
    session.run()
    assert (session.board["value.new"], session.who_wrote("value.new"), session.who_wrote("value.a")) == (1, 2, 2)
    session.edit({"value.new": 7})
    assert session.board["value"] == Counter(a=2, b=1, new=7)
    assert type(session.board["value"]) is Counter
