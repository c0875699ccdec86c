"""A store on a PostgreSQL server, through psycopg. A writer holds a lock per run, released with its connection."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from agentnb.errors import Problem, StoreError
from agentnb.store.database_errors import make_driver_error
from agentnb.store.writer_identity import Writer, is_alive, is_elsewhere, make_writer_error, read

# Prefixes of SQLSTATEs; the longest match applies.
_CODES: Final = {
    "08": "L421",
    "22021": "L429",
    "22P05": "L429",
    "25006": "L419",
    "28": "L420",
    "3D": "L420",
    "3F": "L420",
    "40": "L418",
    "42501": "L420",
    "42P01": "L422",
    "42703": "L422",
    "53": "L418",
    "53100": "L417",
    "55": "L418",
    "57014": "L418",
    "57P": "L421",
    "58": "L417",
    "XX001": "L422",
    "XX002": "L422",
}
# URL defaults: the timeouts after which a server that does not answer counts as lost.
_SETTINGS: Final[dict[str, Any]] = {
    "application_name": "agentnb",
    "client_encoding": "UTF8",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_OURS: Final = (
    "SELECT relname FROM pg_class WHERE relkind = 'r' AND pg_table_is_visible(oid) AND relname LIKE 'agentnb%'"
)
_INDEXES: Final = (
    "SELECT relname FROM pg_class WHERE relkind = 'i' AND pg_table_is_visible(oid) AND relname LIKE 'agentnb%'"
)
_KEY: Final = "(classid::bigint << 32) | objid::bigint"
_LOCKS: Final = (
    "FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 "
    "AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
_LOCKED: Final = f"SELECT {_KEY} {_LOCKS}"
_END_HOLDER: Final = f"SELECT pg_terminate_backend(pid) {_LOCKS} AND {_KEY} = %s"
_BUSY: Final = (
    "starting up",
    "shutting down",
    "recovery mode",
    "too many",
    "connection slots",
    "terminating connection",
)
_DYING: Final = 5.0  # seconds a server needs to notice that a process of this machine has ended


class PostgresServer:
    """A database on a PostgreSQL server. A connection pooler must run in session mode."""

    begin: Final = "BEGIN"
    errors: Final = psycopg.Error
    closes_after_use: Final = False  # a connection may be kept
    remote: Final = True  # an idle connection may end, and its claims with it

    def __init__(self, url: str, shown: str, seconds: float) -> None:
        self.url, self.display_name, self.seconds = url, shown, seconds
        self._schema = ""

    # -- opening -------------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Return True, because only the server knows whether there is something to read."""
        return True

    def open_reader(self) -> Any:
        """Return a connection in autocommit mode, outside explicit transactions."""
        try:
            settings = {**_SETTINGS, **conninfo_to_dict(self.url), "autocommit": True}
        except psycopg.ProgrammingError:  # its message quotes the offending part, which may be the password
            raise StoreError(
                Problem(
                    "L414",
                    "this URL cannot be read",
                    self.display_name,
                    "it has an unknown option, or a special character that is not percent-encoded",
                    "write it as postgresql://user:password@host:5432/database",
                )
            ) from None
        connection = psycopg.connect(**settings)
        try:
            connection.execute(f"SET lock_timeout = {round(self.seconds * 1000)}")
            (schema,) = connection.execute("SELECT current_schema()").fetchone() or ("",)
        except BaseException:
            connection.close()
            raise
        self._schema = str(schema)
        return connection

    def change(self, looked: Any | None) -> Any:
        """Return a connection that may write: the same connection."""
        return self.open_reader() if looked is None else looked

    def checkpoint(self, cursor: Any) -> None:
        """Do nothing: a server has no file to copy."""

    def disable_waits(self, cursor: Any) -> None:
        """Disable lock waits, because the connection is closing."""
        cursor.execute("SET lock_timeout = 200")

    def is_moved(self) -> bool:
        """Return False: a server does not move."""
        return False

    # -- contents ------------------------------------------------------------------------------------------------

    def lock_table_creation(self, cursor: Any) -> None:
        """Lock the creation of tables until the end of this transaction."""
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (self._hash_key("tables"),))

    def tables(self, cursor: Any) -> set[str]:
        """Return the names of agentnb's tables."""
        return {name for (name,) in cursor.execute(_OURS).fetchall()}

    def indexes(self, cursor: Any) -> set[str]:
        """Return the names of the indexes of agentnb's tables."""
        return {name for (name,) in cursor.execute(_INDEXES).fetchall()}

    def find_foreign_tables(self, tables: set[str]) -> str | None:
        """Return None: tables of other programs are allowed beside agentnb's, whose names are distinct."""
        return None

    # -- writers ---------------------------------------------------------------------------------------------------

    def claim(self, cursor: Any, run_id: str, writer: str | None, own_writer: str, *, take_over: bool = False) -> None:
        """Acquire the lock of a run.

        With `take_over`, the connection of a writer whose process cannot be checked from here is ended first.

        Raises:
            StoreError: L411, another writer holds it.
        """
        until = time.monotonic() + _DYING
        while not cursor.execute("SELECT pg_try_advisory_lock(%s)", (self._hash_key(run_id),)).fetchone()[0]:
            other = read(writer)
            taken = take_over and other is not None and is_elsewhere(other)
            if other is None or (is_alive(other) and not taken) or time.monotonic() > until:
                raise make_writer_error(run_id, other, self.display_name)
            if taken:
                cursor.execute(_END_HOLDER, (self._hash_key(run_id),)).fetchall()
            time.sleep(0.02)

    def release_lock(self, cursor: Any, run_id: str) -> None:
        """Release the lock of a run."""
        cursor.execute("SELECT pg_advisory_unlock(%s)", (self._hash_key(run_id),)).fetchall()

    def make_holder_check(self, cursor: Any) -> Callable[[str, Writer], bool]:
        """Return a function that checks whether a run is locked by the writer named in its row."""
        locked = {key for (key,) in cursor.execute(_LOCKED).fetchall()}
        return lambda run_id, _: self._hash_key(run_id) in locked

    def _hash_key(self, name: str) -> int:
        digest = hashlib.sha256(f"agentnb {self._schema} {name}".encode()).digest()
        return int.from_bytes(digest[:8], "big", signed=True)

    # -- errors --------------------------------------------------------------------------------------------------

    def to_store_error(self, error: BaseException) -> StoreError:
        """Return a driver's exception as a StoreError."""
        state = getattr(error, "sqlstate", None) or ""
        code = next((_CODES[state[:size]] for size in (5, 3, 2) if state[:size] in _CODES), None)
        if code is None and isinstance(error, psycopg.OperationalError):
            # A refused login has no SQLSTATE; only the message shows that a server has answered, and what.
            message = str(error)
            answered = "FATAL:" in message and not any(each in message for each in _BUSY)
            code = "L420" if answered else "L421"
        if code is None:
            code = "L427"
        if isinstance(error, psycopg.DataError) and "NUL" in str(error):
            code = "L429"
        return make_driver_error(code, self.display_name, error, state or None)

    def is_lost(self, connection: Any, error: BaseException) -> bool:
        """Return True if a connection is no longer usable."""
        return bool(connection.closed or connection.broken)

    def is_duplicate(self, error: BaseException) -> bool:
        """Return True if a row with this key already exists."""
        return isinstance(error, psycopg.errors.UniqueViolation)
