"""What of a session lasts is tested with what opens it again (test_reopen.py); here is what a session says of it."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing

import psutil
import pytest

import agentnb as nb
from agentnb.session.reopen import reopen_run
from agentnb.store import MemoryLog, SqlLog, open_log
from tests.engine.graph_shapes import SHAPES
from tests.property import paused_calls
from tests.property.interrupted_runs import facts
from tests.session.gated_nodes import Gate, live
from tests.session.small_sessions import counting, graph, session


def test_a_session_without_a_store_is_not_stored():
    session = nb.Session(nb.load(counting()), {"n": 0})
    session.run()
    session.close()
    assert (session._parts.state.log, session._parts.state.read_only_reason) == (None, None)
    with pytest.raises(nb.AgentNbError, match=r"L451[\s\S]*session\.save\('run\.db'\)"):
        session.save()


def test_saving_a_run_does_not_create_collections_that_the_run_never_used():
    session = nb.Session(nb.load(counting()), {"n": 0}, store=MemoryLog(), durability="batch")
    session.run()
    session.close()
    run = session._parts.state.run
    assert not {"asides", "closed", "opened", "order", "rare", "reduced", "waiting_ns"} & {*run.history.lazy_values}
    assert run.history.peek("waiting_ns") == ()
    run.history.waiting_ns[1] = 7
    assert run.history.peek("waiting_ns") == run.history.waiting_ns == {1: 7}


def test_a_closed_session_can_be_inspected_and_saved(tmp_path):
    session = nb.Session(nb.load(counting()), {"n": 0}, store=MemoryLog())
    session.step(2)
    session.close()
    assert session.back().position == 1
    with pytest.raises(nb.ExecutionError, match="L452"):
        session.step()
    session.save(tmp_path / "copy.db")
    assert nb.open(tmp_path / "copy.db").run_id == session.run_id


def read_copy(path, run_id):
    """Open a run of a copy of a store's file alone, without the files beside it."""
    with tempfile.TemporaryDirectory() as folder:
        return nb.open(shutil.copy(path, folder), run_id)


def test_a_copy_of_the_file_alone_is_whole(tmp_path):
    first = nb.Session(nb.load(counting()), {"n": 0}, store=tmp_path / "runs.db", run_id="first")
    second = nb.Session(nb.load(counting()), {"n": 0}, store=tmp_path / "runs.db", run_id="second")
    first.step(2)
    first.save(tmp_path / "share.db")
    assert read_copy(tmp_path / "share.db", "first").position == 2
    first.step()
    first.save()
    assert read_copy(tmp_path / "runs.db", "first").position == 3
    first.step()
    first.save(tmp_path / "share.db")
    first.close()
    second.step()
    for name in ("runs.db", "share.db"):
        assert read_copy(tmp_path / name, "first").position == 4
    second.close()
    assert read_copy(tmp_path / "runs.db", "second").position == 1
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {"runs.db", "share.db"}


def test_the_last_session_that_is_closed_closes_the_file(tmp_path):
    path = tmp_path / "runs.db"

    def is_open():
        return any(file.path.startswith(str(path)) for file in psutil.Process().open_files())

    run = nb.Session(nb.load(counting()), {"n": 0}, store=path, run_id="r")
    run.run()
    fork = run.fork(at=2)
    fork.run()
    run.close()
    assert is_open()
    fork.close()
    assert not is_open()
    assert (run.back().position, len(run.trace)) == (6, 7)
    with pytest.raises(nb.ExecutionError, match="L452"):
        run.step()
    run.close()
    recording = nb.open(path, "r")
    recording.close()
    assert not is_open()
    assert (recording.position, recording.goto(1).board["n"]) == (7, 1)
    again = nb.open(path, "r", recipe=run.recipe)
    again.close()
    assert not is_open()
    assert nb.runs(path)["status"].tolist() == ["finished", "finished"]


