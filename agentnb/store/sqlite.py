"""sqlite: a store in one file, by SQLite's own driver. It is made at the first write, never by a look."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from agentnb.errors import Problem, StoreError
from agentnb.store.failures import failed, refused
from agentnb.store.writers import Writer, alive, held, read

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
# After these the connection is as good as before.
_PASSING: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CONSTRAINT}
_PAGES: Final = 4000  # of the write-ahead log, before they are put into the file


class SqliteFile:
    """An SQLite database in a file, with a write-ahead log beside it while it is open."""

    begin: Final = "BEGIN IMMEDIATE"
    errors: Final = sqlite3.Error
    remote: Final = False  # what is claimed stays claimed without a connection

    def __init__(self, path: str, shown: str, seconds: float) -> None:
        self.path, self.shown, self.seconds = path, shown, seconds
        self.fleeting = False  # what was opened may not be kept open
        self._file: tuple[int, int] | None = None

    # -- opening -------------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Say whether there is anything to read."""
        try:
            return os.stat(self.path).st_size > 0  # noqa: PTH116  (asked before each change: Path costs as much again)
        except OSError:
            return False

    def look(self) -> Any:
        """Return a connection that changes nothing."""
        self.fleeting = False
        self._check_place()
        try:
            connection = self._look()
        except sqlite3.Error as error:
            if self._code(error) not in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY} or self._unfinished():
                raise
            connection = self._look_at_what_nobody_writes()
        self._file = self._now()
        return connection

    def _look(self) -> sqlite3.Connection:
        if not self._may_be_written() and not self._unfinished():
            # What is made beside a file gets its rights: it would stay read-only when the file no longer is.
            return self._look_at_what_nobody_writes()
        connection = self._connect("mode=ro")
        try:
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    def _look_at_what_nobody_writes(self) -> sqlite3.Connection:
        """Return a connection that needs nothing beside the file: what readers and writers share has no place there."""
        connection = self._connect("immutable=1")
        self.fleeting = True  # somebody else might come to write after all
        return connection

    def change(self, looked: Any | None) -> Any:
        """Return a connection that may write, in place of one that looked; the file is made if need be."""
        if looked is not None:
            looked.close()
        self.fleeting = False
        self._check_place()
        if self.exists() and not self._may_be_written():
            raise refused("L419", self.shown, "its file may not be written")
        connection = self._connect("mode=rwc")
        try:
            self._settle(connection)
        except BaseException:
            connection.close()
            raise
        self._file = self._now()
        return connection

    def _check_place(self) -> None:
        path, why, do = Path(self.path), "", ""
        try:
            os.lstat(f"{path}-journal")  # the longest name of those that SQLite makes beside it
        except FileNotFoundError:
            pass
        except OSError as error:
            why, do = error.strerror or str(error), "look at the path: its parts, their length, and the rights on them"
        if why:
            pass
        elif path.is_dir():
            why, do = "this is a folder", f"name a file in it: {path / 'runs.db'}"
        elif not path.parent.is_dir():
            why, do = f"there is no folder {str(path.parent)!r}", "make that folder first, or look at the path"
        if why:
            raise StoreError(Problem("L420", "the store may not be opened", self.shown, why, do))

    def _connect(self, mode: str) -> sqlite3.Connection:
        uri = f"file:{quote(self.path)}?{mode}"
        return sqlite3.connect(uri, uri=True, timeout=self.seconds, isolation_level=None, check_same_thread=False)

    def _settle(self, connection: sqlite3.Connection) -> None:
        until = time.monotonic() + self.seconds
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL").fetchall()
                break
            except sqlite3.OperationalError as error:
                # Two that begin the same file: SQLite does not let the second one wait for this by itself.
                if self._code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.01)
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint={_PAGES}").fetchall()

    def _may_be_written(self) -> bool:
        return os.access(self.path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)

    def _unfinished(self) -> bool:
        wal = Path(f"{self.path}-wal")
        return wal.exists() and wal.stat().st_size > 0

    def _now(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.path)  # noqa: PTH116  (see exists)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def hurry(self, cursor: Any) -> None:
        """Wait for nobody from now on: this connection is about to end."""
        cursor.execute("PRAGMA busy_timeout=200").fetchall()

    def moved(self) -> bool:
        """Say whether another file lies where the open one lay, or none: what is written now would be lost."""
        return self._now() != self._file

    # -- what is in it -------------------------------------------------------------------------------------------

    def alone(self, cursor: Any) -> None:
        """Let nobody else make the tables until this transaction is over: it has begun with that."""

    def tables(self, cursor: Any) -> set[str]:
        """Return the names of all tables."""
        return {name for (name,) in cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()}

    def foreign(self, tables: set[str]) -> str | None:
        """Say in words what else lies in a database without our tables; a file belongs to one program."""
        return ", ".join(sorted(tables)[:6]) or None

    # -- who writes ----------------------------------------------------------------------------------------------

    def claim(self, cursor: Any, run_id: str, writer: str | None, mine: str) -> None:
        """Make sure that nobody else holds a run: a writer that is gone holds nothing.

        Raises:
            StoreError: L411, somebody holds it.
        """
        other = read(writer)
        if writer != mine and alive(other):
            raise held(run_id, other, self.shown)

    def let_go(self, cursor: Any, run_id: str) -> None:
        """Give up a claim that was not written: there is nothing but the row."""

    def holders(self, cursor: Any) -> Callable[[str, Writer], bool]:
        """Return what says whether a run is really held by the writer that its row names."""
        known: dict[str, bool] = {}

        def holds(_: str, writer: Writer) -> bool:
            if writer.token not in known:
                known[writer.token] = alive(writer)
            return known[writer.token]

        return holds

    # -- what goes wrong -----------------------------------------------------------------------------------------

    def failure(self, error: BaseException) -> StoreError:
        """Return what the driver has raised in our words."""
        name = getattr(error, "sqlite_errorname", None)
        code = _CODES.get(self._code(error), "L427")
        if str(error).startswith(("no such table", "no such column")):
            code = "L422"
        return failed(code, self.shown, error, name)

    def lost(self, connection: Any, error: BaseException) -> bool:
        """Say whether a connection is of no use any more."""
        return self._code(error) not in _PASSING

    def doubled(self, error: BaseException) -> bool:
        """Say whether a row of this key was there already."""
        return self._code(error) == sqlite3.SQLITE_CONSTRAINT

    def _code(self, error: BaseException) -> int:
        code = getattr(error, "sqlite_errorcode", 0)
        return code & 0xFF if isinstance(code, int) else 0
