"""The SqlLog: runs stored in an SQLite file or on a PostgreSQL server."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from agentnb.engine.persistence.event_log import EVERY_RUN, Entry, RunQuery, RunRow
from agentnb.errors import Problem, StoreError, warn_caller
from agentnb.store.connection import Link
from agentnb.store.database_errors import make_damaged_row_problem
from agentnb.store.run_errors import make_duplicate_error, make_empty_store_error, make_missing_run_error
from agentnb.store.tables import SAID, STANDS, build_listing, compile_statements
from agentnb.store.urls import StoreAddress, parse
from agentnb.store.writer_identity import Writer, make_overtaken_error, make_writer_error, read
from agentnb.text import safe_repr

if TYPE_CHECKING:
    from agentnb.store.connection import Database

_CHUNK: Final = 4_000_000  # approximate number of characters of entries read at a time
_FIRST, _MOST = 64, 2000  # entries read at a time: before their size is known, and at most
_FIRST_YEAR, _LAST_YEAR = 1678, 2261  # the whole years that a timestamp column can hold
_TYPES: Final[dict[str, Any]] = {
    **dict.fromkeys(("run_id", "name", "recipe", "dialect", "fingerprint", "head", "status"), str),
    **dict.fromkeys(("shared", "steps"), int),
    **dict.fromkeys(("parent", "at"), str | None),
    "forked": int | None,
}


class SqlLog:
    """Stores runs persistently in an SQLite file or on a PostgreSQL server.

    A file is created at the first write. One connection stays open until `checkpoint` or `close`; it is reopened when
    it is needed again.

    Args:
        where: a path, or a URL as accepted by `open_log`.
        seconds: the timeout for a locked store.
    """

    def __init__(self, where: str | os.PathLike[str] | StoreAddress, *, seconds: float = 5.0) -> None:
        address = where if isinstance(where, StoreAddress) else parse(where)
        self._shown = address.display_name
        self._statements = compile_statements(address.kind)
        self._link = Link(make_database(address, seconds), self._statements)
        weakref.finalize(self, self._link.end)

    def __repr__(self) -> str:
        return f"SqlLog({safe_repr(self._shown, 200)})"

    @property
    def url(self) -> str:
        """The URL, without a password."""
        return self._shown

    # -- writing -------------------------------------------------------------------------------------------------

    def create(self, row: RunRow, entries: Sequence[Entry] = ()) -> None:
        """Create a run with its first entries, and claim it for this writer.

        Raises:
            StoreError: L412, a run with this id exists; or it cannot be written.
        """
        link = self._link
        with link.lock:
            link.change(row.run_id, lambda cursor: self._create(cursor, row, entries), begins=True)

    def add(self, runs: Sequence[tuple[RunRow, Sequence[Entry]]]) -> None:
        """Add whole runs in one change, without a writer: all of them, or none.

        Raises:
            StoreError: L412, a run with one of these ids exists; or they cannot be written.
        """
        link = self._link
        if runs:
            with link.lock:
                link.change(runs[0][0].run_id, lambda cursor: self._add_runs(cursor, runs), begins=True)

    def append(
        self, run_id: str, entries: Sequence[Entry], *, status: str | None = None, steps: int | None = None
    ) -> None:
        """Append entries to a run that this writer holds, and update its status and step count unless None.

        Raises:
            StoreError: L411, another writer holds this run, or has written to it; L413, there is no such run; or it
                cannot be written.
        """
        link = self._link
        with link.lock:
            if len(entries) != 1 or not self._put(run_id, entries[0], status, steps):
                link.change(run_id, lambda cursor: self._append(cursor, run_id, entries, status, steps))

    def update_run(
        self, run_id: str, *, status: str | None = None, steps: int | None = None, at: str | None = None
    ) -> None:
        """Update the status of a run; None leaves a field unchanged, an empty `at` clears it.

        Raises:
            StoreError: L411, another writer holds this run; L413, there is no such run; or it cannot be written.
        """
        link = self._link
        with link.lock:
            link.change(run_id, lambda cursor: self._update_row(cursor, run_id, status, steps, at))

    def claim(self, run_id: str, last: int | None = None, *, take_over: bool = False) -> None:
        """Claim a run, whose last entry is number `last`, for this writer.

        With `take_over`, also claim it from a writer whose process cannot be checked from here.

        Raises:
            StoreError: L411, another writer holds this run, or has written to it; L413, there is no such run; or it
                cannot be written.
        """
        link = self._link
        with link.lock:
            link.change(run_id, lambda cursor: self._claim(cursor, run_id, last, take_over=take_over))

    def release(self, run_id: str) -> None:
        """Release a run of this writer for other writers.

        Raises:
            StoreError: the release cannot be written; it may be retried.
        """
        with self._link.lock:
            self._link.release(run_id)

    def checkpoint(self) -> None:
        """Complete the store's file, so that a copy of it is whole, and close the connection unless a run is claimed.

        A warning (L438) tells that another program prevents it.
        """
        with self._link.lock:
            problem = self._link.checkpoint()
        if problem is not None:
            warn_caller(str(problem))

    def close(self) -> None:
        """Release every run and close the connection, which is reopened on the next use."""
        with self._link.lock:
            self._link.close()

    # -- reading -------------------------------------------------------------------------------------------------

    def entries(self, run_id: str, after: int = 0, until: int | None = None) -> Iterator[Entry]:
        """Return the entries of a run in order, those with `after` < seq <= `until`.

        Raises:
            StoreError: L413, there is no such run; or it cannot be read.
        """
        end = sys.maxsize if until is None else until
        return self._iter_following(run_id, self._read_chunk(run_id, after, end, _FIRST), end)

    def last(self, run_id: str) -> int:
        """Return the number of a run's last entry; 0 if it has none.

        Raises:
            StoreError: L413, there is no such run; or it cannot be read.
        """
        with self._link.lock:
            return self._link.read(lambda cursor: self._find_end(cursor, self._number(cursor, run_id))[0])

    def run(self, run_id: str | None = None) -> RunRow:
        """Return a run's row; without an id, that of the run that was written last.

        Raises:
            StoreError: L413, there is no such run, or the store is empty; or it cannot be read.
        """
        matching = (
            self._read_rows(self._statements.last_run)
            if run_id is None
            else self._read_rows(self._statements.run, run_id=run_id)
        )
        if not matching and run_id is None:
            matching = self.runs()
        if matching:
            return matching[0]
        with self._link.lock:
            raise (
                make_empty_store_error(self.url)
                if run_id is None
                else self._link.read(lambda cursor: self._make_missing_run_error(cursor, run_id))
            )

    def runs(self, query: RunQuery = EVERY_RUN) -> list[RunRow]:
        """Return the rows of the runs that match, newest first; by default, of all runs.

        Raises:
            StoreError: L413, there is no run `query.after`; or it cannot be read.
        """
        with self._link.lock:
            if query != EVERY_RUN:
                return self._link.read(lambda cursor: self._find_matching(cursor, query))
            count = self._link.read(self._count)
        rows = self._read_rows(self._statements.runs)
        self._warn_of_damage(count - len(rows), count)
        return rows

    def _find_matching(self, cursor: Any, query: RunQuery) -> list[RunRow]:
        """Return the rows that match a query; damaged rows are left out."""
        parameters = {
            name: _to_column_text(value) for name in RunQuery.__slots__ if (value := getattr(query, name)) is not None
        }
        # compared with the recorded status; `matches` checks whether the writer is gone
        if query.status == "interrupted":
            parameters["status"] = "running"
        if query.after is not None:
            last_row = cursor.execute(self._statements.run_position, {"run_id": query.after}).fetchone()
            if last_row is None:
                raise self._make_missing_run_error(cursor, query.after)
            parameters["after_created"], parameters["after_number"] = last_row
        matching, damaged = list[RunRow](), 0
        while True:
            rows = cursor.execute(build_listing(self._statements.kind, frozenset(parameters)), parameters).fetchall()
            readable = self._read_readable_rows(cursor, [row[:-1] for row in rows])
            damaged += len(rows) - len(readable)
            matching += filter(query.matches, readable)
            if query.limit is None or len(rows) < query.limit or len(matching) >= query.limit:
                break
            parameters["after"], parameters["after_created"], parameters["after_number"] = (
                "",
                rows[-1][SAID.index("created")],
                rows[-1][-1],
            )
        self._warn_of_damage(damaged, damaged + len(matching))
        return matching[: query.limit]

    def _warn_of_damage(self, damaged: int, count: int) -> None:
        if damaged:
            problem = make_damaged_row_problem(self.url, f"{damaged} of {count} runs")
            warn_caller(str(problem))

    def _count(self, cursor: Any) -> int:
        """Return the largest number of runs in any of the tables; in a damaged file, one of them may have lost rows."""
        statements = (self._statements.count, self._statements.count_by_state)
        return max(int(cursor.execute(statement, {}).fetchone()[0]) for statement in statements)

    # -- internals -----------------------------------------------------------------------------------------------

    def _create(self, cursor: Any, row: RunRow, entries: Sequence[Entry]) -> None:
        link = self._link
        self._check_first(row, entries)
        if self._exists(cursor, row.run_id):
            if row.run_id not in link.unsure:
                raise make_duplicate_error(row.run_id, self.url)
            self._append(cursor, row.run_id, entries, row.status, row.steps)  # it was committed after all
            return
        self._begin(cursor, row, entries, lambda: link.claim(cursor, row.run_id, None))

    def _add_runs(self, cursor: Any, runs: Sequence[tuple[RunRow, Sequence[Entry]]]) -> None:
        for row, entries in runs:
            self._check_first(row, entries)
            if self._exists(cursor, row.run_id):
                if runs[0][0].run_id in self._link.unsure:
                    return  # they were committed after all
                raise make_duplicate_error(row.run_id, self.url)
            self._begin(cursor, row, entries, lambda: None)

    def _check_first(self, row: RunRow, entries: Sequence[Entry]) -> None:
        _check_order(entries)
        if entries and entries[0].seq != 1:
            raise make_overtaken_error(row.run_id, 0, entries[0].seq, self.url)

    def _exists(self, cursor: Any, run_id: str) -> bool:
        return cursor.execute(self._statements.number, {"run_id": run_id}).fetchone() is not None

    def _begin(self, cursor: Any, row: RunRow, entries: Sequence[Entry], claim: Callable[[], str | None]) -> None:
        """Insert a run that does not exist; `claim` returns its writer."""
        database, statements = self._link.database, self._statements
        try:
            cursor.execute(statements.insert_run, {name: _to_column_text(getattr(row, name)) for name in SAID})
        except database.errors as error:
            if database.is_duplicate(error):
                raise make_duplicate_error(row.run_id, self.url) from None
            raise
        (number,) = cursor.execute(statements.number, {"run_id": row.run_id}).fetchone()
        state = {
            **{name: _to_column_text(getattr(row, name)) for name in STANDS},
            "run": number,
            "last": len(entries),
            "updated": _format_now(),
            "writer": claim(),
        }
        cursor.execute(statements.insert_state, state)
        self._add(cursor, number, entries)

    def _append(
        self, cursor: Any, run_id: str, entries: Sequence[Entry], status: str | None, steps: int | None
    ) -> None:
        _check_order(entries)
        number, own_writer = self._claim_run(cursor, run_id)
        parameters = _make_change(number, own_writer, status, steps)
        while entries:
            ends = {"before": entries[0].seq - 1, "after": entries[-1].seq}
            if cursor.execute(self._statements.advance, {**parameters, **ends}).rowcount:
                return self._add(cursor, number, entries)
            entries = self._find_unwritten(cursor, run_id, number, own_writer, entries)
        return self._update_row(cursor, run_id, status, steps, None)

    def _put(self, run_id: str, entry: Entry, status: str | None, steps: int | None) -> bool:
        """Append one entry to a claimed run if a single statement is enough; return True if it was committed."""
        link, statement = self._link, self._statements.append
        own_writer, number = link.claims.get(run_id), link.numbers.get(run_id)
        if statement is None or own_writer is None or number is None:
            return False
        parameters = _make_change(number, own_writer, status, steps)
        put = {"before": entry.seq - 1, "after": entry.seq, "step": entry.step, "body": _to_column_text(entry.body)}
        return link.execute_change(run_id, statement, {**parameters, **put})

    def _find_unwritten(
        self, cursor: Any, run_id: str, number: int, own_writer: str, entries: Sequence[Entry]
    ) -> Sequence[Entry]:
        """Return the entries still to be written, in case earlier ones were committed without confirmation.

        Raises:
            StoreError: L411, another writer holds the run, or has written to it.
        """
        last, writer = self._find_end(cursor, number)
        if writer != own_writer:
            self._link.disclaim(cursor, run_id)
            raise make_writer_error(run_id, read(writer), self.url)
        if run_id in self._link.unsure:
            parameters = {"number": number, "after": entries[0].seq - 1, "until": last}
            stored = [tuple(row) for row in cursor.execute(self._statements.chunk, parameters).fetchall()]
            if stored and stored == [(seq, step, _to_column_text(body)) for seq, step, body in entries[: len(stored)]]:
                return entries[len(stored) :]
        raise make_overtaken_error(run_id, last, entries[0].seq, self.url)

    def _add(self, cursor: Any, number: int, entries: Sequence[Entry]) -> None:
        rows = [{"run": number, "seq": seq, "step": step, "body": _to_column_text(body)} for seq, step, body in entries]
        cursor.executemany(self._statements.insert_entry, rows)

    def _update_row(self, cursor: Any, run_id: str, status: str | None, steps: int | None, at: str | None) -> None:
        number, own_writer = self._claim_run(cursor, run_id)
        parameters = {"is_status": status, "is_steps": steps, "is_at": at, "now": _format_now()}
        values = {"number": number, "own_writer": own_writer, **parameters}
        if not cursor.execute(self._statements.update_run, values).rowcount:
            self._link.disclaim(cursor, run_id)
            raise make_writer_error(run_id, read(self._find_end(cursor, number)[1]), self.url)

    def _claim(self, cursor: Any, run_id: str, last: int | None, *, take_over: bool) -> None:
        number, _ = self._claim_run(cursor, run_id, take_over=take_over)
        end, _ = self._find_end(cursor, number)
        if last not in (None, end):
            raise make_overtaken_error(run_id, end, last + 1, self.url)

    def _claim_run(self, cursor: Any, run_id: str, *, take_over: bool = False) -> tuple[int, str]:
        """Claim a run; return its number and the writer text of its row.

        Raises:
            StoreError: L411, another writer holds it; L413, there is no such run.
        """
        number, own_writer = self._number(cursor, run_id), self._link.claims.get(run_id)
        if own_writer is None:
            writer = self._find_end(cursor, number)[1]
            own_writer = self._link.claim(cursor, run_id, writer, take_over=take_over)
            if own_writer != writer:
                cursor.execute(self._statements.take_over, {"number": number, "own_writer": own_writer})
        return number, own_writer

    def _number(self, cursor: Any, run_id: str) -> int:
        number = self._link.numbers.get(run_id)
        if number is None:
            row = cursor.execute(self._statements.number, {"run_id": run_id}).fetchone()
            if row is None:
                raise self._make_missing_run_error(cursor, run_id)
            number = self._link.numbers[run_id] = int(row[0])
        return number

    def _find_end(self, cursor: Any, number: int) -> tuple[int, str | None]:
        last, writer = cursor.execute(self._statements.get_state, {"number": number}).fetchone()
        return last, writer

    def _read_chunk(self, run_id: str, after: int, until: int, size: int) -> list[Entry]:
        # Numbers are contiguous, so a chunk is a range; with LIMIT, a server without statistics sorts all remaining
        # rows.
        end = min(until, max(after, 0) + size)

        def look(cursor: Any) -> list[Entry]:
            parameters = {"number": self._number(cursor, run_id), "after": after, "until": end}
            return list(map(Entry._make, cursor.execute(self._statements.chunk, parameters).fetchall()))

        with self._link.lock:
            return self._link.read(look)

    def _iter_following(self, run_id: str, chunk: list[Entry], until: int) -> Iterator[Entry]:
        size = _FIRST
        while chunk:
            yield from chunk
            if len(chunk) < size:
                return
            size = max(1, min(_MOST, _CHUNK * len(chunk) // (1 + sum(len(entry.body) for entry in chunk))))
            chunk = self._read_chunk(run_id, chunk[-1].seq, until, size)

    def _read_rows(self, statement: str, **parameters: Any) -> list[RunRow]:
        def look(cursor: Any) -> list[RunRow]:
            return self._read_readable_rows(cursor, cursor.execute(statement, parameters).fetchall())

        with self._link.lock:
            return self._link.read(look)

    def _read_readable_rows(self, cursor: Any, rows: Sequence[Sequence[Any]]) -> list[RunRow]:
        is_held = self._link.database.make_holder_check(cursor)
        return [parsed for row in rows if (parsed := _parse_row_or_none(row, is_held)) is not None]

    def _make_missing_run_error(self, cursor: Any, run_id: str) -> StoreError:
        newest = [name for (name,) in cursor.execute(self._statements.newest, {}).fetchall()]
        (count,) = cursor.execute(self._statements.count, {}).fetchone()
        return make_missing_run_error(run_id, newest, count, self.url)


def _parse_row_or_none(values: Sequence[Any], is_held: Callable[[str, Writer], bool]) -> RunRow | None:
    """Return a run's row; None if its values are damaged."""
    try:
        return _parse_row(values, is_held)
    except (TypeError, ValueError, OverflowError):
        return None


