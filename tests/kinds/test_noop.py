from __future__ import annotations

import networkx as nx

from tests.dialects.agentruntime.agent_files import ran, text
from tests.session.small_sessions import session


def test_it_writes_and_reads_nothing():
    graph = nx.DiGraph()
    graph.add_node("here", kind="noop")
    run = session(graph, {"x": 1})
    step = run.step()
    assert (step.outputs, step.reads, step.writes, dict(run.board)) == ({}, (), (), {"x": 1})
    assert step.type == "system_event"


def test_it_writes_its_mapping(tmp_path):
    graph = """
    nodes:
      - {id: here, type: noop, map: {set: {a: "{{ x }}", c: "{{ result }}"}, delete: [b]}, on_error: {to: wrong}}
      - {id: wrong, type: noop}
    """
    done = ran(tmp_path, text(graph))
    assert (done.path, done.state) == (["here"], {"n": 0, "log": [], "x": 1, "a": 1, "c": {}})
