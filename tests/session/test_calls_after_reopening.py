"""Calls whose answers were recorded before a session was closed, in the session that continues the run."""

from __future__ import annotations

import networkx as nx

import agentnb as nb


def test_a_breakpoint_after_a_call_stops_at_an_answer_that_was_recorded_before(tmp_path):
    graph = nx.DiGraph(name="ask")
    graph.add_node("n", kind="tool", function="use", inputs={"y": "y"})
    recipe, called = nb.load(graph), []
    tools = {"use": lambda y: called.append(y) or {"a": 1}}
    session = nb.Session(recipe, {"y": 1}, tools=tools, store=tmp_path / "runs.db", run_id="r")
    session.breakpoints.add(call="use", side="after")
    session.step()
    session.close()
    again = nb.open(tmp_path / "runs.db", "r", recipe=recipe, tools=tools)
    again.breakpoints.add(call="use", side="after")
    again.step()
    (pending,) = again.pending
    assert (again.status, pending.answer) == ("in_flight", {"a": 1})
    again.change(pending.id, answer={"a": 5})
    again.step()
    assert (again.board["a"], called) == (5, [1])
    again.close()
