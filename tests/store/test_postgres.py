"""A store on a server, which may go, come back, and refuse."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import replace

import psycopg
import pytest

from agentnb.store import SqlLog, open_log
from agentnb.store.postgres import PostgresServer
from agentnb.store.writer_identity import _read_start, identify_writer
from tests.store.postgres import PASSWORD, free_port
from tests.store.stores import HOLDS, Elsewhere, refused, row, some

pytestmark = pytest.mark.needs_postgres


@pytest.fixture
def log(postgres_url):
    log_ = SqlLog(postgres_url, seconds=0.1)
    yield log_
    log_.close()


@pytest.fixture
def other(postgres_url):
    """A connection beside the log's."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def with_options(url: str, more: str) -> str:
    return f"{url}%20{more}"


def end(log: SqlLog, other: psycopg.Connection) -> None:
    """End the server's side of a log's connection, as an idle one may end."""
    number = log._link._connection.info.backend_pid
    other.execute("SELECT pg_terminate_backend(%s)", (number,))
    while other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (number,)).fetchone():
        pass


def test_a_connection_has_the_default_settings_unless_the_url_has_others(postgres_url):
    connection = PostgresServer(f"{postgres_url}&connect_timeout=7", "there", 1.5).open_reader()
    settings = connection.info.get_parameters()
    (lock_timeout,) = connection.execute("SHOW lock_timeout").fetchone()
    connection.close()
    expected = {
        "application_name": "agentnb", "client_encoding": "UTF8", "connect_timeout": "7", "keepalives_idle": "30",
        "keepalives_interval": "10", "keepalives_count": "3", "tcp_user_timeout": "30000",
    }  # fmt: skip
    assert (expected.items() <= settings.items(), lock_timeout) == (True, "1500ms")


def test_a_connection_that_cannot_be_configured_is_closed(postgres_url, monkeypatch):
    connections, connect = [], psycopg.connect
    monkeypatch.setattr(psycopg, "connect", lambda **given: connections.append(connect(**given)) or connections[-1])
    with pytest.raises(psycopg.Error):
        PostgresServer(postgres_url, "there", -1).open_reader()
    assert [connection.closed for connection in connections] == [True]


# ------------------------------------------------------------------------------------------------------- gone, and back


@pytest.mark.parametrize("at_once", [False, True], ids=["stopped", "crashed"])
@pytest.mark.starts_programs
def test_a_restarted_server_is_reconnected(postgres_server, log, at_once):
    log.create(row(), some(1, 2))
    postgres_server.stop(at_once=at_once)
    try:
        for action in (
            lambda: log.append("one", some(3, 3)),
            lambda: log.append("one", some(3, 4)),
            lambda: log.create(row("two")),
            log.runs,
            lambda: log.last("one"),
            lambda: log.entries("one"),
        ):
            message = refused("L421", action)
            assert "does not answer" in message
            assert PASSWORD not in message
    finally:
        postgres_server.start()
    log.append("one", some(3, 3))
    log.append("one", some(4, 5))
    assert list(log.entries("one")) == some(1, 5)
    assert log.run("one").writer is not None
    refused("L411", SqlLog(log._link.database.url).append, "one", some(6, 6))


def test_a_missing_server_does_not_block_close(postgres_server, log):
    log.create(row(), some(1, 2))
    postgres_server.stop(at_once=True)
    try:
        log.close()
        log.release("one")
    finally:
        postgres_server.start()
    other = SqlLog(log._link.database.url)
    other.append("one", some(3, 3))
    other.close()


def test_a_connection_that_ends_while_idle_is_recreated(log, other):
    log.create(row(), some(1, 1))
    for action in (
        lambda: log.append("one", some(2, 2)),
        lambda: log.append("one", some(3, 4)),
        lambda: log.update_run("one", steps=4),
        lambda: log.create(row("two")),
        log.runs,
        lambda: log.entries("one"),
    ):
        end(log, other)
        action()
    assert list(log.entries("one")) == some(1, 4)
    assert log.run("one").steps == 4


class Recorder:
    """A cursor that notes its statements, and may lose its connection before or after the first of them."""

    def __init__(self, link, loss=None):
        self.link, self.real, self.loss, self.statements = link, link._cursor, loss, []
        link._cursor = self

    def __getattr__(self, name):
        return getattr(self.real, name)

    def execute(self, statement, *given):
        self.statements.append(statement)
        if self.loss == "before":
            self.link._connection.close()
        cursor = self.real.execute(statement, *given)
        if self.loss == "after":
            self.link._connection.close()
            raise psycopg.OperationalError("the connection is closed")
        return cursor


def test_a_single_entry_is_one_statement(log):
    log.create(row(), some(1, 1))
    log.append("one", some(2, 2))
    recorder = Recorder(log._link)
    log.append("one", some(3, 3), status="running", steps=3)
    assert len(recorder.statements) == 1
    assert (log.last("one"), log.run("one").status, log.run("one").steps) == (3, "running", 3)
    refused("L411", log.append, "one", some(3, 3))
    refused("L411", log.append, "one", some(5, 5))


