"""A file that is not a store of ours, or no whole one, is told and was not changed."""

from __future__ import annotations

import shutil
from contextlib import closing

import pytest

from agentnb.store import SqlLog
from tests.store.stores import changed, everything, refused, row, some


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.db"


@pytest.fixture
def log(path):
    log_ = SqlLog(path)
    yield log_
    log_.close()


def test_a_file_that_is_not_a_database_is_not_changed(log, path):
    path.write_text("name: triage\n" * 100)
    before = everything(path.parent)
    for action in (log.runs, lambda: log.create(row())):
        assert "was not changed" in refused("L416", action)
        assert everything(path.parent) == before


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_the_database_of_another_program_is_not_changed(log, path, mode):
    with changed(path, f"PRAGMA journal_mode={mode}") as connection:
        connection.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, id TEXT)")
        connection.execute("CREATE TABLE meta (key TEXT, value TEXT)")
        connection.execute("INSERT INTO events VALUES (1, 'evt_001')")
    before = path.read_bytes()
    for action in (log.runs, lambda: log.create(row())):
        assert "events, meta" in refused("L416", action)
    assert path.read_bytes() == before


def test_the_first_six_tables_of_another_program_are_named(log, path):
    with changed(path, "SELECT 1") as connection:
        for name in "hgfedcba":
            connection.execute(f"CREATE TABLE {name} (id INTEGER)")
    assert "another program: a, b, c, d, e, f\n" in refused("L416", log.runs)


@pytest.mark.parametrize(
    ("version", "code"),
    [("0", None), ("1", None), ("2", "L415"), ("10", "L415"), ("", "L422"), ("-1", "L422"), ("1.0", "L422")],
)
def test_the_version_of_a_store_is_checked(path, version, code):
    with closing(SqlLog(path)) as log:
        log.create(row())
    with changed(path, f"UPDATE agentnb_meta SET value = '{version}'"):
        pass
    with closing(SqlLog(path)) as log:
        if code is None:
            assert len(log.runs()) == 1
        else:
            refused(code, log.runs)


def test_an_open_transaction_of_another_program_is_not_changed(path, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    with changed(path, "PRAGMA journal_mode=wal") as connection:
        connection.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, id TEXT)")
        for each in ("runs.db", "runs.db-wal"):
            shutil.copy(path.with_name(each), copy)
    before = everything(copy)
    assert before["runs.db-wal"]
    refused("L416", SqlLog(copy / "runs.db").create, row())
    assert {name: everything(copy)[name] for name in before} == before


def test_a_store_of_a_newer_agentnb_is_not_changed(log, path):
    log.create(row())
    log.close()
    with changed(path, "UPDATE agentnb_meta SET value = '2'"):
        pass
    before = path.read_bytes()
    for action in (log.runs, lambda: log.append("one", some(1, 1))):
        assert "version 2" in refused("L415", action)
    assert path.read_bytes() == before


@pytest.mark.parametrize("key", ["a", "z"])
def test_additional_metadata_are_ignored(path, key):
    log = SqlLog(path)
    log.create(row(), some(1, 2))
    log.close()
    with changed(path, f"INSERT INTO agentnb_meta VALUES ('{key}', 'other')"):
        pass
    assert [*SqlLog(path).entries("one")] == some(1, 2)


@pytest.mark.parametrize("statement", ["DELETE FROM agentnb_meta", "UPDATE agentnb_meta SET value = 'one'"])
def test_a_store_without_version_is_damaged(log, path, statement):
    log.create(row())
    log.close()
    with changed(path, statement):
        pass
    refused("L422", log.runs)


def test_a_store_without_a_table_is_damaged(log, path):
    log.create(row(), some(1, 1))
    with changed(path, "DROP TABLE agentnb_entries"):
        pass
    refused("L422", log.entries, "one")
    refused("L422", log.append, "one", some(2, 2))


def test_a_damaged_file_is_reported(log, path):
    log.create(row(), some(1, 2000, "x" * 100))
    log.close()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    refused("L422", lambda: list(log.entries("one")))
    path.write_bytes(content)
    assert list(log.entries("one")) == some(1, 2000, "x" * 100)
