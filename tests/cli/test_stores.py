"""`agentnb runs` and `agentnb trace`, and runs that `agentnb run --store` keeps."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import networkx as nx
import pytest

import agentnb as nb
from agentnb.cli.stores import TABLES
from agentnb.trace.trace import SimulationTrace
from tests.cli.command_files import called, run_for_json

RUN = ("run", "refunds.yaml", "--input", "ticket=I want my money", "--script", "script.yaml", "--store", "runs.db")


def counting(**nodes):
    """Return a recipe that counts to three; `nodes` are more nodes, each a function, behind it."""
    graph = nx.DiGraph(name="count", entry="add")
    graph.add_node("add", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    graph.add_edge("add", "add", when="n < 3")
    last, when = "add", "n >= 3"
    for name, function in nodes.items():
        graph.add_node(name, function=function)
        graph.add_edge(last, name, **({"when": when} if last == "add" else {}))
        last = name
    return nb.load(graph)


def store_run(run_id="one", store="runs.db", recipe=None, **options):
    """Keep a whole run; return its session."""
    session = nb.Session(recipe or counting(), {"n": 0}, store=store, run_id=run_id, **options)
    session.run()
    session.close()
    return session


def document(capsys, *words):
    """Return the document that a command prints where all is well."""
    code, out, err = called(capsys, *words, "--json")
    assert (code, err) == (0, "")
    return json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def files(folder):
    """Return the names of the files there, without what SQLite puts beside an open one."""
    return {path.name for path in folder.iterdir() if not path.name.endswith(("-shm", "-wal"))}


# -- run --store -----------------------------------------------------------------------------------------------------


def test_a_stored_run_is_reported_by_its_id(there, capsys):
    _, out, _ = called(capsys, *RUN)
    first = nb.runs("runs.db")["run_id"][0]
    assert f"stored as run {first!r} in sqlite:///" in out
    assert document(capsys, *RUN)["run_id"] == nb.runs("runs.db")["run_id"][0] != first
    assert document(capsys, *RUN[:-2])["run_id"] is None


def test_a_run_is_stored_on_request(there, capsys):
    assert called(capsys, *RUN)[0] == 0
    code, out, _ = called(capsys, "runs", "runs.db")
    line, count = out.splitlines()
    assert (code, count) == (0, "1 run")
    assert line.endswith("refunds: finished, 4 steps")
    kept_there = nb.open("runs.db")
    assert (kept_there.position, kept_there.board["response"]) == (4, "yes please")


def test_a_waiting_run_is_stored_and_can_be_answered(there, capsys):
    Path("script.yaml").write_text("agents: {reader: {topic: refund}, closer: {closed: true}}\n")
    code, _, err = called(capsys, *RUN)
    assert code == 4
    assert "'ask' waits for a person" in err
    session = nb.open("runs.db", recipe=nb.load("refunds.yaml"), tools={"closer": lambda ticket: {"closed": ticket}})
    session.answer("yes")
    session.run()
    assert (session.status, session.board["closed"]) == ("finished", "I want my money")


def test_an_impossible_store_is_reported_before_anything_runs(there, capsys):
    code, document, codes = run_for_json(capsys, *RUN[:-1], "nowhere/runs.db")
    assert (code, codes) == (1, ["L420"])
    assert "nowhere" in document["problems"][0]["why"]
    assert not Path("nowhere").exists()


# -- runs ------------------------------------------------------------------------------------------------------------


def test_forks_are_listed_below_their_parent_run(there, capsys):
    session = nb.Session(counting(), {"n": 0}, store="runs.db", run_id="one")
    session.run()
    fork = session.fork(at=2, name="what if", edit={"n": 7})
    fork.run()
    fork.fork(at=1, name="once more")
    store_run("two")
    _, out, _ = called(capsys, "runs", "runs.db")
    *lines, count = out.splitlines()
    indents = [len(line) - len(line.lstrip()) for line in lines]
    assert (indents, count) == ([0, 0, 2, 4], "4 runs")
    assert lines[0].startswith("two  ")
    assert lines[1].startswith("one  ")
    assert lines[2].endswith("what if: finished, 3 steps, from step 2")
    assert lines[3].endswith(" 1 step, from step 1")


def test_runs_are_filtered_and_listed_page_by_page(there, capsys):
    for number in range(5):
        store_run(f"run-{number}", name="odd" if number % 2 else "even")
    _, out, _ = called(capsys, "runs", "runs.db", "--contains", "even", "--limit", "2")
    *lines, count = out.splitlines()
    assert ([line.split()[0] for line in lines], count) == (["run-4", "run-2"], "2 runs; older ones: --after run-2")
    words = (
        "runs",
        "runs.db",
        "--recipe",
        "count",
        "--status",
        "finished",
        "--since",
        "2026-01-01",
        "--until",
        "9999-12-31",
    )
    assert [row["run_id"] for row in document(capsys, *words, "--after", "run-2")["runs"]] == ["run-1", "run-0"]
    assert document(capsys, *words, "--fingerprint", "other")["runs"] == []
    assert run_for_json(capsys, "runs", "runs.db", "--status", "finnished")[2] == ["L546"]


def test_a_run_without_a_process_is_interrupted_after_its_last_stored_step(there, capsys):
    def cut():
        raise KeyboardInterrupt

    session = nb.Session(counting(cut=cut), {"n": 0}, store="runs.db", run_id="one")
    with pytest.raises(KeyboardInterrupt):
        session.run()
    session._parts.state.journal.log.update_run("one", status="running")  # as a process that is killed leaves it
    session._parts.state.journal.release()
    _, out, _ = called(capsys, "runs", "runs.db")
    assert "count: interrupted, 3 steps" in out


def test_the_runs_as_json(there, capsys):
    session = store_run(name="Zählen 数")
    session = nb.open("runs.db", "one", recipe=counting())
    fork = session.fork(at=1)
    second, first = document(capsys, "runs", "runs.db")["runs"]
    assert (first["run_id"], first["name"], first["status"], first["steps"]) == ("one", "Zählen 数", "finished", 3)
    assert (first["parent"], first["forked"], first["dialect"]) == (None, None, "networkx")
    assert (second["run_id"], second["parent"], second["forked"]) == (fork.run_id, "one", 1)
    assert datetime.fromisoformat(first["created"]).tzinfo == UTC


def test_a_name_cannot_send_control_sequences_to_the_terminal(there, capsys):
    store_run("a\nb", name="\x1b[2Jgone")
    _, out, _ = called(capsys, "runs", "runs.db")
    assert len(out.splitlines()) == 2
    assert "\x1b" not in out
    assert r"'a\nb'" in out


# -- trace -----------------------------------------------------------------------------------------------------------


def test_without_an_id_the_last_written_run_is_shown(there, capsys):
    store_run("one")
    store_run("two", recipe=counting(end=lambda: {"end": "\x1b[1mof it"}))
    code, out, _ = called(capsys, "trace", "runs.db")
    head, *steps, end = out.splitlines()
    assert code == 0
    assert head.split() == ["step", "node", "phase", "status", "seconds", "inputs", "outputs", "error"]
    assert [line.split()[:4] for line in steps] == [
        *(["1", "add", "run", "ok"], ["2", "add", "run", "ok"], ["3", "add", "run", "ok"], ["4", "end", "run", "ok"])
    ]
    assert end.startswith("count, run two: finished")
    assert "\x1b" not in out


def test_a_run_and_a_table_can_be_selected(there, capsys):
    store_run("one")
    store_run("two")
    _, out, _ = called(capsys, "trace", "runs.db", "--run", "one", "--table", "writes")
    assert "run one" in out
    assert [line.split()[0] for line in out.splitlines()[1:-1]] == ["0", "1", "2", "3"]
    assert "NA" not in out  # nothing is shown as nothing
    _, out, _ = called(capsys, "trace", "runs.db", "--table", "events")
    assert out.splitlines()[0] == "no events"


@pytest.mark.parametrize("table", TABLES)
def test_each_table_as_json_has_the_rows_of_the_frame(there, capsys, table):
    graph = nx.DiGraph(name="odd")
    unusual = {
        "bytes": b"\xff",
        "half": "\ud800",
        "keys": {(1, 2): {3.5}},
        "nan": float("nan"),
        "inf": float("inf"),
        "when": datetime(2026, 3, 1, 12, 0, 0, 7, tzinfo=UTC),
    }
    graph.add_node("tool", kind="tool", function=lambda: unusual)
    session = nb.Session(nb.load(graph), {"n": None}, store="runs.db", run_id="odd")
    session.emit("seen", unusual)
    session.run()
    session.close()
    actual = document(capsys, "trace", "runs.db", "--table", table)
    assert (actual["run"], actual["recipe"], actual["outcome"]["status"]) == ("odd", "odd", "finished")
    assert actual["source"].endswith("runs.db")
    assert len(actual[table]) == len(getattr(session.trace.frames, table))
    if table == "calls":
        result = actual["calls"][0]["result"]
        assert result["when"] == "2026-03-01T12:00:00.000007+00:00"
        assert (result["keys"], result["nan"], result["inf"]) == ({"(1, 2)": [3.5]}, None, "inf")
        assert (result["bytes"], result["half"]) == (r"b'\xff'", r"\ud800")


def test_a_trace_is_written_and_read_again(there, capsys):
    store_run()
    assert called(capsys, "trace", "runs.db", "--output", "trace.json")[0] == 0
    assert len(SimulationTrace.read("trace.json")) == 3
    stored = document(capsys, "trace", "runs.db")
    read = document(capsys, "trace", "trace.json")
    assert read["source"] == "trace.json"
    assert read["steps"] == stored["steps"]
    assert read["outcome"] == stored["outcome"]


def test_secrets_are_not_printed(there, capsys):
    graph = nx.DiGraph(name="secretive")
    graph.add_node(
        "ask", kind="tool", function=lambda api_key: {"said": f"with {api_key}"}, inputs={"api_key": "api_key"}
    )
    session = nb.Session(nb.load(graph), {"api_key": "sk-98765-zyx"}, store="runs.db")
    session.run()
    session.close()
    for table in TABLES:
        for more in ([], ["--json"]):
            _, out, _ = called(capsys, "trace", "runs.db", "--table", table, *more)
            assert "98765" not in out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("runs", "nothing.db"), "L410"),
        (("trace", "nothing.json"), "L410"),
        (("trace", "runs.db", "--run", "three"), "L413"),
        (("trace", "refunds.yaml"), "L416"),
        (("trace", "other.json"), "L571"),
        (("runs", "mysql://there/runs"), "L414"),
        (("runs", "."), "L420"),
    ],
)
def test_a_missing_store_is_reported_and_not_created(there, capsys, words, code):
    store_run()
    Path("other.json").write_text('{"steps": []}')
    before = files(there)
    result, _, codes = run_for_json(capsys, *words)
    assert (result, codes) == (1, [code])
    result, out, err = called(capsys, *words)
    assert (result, out) == (1, "")
    assert err.startswith(f"{code}: ")
    assert files(there) == before
