"""Every statement stands in the words of both databases."""

from __future__ import annotations

import re
import sqlite3

import pytest

from agentnb.store.tables import SAID, STANDS, Statements, compile_statements


@pytest.fixture
def database():
    connection = sqlite3.connect(":memory:")
    for statement in (*compile_statements("sqlite").tables, *compile_statements("sqlite").indexes.values()):
        connection.execute(statement)
    yield connection
    connection.close()


@pytest.mark.parametrize(
    "name", [name for name in Statements.__slots__ if name not in {"kind", "tables", "indexes", "append"}]
)
def test_sqlite_understands_it_and_all_of_it_is_given_by_name(database, name):
    statement = getattr(compile_statements("sqlite"), name)
    names = dict.fromkeys(re.findall(r"(?<!:):(\w+)", statement))
    database.execute(f"EXPLAIN {statement}", names)
    served = getattr(compile_statements("postgresql"), name)
    assert dict.fromkeys(re.findall(r"%\((\w+)\)s", served)) == names
    assert not any(re.fullmatch(r"\w+_\d+", given) for given in names), "a constant that nobody would give"


def test_one_entry_is_one_statement_on_a_server():
    assert compile_statements("sqlite").append is None
    put = compile_statements("postgresql").append
    assert {"number", "own_writer", "before", "after", "step", "body"} <= {*re.findall(r"%\((\w+)\)s", put)}


def test_the_columns_are_those_of_a_row():
    from agentnb.engine.persistence.event_log import RunRow

    assert sorted((*SAID, *STANDS)) == sorted(RunRow._fields)


def test_only_what_a_run_may_lack_may_be_null(database):
    nullable = {
        name
        for table in ("agentnb_meta", "agentnb_runs", "agentnb_standing", "agentnb_entries")
        for _, name, _, required, _, key in database.execute(f"PRAGMA table_info({table})")
        if not required and not key
    }
    assert nullable == {"parent", "forked", "at", "writer"}


def test_the_words_are_put_once():
    assert compile_statements("sqlite") is compile_statements("sqlite")
