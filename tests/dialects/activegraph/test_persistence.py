"""Runs that are kept, opened again and forked, wherever they are kept."""

from __future__ import annotations

import pytest

from agentnb.dialects.activegraph import Graph, Policy, Runtime, Tool
from agentnb.dialects.activegraph.parts.graph_stores import InMemoryGraphStore
from agentnb.errors import ExecutionError, StoreError
from agentnb.store import open_log
from tests.dialects.activegraph.judge import assert_same_signatures
from tests.dialects.activegraph.runtimes import log, on, research, runtime, tell

__all__ = ["research"]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs_postgres)])
def place(request, tmp_path):
    return tmp_path / "runs.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@on("goal.created")
def asks(event, graph, ctx):
    ctx.propose_object("memo", {"goal": event.payload["goal"]}, reason="it is asked for")


def test_a_reopened_run_waits_for_the_same_person(place):
    team = runtime(asks, persist_to=place, policy=Policy(requires_approval=["memo"]))
    team.run_goal("one")
    team.session.close()
    loaded = Runtime.load(str(place), behaviors=[asks], policy=Policy(requires_approval=["memo"]))
    assert [each.reason for each in loaded.pending_approvals()] == ["it is asked for"]
    approved = loaded.approve("approval_001", "ann")
    loaded.run_until_idle()
    loaded.session.close()
    reopened = Runtime.load(str(place), behaviors=[asks])
    assert (reopened.graph.get_object(approved).data, reopened.pending_approvals()) == ({"goal": "one"}, [])
    reopened.session.close()


def test_without_an_id_the_run_that_was_written_last_is_loaded(place, research):
    for goal in ("one", "two"):
        team = Runtime(Graph(), behaviors=research, persist_to=place)
        team.run_goal(goal)
        team.session.close()
    loaded = Runtime.load(str(place), behaviors=research)
    assert loaded.graph.events[0].payload == {"goal": "two"}
    loaded.session.close()


def test_a_fork_of_a_stored_run_is_stored_and_can_be_forked(place, research):
    team = runtime(*research, persist_to=place)
    team.run_goal("go")
    full_log = log(team)
    fork = team.fork("evt_005", "one")
    deeper = fork.fork("evt_004", "two")
    deeper.run_until_idle()
    fork.run_until_idle()
    assert log(fork) == log(deeper) == full_log
    assert len({team.run_id, fork.run_id, deeper.run_id}) == 3
    deepest_id = deeper.run_id
    for each in (deeper, fork, team):
        each.session.close()
    loaded = Runtime.load(str(place), deepest_id, behaviors=research)
    assert log(loaded) == full_log
    loaded.session.close()


def test_a_fork_has_no_budget_and_uses_other_behaviors_if_given(research):
    team = runtime(*research, budget={"max_behavior_calls": 50})
    team.run_goal("go")
    fork = team.fork("evt_001", behaviors=[asks])
    assert (fork.budget.limits, fork.session._parts.state.limits.budget.max_behavior_calls) == ({}, None)
    assert [each.name for each in fork.behaviors] == ["asks"]
    with pytest.raises(LookupError, match="X515"):
        team.fork("evt_999")


def test_a_fork_has_the_tools_and_the_settings_of_its_runtime_unless_others_are_given(research):
    own_tool, other = Tool("mine", lambda args, ctx: 1), Tool("other", lambda args, ctx: 2)
    team = runtime(*research, tools=[own_tool], policy=Policy(can_create=["x"]))
    team.run_goal("go")
    forks = team.fork("evt_001"), team.fork("evt_001", tools=[other]), team.fork("evt_001", tools=[])
    assert [[tool.name for tool in fork.tools] for fork in forks] == [["mine"], ["other"], []]
    for fork in forks:
        assert (fork.config.policy, fork.config.frame, fork.name) == (team.config.policy, team.config.frame, team.name)


def test_a_graph_has_its_store_and_the_earlier_events_of_the_log(tmp_path, research):
    team = runtime(*research)
    assert (team.graph.store, team.graph.replayed_ids) == (None, set())
    team.run_goal("go")
    team.save_state(tmp_path / "run.db")
    assert team.graph.store is not None
    before = {event.id for event in team.graph.events}
    team.session.close()
    loaded = Runtime.load(tmp_path / "run.db", behaviors=research)
    loaded.run_goal("more")
    assert loaded.graph.replayed_ids == before < {event.id for event in loaded.graph.events}


