"""The tables of a store and all statements on them, with SQLAlchemy Core. The only module that imports SQLAlchemy.

Each statement is compiled once per database and then passed to its driver as text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast

from sqlalchemy import (
    Column,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    bindparam,
    func,
    insert,
    literal_column,
    null,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy import case as choose
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.schema import CreateIndex, CreateTable

# The columns of a run's row, in the order in which they are read.
SAID: Final = (
    *("run_id", "name", "recipe", "dialect", "fingerprint", "created", "head", "parent", "shared", "forked"),
)
STANDS: Final = ("status", "steps", "at", "updated", "writer")

# -------------------------------------------------------------------------------------------------------------- tables

_TABLES: Final = MetaData()
_meta = Table(
    "agentnb_meta",
    _TABLES,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
# The constant properties of a run.
_runs = Table(
    "agentnb_runs",
    _TABLES,
    Column("number", Integer, primary_key=True),
    Column("run_id", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("recipe", Text, nullable=False),
    Column("dialect", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("created", Text, nullable=False),
    Column("head", Text, nullable=False),
    Column("parent", Text),
    Column("shared", Integer, nullable=False),
    Column("forked", Integer),
)
# Runs are listed from newest to oldest. A name may be longer than a PostgreSQL index allows, so only its beginning is
# indexed. Stores without indexes can be read as well, but more slowly.
_NEWEST: Final = (_runs.c.created, _runs.c.number)
_beginning: Final = func.substr(_runs.c.recipe, literal_column("1"), literal_column("100"))
_has_parent: Final = _runs.c.parent.is_not(None)
_INDEXES: Final = (
    Index("agentnb_runs_by_time", *_NEWEST),
    Index("agentnb_runs_by_recipe", _beginning, *_NEWEST),
    Index("agentnb_runs_by_fingerprint", _runs.c.fingerprint, *_NEWEST),
    Index("agentnb_runs_by_parent", _runs.c.parent, *_NEWEST, sqlite_where=_has_parent, postgresql_where=_has_parent),
)
# What changes with each entry: a short row, because it is rewritten each time.
_standing = Table(
    "agentnb_standing",
    _TABLES,
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("last", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("steps", Integer, nullable=False),
    Column("at", Text),
    Column("updated", Text, nullable=False),
    Column("writer", Text),
)
_entries = Table(
    "agentnb_entries",
    _TABLES,
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("step", Integer, nullable=False),
    Column("body", Text, nullable=False),
)


# ---------------------------------------------------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class Statements:
    """All statements compiled for one database, with named parameters."""

    kind: str
    tables: tuple[str, ...]
    indexes: dict[str, str]
    number: str
    newest: str
    count: str
    count_by_state: str
    insert_run: str
    insert_state: str
    insert_entry: str
    advance: str
    append: str | None
    update_run: str
    take_over: str
    get_state: str
    chunk: str
    run: str
    last_run: str
    runs: str
    run_position: str
    version: str
    insert_version: str
    release: str


def _make_parameter(name: str, kind: Any = Text) -> Any:
    """Return a named parameter of a statement; constants are compiled into the text."""
    return bindparam(name, type_=kind)


def _build_statements() -> dict[str, Any]:
    return {**_build_reading_statements(), **_build_writing_statements()}


def _build_writing_statements() -> dict[str, Any]:
    states, parameter = _standing.c, _make_parameter
    is_expected_state, own_writer = states.run == parameter("number", Integer), states.writer == parameter("own_writer")
    values = {
        "status": func.coalesce(parameter("is_status"), states.status),
        "steps": func.coalesce(parameter("is_steps", Integer), states.steps),
        "updated": parameter("now"),
    }
    place = choose(
        (parameter("is_at").is_(None), states.at), else_=func.nullif(parameter("is_at"), literal_column("''"))
    )
    number_of = select(_runs.c.number).where(_runs.c.run_id == parameter("run_id"))
    move = (
        update(_standing)
        .where(is_expected_state, own_writer, states.last == parameter("before", Integer))
        .values(last=parameter("after", Integer), **values)
    )
    moved = move.returning(states.run).cte("moved")
    selected_row = select(moved.c.run, parameter("after", Integer), parameter("step", Integer), parameter("body"))
    return {
        "insert_run": insert(_runs).inline(),
        "insert_state": insert(_standing).inline(),
        "insert_entry": insert(_entries).inline(),
        "advance": move,
        "append": insert(_entries).from_select(["run", "seq", "step", "body"], selected_row),
        "update_run": update(_standing).where(is_expected_state, own_writer).values(at=place, **values),
        "take_over": update(_standing).where(is_expected_state).values(writer=parameter("own_writer")),
        "get_state": select(states.last, states.writer).where(is_expected_state),
        "insert_version": insert(_meta).inline(),
        "release": update(_standing).where(own_writer, states.run == number_of.scalar_subquery()).values(writer=null()),
    }


def _build_reading_statements() -> dict[str, Any]:
    none: Any = literal_column("0")
    entry, states, runs, parameter = _entries.c, _standing.c, _runs.c, _make_parameter
    rows, newest = _build_row_query(), select(states.run).order_by(states.updated.desc(), states.run.desc())
    last = newest.limit(literal_column("1")).offset(none).scalar_subquery()
    return {
        "number": select(runs.number).where(runs.run_id == parameter("run_id")),
        "newest": select(runs.run_id).order_by(runs.number.desc()).limit(literal_column("200")).offset(none),
        "count": select(func.count()).select_from(_runs),
        "count_by_state": select(func.count(states.status)),
        "chunk": select(entry.seq, entry.step, entry.body)
        .where(entry.run == parameter("number", Integer))
        .where(entry.seq > parameter("after", Integer), entry.seq <= parameter("until", Integer))
        .order_by(entry.seq),
        "run": rows.where(runs.run_id == parameter("run_id")),
        "last_run": rows.where(runs.number == last),
        "runs": rows.order_by(runs.created.desc(), runs.number.desc()),
        "run_position": select(*_NEWEST).where(runs.run_id == parameter("run_id")),
        "version": select(_meta.c.value).where(_meta.c.key == literal_column("'schema'")),
    }


def _build_row_query(number: Any = _runs.c.number) -> Any:
    columns = (*(_runs.c[name] for name in SAID), *(_standing.c[name] for name in STANDS))
    return select(*columns).join_from(_runs, _standing, number == _standing.c.run)


@cache
def build_listing(kind: str, filters: frozenset[str]) -> str:
    """Return the statement that lists runs, newest first, with these filters; each is a parameter.

    The filters are fields of `RunQuery`; `after_created` and `after_number` are the place of the run before the list.
    The last column of a row is the number of the run.
    """
    runs, parameter = _runs.c, _make_parameter
    part, number = func.strpos, cast("Any", runs.number)
    if kind == "sqlite":
        # SQLite looks nothing up by `+column`. It can only start from the runs, in the order of their index, and not
        # from the status of all runs, which it would have to sort before the first of them is found.
        part, number = func.instr, literal_column("+agentnb_runs.number", Integer)
    statement = _build_row_query(number).add_columns(runs.number)
    if "recipe" in filters:
        text = func.substr(parameter("recipe"), literal_column("1"), literal_column("100"))
        statement = statement.where(_beginning == text, runs.recipe == parameter("recipe"))
    for name, column in {
        "fingerprint": runs.fingerprint, "parent": runs.parent, "status": _standing.c.status
    }.items():  # fmt: skip
        if name in filters:
            statement = statement.where(column == parameter(name))
    if "since" in filters:
        statement = statement.where(runs.created >= parameter("since"))
    if "until" in filters:
        statement = statement.where(runs.created <= parameter("until"))
    if "contains" in filters:
        conditions = (part(column, parameter("contains")) > literal_column("0") for column in (runs.run_id, runs.name))
        statement = statement.where(or_(*conditions))
    if "after" in filters:
        place = tuple_(parameter("after_created"), parameter("after_number", Integer))
        statement = statement.where(tuple_(*_NEWEST) < place)
    statement = statement.order_by(runs.created.desc(), runs.number.desc())
    if "limit" in filters:
        statement = statement.limit(parameter("limit", Integer)).offset(literal_column("0"))
    return str(statement.compile(dialect=_get_dialect(kind)))


def _get_dialect(kind: str) -> Any:
    named: Any = {"postgresql": PGDialect_psycopg, "sqlite": SQLiteDialect_pysqlite}[kind]
    return named(paramstyle="pyformat" if kind == "postgresql" else "named")


@cache
def compile_statements(kind: str) -> Statements:
    """Compile all statements for a database."""
    dialect = _get_dialect(kind)
    keys = {"insert_run": [*SAID], "insert_version": ["key", "value"]}
    statements: dict[str, Any] = {
        name: str(statement.compile(dialect=dialect, column_keys=keys.get(name)))
        for name, statement in _build_statements().items()
    }
    tables = tuple(str(CreateTable(table).compile(dialect=dialect)) for table in _TABLES.sorted_tables)
    if kind == "sqlite":
        statements["append"] = None  # an SQLite statement changes only one table, and there are no round trips to save
    indexes = {str(index.name): str(CreateIndex(index).compile(dialect=dialect)) for index in _INDEXES}
    return Statements(kind, tables, indexes, **statements)
