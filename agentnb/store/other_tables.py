"""Databases of other programs: read as a consistent snapshot, or written in one transaction."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

from agentnb.errors import Problem, StoreError, to_printable
from agentnb.store.sql_log import make_database
from agentnb.store.sqlite import SqliteFile
from agentnb.store.urls import StoreAddress, parse

T = TypeVar("T")
SECONDS: Final = 5.0  # timeout for a locked store
_BESIDE: Final = ("-wal", "-shm", "-journal")
_ONE_MOMENT: Final = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
_TABLES: Final = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table'",
    "postgresql": "SELECT relname FROM pg_class WHERE relkind = 'r' AND pg_table_is_visible(oid)",
}
_COLUMNS: Final = {
    "sqlite": "SELECT name FROM pragma_table_info(?)",
    "postgresql": "SELECT attname FROM pg_attribute "
    "WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped",
}


class DatabaseReader:
    """A read-only snapshot of a database."""

    def __init__(self, address: StoreAddress, connection: Any) -> None:
        self.kind, self.display_name, self._connection = address.kind, address.display_name, connection

    def rows(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query; `?` marks parameters."""
        translated = statement if self.kind == "sqlite" else statement.replace("?", "%s")
        cursor = self._connection.cursor()
        try:
            rows: list[tuple[Any, ...]] = cursor.execute(translated, parameters).fetchall()
        finally:
            cursor.close()
        return rows

    def tables(self) -> set[str]:
        """Return the names of all tables."""
        return {name for (name,) in self.rows(_TABLES[self.kind])}

    def columns(self, table: str) -> set[str]:
        """Return the names of a table's columns; empty if there is no such table."""
        return {name for (name,) in self.rows(_COLUMNS[self.kind], table)}


def read_database(where: str | os.PathLike[str], read: Callable[[DatabaseReader], T]) -> T:
    """Return the result of `read`, called with a snapshot of a database that another program writes.

    The file is opened so that neither it nor the files beside it change; its program may write to it meanwhile. In that
    case, `read` may be called again.

    L410: there is no store here.

    Raises:
        StoreError: L410, there is no store; L414, this is not the name of a store; or it cannot be read.
    """
    address = parse(where)
    database = make_database(address, SECONDS)
    if not database.exists():
        raise StoreError(
            Problem("L410", "there is no store here", address.display_name, "the file does not exist or is empty",
                    "check the path or URL")
        )  # fmt: skip
    try:
        if address.kind == "sqlite":
            return _read_in_file(address, read)
        return _read_on_server(address, database, read)
    except database.errors as error:
        raise database.to_store_error(error) from to_printable(error)
    except OSError as error:  # a file beside the database cannot be copied
        raise database.to_store_error(error) from error


def _read_on_server(address: StoreAddress, server: Any, read: Callable[[DatabaseReader], T]) -> T:
    with closing(server.open_reader()) as connection:
        connection.execute("SET TIME ZONE 'UTC'")
        connection.execute(_ONE_MOMENT)
        result = read(DatabaseReader(address, connection))
        connection.execute("ROLLBACK")
        return result


# -- files -----------------------------------------------------------------------------------------------------------


def _read_in_file(address: StoreAddress, read: Callable[[DatabaseReader], T]) -> T:
    states_before = _list_file_states(address.target)
    if not any(name.endswith(_BESIDE) for name, *_ in states_before):
        # No other process has it open, so no shared-memory file is needed.
        try:
            with _open(address.target, "immutable=1") as connection:
                result = read(DatabaseReader(address, connection))
        except SqliteFile.errors:
            if _list_file_states(address.target) == states_before:
                raise
        else:
            if _list_file_states(address.target) == states_before:
                return result
    if Path(f"{address.target}-shm").exists():
        try:
            with _open(address.target, "mode=ro") as connection:
                return read(DatabaseReader(address, connection))
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
                raise
    return _read_in_copy(address, read)


def _read_in_copy(address: StoreAddress, read: Callable[[DatabaseReader], T]) -> T:
    """Read a copy: unfinished transactions are completed in the copy, not in the original file."""
    with tempfile.TemporaryDirectory(prefix="agentnb-") as folder:
        copy = str(Path(folder) / "copy.db")
        for end in ("", "-wal", "-journal"):
            if Path(f"{address.target}{end}").exists():
                shutil.copyfile(f"{address.target}{end}", f"{copy}{end}")
        with _open(copy, "mode=rw") as connection:
            return read(DatabaseReader(address, connection))


@contextmanager
def _open(path: str, mode: str) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"file:{quote(path)}?{mode}", uri=True, timeout=SECONDS, isolation_level=None)
    with closing(connection):
        connection.execute("PRAGMA query_only=1")
        connection.execute("BEGIN")
        yield connection


def _list_file_states(path: str) -> list[tuple[str, int, int]]:
    """Return a file and its companion files, each with its size and modification time."""
    states = []
    for end in ("", *_BESIDE):
        try:
            stat = Path(f"{path}{end}").stat()
        except FileNotFoundError:
            continue
        states.append((f"{path}{end}", stat.st_size, stat.st_mtime_ns))
    return states


# -- a store for another program -------------------------------------------------------------------------------------


class DatabaseWriter(DatabaseReader):
    """A database in one write transaction."""

    def do(self, statement: str, *parameters: Any) -> None:
        """Execute a statement; `?` marks parameters."""
        self.execute_many(statement, [parameters])

    def execute_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Execute a statement once for each of these rows."""
        translated = statement if self.kind == "sqlite" else statement.replace("?", "%s")
        with closing(self._connection.cursor()) as cursor:
            cursor.executemany(translated, rows)


def write_for(where: str | os.PathLike[str], write: Callable[[DatabaseWriter], None]) -> str:
    """Write to a database of another program in one transaction, and return its location.

    A file that does not exist is created.

    Raises:
        StoreError: L414, this is not the name of a store; or it cannot be written.
    """
    address = parse(where)
    database = make_database(address, SECONDS)
    new = address.kind == "sqlite" and not Path(address.target).exists()
    try:
        with closing(_to_write(address, database)) as connection:
            connection.execute("BEGIN IMMEDIATE" if address.kind == "sqlite" else "BEGIN")
            write(DatabaseWriter(address, connection))
            connection.execute("COMMIT")
    except BaseException as error:
        if new:
            Path(address.target).unlink(missing_ok=True)
        if isinstance(error, database.errors):
            raise database.to_store_error(error) from to_printable(error)
        raise
    return address.display_name


def _to_write(address: StoreAddress, database: Any) -> Any:
    if address.kind == "sqlite":
        return sqlite3.connect(address.target, timeout=SECONDS, isolation_level=None)
    return database.open_reader()


__all__ = ["DatabaseReader", "DatabaseWriter", "read_database", "write_for"]
