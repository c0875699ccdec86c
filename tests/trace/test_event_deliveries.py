from __future__ import annotations

import networkx as nx

import agentnb as nb
from agentnb.samples import reactive
from agentnb.trace.event_deliveries import deliveries


def told(session):
    reading = session.trace.reading()
    names = [node.id for node in reading.nodes]
    return [
        (one.step, None if one.source < 0 else names[one.source], names[one.target], one.event.type)
        for one in deliveries(reading)
    ]


def test_each_delivery_says_whose_step_told_of_the_event():
    team = reactive.team()
    team.run_goal("Write about swifts")
    found = told(team.session)
    assert found[:3] == [
        (1, None, "plan", "goal.created"), (2, "plan", "search", "object.created"),
        (3, "plan", "search", "object.created"),
    ]  # fmt: skip
    assert [one[0] for one in found] == list(range(1, len(team.session.trace) + 1))


def test_in_a_fork_too():
    team = reactive.team()
    team.run_goal("Write about swifts")
    fork = team.session.fork(at=3)
    fork.run()
    assert told(fork) == told(team.session)


def test_a_run_without_events_has_none():
    graph = nx.DiGraph(name="plain")
    graph.add_node("only", function=lambda: {"n": 1}, inputs={})
    session = nb.Session(nb.load(graph))
    session.run()
    assert told(session) == []
