"""A database connection: opened on first use, with transactions and the claims on the runs that it writes."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from uuid import uuid4

from agentnb.errors import AgentNbError, Problem, StoreError, to_printable
from agentnb.store.database_errors import make_driver_error
from agentnb.store.writer_identity import LIVE, identify_writer

if TYPE_CHECKING:
    from agentnb.store.postgres import PostgresServer
    from agentnb.store.sqlite import SqliteFile
    from agentnb.store.tables import Statements

    Database = SqliteFile | PostgresServer

T = TypeVar("T")
VERSION: Final = 1  # of the table schema
# Raised for table contents that agentnb did not write
_ODD: Final = (
    TypeError,
    ValueError,
    AttributeError,
    LookupError,
)
_LINKS: Final[weakref.WeakSet[Link]] = weakref.WeakSet()
_OF_THE_PARENT: Final[list[Any]] = []  # connections that a forked process must neither use nor close


class _Claim(NamedTuple):
    """A claim that holds when the current change is committed: the run, the new writer text, and whether it is new."""

    run_id: str
    name: str
    new: bool


class Link:
    """A connection that is opened on first use, and reopened after it was lost.

    `numbers` are the row numbers of runs looked up so far; `claims` are the runs that this connection holds, with the
    writer text of their rows. `unsure` are the runs for which it is unknown whether the last change was committed.
    """

    def __init__(self, database: Database, statements: Statements) -> None:
        self.database, self._statements = database, statements
        self.lock = threading.RLock()
        self.numbers: dict[str, int] = {}
        self.claims: dict[str, str] = {}
        self.unsure: set[str] = set()
        self._token = uuid4().hex
        self._names: dict[str, str] = {}
        self._claiming: _Claim | None = None
        self._connection: Any = None
        self._cursor: Any = None
        self._writes = False
        _LINKS.add(self)

    # -- reading and changing ------------------------------------------------------------------------------------

    def read(self, query: Callable[[Any], T]) -> T:
        """Return the result of `query`, called with a cursor.

        Raises:
            StoreError: L410, there is no store; or it cannot be read.
        """
        idle = self._connection is not None and self.database.remote
        try:
            return query(self._open(write=False))
        except BaseException as error:
            if self._recover(error) and idle:
                return self.read(query)
            store_error = self._to_store_error(error)
            if store_error is error:
                raise
            raise store_error from to_printable(error)
        finally:
            if self.database.closes_after_use:
                self.drop()

    def change(self, run_id: str, write: Callable[[Any], object], *, begins: bool = False) -> None:
        """Call `write` with a cursor in one transaction, committed or rolled back. With `begins`, a run begins.

        Raises:
            StoreError: the change cannot be committed.
        """
        try:
            cursor = self._begin(begins=begins)
            write(cursor)
            self.unsure.add(run_id)
            cursor.execute("COMMIT")
        except BaseException as error:
            self._raise_translated(error)
            raise
        self.unsure.discard(run_id)
        if self._claiming is not None:
            self.claims[self._claiming.run_id] = self._claiming.name
            self._claiming = None

    def execute_change(self, run_id: str, statement: str, parameters: dict[str, Any]) -> bool:
        """Execute one statement as a change; return True if it was committed. After a lost connection, that is unknown.

        Raises:
            StoreError: the change cannot be committed.
        """
        try:
            cursor, sure = self._open(write=True), run_id not in self.unsure
            self.unsure.add(run_id)
            try:
                changed = bool(cursor.execute(statement, parameters).rowcount)
            except self.database.errors as error:
                if self._recover(error):
                    return False
                if sure:
                    self.unsure.discard(run_id)
                raise
        except BaseException as error:
            self._raise_translated(error)
            raise
        if changed or sure:
            self.unsure.discard(run_id)
        return changed

    def _raise_translated(self, error: BaseException) -> None:
        """Roll back after an error, and raise a database error as a StoreError."""
        self._recover(error)
        store_error = self._to_store_error(error)
        if store_error is not error:
            raise store_error from to_printable(error)

    def _begin(self, *, begins: bool) -> Any:
        idle = self._connection is not None and self.database.remote
        cursor = self._open(write=True, begins=begins)
        try:
            cursor.execute(self.database.begin)
        except self.database.errors as error:
            if self._recover(error) and idle:
                return self._begin(begins=begins)
            raise
        return cursor

    def _recover(self, error: BaseException) -> bool:
        """Roll back, and drop a connection that is no longer usable; return True if it was."""
        if self._connection is None:
            return False
        claiming, self._claiming = self._claiming, None
        if claiming is not None and claiming.new and claiming.run_id not in self.unsure:
            del self._names[claiming.run_id]
        try:
            if isinstance(error, self.database.errors) and self.database.is_lost(self._connection, error):
                self.drop()
                return True
            self._connection.rollback()
            self._cursor.close()
            self._cursor = self._connection.cursor()
            if claiming is not None:
                self.database.release_lock(self._cursor, claiming.run_id)
        except self.database.errors:
            self.drop()
        return False

    def _to_store_error(self, error: BaseException) -> BaseException:
        """Return a database error as a StoreError; other errors unchanged."""
        if isinstance(error, self.database.errors):
            return self.database.to_store_error(error)
        if isinstance(error, UnicodeEncodeError | OverflowError):
            return make_driver_error("L429", self.database.display_name, error)
        if isinstance(error, _ODD) and not isinstance(error, AgentNbError):
            return make_driver_error("L422", self.database.display_name, error)
        return error

    # -- writers -----------------------------------------------------------------------------------------------

    def claim(self, cursor: Any, run_id: str, writer: str | None, *, take_over: bool = False) -> str:
        """Claim a run whose row names `writer`, effective when this change is committed; return the new writer text.

        With `take_over`, also from a writer whose process cannot be checked from here.

        Raises:
            StoreError: L411, another writer holds it.
        """
        new = run_id not in self._names
        name = identify_writer(self._token).to_text() if new else self._names[run_id]
        self.database.claim(cursor, run_id, writer, name, take_over=take_over)
        self._names[run_id] = name
        self._claiming = _Claim(run_id, name, new)
        return name

    def disclaim(self, cursor: Any, run_id: str) -> None:
        """Drop the claim on a run that another writer has taken."""
        if self.claims.pop(run_id, None) is not None:
            self.database.release_lock(cursor, run_id)

    def release(self, run_id: str) -> None:
        """Release a run for other writers.

        Raises:
            StoreError: the release cannot be written; no other process can write the run until this one ends.
        """
        name = self._names.get(run_id)
        if name is None:
            return
        if self._connection is not None or (not self.database.remote and self.database.exists()):
            parameters = {"run_id": run_id, "own_writer": name}
            self.change(run_id, lambda cursor: cursor.execute(self._statements.release, parameters))
            self.read(lambda cursor: self.disclaim(cursor, run_id))
        self.unsure.discard(run_id)
        del self._names[run_id]

    def checkpoint(self) -> Problem | None:
        """Complete the store's file, and close the connection unless a run is claimed; return a warning, if any."""
        problem = self.database.checkpoint(self._cursor) if self._writes else None
        if not self._names:
            self.drop()
        return problem

    def close(self) -> None:
        """Release every run, as far as possible, and close the connection."""
        for run_id in list(self._names):
            with contextlib.suppress(StoreError):
                self.release(run_id)
        self.drop()
        LIVE.discard(self._token)

    def end(self) -> None:
        """Close without waiting for locks, when the log is gone or the process ends."""
        if not self.lock.acquire(timeout=1):
            return
        try:
            if self.claims:
                with contextlib.suppress(Exception):
                    self.database.disable_waits(self._cursor)
            self.close()
        finally:
            self.lock.release()

    # -- the connection ------------------------------------------------------------------------------------------

    def _open(self, *, write: bool, begins: bool = False) -> Any:
        """Return the cursor of a connection that allows this access."""
        if self._connection is not None and self.database.is_moved():
            self.drop()
        if self._connection is None and write and self._names and not begins and not self.database.exists():
            raise self._make_moved_error()
        if self._connection is None or (write and not self._writes):
            try:
                self._connect(write=write, begins=begins)
            except BaseException:
                self.drop()
                raise
        return self._cursor

    def _connect(self, *, write: bool, begins: bool) -> None:
        database, had_connection = self.database, self._connection is not None
        if not had_connection and database.exists():
            self._connection = database.open_reader()
            had_connection = self._has_tables(self._connection.cursor())
        if not had_connection and not begins:
            raise self._make_missing_store_error()
        if write:
            looked, self._connection = self._connection, None
            self._connection = database.change(looked)
            if not had_connection:
                self._make(self._connection.cursor())
            else:
                self._add_indexes(self._connection.cursor())
        self._cursor, self._writes = self._connection.cursor(), write
        LIVE.add(self._token)

    def _has_tables(self, cursor: Any) -> bool:
        """Return True if the tables of agentnb exist.

        Raises:
            StoreError: L415, they are those of a newer agentnb; L416, the tables belong to another program.
        """
        tables = self.database.tables(cursor)
        if "agentnb_meta" not in tables:
            others = self.database.find_foreign_tables(tables)
            if others is None:
                return False
            raise StoreError(
                Problem(
                    "L416",
                    "this is not a store of agentnb",
                    self.database.display_name,
                    f"it contains tables of another program: {others}",
                    "use another store; this one was not changed. To open a run of another system, use nb.open",
                )
            )
        row = cursor.execute(self._statements.version).fetchone()
        if row is None or not row[0].isdecimal():
            raise make_driver_error("L422", self.database.display_name, ValueError("its version is missing"))
        if int(row[0]) > VERSION:
            raise StoreError(
                Problem(
                    "L415",
                    "this store was created by a newer agentnb",
                    self.database.display_name,
                    f"its tables have version {row[0]}, this version supports up to {VERSION}",
                    "install the newest agentnb: pip install -U agentnb-kit",
                )
            )
        return True

    def _make(self, cursor: Any) -> None:
        cursor.execute(self.database.begin)
        self.database.lock_table_creation(cursor)
        if not self._has_tables(cursor):
            for table in self._statements.tables:
                cursor.execute(table)
            for index in self._statements.indexes.values():
                cursor.execute(index)
            cursor.execute(self._statements.insert_version, {"key": "schema", "value": str(VERSION)})
        cursor.execute("COMMIT")

    def _add_indexes(self, cursor: Any) -> None:
        """Add the indexes that a store of an earlier version lacks, if permitted; they only save time."""
        if self._statements.indexes.keys() <= self.database.indexes(cursor):
            return
        try:
            cursor.execute(self.database.begin)
            self.database.lock_table_creation(cursor)
            known = self.database.indexes(cursor)
            for name, index in self._statements.indexes.items():
                if name not in known:
                    cursor.execute(index)
            cursor.execute("COMMIT")
        except self.database.errors:
            self._connection.rollback()

    def _make_missing_store_error(self) -> StoreError:
        return StoreError(
            Problem(
                "L410",
                "there is no store here",
                self.database.display_name,
                "no run has been stored here yet",
                "check the path or URL; nb.Session(recipe, store=...) creates a store",
            )
        )

    def _make_moved_error(self) -> StoreError:
        return StoreError(
            Problem(
                "L426",
                "the store's file was removed or replaced while a run was being written",
                self.database.display_name,
                "writes to the removed file would be lost",
                "restore the file and try again, or save the run to another store",
            )
        )

    def drop(self) -> None:
        """Drop the connection, and the state that depends on it."""
        connection, cursor = self._connection, self._cursor
        self._connection, self._cursor, self._writes = None, None, False
        self.numbers.clear()
        self.claims.clear()
        self._claiming = None
        if connection is None:
            return
        # SQLite keeps a connection open, with its locks, as long as one of its statements is referenced.
        for end in (connection.rollback, *([cursor.close] if cursor is not None else []), connection.close):
            with contextlib.suppress(Exception):
                end()

    def reset_after_fork(self) -> None:
        """Reset the state in a forked process: the connection, its lock and its claims belong to the parent."""
        _OF_THE_PARENT.append(self._connection)
        self._connection = None
        self.drop()
        self.lock, self._token = threading.RLock(), uuid4().hex
        self._names.clear()
        self.unsure.clear()


def _after_fork() -> None:
    LIVE.clear()
    for link in list(_LINKS):
        link.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
