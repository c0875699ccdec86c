"""Runs out of real stores, and what is said of stores that are none."""

from __future__ import annotations

import shutil

import activegraph
import pytest

from agentnb.dialects.activegraph.parts.package_logs.reading import read_log, read_runs
from agentnb.errors import StoreError
from tests.dialects.activegraph.package_logs import programs


@pytest.fixture
def mine(team_path, tmp_path):
    return shutil.copy(team_path, tmp_path / "mine.db")


def refused(where, run_id=None):
    with pytest.raises(StoreError) as caught:
        read_log(where, run_id)
    (problem,) = caught.value.problems
    return problem


def test_every_event_is_read_as_the_package_reads_it(team_path):
    theirs, *_ = programs.loaded(team_path, "run-team")
    log = read_log(team_path, "run-team")
    fields = ("id", "type", "payload", "actor", "frame_id", "caused_by", "timestamp")
    assert [{name: getattr(event, name) for name in fields} for event in log.events] == theirs
    assert (log.run.run_id, log.run.goal, log.run.events, log.run.parent) == ("run-team", "Evaluate", 34, None)


def test_without_a_run_id_the_last_written_run_is_read(mine):
    last = max(read_runs(mine), key=lambda run: run.label == "once more")
    assert read_log(mine).run == last
    graph = activegraph.Graph(run_id="newest")
    runtime = activegraph.Runtime(graph, behaviors=[], persist_to=str(mine))
    runtime.graph.emit(activegraph.Event(id="evt_001", type="hello", payload={}))
    programs.close(runtime)
    assert read_log(mine).run.run_id == "newest"


def test_a_run_that_has_only_events_is_listed(mine):
    programs.change(mine, "DELETE FROM runs WHERE run_id = 'run-team'")
    assert len(read_log(mine, "run-team").events) == 34
    assert "run-team" in {run.run_id for run in read_runs(mine)}


def test_forks_name_their_parents(team_path):
    runs = {run.label: run for run in read_runs(team_path)}
    fork = runs["another way"]
    assert (fork.parent, fork.forked_at) == ("run-team", "evt_010")
    assert (runs["once more"].parent, runs["once more"].forked_at) == (fork.run_id, "evt_012")


def test_the_archive_comes_first(archived_path):
    log = read_log(archived_path, "run-late")
    assert [event.archived for event in log.events] == [True] * 27 + [False]
    assert [event.id for event in log.events] == [f"evt_{number:03d}" for number in range(1, 29)]
    assert (log.run.events, log.run.archived) == (1, 27)


def test_an_archived_run_is_read_from_the_archive_alone(late_path, tmp_path):
    from activegraph.store.retention import retire

    path = shutil.copy(late_path, tmp_path / "retired.db")
    before = read_log(path)
    assert retire(str(path), "run-late") == 27
    after = read_log(path)
    assert [event._replace(archived=False) for event in after.events] == list(before.events)


def test_a_missing_element_is_a_problem(tmp_path):
    assert refused(tmp_path / "none.db").code == "L410"
    (tmp_path / "empty.db").touch()
    assert refused(tmp_path / "empty.db").code == "L410"
    assert refused("mysql://host/runs").code == "L414"


def test_a_file_of_another_program_is_a_problem(tmp_path, mine):
    (tmp_path / "text.db").write_text("no database at all, only words " * 200)
    assert refused(tmp_path / "text.db").code == "L461"
    programs.change(tmp_path / "other.db", "CREATE TABLE events (id TEXT)")
    assert "lacks" in refused(tmp_path / "other.db").why
    programs.change(mine, "DROP TABLE runs")
    problem = refused(mine)
    assert (problem.code, "no table 'runs'" in problem.why) == ("L461", True)


def test_a_run_of_agentnb_is_not_a_log_of_the_package(tmp_path):
    import networkx as nx

    import agentnb as nb

    plain = nx.DiGraph(name="plain")
    plain.add_node("a", kind="noop")
    nb.Session(nb.load(plain), store=tmp_path / "ours.db").close()
    assert "nb.open" in refused(tmp_path / "ours.db").do


def test_a_newer_store_is_a_problem(mine):
    programs.change(mine, "UPDATE meta SET value = '2' WHERE key = 'schema_version'")
    problem = refused(mine)
    assert (problem.code, "version 2" in problem.why) == ("L462", True)


def test_a_wrong_run_id_is_reported_with_the_available_ones(team_path):
    problem = refused(team_path, "run-taem")
    assert (problem.code, problem.do) == ("L464", "did you mean 'run-team'?")
    assert "'run-team' (Evaluate)" in problem.why
    assert "(another way)" in problem.why
    assert "(once more)" in problem.why


@pytest.mark.parametrize(("more", "start"), [(2, "the runs of this store are: "), (3, "it has 6 runs, the newest: ")])
def test_the_newest_of_many_runs_are_named(mine, more, start):
    for number in range(more):
        programs.change(mine, "UPDATE runs SET label = NULL, goal = NULL WHERE label IS NULL")
        programs.change(
            mine, "INSERT INTO runs (run_id, created_at) VALUES (?, ?)", f"new-{number}", f"2999-01-0{number + 1}"
        )
    problem = refused(mine, "nobody")
    assert problem.why.startswith(start)
    assert problem.why.endswith(", ".join(f"'new-{number}'" for number in range(more)))


def test_a_store_without_a_run_is_a_problem(mine):
    programs.change(mine, "DELETE FROM runs")
    programs.change(mine, "DELETE FROM events")
    assert refused(mine).what == "there is no run yet"


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ('{"object": ', "not JSON"),
        ("[1, 2]", "a list, not a mapping"),
        ("null", "its payload is null, not a mapping"),
        (b"\x80\x81", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_broken_payload_names_its_event(mine, payload, said):
    programs.change(mine, "UPDATE events SET payload = ? WHERE id = 'evt_003' AND run_id = 'run-team'", payload)
    problem = refused(mine, "run-team")
    assert (problem.code, said in problem.why) == ("L463", True)
    assert "evt_003" in problem.what
    assert "mine.db, run 'run-team', event 'evt_003', payload" in problem.where


@pytest.mark.needs_postgres
def test_a_server_returns_what_the_package_returns(postgres_url, team_path):
    from activegraph.store.postgres import PostgresEventStore

    store = PostgresEventStore(postgres_url, run_id="on-server")
    runtime = activegraph.Runtime(programs.graph("on-server"), behaviors=programs.team(), store=store)
    runtime.run_goal("Evaluate")
    theirs = [event.to_dict() for event in store.iter_events()]
    log = read_log(postgres_url)
    store.close()
    assert [event._asdict() | {"archived": False} for event in log.events] == [
        {**event, "archived": False} for event in theirs
    ]
    assert (log.run.run_id, log.run.goal, len(log.events)) == ("on-server", "Evaluate", 22)
    assert refused(postgres_url, "nobody").code == "L464"


@pytest.mark.needs_postgres
def test_a_server_without_its_tables_is_a_problem(postgres_url):
    assert refused(postgres_url).code == "L461"


def test_a_store_of_a_package_version_without_archives_is_read(mine):
    before = read_log(mine, "run-team")
    programs.change(mine, "DROP TABLE events_archive")
    programs.change(mine, "DROP TABLE snapshots")
    programs.change(mine, "DELETE FROM meta")
    assert read_log(mine, "run-team") == before