@pytest.mark.parametrize("loss", ["before", "after"])
def test_a_single_entry_without_an_answer_is_stored_once(log, loss):
    log.create(row(), some(1, 1))
    log.append("one", some(2, 2))
    Recorder(log._link, loss)
    log.append("one", some(3, 3), status="running", steps=3)
    assert (log.run("one").status, log.run("one").steps) == ("running", 3)
    refused("L411", log.append, "one", some(3, 3))
    log.append("one", some(4, 4))
    assert list(log.entries("one")) == some(1, 4)


def test_a_refused_entry_may_be_another_one_next_time(log):
    log.create(row(), some(1, 1))
    log.append("one", some(2, 2))
    refused("L429", log.append, "one", some(3, 3, "a\0b"))
    log.append("one", some(3, 3))
    refused("L411", log.append, "one", some(3, 3))


def test_a_writer_that_claims_a_run_meanwhile_keeps_it(log, other, postgres_url):
    log.create(row(), some(1, 1))
    end(log, other)
    thief = SqlLog(postgres_url)
    thief.append("one", some(2, 2))
    refused("L411", log.append, "one", some(2, 2))
    refused("L411", log.update_run, "one", steps=7)
    thief.close()
    assert "another session has written" in refused("L411", log.append, "one", some(2, 2))
    assert log.run("one").writer is None
    log.append("one", some(3, 3))


def test_a_connection_lost_within_a_transaction_changes_nothing(log, other):
    log.create(row(), some(1, 1))
    with other.transaction():
        other.execute("LOCK TABLE agentnb_entries IN ACCESS EXCLUSIVE MODE")
        log._link._connection.execute("SET lock_timeout = 0")
        codes, thread = [], None

        def appends():
            codes.append(refused("L421", log.append, "one", some(2, 3)))

        thread = threading.Thread(target=appends)
        thread.start()
        number = log._link._connection.info.backend_pid
        waits = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
        while not other.execute(waits, (number,)).fetchone():
            other.execute("SELECT pg_stat_clear_snapshot()")
        other.execute("SELECT pg_terminate_backend(%s)", (number,))
        thread.join()
    assert len(codes) == 1
    assert list(log.entries("one")) == some(1, 1)
    log.append("one", some(2, 3))
    assert list(log.entries("one")) == some(1, 3)


def test_a_claim_lasts_as_long_as_its_connection(log, postgres_url, other):
    with Elsewhere(postgres_url, HOLDS) as they:
        assert they.hears() == "holds"
        assert str(they.process.pid) in log.run("theirs").writer
        other.execute("UPDATE agentnb_standing SET writer = NULL")
        refused("L411", log.append, "theirs", some(4, 4))
        assert log.run("theirs").writer is None
        assert log.last("theirs") == 3


class Slow:
    """A server that takes its time to notice that a program has died."""

    def __init__(self, times):
        self.times = times

    def execute(self, statement, given):
        return self

    def fetchone(self):
        self.times -= 1
        return (self.times < 0,)


def test_a_claim_of_a_dead_writer_is_awaited():
    dead_writer = replace(identify_writer("gone"), pid=2**22 + 1)
    server, slow = PostgresServer("", "there", 1), Slow(3)
    server.claim(slow, "one", dead_writer.to_text(), "mine")
    assert slow.times == -1
    for writer in (
        replace(dead_writer, host="elsewhere"),
        replace(dead_writer, pid=os.getppid(), started=_read_start(os.getppid())),
        None,
    ):
        slow = Slow(1)
        refused("L411", server.claim, slow, "one", writer and writer.to_text(), "mine")
        assert slow.times == 0, "nobody can tell whether it lives: it is not waited for"


def test_a_claim_that_fails_leaves_no_lock(log, postgres_url):
    log.create(row(), some(1, 1))
    log.release("one")
    refused("L411", log.append, "one", some(7, 7))
    another = SqlLog(postgres_url)
    another.append("one", some(2, 2))
    another.close()


# ----------------------------------------------------------------------------------------------------- what it refuses


def test_a_missing_server_is_reported():
    log = open_log(f"postgresql://ann:s3cr3t-77@127.0.0.1:{free_port()}/runs")
    for action in (log.runs, lambda: log.create(row())):
        assert "s3cr3t-77" not in refused("L421", action)


def test_a_wrong_password_is_reported_and_masked(postgres_server):
    port = postgres_server.port
    message = refused("L420", SqlLog(f"postgresql://agentnb:wr0ng-77@127.0.0.1:{port}/postgres").runs)
    assert "password authentication failed" in message
    assert "wr0ng-77" not in message


def test_a_missing_database_is_reported(postgres_server):
    url = postgres_server.url.replace("/postgres", "/nothing")
    assert '"nothing" does not exist' in refused("L420", SqlLog(url).create, row())


