from __future__ import annotations

import networkx as nx

from tests.session.making import session


def test_it_writes_and_reads_nothing():
    made = nx.DiGraph()
    made.add_node("here", kind="noop")
    run = session(made, {"x": 1})
    step = run.step()
    assert (step.outputs, step.reads, step.writes, dict(run.board)) == ({}, (), (), {"x": 1})
    assert step.type == "system_event"
