"""A change whose end nobody has seen, and what an interrupt leaves behind."""

from __future__ import annotations

import os
import sqlite3
import threading
from types import SimpleNamespace

import pytest

from agentnb.engine.persistence.event_log import Entry
from tests.store.stores import Elsewhere, refused, row, some


class Faulty:
    """A cursor that does what it is told, and then fails after (or instead of) a statement that begins so."""

    def __init__(self, link, statement, error, *, does=True):
        self.link, self.statement, self.error, self.does = link, statement, error, does
        self.real = link._cursor
        link._cursor = self

    def __getattr__(self, name):
        return getattr(self.real, name)

    def execute(self, statement, *given):
        return self._do(self.real.execute, statement, *given)

    def executemany(self, statement, *given):
        return self._do(self.real.executemany, statement, *given)

    def _do(self, act, statement, *given):
        if not statement.startswith(self.statement):
            return act(statement, *given)
        self.link._cursor = self.real
        if self.does:
            act(statement, *given)
        raise self.error


def lost(log):
    """Return an error of this log's database, as when the answer to a COMMIT does not come."""
    if log._link.database.remote:
        return log._link.database.errors("the server has closed the connection")
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_IOERR, "SQLITE_IOERR"
    return error


def breaks(log, statement, *, does, error=None):
    return Faulty(log._link, statement, error or lost(log), does=does)


@pytest.fixture
def log(lasting):
    lasting.log.create(row(), some(1, 1))
    return lasting.log


@pytest.mark.parametrize("does", [True, False], ids=["arrived", "did not arrive"])
def test_an_entry_stored_despite_an_error_is_not_stored_twice(log, does):
    breaks(log, "COMMIT", does=does)
    with pytest.raises(Exception, match="L4"):
        log.append("one", some(2, 3), status="running", steps=3)
    assert log.last("one") == (3 if does else 1)
    log.append("one", some(2, 3), status="running", steps=3)
    log.append("one", some(4, 4))
    assert list(log.entries("one")) == some(1, 4)
    assert log.run("one").steps == 3


def test_a_retry_may_store_more_entries(log):
    breaks(log, "COMMIT", does=True)
    with pytest.raises(Exception, match="L4"):
        log.append("one", some(2, 3))
    log.append("one", some(2, 6))
    assert list(log.entries("one")) == some(1, 6)


def test_a_different_entry_cannot_replace_a_stored_one(log):
    breaks(log, "COMMIT", does=True)
    with pytest.raises(Exception, match="L4"):
        log.append("one", some(2, 3))
    refused("L411", log.append, "one", [*some(2, 2), Entry(3, 6, "another")])
    refused("L411", log.append, "one", some(2, 2))
    assert list(log.entries("one")) == some(1, 3)


def test_a_stored_duplicate_is_rejected(log):
    log.append("one", some(2, 3))
    refused("L411", log.append, "one", some(2, 3))
    refused("L411", log.append, "one", some(2, 4))


@pytest.mark.parametrize("does", [True, False], ids=["arrived", "did not arrive"])
def test_a_run_created_despite_an_error_is_not_created_twice(log, does):
    breaks(log, "COMMIT", does=does)
    with pytest.raises(Exception, match="L4"):
        log.create(row("two", status="running"), some(1, 2))
    log.create(row("two", status="running"), some(1, 2))
    log.append("two", some(3, 3))
    assert list(log.entries("two")) == some(1, 3)
    assert log.run("two").status == "running"
    refused("L412", log.create, row("two"), some(1, 2))


@pytest.mark.parametrize("does", [True, False], ids=["arrived", "did not arrive"])
@pytest.mark.parametrize("ids", [("two",), ("two", "three")])
def test_runs_added_despite_an_error_are_not_added_twice(log, does, ids):
    runs = [(row(run_id), some(1, 2)) for run_id in ids]
    breaks(log, "COMMIT", does=does)
    with pytest.raises(Exception, match="L4"):
        log.add(runs)
    log.add(runs)
    assert {run.run_id for run in log.runs()} == {"one", *ids}
    assert all(list(log.entries(run_id)) == some(1, 2) for run_id in ids)
    refused("L412", log.add, runs)


@pytest.mark.parametrize("statement", ["BEGIN", "UPDATE agentnb_standing", "INSERT INTO agentnb_entries", "COMMIT"])
@pytest.mark.parametrize("does", [True, False], ids=["after", "before"])
def test_an_interrupt_leaves_no_transaction_open(log, lasting, statement, does):
    breaks(log, statement, does=does, error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        log.append("one", some(2, 3))
    other = lasting.another()
    other.create(row("two"))  # nothing is locked
    log.append("one", some(2, 3))
    assert list(log.entries("one")) == some(1, 3)
    refused("L411", other.append, "one", some(4, 4))


def test_an_interrupt_of_a_single_entry_leaves_no_transaction_open(log):
    statements = ["WITH"] if log._link.database.remote else ["INSERT INTO agentnb_entries", "COMMIT"]
    log.append("one", some(2, 2))
    for seq, statement in enumerate(statements, 3):
        breaks(log, statement, does=True, error=KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            log.append("one", some(seq, seq))
        log.append("one", some(seq, seq))
        assert list(log.entries("one")) == some(1, seq)


def test_an_interrupt_while_reading_leaves_the_log_usable(log):
    breaks(log, "SELECT", does=True, error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        log.last("one")
    assert log.last("one") == 1
    log.append("one", some(2, 2))


def test_a_log_closed_during_use_is_left_alone(log):
    link = log._link
    link.lock = SimpleNamespace(acquire=lambda timeout: False, release=None)
    link.end()
    assert link._connection is not None
    link.lock = threading.RLock()


# -------------------------------------------------------------------------------------------------------------- forking

FORKS = """
import os, signal
from agentnb.errors import StoreError
log.create(row(), some(1, 1))
child = os.fork()
if child == 0:
    try:
        log.append("one", some(2, 2))
    except StoreError as error:
        assert f"process {os.getppid()}" in str(error), error
        log.create(row("child"), some(1, 2))
        assert log.last("one") == 1
        log.close()
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
log.append("one", some(2, 2))
assert log.last("child") == 2
log.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.starts_programs
def test_a_forked_process_has_its_own_connection(lasting):
    with Elsewhere(lasting.where, FORKS) as they:
        they.ends()
    assert list(lasting.log.entries("one")) == some(1, 2)
    assert [run.writer for run in lasting.log.runs()] == [None, None]