def _parse_row(values: Sequence[Any], is_held: Callable[[str, Writer], bool]) -> RunRow:
    columns = dict(zip((*SAID, *STANDS), values, strict=True))
    for name in ("created", "updated"):
        columns[name] = _parse_time(columns[name])
    by = read(columns["writer"])
    columns["writer"] = str(by) if by is not None and is_held(columns["run_id"], by) else None
    for name, kind in _TYPES.items():
        if not isinstance(columns[name], kind):
            raise TypeError(name)
    return RunRow(**columns)


def _parse_time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is None or not _FIRST_YEAR <= time.year <= _LAST_YEAR:
        raise ValueError(text)
    return time


def _check_order(entries: Sequence[Entry]) -> None:
    assert all(entry.seq == entries[0].seq + index for index, entry in enumerate(entries)), "a number is missing"


def _make_change(number: int, own_writer: str, status: str | None, steps: int | None) -> dict[str, Any]:
    """Return the parameters of a statement that changes the state of a claimed run."""
    return {"number": number, "own_writer": own_writer, "is_status": status, "is_steps": steps, "now": _format_now()}


def _format_now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _to_column_text(value: Any) -> Any:
    """Return a value for a text column. Lone UTF-16 surrogates are invalid; they are escaped as in JSON."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def make_database(address: StoreAddress, seconds: float) -> Database:
    """Return the database object for a location; nothing is opened yet.

    Raises:
        StoreError: L424, PostgreSQL needs a package that is not installed.
    """
    if address.kind == "sqlite":
        from agentnb.store.sqlite import SqliteFile

        return SqliteFile(address.target, address.display_name, seconds)
    try:
        from agentnb.store.postgres import PostgresServer
    except ImportError as error:
        raise StoreError(
            Problem(
                "L424",
                "PostgreSQL needs a package that is not installed",
                address.display_name,
                str(error),
                "pip install 'agentnb-kit[postgres]' (or keep runs in a file: runs.db)",
            )
        ) from error
    return PostgresServer(address.target, address.display_name, seconds)
