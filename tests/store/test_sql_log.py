"""How much a SqlLog reads at a time; test_contract holds what it promises."""

from __future__ import annotations

import sqlite3
import warnings
from contextlib import closing

import pytest

import agentnb as nb
from agentnb.engine.persistence.event_log import EVERY_RUN, RunQuery
from agentnb.store import SqlLog
from agentnb.store import sql_log as module
from agentnb.store.tables import STANDS
from tests.store.stores import CREATED, refused, row, some


@pytest.fixture
def log(tmp_path):
    log_ = SqlLog(tmp_path / "runs.db")
    yield log_
    log_.close()


def sizes(log, monkeypatch):
    """Return how many entries are read at a time."""
    results, part = [], log._read_chunk

    def chunk(*given):
        entries = part(*given)
        results.append(len(entries))
        return entries

    monkeypatch.setattr(log, "_read_chunk", chunk)
    assert sum(1 for _ in log.entries("one")) == log.last("one")
    return results


def test_short_entries_are_read_in_large_batches(log, monkeypatch):
    log.create(row(), some(1, 5000))
    assert sizes(log, monkeypatch) == [64, 2000, 2000, 936]


def test_large_entries_are_read_in_small_batches(log, monkeypatch):
    log.create(row(), some(1, 70, "x" * 1_000_000))
    assert sizes(log, monkeypatch) == [64, 3, 3, 0]


def test_an_entry_larger_than_a_batch_is_read(log, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 10)
    monkeypatch.setattr(module, "_FIRST", 1)
    log.create(row(), some(1, 3, "x" * 100))
    assert sizes(log, monkeypatch) == [1, 1, 1, 0]


@pytest.mark.parametrize(("characters", "size"), [(64, 63), (65, 64), (66, 64), (129, 127), (130, 128)])
def test_as_many_entries_are_read_as_their_mean_size_allows(log, monkeypatch, characters, size):
    monkeypatch.setattr(module, "_CHUNK", characters)
    log.create(row(), some(1, 300, "x"))
    assert sizes(log, monkeypatch)[:2] == [64, size]


def test_entries_without_text_are_read(log):
    log.create(row(), some(1, 100, ""))
    assert list(log.entries("one")) == some(1, 100, "")


@pytest.mark.parametrize("limit", [1, 3, 4])
def test_a_page_without_damage_is_one_statement(log, limit):
    statements = []
    log.add([(row(f"r-{number}"), []) for number in range(4)])
    log._link._connection.set_trace_callback(statements.append)
    assert len(log.runs(RunQuery(limit=limit))) == limit
    assert len(statements) == 1


def test_a_run_that_is_created_twice_at_once_is_a_duplicate(log, monkeypatch):
    log.create(row("one"), some(1, 2))
    monkeypatch.setattr(log, "_exists", lambda *_: False)  # as it was a moment before
    refused("L412", log.create, row("one"), some(1, 1))
    assert log.last("one") == 2


def test_another_constraint_error_is_not_a_duplicate(log):
    log.create(row("one"), some(1, 2))
    log._link._connection.execute("CREATE TRIGGER full BEFORE INSERT ON agentnb_runs BEGIN SELECT no_such(); END")
    message = refused("L427", log.create, row("two"), some(1, 1))
    assert "no_such" in message


@pytest.mark.parametrize("query", [EVERY_RUN, RunQuery(limit=4), RunQuery(contains="r-")])
def test_damaged_rows_are_counted(tmp_path, query):
    log = SqlLog(tmp_path / "runs.db")
    for number in range(5):
        log.create(row(f"r-{number}"))
    log.close()
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
        connection.execute("UPDATE agentnb_standing SET updated = 'never' WHERE run IN (2, 4)")
    with pytest.warns(UserWarning, match="L434: 2 of 5 runs cannot be listed") as caught:
        assert [each.run_id for each in log.runs(query)] == ["r-4", "r-2", "r-0"]
    assert caught[0].filename == __file__
    log.close()


def list_after(path, statement):
    """Return the ids of the runs of a store with `r-0` to `r-2` that are listed after a change, and the warnings."""
    with closing(SqlLog(path)) as log:
        log.add([(row(f"r-{number}", parent="r", at="[1]", forked=1), []) for number in range(3)])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)
    with closing(SqlLog(path)) as log, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        listed = [[each.run_id for each in log.runs(query)] for query in (EVERY_RUN, RunQuery(since=CREATED))]
        return listed, [str(each.message) for each in caught]


@pytest.mark.parametrize("table", ["runs", "standing"])
def test_a_run_without_one_of_its_rows_is_counted_as_damaged(tmp_path, table):
    key = {"runs": "number", "standing": "run"}[table]
    listed, messages = list_after(tmp_path / "runs.db", f"DELETE FROM agentnb_{table} WHERE {key} = 2")
    assert listed == [["r-2", "r-0"]] * 2
    assert "1 of 3 runs" in messages[0]


WRONG = {
    **dict.fromkeys(("run_id", "name", "recipe", "dialect", "fingerprint", "head", "status", "parent", "at"), "x'00'"),
    **dict.fromkeys(("steps", "shared", "forked"), "'some'"),
    **dict.fromkeys(("created", "updated"), "'2026-02-03'"),
}


@pytest.mark.parametrize("column", WRONG)
def test_a_row_with_a_wrong_type_is_damaged(tmp_path, column):
    table, key = ("standing", "run") if column in STANDS else ("runs", "number")
    change = f"UPDATE agentnb_{table} SET {column} = {WRONG[column]} WHERE {key} = 2"
    listed, messages = list_after(tmp_path / "runs.db", change)
    assert listed == [["r-2", "r-0"]] * 2
    assert all("L434: 1 of 3 runs" in message for message in messages)
    assert messages


@pytest.mark.parametrize("column", ["created", "updated"])
@pytest.mark.parametrize(
    ("year", "valid"), [("0001", 0), ("1677", 0), ("1678", 1), ("2261", 1), ("2262", 0), ("9999", 0)]
)
def test_a_time_that_a_table_cannot_hold_is_damaged(tmp_path, column, year, valid):
    table, key = ("standing", "run") if column == "updated" else ("runs", "number")
    change = f"UPDATE agentnb_{table} SET {column} = '{year}-07-01T00:00:00+00:00' WHERE {key} = 2"
    (listed, _), messages = list_after(tmp_path / "runs.db", change)
    assert ("r-1" in listed, "L434: 1 of 3 runs" in "".join(messages)) == (valid, not valid)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert sorted(nb.runs(tmp_path / "runs.db")["run_id"]) == sorted(listed)
