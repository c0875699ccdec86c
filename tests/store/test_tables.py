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
def test_the_statements_are_valid_and_use_named_parameters(database, name):
    statement = getattr(compile_statements("sqlite"), name)
    names = dict.fromkeys(re.findall(r"(?<!:):(\w+)", statement))
    database.execute(f"EXPLAIN {statement}", names)
    served = getattr(compile_statements("postgresql"), name)
    assert dict.fromkeys(re.findall(r"%\((\w+)\)s", served)) == names
    assert not any(re.fullmatch(r"\w+_\d+", name) for name in names), "a constant that nobody would give"


def test_one_entry_is_one_statement_on_a_server():
    assert compile_statements("sqlite").append is None
    put = compile_statements("postgresql").append
    assert {"number", "own_writer", "before", "after", "step", "body"} <= {*re.findall(r"%\((\w+)\)s", put)}


def test_the_columns_are_those_of_a_row():
    from agentnb.engine.persistence.event_log import RunRow

    assert sorted((*SAID, *STANDS)) == sorted(RunRow._fields)


# Stores of version 1 have these tables and indexes; with others, `VERSION` in connection.py has to change.
SCHEMA = """
CREATE TABLE agentnb_entries (
    run INTEGER NOT NULL, seq INTEGER NOT NULL, step INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (run, seq)
);
CREATE TABLE agentnb_meta ("key" TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY ("key"));
CREATE TABLE agentnb_runs (
    number INTEGER NOT NULL, run_id TEXT NOT NULL, name TEXT NOT NULL, recipe TEXT NOT NULL, dialect TEXT NOT NULL,
    fingerprint TEXT NOT NULL, created TEXT NOT NULL, head TEXT NOT NULL, parent TEXT, shared INTEGER NOT NULL,
    forked INTEGER, PRIMARY KEY (number), UNIQUE (run_id)
);
CREATE TABLE agentnb_standing (
    run INTEGER NOT NULL, last INTEGER NOT NULL, status TEXT NOT NULL, steps INTEGER NOT NULL, at TEXT,
    updated TEXT NOT NULL, writer TEXT, PRIMARY KEY (run)
);
CREATE INDEX agentnb_runs_by_fingerprint ON agentnb_runs (fingerprint, created, number);
CREATE INDEX agentnb_runs_by_parent ON agentnb_runs (parent, created, number) WHERE parent IS NOT NULL;
CREATE INDEX agentnb_runs_by_recipe ON agentnb_runs (substr(recipe, 1, 100), created, number);
CREATE INDEX agentnb_runs_by_time ON agentnb_runs (created, number);
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_schema_is_that_of_the_stores_of_this_version(kind):
    expected = SCHEMA
    if kind == "postgresql":
        expected = expected.replace("number INTEGER", "number SERIAL").replace('"key"', "key")
    statements = compile_statements(kind)
    actual = [*statements.tables, *sorted(statements.indexes.values())]
    assert [re.sub(r"\s", "", text) for text in actual] == re.sub(r"\s", "", expected).split(";")[:-1]
    assert [text.split()[2] for text in statements.indexes.values()] == [*statements.indexes]


def test_names_are_defined_once():
    assert compile_statements("sqlite") is compile_statements("sqlite")