def test_a_reader_that_keeps_the_file_incomplete_is_reported(tmp_path):
    path = tmp_path / "runs.db"
    run = nb.Session(nb.load(counting()), {"n": 0}, store=SqlLog(path, seconds=0.02), run_id="r")
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM agentnb_runs").fetchall()
        run.run()
        with pytest.warns(UserWarning, match=r"L438[\s\S]*runs\.db-wal[\s\S]*another program") as caught:
            run.close()
        assert caught[0].filename == __file__
        for name in ("copy.db", "copy.db-wal"):
            shutil.copy(tmp_path / name.replace("copy", "runs"), tmp_path / name)
        assert nb.open(tmp_path / "copy.db", "r").status == "finished"
    assert nb.open(path, "r").status == "finished"


def test_saving_to_its_own_store_makes_no_copy():
    log = MemoryLog()
    session = nb.Session(nb.load(counting()), {"n": 0}, store=log, durability="batch")
    session.step(2)
    assert session.save() == session.save(log) == log.url
    assert len(log.runs()) == 1
    assert log.runs()[0].steps == 2


def test_a_masked_value_is_supplied_by_its_path():
    log = MemoryLog()
    session = nb.Session(nb.load(counting()), {"n": 0, "password": "p-12345"}, store=log, run_id="r")
    session.close()
    reopened = nb.open(log, recipe=session.recipe)
    assert reopened._parts.persistence.list_masked() == ["password"]
    with pytest.raises(nb.ExecutionError, match=r"X141[\s\S]*did you mean 'password'"):
        reopened._parts.persistence.fill({"pasword": "p-12345"})
    reopened.answer("p-12345", "password")
    assert reopened._parts.persistence.list_masked() == []
    assert reopened.inputs["password"] == reopened.board["password"] == "p-12345"
    with pytest.raises(nb.ExecutionError, match="X115"):
        reopened.answer("more")


def test_an_abandoned_branch_is_stored_from_its_first_step():
    log = MemoryLog()
    session = nb.Session(nb.load(counting()), {"n": 0}, store=log, run_id="r")
    session.step(3)
    session.back(2)
    session.step()
    (left,) = session.forks
    assert len(log.runs()) == 1
    left.step()
    assert [row.parent for row in log.runs()] == ["r", None]
    left.close()
    reopened = nb.open(log, left.run_id, recipe=session.recipe)
    assert reopened.trace.to_frame().equals(left.trace.to_frame())


def test_a_running_session_is_not_closed_so_that_no_step_is_lost():
    async def main():
        gate, log = Gate(), MemoryLog()
        run = session(graph("a", "gate", gate=gate), store=log, run_id="r")
        run.start()
        await gate.begun.wait()
        with pytest.raises(nb.ExecutionError, match="X112"):
            run.close()
        gate.go.set()
        await run.wait()
        run.close()
        run.close()
        assert (run.position, nb.open(log, "r").position, nb.runs(log)["status"][0]) == (2, 2, "finished")

    live(main)


@pytest.mark.parametrize("name", SHAPES)
def test_a_copy_of_an_unstored_session_is_inside_its_step_too(name, tmp_path):
    run = paused_calls.make_session(name, ["tool", "emit", "human", "tool"])
    while run.status != "waiting":
        run.step()
    run.save(tmp_path / "copy.db")
    log = open_log(tmp_path / "copy.db")
    reopened = reopen_run(log, log.run(), run._parts.run.plan)
    assert (reopened.status, reopened.position) == ("waiting", run.position)
    waits = [[(one.kind, one.node, one.arguments) for one in each.pending] for each in (reopened, run)]
    assert waits[0] == waits[1]
    for each in (reopened, run):
        each.answer("yes")
    calls = [[(call.result, call.step) for call in each._parts.run.history.calls] for each in (reopened, run)]
    assert calls[0] == calls[1]
    assert (
        reopened._parts.run.history.calls[0].seconds == run._parts.run.history.calls[0].seconds
    )  # it was not made again
    assert facts(paused_calls.ended(reopened)) == facts(paused_calls.ended(run))
