"""test_stored: runs that are kept, opened again and forked, wherever they are kept."""

from __future__ import annotations

import pytest

from agentnb.dialects.activegraph import Graph, Policy, Runtime
from tests.dialects.activegraph.making import log, on, research, runtime

__all__ = ["research"]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs_postgres)])
def place(request, tmp_path):
    return tmp_path / "runs.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@on("goal.created")
def asks(event, graph, ctx):
    ctx.propose_object("memo", {"goal": event.payload["goal"]}, reason="it is asked for")


def test_what_waited_for_a_person_waits_in_the_run_that_is_opened_again(place):
    team = runtime(asks, persist_to=place, policy=Policy(requires_approval=["memo"]))
    team.run_goal("one")
    team.session.close()
    loaded = Runtime.load(str(place), behaviors=[asks], policy=Policy(requires_approval=["memo"]))
    assert [each.reason for each in loaded.pending_approvals()] == ["it is asked for"]
    made = loaded.approve("approval_001", "ann")
    loaded.run_until_idle()
    loaded.session.close()
    again = Runtime.load(str(place), behaviors=[asks])
    assert (again.graph.get_object(made).data, again.pending_approvals()) == ({"goal": "one"}, [])
    again.session.close()


def test_without_an_id_the_run_that_was_written_last_is_loaded(place, research):
    for goal in ("one", "two"):
        team = Runtime(Graph(), behaviors=research, persist_to=place)
        team.run_goal(goal)
        team.session.close()
    loaded = Runtime.load(str(place), behaviors=research)
    assert loaded.graph.events[0].payload == {"goal": "two"}
    loaded.session.close()


def test_a_fork_of_a_kept_run_is_kept_and_forks_work_alike(place, research):
    team = runtime(*research, persist_to=place)
    team.run_goal("go")
    whole = log(team)
    fork = team.fork("evt_005", "one")
    deeper = fork.fork("evt_004", "two")
    deeper.run_until_idle()
    fork.run_until_idle()
    assert log(fork) == log(deeper) == whole
    assert len({team.run_id, fork.run_id, deeper.run_id}) == 3
    kept = deeper.run_id
    for each in (deeper, fork, team):
        each.session.close()
    loaded = Runtime.load(str(place), kept, behaviors=research)
    assert log(loaded) == whole
    loaded.session.close()


def test_a_fork_goes_by_the_same_budget_and_by_other_behaviors_where_they_are_given(research):
    team = runtime(*research, budget={"max_behavior_calls": 50})
    team.run_goal("go")
    fork = team.fork("evt_001", behaviors=[asks])
    assert fork.budget.limits == team.budget.limits
    assert [each.name for each in fork.behaviors] == ["asks"]
    with pytest.raises(LookupError, match="X515"):
        team.fork("evt_999")
