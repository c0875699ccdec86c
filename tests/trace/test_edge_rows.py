from __future__ import annotations

import networkx as nx
import pandas as pd

import agentnb as nb
from agentnb.recipe.model import Edge, Node, Recipe
from agentnb.samples import reactive
from agentnb.session import Session
from agentnb.trace.edge_rows import iter_deliveries
from tests.session.small_sessions import counting, session


def test_edges_of_a_reactive_run_are_its_deliveries():
    team = reactive.team()
    team.run_goal("Write about swifts")
    edges = team.session.trace.frames.edges
    assert edges.step.tolist() == list(range(1, len(team.session.trace) + 1))
    assert edges.source.isna().tolist() == [True] + [False] * (len(edges) - 1)
    assert edges[["source", "target", "condition"]].to_numpy().tolist()[-1] == ["review", "publish", "draft.accepted"]
    assert edges.kind.cat.categories.tolist() == ["event"]
    events = team.session.trace.frames.events.set_index("id")
    assert events.loc[edges.value, "type"].tolist() == edges.condition.tolist()


def test_each_relation_of_an_event_is_a_separate_delivery():
    team = reactive.team()
    team.run_goal("Write about swifts")
    edges = team.session.trace.frames.edges
    assert len(edges[edges.target == "unblock"]) == 3


def test_edges_of_other_runs_are_unchanged():
    run = session(counting(), {"n": 0})
    run.run()
    edges = run.trace.frames.edges
    assert edges.step.tolist() == [1, 2, 3, 4, 5, 6]
    assert "event" not in edges.kind.cat.categories
    assert edges.source.notna().all()


def test_edges_and_deliveries_are_in_step_order():
    nodes = {
        "begin": Node("begin", "function", params={"function": lambda board: {"n": 1}}),
        "after": Node("after", "noop"),
        "hears": Node("hears", "noop", on=("hello",)),
        "next": Node("next", "noop"),
    }
    run = Session(Recipe("mixed", "test", nodes, (Edge("begin", "after"), Edge("hears", "next")), ("begin",)))
    run.run()
    run.emit("hello").run()
    edges = run.trace.frames.edges
    assert edges[["step", "target", "kind"]].to_numpy().tolist() == [
        [1, "after", "sequential"], [3, "hears", "event"], [3, "next", "sequential"],
    ]  # fmt: skip
    assert edges.source.isna().tolist() == [False, True, False]
    assert edges.condition.isna().tolist() == edges.value.isna().tolist() == [True, False, True]


def test_before_the_first_step_there_are_no_edges():
    edges = reactive.team().session.trace.frames.edges
    assert len(edges) == 0
    assert list(edges) == ["step", "source", "target", "kind", "condition", "value"]
    assert isinstance(edges, pd.DataFrame)


def list_edges(session):
    reading = session.trace.reading()
    names = [node.id for node in reading.nodes]
    return [
        (one.step, None if one.source < 0 else names[one.source], names[one.target], one.event.type)
        for one in iter_deliveries(reading)
    ]


def test_each_delivery_has_the_step_that_emitted_its_event():
    team = reactive.team()
    team.run_goal("Write about swifts")
    edges = list_edges(team.session)
    assert edges[:3] == [
        (1, None, "plan", "goal.created"), (2, "plan", "search", "object.created"),
        (3, "plan", "search", "object.created"),
    ]  # fmt: skip
    assert [one[0] for one in edges] == list(range(1, len(team.session.trace) + 1))


def test_a_fork_has_the_deliveries_of_its_parent():
    team = reactive.team()
    team.run_goal("Write about swifts")
    fork = team.session.fork(at=3)
    fork.run()
    assert list_edges(fork) == list_edges(team.session)


def test_a_run_without_events_has_no_deliveries():
    graph = nx.DiGraph(name="plain")
    graph.add_node("only", function=lambda: {"n": 1}, inputs={})
    session = nb.Session(nb.load(graph))
    session.run()
    assert list_edges(session) == []
