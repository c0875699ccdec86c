"""The MemoryLog: runs stored in this process, as long as the log is referenced."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, islice
from operator import attrgetter
from typing import Final
from uuid import uuid4

from agentnb.engine.persistence.event_log import EVERY_RUN, Entry, RunQuery, RunRow
from agentnb.store.run_errors import make_duplicate_error, make_empty_store_error, make_missing_run_error
from agentnb.store.writer_identity import identify_writer, make_overtaken_error

_created: Final = attrgetter("created")


@dataclass(slots=True)
class _StoredRun:
    row: RunRow
    last_write: int
    entries: list[Entry]


class MemoryLog:
    """Stores runs in memory: they are lost when the process ends.

    Example:
        >>> log = MemoryLog()
        >>> log.runs()
        []
    """

    def __init__(self) -> None:
        self._runs: dict[str, _StoredRun] = {}
        self._lock = threading.RLock()
        self._writes = count()
        self._token = uuid4().hex

    def __repr__(self) -> str:
        return f"MemoryLog({len(self._runs)} runs)"

    @property
    def url(self) -> str:
        """The URL of the log. It is constant, because the log exists in this process only."""
        return "memory"

    def create(self, row: RunRow, entries: Sequence[Entry] = ()) -> None:
        """Create a run with its first entries, and claim it for this writer.

        Raises:
            StoreError: L412, a run with this id exists; L411, its entries do not begin with number 1.
        """
        with self._lock:
            if row.run_id in self._runs:
                raise make_duplicate_error(row.run_id, self.url)
            self._fit(row.run_id, entries, 0)
            row = row._replace(updated=datetime.now(UTC), writer=str(identify_writer(self._token)))
            self._runs[row.run_id] = _StoredRun(row, next(self._writes), [*entries])

    def add(self, runs: Sequence[tuple[RunRow, Sequence[Entry]]]) -> None:
        """Add whole runs, without a writer: all of them, or none.

        Raises:
            StoreError: L412, a run with one of these ids exists; L411, its entries do not begin with number 1.
        """
        with self._lock:
            stored: dict[str, _StoredRun] = {}
            for row, entries in runs:
                if row.run_id in self._runs or row.run_id in stored:
                    raise make_duplicate_error(row.run_id, self.url)
                self._fit(row.run_id, entries, 0)
                added = row._replace(updated=datetime.now(UTC), writer=None)
                stored[row.run_id] = _StoredRun(added, next(self._writes), [*entries])
            self._runs |= stored

    def append(
        self, run_id: str, entries: Sequence[Entry], *, status: str | None = None, steps: int | None = None
    ) -> None:
        """Append entries to a run, and update its status and step count unless None.

        Raises:
            StoreError: L411, another writer has written to this run since; L413, there is no such run.
        """
        with self._lock:
            stored = self._find(run_id)
            self._fit(run_id, entries, len(stored.entries))
            stored.entries += entries
            self._update_row(stored, status, steps, None)

    def update_run(
        self, run_id: str, *, status: str | None = None, steps: int | None = None, at: str | None = None
    ) -> None:
        """Update the status of a run; None leaves a field unchanged, an empty `at` clears it.

        Raises:
            StoreError: L413, there is no such run.
        """
        with self._lock:
            self._update_row(self._find(run_id), status, steps, at)

    def entries(self, run_id: str, after: int = 0, until: int | None = None) -> Iterator[Entry]:
        """Return the entries of a run in order, those with `after` < seq <= `until`.

        Raises:
            StoreError: L413, there is no such run.
        """
        with self._lock:
            return iter(self._find(run_id).entries[max(after, 0) : until if until is None else max(until, 0)])

    def last(self, run_id: str) -> int:
        """Return the number of a run's last entry; 0 if it has none.

        Raises:
            StoreError: L413, there is no such run.
        """
        with self._lock:
            return len(self._find(run_id).entries)

    def run(self, run_id: str | None = None) -> RunRow:
        """Return a run's row; without an id, that of the run that was written last.

        Raises:
            StoreError: L413, there is no such run, or the store is empty.
        """
        with self._lock:
            if run_id is not None:
                return self._find(run_id).row
            if not self._runs:
                raise make_empty_store_error(self.url)
            return max(self._runs.values(), key=lambda stored: stored.last_write).row

    def runs(self, query: RunQuery = EVERY_RUN) -> list[RunRow]:
        """Return the rows of the runs that match, newest first; by default, of all runs.

        Raises:
            StoreError: L413, there is no run `query.after`.
        """
        with self._lock:
            after_row = None if query.after is None else self._find(query.after).row
            rows = [stored.row for stored in reversed(self._runs.values())]
            # stable: of two runs created at the same time, the later one stays first
            rows.sort(key=_created, reverse=True)
        rows = rows if after_row is None else rows[rows.index(after_row) + 1 :]
        return list(islice(filter(query.matches, rows), query.limit))

    def claim(self, run_id: str, last: int | None = None, *, take_over: bool = False) -> None:
        """Claim a run, whose last entry is number `last`, for this writer.

        Raises:
            StoreError: L411, another writer has written to this run; L413, there is no such run.
        """
        with self._lock:
            stored = self._find(run_id)
            if last not in (None, len(stored.entries)):
                raise make_overtaken_error(run_id, len(stored.entries), last + 1, self.url)
            stored.row = stored.row._replace(writer=stored.row.writer or str(identify_writer(self._token)))

    def release(self, run_id: str) -> None:
        """Release a run of this writer for other writers."""
        with self._lock:
            if run_id in self._runs:
                stored = self._runs[run_id]
                stored.row = stored.row._replace(writer=None)

    def checkpoint(self) -> None:
        """Do nothing: there is no file."""

    def close(self) -> None:
        """Release every run; stored runs remain."""
        with self._lock:
            for run_id in self._runs:
                self.release(run_id)

    def _find(self, run_id: str) -> _StoredRun:
        if run_id not in self._runs:
            raise make_missing_run_error(run_id, [*islice(reversed(self._runs), 200)], len(self._runs), self.url)
        return self._runs[run_id]

    def _fit(self, run_id: str, entries: Sequence[Entry], last: int) -> None:
        if entries and entries[0].seq != last + 1:
            raise make_overtaken_error(run_id, last, entries[0].seq, self.url)
        assert all(entry.seq == number for number, entry in enumerate(entries, last + 1)), "a number is missing"

    def _update_row(self, stored: _StoredRun, status: str | None, steps: int | None, at: str | None) -> None:
        row = stored.row
        stored.last_write = next(self._writes)
        stored.row = row._replace(
            status=row.status if status is None else status,
            steps=row.steps if steps is None else steps,
            at=row.at if at is None else at or None,
            updated=datetime.now(UTC),
            writer=row.writer or str(identify_writer(self._token)),
        )