@pytest.mark.parametrize("rest", ["/runs?nothing=1", "/runs?nothing", "/%zz"])
def test_an_invalid_url_is_reported_without_its_password(rest):
    assert "p%zz" not in refused("L414", SqlLog(f"postgresql://ann:p%zz-77@host{rest}").runs)


def test_a_locked_table_is_reported(log, other):
    log.create(row(), some(1, 1))
    with other.transaction():
        other.execute("LOCK TABLE agentnb_standing IN ACCESS EXCLUSIVE MODE")
        for action in (
            lambda: log.append("one", some(2, 2)),
            lambda: log.append("one", some(2, 3)),
            lambda: log.update_run("one", steps=1),
            lambda: log.create(row("two")),
            log.runs,
        ):
            assert "locked" in refused("L418", action)
            assert log._link._connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    log.append("one", some(2, 2))
    assert list(log.entries("one")) == some(1, 2)


def test_a_read_only_database_is_read(log, postgres_url):
    log.create(row(), some(1, 1))
    log.close()
    reader = SqlLog(with_options(postgres_url, "-cdefault_transaction_read_only%3Don"))
    assert list(reader.entries("one")) == some(1, 1)
    for action in (
        lambda: reader.append("one", some(2, 2)),
        lambda: reader.update_run("one", steps=1),
        lambda: reader.create(row("two")),
    ):
        assert "is read-only" in refused("L419", action)
    reader.close()


def test_a_missing_permission_is_reported(postgres_server, postgres_url, other):
    other.execute("DROP ROLE IF EXISTS guest")
    other.execute("CREATE ROLE guest LOGIN PASSWORD 'gu3st-77'")
    schema = other.execute("SELECT current_schema()").fetchone()[0]
    other.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO guest')
    guest = SqlLog(postgres_url.replace(postgres_url[13 : postgres_url.index("@")], "guest:gu3st-77"))
    refused("L410", guest.runs)
    assert "permission denied" in refused("L420", guest.create, row())
    guest.close()


def test_a_missing_schema_is_reported(postgres_server):
    refused("L420", SqlLog(f"{postgres_server.url}?options=-csearch_path%3Dnowhere").create, row())


def test_a_text_that_no_server_can_store_is_reported(log):
    log.create(row())
    refused("L429", log.create, row("two", name="a\0b"))
    assert [run.run_id for run in log.runs()] == ["one"]


def test_tables_of_others_do_not_matter(log, other):
    for name in ("events", "runs", "meta"):
        other.execute(f"CREATE TABLE {name} (id text)")
    log.create(row(), some(1, 1))
    assert list(log.entries("one")) == some(1, 1)


def test_a_store_of_a_newer_agentnb_is_rejected(log, other):
    log.create(row())
    log.close()
    other.execute("UPDATE agentnb_meta SET value = '9'")
    refused("L415", log.runs)
    refused("L415", log.append, "one", some(1, 1))


def test_a_store_without_a_table_is_damaged(log, other):
    log.create(row())
    other.execute("DROP TABLE agentnb_entries")
    refused("L422", log.entries, "one")


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("connection refused", "L421"),
        ("FATAL:  the database system is starting up", "L421"),
        ("FATAL:  sorry, too many clients already", "L421"),
        ("FATAL:  no pg_hba.conf entry for host", "L420"),
    ],
)
def test_a_denied_login_is_recognized_by_its_message(said, code):
    assert PostgresServer("", "there", 1).to_store_error(psycopg.OperationalError(said)).problems[0].code == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (psycopg.errors.DiskFull, "L417"),
        (psycopg.errors.IoError, "L417"),
        (psycopg.errors.OutOfMemory, "L418"),
        (psycopg.errors.TooManyConnections, "L418"),
        (psycopg.errors.SerializationFailure, "L418"),
        (psycopg.errors.QueryCanceled, "L418"),
        (psycopg.errors.AdminShutdown, "L421"),
        (psycopg.errors.CannotConnectNow, "L421"),
        (psycopg.errors.ConnectionException, "L421"),
        (psycopg.OperationalError, "L421"),
        (psycopg.errors.InvalidPassword, "L420"),
        (psycopg.errors.InsufficientPrivilege, "L420"),
        (psycopg.errors.ReadOnlySqlTransaction, "L419"),
        (psycopg.errors.DataCorrupted, "L422"),
        (psycopg.errors.UntranslatableCharacter, "L429"),
        (psycopg.errors.SyntaxError, "L427"),
    ],
)
def test_errors_of_a_server_are_reported_in_our_own_words(error, code):
    for message in ("so it is", "FATAL:  so it is"):  # the words count only where there is no code
        problem = PostgresServer("", "there", 1).to_store_error(error(message)).problems[0]
        assert (problem.code, problem.where) == (code if error.sqlstate or "FATAL" not in message else "L420", "there")
        assert message.split()[-1] in problem.why


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "agentnb.store.postgres")
    assert "agentnb-kit[postgres]" in refused("L424", open_log, "postgresql://ann@nowhere.example.org/runs")
