"""A store in a file, and what can be wrong with a file."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from contextlib import closing

import pytest

from agentnb.store import SqlLog, sqlite
from agentnb.store.writer_identity import LIVE
from tests.store.stores import HOLDS, Elsewhere, changed, everything, refused, row, some


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.db"


@pytest.fixture
def log(path):
    log_ = SqlLog(path, seconds=0.05)
    yield log_
    log_.close()


# ------------------------------------------------------------------------------------------------------------- one file


def test_a_store_is_one_file_when_it_is_closed(log, path):
    log.create(row(), some(1, 3))
    log.close()
    assert [each.name for each in path.parent.iterdir()] == ["runs.db"]


def test_it_survives_a_killed_process_without_waiting_for_the_disk(log, path):
    log.create(row())
    connection = log._link._connection
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (1,)


def test_a_read_creates_no_file(log, path):
    refused("L410", log.runs)
    path.touch()
    refused("L410", log.run)
    assert everything(path.parent) == {"runs.db": b""}
    log.create(row())
    assert log.run().run_id == "one"


def test_entries_of_a_killed_writer_can_be_read(path):
    with Elsewhere(str(path), HOLDS) as they:
        assert they.hears() == "holds"
    assert (path.parent / "runs.db-wal").stat().st_size > 0
    log = SqlLog(path)
    assert list(log.entries("theirs")) == some(1, 3)
    log.append("theirs", some(4, 4))
    log.close()
    assert list(SqlLog(path).entries("theirs")) == some(1, 4)


def test_a_reader_sees_the_entries_of_an_open_writer(log, path):
    log.create(row(), some(1, 1))
    reader = SqlLog(path)
    for seq in range(2, 6):
        log.append("one", some(seq, seq))
        assert reader.last("one") == seq
    reader.close()
    log.append("one", some(6, 6))


# ------------------------------------------------------------------------------------------------- taken away, put back


def test_a_write_to_a_deleted_file_is_rejected(log, path):
    log.create(row(), some(1, 1))
    aside = path.with_name("aside")
    aside.mkdir()
    for each in path.parent.glob("runs.db*"):
        shutil.move(each, aside)
    for _ in range(2):
        assert "restore the file" in refused("L426", log.append, "one", some(2, 2))
        refused("L410", log.runs)
    assert [each.name for each in path.parent.iterdir()] == ["aside"]
    for each in aside.iterdir():
        shutil.move(each, path.parent)
    log.append("one", some(2, 2))
    assert list(log.entries("one")) == some(1, 2)


def test_another_file_in_the_same_place_is_another_store(log, path):
    log.create(row(), some(1, 1))
    for each in path.parent.glob("runs.db*"):
        each.unlink()
    log.create(row("two"))
    assert [run.run_id for run in log.runs()] == ["two"]
    refused("L413", log.append, "one", some(2, 2))


def test_a_replaced_store_is_opened(log, path, tmp_path):
    log.create(row(), some(1, 1))
    other = SqlLog(tmp_path / "other.db")
    other.create(row("two"), some(1, 1))
    other.close()
    for each in path.parent.glob("runs.db*"):
        each.unlink()
    shutil.move(tmp_path / "other.db", path)
    assert log.run().run_id == "two"
    log.append("two", some(2, 2))


@pytest.mark.parametrize("entries", [0, 1, 2, None])
def test_a_writer_taken_for_dead_cannot_continue(log, path, entries):
    log.create(row(), some(1, 1))
    LIVE.discard(log._link._token)
    other = SqlLog(path)
    other.append("one", [], steps=4)
    for _ in range(2):
        if entries is None:
            refused("L411", log.update_run, "one", steps=5)
        else:
            refused("L411", log.append, "one", some(2, 1 + entries))
    assert log.run("one").steps == 4
    other.close()
    log.append("one", some(2, 2))


class Busy:
    """A connection to a file that somebody else begins at the same time: SQLite does not wait for that."""

    def __init__(self, times):
        self.times = times

    def execute(self, statement):
        if statement == "PRAGMA journal_mode=WAL" and self.times:
            self.times -= 1
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error
        return self

    def fetchall(self):
        return []


def test_a_concurrent_creation_of_a_file_is_awaited(path):
    connection = Busy(3)
    sqlite.SqliteFile(str(path), "runs.db", 60)._settle(connection)
    assert connection.times == 0
    with pytest.raises(sqlite3.OperationalError):
        sqlite.SqliteFile(str(path), "runs.db", 0)._settle(Busy(1000))


def test_a_file_is_complete_and_closed_when_its_last_run_is_released(log, path):
    log.create(row(), some(1, 3))
    log.create(row("two"))
    log.release("one")
    log.checkpoint()
    assert (path.parent / "runs.db-wal").stat().st_size == 0
    log.append("two", some(1, 1))
    log.release("two")
    log.checkpoint()
    assert [each.name for each in path.parent.iterdir()] == ["runs.db"]
    log.checkpoint()
    assert [each.name for each in path.parent.iterdir()] == ["runs.db"]
    assert list(log.entries("one")) == some(1, 3)
    log.checkpoint()
    log.append("one", some(4, 4))


def test_a_failed_checkpoint_is_reported(log, path):
    class Full:
        def execute(self, statement):
            raise sqlite3.OperationalError("database or disk is full")

    problem = sqlite.SqliteFile(str(path), "runs.db", 0).checkpoint(Full())
    assert (problem.code, problem.severity) == ("L438", "warning")
    assert "disk is full" in problem.why


# ---------------------------------------------------------------------------------------------- full, locked, forbidden


def test_a_full_disk_is_reported_and_nothing_stored_is_lost(log):
    log.create(row(), some(1, 3))
    connection = log._link._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count={pages + 2}").fetchall()
    for _ in range(2):
        assert "free some space" in refused("L417", log.append, "one", some(4, 4, "x" * 100_000), status="failed")
        assert not log._link._connection.in_transaction
        assert list(log.entries("one")) == some(1, 3)
        assert log.run("one").status == "ready"
    refused("L417", log.create, row("two"), some(1, 1, "x" * 100_000))
    log.append("one", some(4, 4))
    log._link._connection.execute("PRAGMA max_page_count=100000").fetchall()
    log.append("one", some(5, 5, "x" * 100_000))
    assert log.last("one") == 5


LIMITED = """
import resource
from agentnb.errors import StoreError
log.create(row(), some(1, 1))
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
seq = 1
try:
    while True:
        log.append("one", some(seq + 1, seq + 1, "x" * 5000))
        seq += 1
