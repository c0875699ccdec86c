from __future__ import annotations

import json

import networkx as nx
import pytest

import agentnb as nb
from agentnb.engine.core.history import PHASES, STATUSES
from agentnb.ui.timeline import BUCKETS, WINDOW, list_branches, make_timeline
from tests.ui import ticket_recipe


def steps_of(session, first=1, last=400):
    timeline = make_timeline(session, {"from": first, "to": last})
    names = timeline["names"]
    return [(names[node], PHASES[phase], depth, branch, STATUSES[status])
            for node, phase, depth, branch, status, _ in timeline["steps"]]  # fmt: skip


def counting(steps):
    graph = nx.DiGraph(name="count", entry="add")
    graph.add_node("add", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    graph.add_edge("add", "add")
    session = nb.Session(nb.load(graph), {"n": 0})
    session.run(max_steps=steps)
    return session


def test_each_step_has_a_row_in_trace_order():
    session = nb.Session(nb.samples("refine"))
    session.step(12)
    known = [
        (step.node_id, step.phase, step.depth, -1 if step.branch is None else step.branch, step.status)
        for step in session.trace.steps
    ]
    assert steps_of(session) == known
    assert steps_of(session, 3, 5) == known[2:5]
    assert {depth for _, _, depth, _, _ in known} == {0, 1, 2}


def test_concurrent_branches_are_distinguished():
    session = nb.Session(nb.samples("search"))
    session.run()
    assert {branch for _, _, _, branch, _ in steps_of(session)} == {-1, 0, 1}


def test_later_steps_remain_after_going_back_and_failures_are_marked():
    session = ticket_recipe.session(answers=["explode"])
    session.run()
    session.goto(1)
    timeline = make_timeline(session, {"from": 1, "to": 9})
    assert (timeline["length"], steps_of(session)[-1][-1]) == (len(session.trace), "error")
    assert timeline["overview"]["error"] == [[len(session.trace), 1]]


def test_interventions_and_stops_are_marked_at_their_step():
    session = ticket_recipe.session("hello")
    session.edit({"ticket": "hello there"})
    session.breakpoints.add(node="tell")
    session.run()
    marks = make_timeline(session, {"from": 1, "to": 2})["marks"]
    assert [mark[:2] for mark in marks] == [[0, "intervention"], [2, "stop"]]
    assert marks[0][2] == "ticket = 'hello there' was set manually"
    assert marks[1][2] == "stopped by the breakpoint before 'tell'"
    assert [mark[:2] for mark in make_timeline(session, {"from": 2, "to": 2})["marks"]] == [[2, "stop"]]


def test_the_start_of_a_fork_is_marked_on_both_runs():
    session = ticket_recipe.session("hello")
    session.run()
    fork = session.fork(at=1, name="other")
    fork.step()
    assert make_timeline(session, {"from": 1, "to": 3})["marks"] == [[1, "fork", "'other' starts here"]]
    assert make_timeline(fork, {"from": 1, "to": 3})["marks"] == [[1, "fork", "here this run left 'triage'"]]
    assert make_timeline(session, None)["overview"]["fork"] == [[1, 1]]


def test_a_step_in_the_past_leaves_a_mark_where_the_later_steps_continued():
    session = ticket_recipe.session("hello")
    session.run()
    before = list_branches(session)
    session.goto(1)
    assert list_branches(session) == before
    session.step()
    assert list_branches(session)[:1] == before[:1]
    assert list_branches(session)[1][1] == 1
    (mark,) = make_timeline(session, {"from": 1, "to": 2})["marks"]
    assert mark[:2] == [1, "fork"]


def test_marks_contain_no_secrets():
    session = ticket_recipe.session("hello")
    session.edit({"api_key": "sk-another-secret"})
    assert "sk-another" not in json.dumps(make_timeline(session, {"from": 1, "to": 1}))
    assert make_timeline(session, {"from": 1, "to": 1})["marks"][0][2] == "api_key = '********' was set manually"


@pytest.mark.parametrize("which", [None, {}, {"from": "x", "to": None}, {"from": True, "to": 2}, 7])
def test_an_invalid_query_returns_the_overview(which):
    session = ticket_recipe.session("hello")
    session.step()
    timeline = make_timeline(session, which)
    assert (timeline["length"], timeline["overview"]["size"]) == (1, 2)


def test_a_long_run_is_reported_as_a_window_and_an_overview():
    session = counting(50_000)
    session.edit({"n": "none"})
    session.step()
    timeline = make_timeline(session, {"from": 20_000, "to": 49_000})
    assert (timeline["first"], len(timeline["steps"]), timeline["overview"]["size"]) == (20_000, WINDOW, BUCKETS)
    assert timeline["overview"] == {"size": BUCKETS, "error": [[BUCKETS - 1, 1]], "intervention": [[BUCKETS - 1, 1]]}
    assert len(json.dumps(make_timeline(session, {"from": 49_950, "to": 50_001}))) < 2_500


def test_each_step_of_a_short_run_has_its_bucket():
    session = counting(5)
    session.goto(2)
    session.edit({"n": 7})
    assert make_timeline(session, None)["overview"] == {"size": 3, "intervention": [[2, 1]], "fork": [[2, 1]]}
