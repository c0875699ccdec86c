"""A log that is written here is one that the package opens, and the same one."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import activegraph
import networkx as nx
import pytest

import agentnb as nb
from agentnb.dialects.activegraph.parts.package_logs import LogEvent, LogRun, PackageLog, to_activegraph
from agentnb.dialects.activegraph.parts.package_logs.reading import read_log, read_runs
from agentnb.dialects.activegraph.parts.package_logs.writing import write_log
from agentnb.errors import StoreError
from tests.dialects.activegraph.package_logs import programs


@pytest.mark.parametrize("name", ["team_path", "model_path", "late_path", "archived_path"])
def test_a_run_survives_a_round_trip_through_a_log(name, request, tmp_path):
    path = request.getfixturevalue(name)
    for number, run in enumerate(read_runs(path)):
        copy = tmp_path / f"{number}.db"
        nb.open_activegraph(path, run.run_id).to_activegraph(copy)
        assert programs.loaded(copy) == programs.loaded(path, run.run_id)
        assert read_log(copy)[3:] == read_log(path, run.run_id)[3:]
        assert read_log(copy).run == run


def test_all_runs_of_a_store_fit_into_one_log(team_path, tmp_path):
    copy = tmp_path / "copy.db"
    for run in read_runs(team_path):
        nb.open_activegraph(team_path, run.run_id).to_activegraph(copy)
    assert nb.open_activegraph(copy, "run-team").tree() == nb.open_activegraph(team_path, "run-team").tree()
    for run in read_runs(team_path):
        assert programs.loaded(copy, run.run_id) == programs.loaded(team_path, run.run_id)
    with closing(sqlite3.connect(copy)) as connection:
        numbers = [number for (number,) in connection.execute("SELECT seq FROM events ORDER BY seq")]
    assert numbers == [*range(1, len(numbers) + 1)]


def test_the_package_continues_with_it(team_path, tmp_path):
    copy = tmp_path / "copy.db"
    nb.open_activegraph(team_path, "run-team").to_activegraph(copy, run_id="again")
    runtime = activegraph.Runtime.load(str(copy), "again", behaviors=programs.team())
    assert runtime.status().queue_depth == 0
    item = runtime.graph.add_object("task", {"title": "more", "status": "open"})
    runtime.run_until_idle()
    assert runtime.graph.get_object(item.id).data["status"] == "done"
    fork = runtime.fork(runtime.graph.events[-1].id)
    programs.close(fork, runtime)
    session = nb.open_activegraph(copy, "again")
    assert len(session.trace) > 7
    assert len(session.forks) == 1


def test_the_package_verifies_the_state_that_is_stored_for_an_archive(archived_path, tmp_path):
    from activegraph.store.retention import verify_snapshot

    copy = tmp_path / "copy.db"
    nb.open_activegraph(archived_path, "run-late").to_activegraph(copy)
    assert verify_snapshot(str(copy), "run-late")


def test_a_strict_replay_of_the_package_finds_no_difference(tmp_path):
    path, copy = tmp_path / "run.db", tmp_path / "copy.db"
    behaviors = [
        activegraph.Behavior("planner", programs.planner, on=["goal.created"]),
        activegraph.Behavior("worker", programs.worker, on=["object.created"]),
    ]
    runtime = activegraph.Runtime(programs.graph("strict"), behaviors=behaviors, persist_to=str(path))
    runtime.run_goal("Evaluate")
    programs.close(runtime)
    nb.open_activegraph(path).to_activegraph(copy)
    reopened = activegraph.Runtime.load(str(copy), behaviors=behaviors, replay_strict=True)
    assert len(reopened.graph.events) == len(read_log(path).events)
    programs.close(reopened)


def test_events_of_any_session_can_be_written(tmp_path):
    plain = nx.DiGraph(name="plain")
    plain.add_node("a", kind="noop")
    session = nb.Session(nb.load(plain), run_id="plain", clock=nb_clock())
    session.emit("goal.created", {"goal": "say hello"})
    session.emit("said", {"to": "all"})
    assert to_activegraph(session, tmp_path / "plain.db").endswith("plain.db")
    events, *_ = programs.loaded(tmp_path / "plain.db")
    assert [(event["id"], event["type"], event["payload"], event["actor"]) for event in events] == [
        ("evt_001", "goal.created", {"goal": "say hello"}, "user"),
        ("evt_002", "said", {"to": "all"}, "user"),
    ]
    assert events[0]["timestamp"] == "2026-01-02T03:04:05Z"
    assert read_runs(tmp_path / "plain.db")[0].goal == "say hello"


def nb_clock():
    from agentnb.clock import FrozenClock

    return FrozenClock("2026-01-02T03:04:05+00:00")


def test_a_run_of_our_runtime_is_a_run_of_the_package(tmp_path):
    from agentnb.dialects import activegraph as ours

    graph = ours.Graph(ids=ours.IDGen(), clock=ours.FrozenClock(programs.START), run_id="ours")
    runtime = programs.decide(ours.Runtime(graph, behaviors=programs.team(ours)))
    to_activegraph(runtime, tmp_path / "ours.db")
    events, objects, relations, ids, waiting = programs.loaded(tmp_path / "ours.db")
    assert events == [event.to_dict() for event in graph.events]
    assert objects == [each.to_dict() for each in graph.all_objects()]
    assert relations == [each.to_dict() for each in graph.all_relations()]
    assert waiting == []
    assert ids["_event_counter"] == len(graph.events)


def test_it_opens_as_the_original_run(tmp_path):
    from agentnb.dialects import activegraph as ours

    graph = ours.Graph(ids=ours.IDGen(), clock=ours.FrozenClock(programs.START), run_id="ours")
    runtime = programs.decide(ours.Runtime(graph, behaviors=programs.team(ours)))
    to_activegraph(runtime, tmp_path / "ours.db")
    reopened = nb.open_activegraph(tmp_path / "ours.db")
    assert [step.node_id for step in reopened.trace.steps] == [step.node_id for step in runtime.session.trace.steps]
    assert [step.status for step in reopened.trace.steps] == [step.status for step in runtime.session.trace.steps]
    assert dict(reopened.board) == dict(runtime.session.board)


def refused(act):
    with pytest.raises(StoreError) as caught:
        act()
    return caught.value.problems[0].code


def test_a_run_is_never_written_over(team_path, tmp_path):
    session = nb.open_activegraph(team_path, "run-team")
    session.to_activegraph(tmp_path / "copy.db")
    before = (tmp_path / "copy.db").read_bytes()
    assert refused(lambda: session.to_activegraph(tmp_path / "copy.db")) == "L465"
    assert (tmp_path / "copy.db").read_bytes() == before


def test_a_file_of_another_program_is_not_changed(team_path, tmp_path):
    session = nb.open_activegraph(team_path, "run-team")
    programs.change(tmp_path / "other.db", "CREATE TABLE mine (a TEXT)")
    before = (tmp_path / "other.db").read_bytes()
    assert refused(lambda: session.to_activegraph(tmp_path / "other.db")) == "L461"
    assert (tmp_path / "other.db").read_bytes() == before
    assert refused(lambda: session.to_activegraph("mysql://host/db")) == "L414"
    assert refused(lambda: session.to_activegraph(tmp_path / "no" / "such.db")) == "L420"


def test_two_events_with_one_id_are_rejected(tmp_path):
    event = LogEvent("evt_001", "a", None, {}, None, None, "")
    log = PackageLog("here", LogRun("r", None, None, None, "", None, None), (), (event, event), {})
    assert refused(lambda: write_log(log, tmp_path / "twice.db")) == "L466"
    assert not (tmp_path / "twice.db").exists()


def test_secrets_are_masked_and_a_stored_state_still_matches_its_hash(tmp_path):
    from activegraph.store.retention import compact

    path, copy = tmp_path / "secret.db", tmp_path / "copy.db"
    runtime = activegraph.Runtime(programs.graph("secret"), behaviors=[], persist_to=str(path))
    runtime.graph.add_object("door", {"api_key": "k-4711-secret", "name": "front"})
    programs.close(runtime)
    compact(str(path), "secret")
    nb.open_activegraph(path).to_activegraph(copy)
    assert b"k-4711-secret" not in copy.read_bytes()
    _, (door,), *_ = programs.loaded(copy)
    assert (door["data"]["name"], door["data"]["api_key"]) == ("front", "********")


@pytest.mark.parametrize("name", ["team_path", "model_path", "late_path"])
def test_a_log_that_was_stored_as_a_run_can_still_be_written_as_a_log(name, request, tmp_path):
    path = request.getfixturevalue(name)
    nb.open_activegraph(path).save(tmp_path / "ours.db")
    to_activegraph(nb.open(tmp_path / "ours.db"), tmp_path / "copy.db")
    assert programs.loaded(tmp_path / "copy.db") == programs.loaded(path)


@pytest.mark.needs_postgres
def test_a_run_is_written_to_a_server_too(team_path, archived_path, postgres_url):
    nb.open_activegraph(team_path, "run-team").to_activegraph(postgres_url)
    nb.open_activegraph(archived_path, "run-late").to_activegraph(postgres_url)
    actual, *rest = programs.loaded(postgres_url, "run-team")
    theirs, *others = programs.loaded(team_path, "run-team")
    assert rest == others
    assert [{**event, "timestamp": ""} for event in actual] == [{**event, "timestamp": ""} for event in theirs]
    assert [event["timestamp"][:19] for event in actual] == [event["timestamp"][:19] for event in theirs]
    assert programs.loaded(postgres_url, "run-late")[1:3] == programs.loaded(archived_path, "run-late")[1:3]
    assert len(nb.open_activegraph(postgres_url, "run-late").trace) == 8
    assert refused(lambda: nb.open_activegraph(archived_path).to_activegraph(postgres_url)) == "L467"
    assert refused(lambda: nb.open_activegraph(team_path, "run-team").to_activegraph(postgres_url)) == "L465"