except StoreError as error:
    assert error.problems[0].code == "L417", error
assert 10 < seq == log.last("one"), seq
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log.append("one", some(seq + 1, seq + 1))
assert len(list(log.entries("one"))) == seq + 1
log.close()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit to set")
def test_a_limit_of_the_system_is_reported_and_nothing_is_lost(path):
    with Elsewhere(str(path), LIMITED) as they:
        they.ends()
    with changed(path, "SELECT 1") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_locked_file_is_reported_and_can_be_read(log, path):
    log.create(row(), some(1, 1))
    with changed(path, "BEGIN EXCLUSIVE") as other:
        for action in (
            lambda: log.append("one", some(2, 2)),
            lambda: log.update_run("one", steps=1),
            lambda: log.create(row("two")),
            lambda: log.release("one"),
        ):
            assert "locked" in refused("L418", action)
            assert list(log.entries("one")) == some(1, 1)
        other.execute("COMMIT")
        log.append("one", some(2, 2))
    log.create(row("two"))


def test_a_claim_survives_a_failed_connection(log, path):
    log.create(row(), some(1, 1))
    log._link.drop()
    with changed(path, "BEGIN EXCLUSIVE") as other:
        refused("L418", log.append, "one", some(2, 2))
        other.execute("COMMIT")
    refused("L411", SqlLog(path).append, "one", some(2, 2))
    log.append("one", some(2, 2))
    log._link.drop()
    refused("L411", log.append, "one", some(7, 7))
    log.append("one", some(3, 3))
    log._link.drop()
    log.release("one")
    SqlLog(path).append("one", some(4, 4))


def test_a_failed_claim_is_not_held(log, path):
    other = SqlLog(path)
    other.create(row(), some(1, 1))
    refused("L411", log.append, "one", some(2, 2))
    log.close()
    other.close()
    for each in path.parent.glob("runs.db*"):
        each.unlink()
    refused("L410", log.append, "one", some(2, 2))
    assert list(path.parent.iterdir()) == []


