"""Tables of other programs are looked at, and nothing there changes."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import agentnb as nb
from agentnb.errors import StoreError
from agentnb.store.other_tables import read_database, write_for
from tests.store.stores import make_damaged_schema


def make(path, *, wal=True):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode={'WAL' if wal else 'DELETE'}")
    connection.execute("CREATE TABLE things (id INTEGER, name TEXT)")
    connection.execute("INSERT INTO things VALUES (1, 'one'), (2, 'two')")
    return connection


def names(look):
    return [name for (name,) in look.rows("SELECT name FROM things WHERE id > ? ORDER BY id", 0)]


def everything(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}


@pytest.mark.parametrize("wal", [True, False])
@pytest.mark.parametrize("open", [True, False])
def test_reading_a_file_does_not_change_it(tmp_path, wal, open):
    path = tmp_path / "things.db"
    with closing(make(path, wal=wal)) as connection:
        if not open:
            connection.close()
        before = everything(tmp_path)
        assert read_database(path, names) == ["one", "two"]
        assert read_database(f"sqlite:///{path}", lambda look: look.columns("things")) == {"id", "name"}
        assert read_database(path, lambda look: (look.tables(), look.columns("none"))) == ({"things"}, set())
        assert everything(tmp_path) == before
        if not open:
            assert {each.name for each in tmp_path.iterdir()} == {"things.db"}


def test_a_read_only_connection_cannot_write(tmp_path):
    path = tmp_path / "things.db"
    with closing(make(path)):
        with pytest.raises(StoreError):
            read_database(path, lambda look: look.rows("DELETE FROM things"))
        assert read_database(path, names) == ["one", "two"]


@pytest.mark.parametrize("wal", [True, False])
def test_a_locked_file_is_awaited_for_five_seconds(tmp_path, wal):
    path, actual = tmp_path / "things.db", []
    with closing(make(path, wal=wal)):
        for use in (read_database, write_for):
            use(path, lambda database: actual.extend(database.rows("PRAGMA busy_timeout")))
    assert actual == [(5000,), (5000,)]


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("change", ["INSERT INTO things VALUES (3, 'three')", "DELETE FROM things WHERE id > 1"])
def test_a_read_is_repeated_if_the_file_was_written_meanwhile(tmp_path, change, fails):
    path, seen = tmp_path / "things.db", []
    with closing(make(path, wal=False)) as connection:
        connection.execute("PRAGMA auto_vacuum=FULL")
        connection.execute("VACUUM")  # from now on, the file shrinks with its contents
        connection.execute("UPDATE things SET name = name || hex(randomblob(20000)) WHERE id = 2")

    def read(look):
        names_read = [name[:3] for name in names(look)]
        seen.append(names_read)
        if len(seen) == 1:
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute(change)
            if fails:
                raise sqlite3.DatabaseError("database disk image is malformed")
        return names_read

    names_after = ["one", "two", "thr"] if change.startswith("INSERT") else ["one"]
    assert read_database(path, read) == names_after
    assert seen == [["one", "two"], names_after]


def test_a_read_that_fails_is_not_repeated_if_the_file_is_unchanged(tmp_path):
    path, attempts = tmp_path / "things.db", []
    make(path, wal=False).close()

    def read(look):
        attempts.append(look)
        raise sqlite3.DatabaseError("database disk image is malformed")

    with pytest.raises(StoreError):
        read_database(path, read)
    assert len(attempts) == 1


def test_an_error_in_the_reading_function_is_raised_unchanged(tmp_path):
    path = tmp_path / "things.db"
    make(path).close()

    def read(look):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        read_database(path, read)


def test_a_damaged_file_is_a_problem(tmp_path):
    path = tmp_path / "things.db"
    make(path).close()
    path.write_bytes(path.read_bytes()[:4096])
    with pytest.raises(StoreError) as caught:
        read_database(path, names)
    assert caught.value.problems[0].code == "L422"


def test_a_damaged_text_that_the_database_quotes_is_a_problem(tmp_path):
    path = tmp_path / "things.db"
    make_damaged_schema(path, b"thi\xa8gs")
    for look in (lambda: read_database(path, names), lambda: nb.open(path), lambda: nb.runs(path)):
        with pytest.raises(StoreError) as caught:
            look()
        assert caught.value.problems[0].code == "L422"


@pytest.mark.needs_postgres
def test_a_server_is_read_in_one_snapshot(postgres_url):
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE things (id INTEGER, name TEXT)")
        connection.execute("INSERT INTO things VALUES (1, 'one'), (2, 'two')")

        def read(look):
            before = names(look)
            connection.execute("INSERT INTO things VALUES (3, 'three')")
            return before, names(look)

        assert read_database(postgres_url, read) == (["one", "two"], ["one", "two"])
        assert read_database(postgres_url, lambda look: look.columns("things")) == {"id", "name"}
        with pytest.raises(StoreError) as caught:
            read_database(postgres_url, lambda look: look.rows("DELETE FROM things"))
    assert caught.value.problems[0].code == "L419"


def test_a_file_for_another_program_is_written_atomically(tmp_path):
    path = tmp_path / "new.db"

    def fails(change):
        change.do("CREATE TABLE things (id INTEGER)")
        raise LookupError("mine")

    with pytest.raises(LookupError):
        write_for(path, fails)
    assert not path.exists()
    write_for(path, lambda change: change.do("CREATE TABLE things (id INTEGER)"))
    before = path.read_bytes()
    with pytest.raises(StoreError):
        write_for(path, lambda change: change.do("CREATE TABLE things (id INTEGER)"))
    with pytest.raises(LookupError):
        write_for(path, fails_late)
    assert path.read_bytes() == before


def test_a_file_that_cannot_be_created_is_a_problem(tmp_path):
    with pytest.raises(StoreError):
        write_for(tmp_path / "no such folder" / "new.db", fails_late)


def fails_late(change):
    change.do("INSERT INTO things (id) VALUES (?)", 1)
    raise LookupError("mine")


@pytest.mark.needs_postgres
def test_a_server_is_written_atomically(postgres_url):
    def makes(change):
        change.do("CREATE TABLE things (id INTEGER, name TEXT)")
        change.execute_many("INSERT INTO things VALUES (?, ?)", [(1, "one"), (2, "two")])

    write_for(postgres_url, makes)
    with pytest.raises(LookupError):
        write_for(postgres_url, fails_late)
    assert read_database(postgres_url, names) == ["one", "two"]
    with pytest.raises(StoreError):
        write_for(postgres_url, makes)
