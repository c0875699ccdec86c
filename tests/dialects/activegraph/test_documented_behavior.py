"""What is set is kept to, and what is promised happens: more of where the real package is wrong."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from agentnb.dialects.activegraph import (
    Policy,
    Runtime,
    Tool,
)
from agentnb.errors import AgentNbError
from tests.dialects.activegraph.runtimes import on, on_relation, research, runtime, tell, thinking, types

__all__ = ["research"]
ROOT = Path(__file__).parents[3]


# -- 11: no false alarms ---------------------------------------------------------------------------------------------


def test_strict_replay_reports_no_difference_for_approvals_and_budgets(tmp_path):
    @on("goal.created")
    def asks(event, graph, ctx):
        ctx.propose_object("memo", {"a": 1}, reason="why not")

    @on("object.created")
    def hears(event, graph, ctx):
        graph.emit("heard", {})

    team = runtime(asks, hears, persist_to=tmp_path / "run.db", budget={"max_behavior_calls": 1})
    team.run_goal("go")
    team.approve("approval_001", "ann")
    team.run_until_idle()
    assert team.status().state == "exhausted"
    team.session.close()
    loaded = Runtime.load(tmp_path / "run.db", behaviors=[asks, hears], replay_strict=True)
    assert loaded.pending_approvals() == []


# -- 12, 22: what is promised happens --------------------------------------------------------------------------------


def test_behaviors_receive_events_of_the_run_itself_on_request():
    @on("goal.created", "again")
    def fails_once(event, graph, ctx):
        if event.type == "goal.created":
            raise ValueError("once")

    @on("behavior.failed")
    def retries(event, graph, ctx):
        graph.emit("again", {"of": event.payload["behavior"]})

    @on("runtime.idle")
    def rests(event, graph, ctx):
        graph.emit("rested", {})

    team = runtime(fails_once, retries, rests)
    team.run_goal("go")
    assert types(team) == ["goal.created", "again", "rested"]
    assert team.status().state == "idle"


def test_a_star_matches_any_event_except_those_of_the_run():
    @on("*")
    def hears(event, graph, ctx):
        if event.type != "heard":
            graph.emit("heard", {"type": event.type})

    team = runtime(hears)
    team.run_goal("go")
    assert types(team) == ["goal.created", "heard"]


def test_behaviors_remove_and_read_the_objects_that_they_name():
    @on("goal.created", view_spec={"around": "task#1"})
    def removes(event, graph, ctx):
        assert ctx.view.get_object("task#2").id == "task#2"
        assert ctx.view.get_object("task#3") is None
        graph.remove_object("task#2")

    @on("object.removed", where={"id": ["task#2", "task#9"]})
    def hears(event, graph, ctx):
        graph.emit("heard", {})

    team = runtime(removes, hears)
    for _ in range(3):
        team.graph.add_object("task", {})
    team.graph.add_relation("task#1", "task#2", "next")
    team.run_goal("go")
    assert team.errors == []
    assert types(team)[-3:] == ["relation.removed", "object.removed", "heard"]


# -- 13: what is set is kept to --------------------------------------------------------------------------------------


def hops():
    @on("goal.created", "hop")
    def hop(event, graph, ctx):
        item = graph.add_object("stone", {})
        graph.patch_object(item.id, {"by": event.id})
        graph.emit("hop", {})

    return hop


@pytest.mark.parametrize(("limit", "steps"), [("max_patches", 3), ("max_depth", 3), ("max_behavior_calls", 3)])
def test_every_limit_ends_a_run(limit, steps):
    team = runtime(hops(), budget={limit: 3})
    team.run_goal("go")
    event = team.graph.events[-1]
    assert (event.type, event.payload["exhausted_by"], team.session.position) == (
        "runtime.budget_exhausted",
        limit,
        steps,
    )
    assert team.status().budget.exhausted_by == limit


def test_a_policy_is_enforced():
    @on("goal.created")
    def greedy(event, graph, ctx):
        graph.add_object("task", {})
        graph.add_object("secret", {})

    team = runtime(greedy, policy=Policy(behavior="greedy", can_create=["task"]))
    team.run_goal("go")
    (error,) = team.errors
    assert (error.reason, error.exception_type) == ("policy.denied", "PolicyViolation")
    assert "its policy says can_create=['task']" in error.message
    assert [each.type for each in team.graph.all_objects()] == ["task"]


def test_a_type_that_needs_approval_is_created_only_with_it():
    @on("goal.created")
    def makes(event, graph, ctx):
        ctx.propose_object("memo", {"a": 1}, reason="it is good")
        ctx.propose_object("memo", {"a": 2}, reason="it is bad")
        graph.add_object("memo", {"a": 3})

    @on("approval.denied")
    def hears(event, graph, ctx):
        graph.emit("sorry", {"reason": event.payload["reason"]})

    team = runtime(makes, hears, policy=Policy(requires_approval=["memo"]))
    team.run_goal("go")
    assert (team.graph.all_objects(), team.errors[0].reason) == ([], "policy.denied")
    assert "its policy says requires_approval=['memo']" in team.errors[0].message
    approvals = team.pending_approvals()
    assert [(each.id, each.reason) for each in approvals] == [
        ("approval_001", "it is good"),
        ("approval_002", "it is bad"),
    ]
    approved = team.approve("approval_001", "ann")
    team.deny("approval_002", "too bad", "bob")
    team.run_until_idle()
    events = {event.id: event for event in team.graph.events}
    created = next(event for event in events.values() if event.type == "object.created")
    granted = events[created.caused_by]  # 19: each is linked to what it follows from
    assert (granted.type, events[granted.caused_by].type) == ("approval.granted", "approval.proposed")
    assert (team.graph.get_object(approved).data, types(team)[-1], team.pending_approvals()) == ({"a": 1}, "sorry", [])
    with pytest.raises(LookupError, match="X513"):
        team.approve("approval_001")


def test_a_tool_that_takes_too_long_fails():
    def sleeps(args, ctx):
        time.sleep(0.5)

    behaviors, options = thinking(
        ("", None, (("c1", "sleeps", {}),)), tools=[Tool("sleeps", sleeps, timeout_seconds=0.02)]
    )
    team = runtime(*behaviors, **options)
    team.run_goal("go")
    assert team.errors[0].reason == "tool.timeout"
    (responded,) = (event.payload for event in team.graph.events if event.type == "tool.responded")
    assert (responded["error"]["reason"], responded["latency_seconds"]) == ("tool.timeout", 0.0)


def test_a_higher_priority_comes_first():
    messages = []
    low, high = (
        on("goal.created")(lambda *_: messages.append("low")),
        on("goal.created")(lambda *_: messages.append("high")),
    )
    low.name, high.name, high.priority = "low", "high", 5
    runtime(low, high).run_goal("go")
    assert messages == ["high", "low"]


# -- 15: asking makes nothing ----------------------------------------------------------------------------------------


def test_loading_a_missing_run_does_not_create_it(research, tmp_path):
    import agentnb as nb

    path = tmp_path / "run.db"
    team = runtime(*research, persist_to=path)
    team.session.close()
    before = list(nb.runs(path)["run_id"])
    with pytest.raises(AgentNbError):
        Runtime.load(path, "nobody", behaviors=research)
    assert list(nb.runs(path)["run_id"]) == before
    with pytest.raises(AgentNbError):
        Runtime.load(tmp_path / "nowhere.db", behaviors=research)
    assert not (tmp_path / "nowhere.db").exists()


# -- 20: relations, ids, patterns, metrics ---------------------------------------------------------------------------


def test_relation_behaviors_can_be_deferred_too():
    @on_relation("next", "go", activate_after=1)
    def follows(relation, event, graph, ctx):
        graph.emit("followed", {"relation": relation.id})

    team = runtime(follows)
    team.graph.add_object("task", {})
    team.graph.add_relation("task#1", "task#9", "next")
    team.graph.add_relation("task#1", "task#8", "next")
    team.run_until_idle()
    tell(team, "go", task="task#1")
    tell(team, "tick")
    team.run_until_idle()
    assert [event.payload["relation"] for event in team.graph.events if event.type == "followed"] == [
        "rel_001",
        "rel_002",
    ]


def test_an_id_names_one_event():
    team = runtime()
    tell(team, "one")
    with pytest.raises(AgentNbError, match="X507"):
        team.graph.emit(team.graph.events[0])
    assert len(team.graph.events) == 1


def test_a_pattern_reports_the_number_of_matches_and_why_reports_the_matches():
    @on("goal.created", pattern="(a:task {n: 1})")
    def looks(event, graph, ctx):
        pass

    team = runtime(looks)
    team.graph.add_object("task", {"n": 1})
    team.run_goal("go")
    (matched,) = [event for event in team.graph.events if event.type == "pattern.matched"]
    assert sorted(matched.payload) == ["behavior", "event_id", "matches_count", "pattern"]  # few words, also of many
    assert matched.payload["matches_count"] == 1
    assert "task#1" in str(team.session.why())
