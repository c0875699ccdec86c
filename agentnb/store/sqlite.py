"""A store in one SQLite file, through Python's sqlite3. The file is created at the first write, never by reading."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from agentnb.errors import Problem, StoreError
from agentnb.store.database_errors import make_driver_error, make_refusal_error
from agentnb.store.writer_identity import Writer, is_alive, is_elsewhere, make_writer_error, read

_CODES: Final = {
    sqlite3.SQLITE_PERM: "L420",
    sqlite3.SQLITE_BUSY: "L418",
    sqlite3.SQLITE_LOCKED: "L418",
    sqlite3.SQLITE_READONLY: "L419",
    sqlite3.SQLITE_IOERR: "L417",
    sqlite3.SQLITE_CORRUPT: "L422",
    sqlite3.SQLITE_FULL: "L417",
    sqlite3.SQLITE_CANTOPEN: "L420",
    sqlite3.SQLITE_PROTOCOL: "L418",
    sqlite3.SQLITE_AUTH: "L420",
    sqlite3.SQLITE_NOTADB: "L416",
}
# After these errors, the connection remains usable.
_PASSING: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CONSTRAINT}
_PAGES: Final = 4000  # size of the write-ahead log before it is checkpointed into the file


def _decode_text(value: bytes) -> str:
    """Return the text of a column.

    Damaged text is decoded with visible replacements, so other rows can still be read.
    """
    return value.decode("utf-8", "surrogateescape")


class SqliteFile:
    """An SQLite database in a file, with a write-ahead log beside it while it is open."""

    begin: Final = "BEGIN IMMEDIATE"
    errors: Final = (sqlite3.Error, UnicodeDecodeError)  # the latter if its message quotes damaged text
    remote: Final = False  # claims do not depend on the connection

    def __init__(self, path: str, shown: str, seconds: float) -> None:
        self.path, self.display_name, self.seconds = path, shown, seconds
        self.closes_after_use = False  # True if the connection must be closed after each use
        self._file: tuple[int, int] | None = None

    # -- opening -------------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Return True if there is a file to read."""
        try:
            return os.stat(self.path).st_size > 0  # noqa: PTH116  (asked before each change: Path costs as much again)
        except OSError:
            return False

    def open_reader(self) -> Any:
        """Return a read-only connection."""
        self.closes_after_use = False
        self._check_place()
        try:
            connection = self._look()
        except sqlite3.Error as error:
            if (
                self._get_error_code(error) not in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
                or self._has_unfinished_write()
            ):
                raise
            connection = self._open_unwritten()
        self._file = self._stat()
        return connection

    def _look(self) -> sqlite3.Connection:
        if not self._may_be_written() and not self._has_unfinished_write():
            # Files created beside it inherit its permissions: they would stay read-only when the file no longer is.
            return self._open_unwritten()
        connection = self._connect("mode=ro")
        try:
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_unwritten(self) -> sqlite3.Connection:
        """Return a connection that needs no files beside the database, for read-only folders."""
        connection = self._connect("immutable=1")
        self.closes_after_use = True  # a writer may open the file later
        return connection

    def change(self, looked: Any | None) -> Any:
        """Return a connection that may write, in place of a read-only one. The file is created if necessary."""
        if looked is not None:
            looked.close()
        self.closes_after_use = False
        self._check_place()
        if self.exists() and not self._may_be_written():
            raise make_refusal_error("L419", self.display_name, "its file is not writable")
        connection = self._connect("mode=rwc")
        try:
            self._settle(connection)
        except BaseException:
            connection.close()
            raise
        self._file = self._stat()
        return connection

    def _check_place(self) -> None:
        path, why, do = Path(self.path), "", ""
        try:
            os.lstat(f"{path}-journal")  # the longest name of the files that SQLite creates beside it
        except FileNotFoundError:
            pass
        except OSError as error:
            why, do = error.strerror or str(error), "check the path: its parts, their length, and their permissions"
        if why:
            pass
        elif path.is_dir():
            why, do = "this is a folder", f"use a file in it: {path / 'runs.db'}"
        elif not path.parent.is_dir():
            why, do = f"there is no folder {str(path.parent)!r}", "create the folder first, or check the path"
        if why:
            raise StoreError(Problem("L420", "access to the store was denied", self.display_name, why, do))

    def _connect(self, mode: str) -> sqlite3.Connection:
        uri = f"file:{quote(self.path)}?{mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=self.seconds, isolation_level=None, check_same_thread=False)
        connection.text_factory = _decode_text
        return connection

    def _settle(self, connection: sqlite3.Connection) -> None:
        until = time.monotonic() + self.seconds
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL").fetchall()
                break
            except sqlite3.OperationalError as error:
                # If two processes create the same file, SQLite does not make the second one wait.
                if self._get_error_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.01)
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint={_PAGES}").fetchall()

    def _may_be_written(self) -> bool:
        return os.access(self.path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)

    def _has_unfinished_write(self) -> bool:
        wal = Path(f"{self.path}-wal")
        return wal.exists() and wal.stat().st_size > 0

    def _stat(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self.path)  # noqa: PTH116  (see exists)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def checkpoint(self, cursor: Any) -> Problem | None:
        """Move the write-ahead log into the file; return a warning if another program prevents it.

        L438: the store's file alone is not complete.
        """
        try:
            _, written, moved = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            why = "another program is using the store" if moved < written else ""
        except self.errors as error:
            why = f"the database reports: {error}"
        if not why:
            return None
        return Problem(
            "L438",
            "the store's file alone is not complete",
            self.display_name,
            f"everything is stored, but the last entries are still in {Path(self.path).name}-wal: {why}",
            f"copy {Path(self.path).name}-wal together with the file, or first close the store in all other programs: "
            "the last one that closes it completes the file",
            "warning",
        )

    def disable_waits(self, cursor: Any) -> None:
        """Disable lock waits, because the connection is closing."""
        cursor.execute("PRAGMA busy_timeout=200").fetchall()

    def is_moved(self) -> bool:
        """Return True if the open file was replaced or removed, so that writes would be lost."""
        return self._stat() != self._file

    # -- contents ------------------------------------------------------------------------------------------------

    def lock_table_creation(self, cursor: Any) -> None:
        """Lock the creation of tables until the end of this transaction; it acquired the lock at its start."""

    def tables(self, cursor: Any) -> set[str]:
        """Return the names of all tables."""
        return {name for (name,) in cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()}

    def indexes(self, cursor: Any) -> set[str]:
        """Return the names of all indexes."""
        return {name for (name,) in cursor.execute("SELECT name FROM sqlite_master WHERE type = 'index'").fetchall()}

    def find_foreign_tables(self, tables: set[str]) -> str | None:
        """Return the other tables of a database without agentnb's, as text, or None: a file belongs to one program."""
        return ", ".join(sorted(tables)[:6]) or None

    # -- writers ---------------------------------------------------------------------------------------------------

    def claim(self, cursor: Any, run_id: str, writer: str | None, own_writer: str, *, take_over: bool = False) -> None:
        """Check that no other writer holds a run; a writer whose process has ended holds nothing.

        With `take_over`, neither does a writer whose process cannot be checked from here.

        Raises:
            StoreError: L411, another writer holds it.
        """
        other = read(writer)
        if other is None or writer == own_writer or (take_over and is_elsewhere(other)):
            return
        if is_alive(other):
            raise make_writer_error(run_id, other, self.display_name)

    def release_lock(self, cursor: Any, run_id: str) -> None:
        """Drop a claim that was not written; there is no lock besides the row."""

    def make_holder_check(self, cursor: Any) -> Callable[[str, Writer], bool]:
        """Return a function that checks whether the writer named in a run's row still holds it."""
        known: dict[str, bool] = {}

        def holds(_: str, writer: Writer) -> bool:
            if writer.token not in known:
                known[writer.token] = is_alive(writer)
            return known[writer.token]

        return holds

    # -- errors --------------------------------------------------------------------------------------------------

    def to_store_error(self, error: BaseException) -> StoreError:
        """Return a driver's exception as a StoreError."""
        name = getattr(error, "sqlite_errorname", None)
        code = _CODES.get(self._get_error_code(error), "L427")
        if isinstance(error, UnicodeDecodeError) or str(error).startswith(
            ("no such table", "no such column", "Could not decode")
        ):
            code = "L422"
        return make_driver_error(code, self.display_name, error, name)

    def is_lost(self, connection: Any, error: BaseException) -> bool:
        """Return True if a connection is no longer usable."""
        return self._get_error_code(error) not in _PASSING

    def is_duplicate(self, error: BaseException) -> bool:
        """Return True if a row with this key already exists."""
        return self._get_error_code(error) == sqlite3.SQLITE_CONSTRAINT

    def _get_error_code(self, error: BaseException) -> int:
        code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
        return code & 0xFF
