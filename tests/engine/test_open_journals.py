"""What journals of this process still have to keep, and that no two of them write one run."""

from __future__ import annotations

import networkx as nx
import pytest

import agentnb as nb
from agentnb.engine.persistence.open_journals import LIVE, flush_all
from agentnb.errors import StoreError
from agentnb.store import MemoryLog


def recipe():
    graph = nx.DiGraph(name="line")
    for name in "abc":
        graph.add_node(name, function=lambda: {"done": True})
    nx.add_path(graph, "abc")
    return nb.load(graph)


def test_waiting_entries_are_stored_at_once():
    log = MemoryLog()
    session = nb.Session(recipe(), {}, store=log, run_id="run", durability={"steps": 99, "ms": 600_000})
    waiting = []
    session.subscribe(lambda step: waiting.append(log.last("run")))
    session.subscribe(lambda step: flush_all())
    session.run()
    assert waiting == [1, 2, 3]


def test_closed_runs_are_not_open_and_a_run_has_one_writer():
    log, loaded_recipe = MemoryLog(), recipe()
    session = nb.Session(loaded_recipe, {}, store=log, run_id="run")
    session.step()
    journal = session._parts.state.journal
    assert journal in LIVE
    other = nb.open(log, "run", recipe=loaded_recipe)
    with pytest.raises(StoreError, match="L453"):
        other.step()
    session.close()
    assert journal not in LIVE
    other.run()
    assert other.status == "finished"


def test_an_unwritable_session_does_not_prevent_opening_another_run(monkeypatch):
    log, other = MemoryLog(), MemoryLog()
    nb.Session(recipe(), {}, store=log, run_id="run").run()
    session = nb.Session(recipe(), {}, store=other, run_id="other")
    session.step()

    def fail():
        raise RuntimeError("a codec of somebody else")

    monkeypatch.setattr(session._parts.state.journal, "flush", fail)
    assert nb.open(log, "run").status == "finished"
    assert list(nb.runs(log)["run_id"]) == ["run"]
    monkeypatch.undo()
    session.close()
