"""Breakpoints that write a message and do not stop the run."""

from __future__ import annotations

import networkx as nx
import pytest

import agentnb as nb


def counting(**inputs):
    graph = nx.DiGraph(name="count", entry="add")
    graph.add_node("add", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    graph.add_edge("add", "add", when="n < 3")
    return nb.Session(nb.load(graph), {"n": 0, **inputs})


def test_a_logpoint_writes_its_message_and_the_run_continues(capsys):
    session = counting()
    point = session.breakpoints.log("n is {{ n }}", node="add", side="after")
    session.run()
    assert (session.status, point.hits, session.stopped_by) == ("finished", 3, None)
    assert capsys.readouterr().out == "n is 1\nn is 2\nn is 3\n"


def test_it_may_have_a_condition_and_another_breakpoint_still_stops(capsys):
    session = counting()
    session.breakpoints.log("far", when="n > 1")
    stop = session.breakpoints.add("add", side="after", on_hit=2)
    session.run()
    assert (session.status, session.stopped_by) == ("paused", stop)
    assert capsys.readouterr().out == "far\n"


def test_secrets_are_masked_and_a_failing_message_is_reported(capsys):
    session = counting(password="hunter2-hunter2")
    session.breakpoints.log("{{ password }}", node="add", side="after")
    session.breakpoints.log("{{ missing.part }}", node="add", side="after")
    session.step()
    out = capsys.readouterr().out
    assert "hunter2" not in out
    assert "logpoint 2 failed" in out


def test_it_is_saved_and_loaded_as_a_logpoint(tmp_path, capsys):
    session = counting()
    session.breakpoints.log("n is {{ n }}", node="add", side="after")
    session.breakpoints.save(tmp_path / "points.json")
    other = counting()
    other.breakpoints.load(tmp_path / "points.json")
    other.run()
    assert other.status == "finished"
    assert "n is 3" in capsys.readouterr().out


def test_mistakes_are_reported():
    session = counting()
    with pytest.raises(nb.ExecutionError, match="X116"):
        session.breakpoints.log("hello")
    with pytest.raises(nb.RecipeError):
        session.breakpoints.log("{{ n", node="add")
    with pytest.raises(nb.ExecutionError, match="X120"):
        session.breakpoints.log(3, node="add")