def test_without_a_store_the_errors_are_builtin_exceptions(tmp_path, research):
    with pytest.raises(FileNotFoundError, match="L410") as missing:
        Runtime.load(tmp_path / "nothing.db")
    assert isinstance(missing.value, StoreError)
    assert not (tmp_path / "nothing.db").exists()
    with pytest.raises(ValueError, match=r"R265[\s\S]*runtime\.save_state\('run\.db'\)"):
        runtime(*research).save_state()


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_a_loaded_run_is_exhausted_until_it_continues(place, research, limit):
    team = runtime(*research, persist_to=place, budget={"max_behavior_calls": limit})
    team.run_goal("one")
    assert team.status().state == "exhausted"
    team.session.close()
    loaded = Runtime.load(str(place), behaviors=research)
    assert (loaded.status().state, loaded.status().budget.exhausted_by) == ("exhausted", None)
    loaded.session.step()
    assert loaded.status().state == "stopped"
    loaded.run_until_idle()
    assert loaded.status().state == "idle"
    loaded.session.close()


def test_an_idle_run_that_a_lower_limit_ends_is_idle_again_without_it(place, research):
    team = runtime(*research, persist_to=place)
    team.run_goal("one")
    states = []
    for budget in ({"max_behavior_calls": 1}, None, None):
        team.session.close()
        team = Runtime.load(str(place), behaviors=research, budget=budget)
        team.run_until_idle()
        states.append((team.status().state, team.graph.events[-1].type))
    assert states == [("exhausted", "runtime.budget_exhausted"), ("idle", "runtime.idle"), ("idle", "runtime.idle")]
    assert [event.type for event in team.graph.events].count("runtime.idle") == 2
    team.session.close()


def test_a_loaded_run_continues_while_the_first_runtime_exists(place, research):
    first = runtime(*research, persist_to=place)
    first.run_goal("one")
    loaded = Runtime.load(str(place), behaviors=research)
    assert loaded.graph.replayed_count == len(first.graph.events)
    loaded.run_goal("two")
    for call in (lambda: first.run_goal("three"), lambda: first.graph.add_object("task", {})):
        with pytest.raises(ExecutionError, match="L471"):
            call()
    assert [event.payload for event in first.graph.events[:1]] == [{"goal": "one"}]  # it can still be looked at
    reopened = Runtime.load(str(place), behaviors=research)
    assert log(reopened) == log(loaded)
    reopened.run_goal("three")
    with pytest.raises(ExecutionError, match="L471"):
        loaded.run_goal("four")
    reopened.session.close()


def test_events_of_the_first_runtime_are_not_mixed_with_those_of_the_loaded_one(place, research):
    first = runtime(*research, persist_to=place)
    first.run_goal("one")
    loaded = Runtime.load(str(place), behaviors=research)
    first.run_goal("two")
    with pytest.raises(StoreError):
        loaded.run_goal("other two")
    reopened = Runtime.load(str(place), behaviors=research)
    assert [each.payload["goal"] for each in reopened.graph.events if each.type == "goal.created"] == ["one", "two"]


def test_the_store_of_a_forks_graph_is_filled_at_once(research):
    team = runtime(*research)
    team.run_goal("go")
    store = InMemoryGraphStore()
    team.fork(team.graph.events[-1].id, graph_store=store)
    assert len(list(store.all_objects())) == len(team.graph.objects()) > 0


def test_the_data_of_an_event_is_in_the_file_once(tmp_path):
    @on("begin", "object.created")
    def grow(event, graph, ctx):
        number = event.payload["object"]["data"]["n"] if event.type == "object.created" else 0
        if number < 20:
            graph.add_object("stone", {"n": number + 1, "words": f"pebble {number + 1}."})

    path = tmp_path / "runs.db"
    team = runtime(grow, persist_to=path)
    tell(team, "begin")
    team.run_until_idle()
    full_log = log(team)
    team.session.close()
    bodies = " ".join(entry.body for entry in open_log(path).entries(team.run_id))
    assert bodies.count("pebble 7.") == 1
    assert bodies.count("triggering_event_type") == 1  # the names of a payload once per run
    reopened = Runtime.load(str(path), behaviors=[grow])
    assert log(reopened) == full_log
    assert reopened.graph.get_object("stone#7").data == {"n": 7, "words": "pebble 7."}
    reopened.session.close()


def test_signatures_are_those_of_the_package():
    assert_same_signatures("Runtime.save_state", "Runtime.load", "Runtime.fork")