def test_a_briefly_locked_file_is_awaited(path):
    log = SqlLog(path)
    log.create(row(), some(1, 1))
    with Elsewhere(str(path), LOCKS) as they:
        assert they.hears() == "locked"
        they.told()
        log.append("one", some(2, 2))
        they.ends()
    assert log.last("one") == 2


LOCKS = """
import sqlite3, time
other = sqlite3.connect(sys.argv[1], isolation_level=None)
other.execute("BEGIN EXCLUSIVE")
say("locked")
wait()
time.sleep(0.2)
other.execute("COMMIT")
"""


def test_closing_a_log_does_not_wait(log, path):
    log.create(row())
    with changed(path, "BEGIN EXCLUSIVE") as other:
        log.close()  # nobody can be told that the run is free: whoever asks this process is told so
        other.execute("COMMIT")
    other = SqlLog(path)
    other.append("one", some(1, 1))
    other.close()


def test_a_missing_folder_is_reported(tmp_path):
    log = SqlLog(tmp_path / "deep" / "runs.db")
    assert "there is no folder" in refused("L420", log.create, row())
    refused("L410", log.runs)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "deep").mkdir()
    log.create(row())
    log.close()


def test_a_folder_is_not_a_store(tmp_path):
    log = SqlLog(tmp_path)
    refused("L420", log.runs)
    refused("L420", log.create, row())


def test_the_message_of_a_driver_is_reported_with_its_name(path):
    file = sqlite.SqliteFile(str(path), "runs.db", 1)
    error = sqlite3.OperationalError("a new kind")
    error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_TOOBIG, "SQLITE_TOOBIG"
    assert "a new kind (SQLITE_TOOBIG)" in file.to_store_error(error).problems[0].why
    assert file.to_store_error(error).problems[0].code == "L427"


def test_an_extended_error_code_is_that_of_its_kind(path):
    file = sqlite.SqliteFile(str(path), "runs.db", 1)

    def report(code):
        error = sqlite3.OperationalError("so it is")
        error.sqlite_errorcode = code
        return file.to_store_error(error).problems[0].code, file.is_lost(None, error), file.is_duplicate(error)

    for code in range(27):
        assert {report(code), report(code | 1 << 8), report(code | 255 << 8)} == {report(code)}, code
    assert report(sqlite3.SQLITE_OK) == ("L427", True, False)
    error = sqlite3.ProgrammingError("without a code")
    assert (file.to_store_error(error).problems[0].code, file.is_lost(None, error)) == ("L427", True)


def test_a_locked_store_is_awaited_for_five_seconds_by_default(path):
    with closing(SqlLog(path)) as log:
        log.create(row())
        assert log._link._connection.execute("PRAGMA busy_timeout").fetchone() == (5000,)


def test_a_store_is_readable_by_the_sqlite_tool(log, path):
    log.create(row(), some(1, 3))
    log.close()
    query = "SELECT body FROM agentnb_entries JOIN agentnb_runs ON number = run WHERE run_id = 'one' ORDER BY seq"
    with changed(path, "SELECT 1") as connection:
        assert connection.execute(query).fetchall() == [(f'{{"n":{seq}}}',) for seq in (1, 2, 3)]


@pytest.mark.parametrize("allowed", [True, False])
def test_a_store_without_an_index_gets_it_or_works_without_it(path, allowed):
    with closing(SqlLog(path)) as log:
        log.create(row(), some(1, 2))
    with closing(sqlite3.connect(path)) as connection, connection:
        (names,) = zip(
            *connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE INDEX%'"), strict=True
        )
        for name in names:
            connection.execute(f"DROP INDEX {name}")
            if not allowed:  # SQLite creates no index of the name of a view
                connection.execute(f"CREATE VIEW {name} AS SELECT 1")
    with closing(SqlLog(path)) as log:
        log.append("one", some(3, 3))
        assert log.last("one") == 3
    with closing(sqlite3.connect(path)) as connection:
        actual = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}
    assert actual.issuperset(names) is allowed
