"""How much a SqlLog reads at a time; test_contract holds what it promises."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from agentnb.engine.persistence.event_log import EVERY_RUN, RunQuery
from agentnb.store import SqlLog
from agentnb.store import sql_log as module
from tests.store.stores import refused, row, some


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
    with pytest.warns(UserWarning, match="L434: 2 of 5 runs cannot be listed"):
        assert [each.run_id for each in log.runs(query)] == ["r-4", "r-2", "r-0"]
    log.close()
