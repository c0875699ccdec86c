"""The event log: the interface of run storage. An EventLog has a row for each run and an append-only list of entries.

An entry is JSON text: what changed since the previous entry (see `deltas`). Appended entries never change; only the
state in a run's row (`status`, `steps`, `at`) does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol

from agentnb.engine.persistence.checksums import add_checksum, has_checksum, is_intact, is_text


class Entry(NamedTuple):
    """One entry of a run: `seq` counts from 1 in the run, `step` is its last step at that time, `body` is JSON text."""

    seq: int
    step: int
    body: str


def seal(run_id: str, seq: int, step: int, text: str) -> Entry:
    """Return an entry with a checksum of its text and of its place in the log."""
    return Entry(seq, step, add_checksum(text, run_id, seq, step))


def is_sound(run_id: str, entry: Entry, *, checked: bool) -> bool:
    """Return True if an entry is undamaged.

    Entries without a checksum are accepted only for runs that are not `checked`.
    """
    seq, step, body = entry
    if has_checksum(body):
        # joined inline, as in `seal`, because this runs once per entry
        return is_intact(body, f"{run_id}\0{seq}\0{step}")
    return not checked and is_text(body)


class RunRow(NamedTuple):
    """A run's row in a log.

    `head` is JSON text: what the run was started with (recipe, inputs, options), masked. `at` is JSON text: the run's
    position if it is not at the end of its last entry. `parent` is the run with which this one shares its first
    entries, up to number `shared`; it was forked after step `forked`. `writer` identifies the process that is writing
    the run.
    """

    run_id: str
    name: str
    recipe: str
    dialect: str
    fingerprint: str
    created: datetime
    head: str
    parent: str | None = None
    shared: int = 0
    forked: int | None = None
    status: str = "ready"
    steps: int = 0
    at: str | None = None
    updated: datetime | None = None
    writer: str | None = None

    @property
    def current_status(self) -> str:
        """The recorded status; "interrupted" if the run was running and its writer is gone."""
        return "interrupted" if self.status == "running" and self.writer is None else self.status

    def seal(self) -> RunRow:
        """Return this row with a checksum, in its head, of everything recorded when a run starts."""
        return self._replace(head=add_checksum(self.head, *self._list_checked_fields()))

    @property
    def checked(self) -> bool:
        """True if the run was started with checksums."""
        return has_checksum(self.head)

    def is_sound(self) -> bool:
        """Return True if the row is unchanged since the run started. Without a checksum, changes cannot be detected."""
        return is_intact(self.head, *self._list_checked_fields()) if self.checked else is_text(self.head)

    def _list_checked_fields(self) -> tuple[object, ...]:
        created = self.created.astimezone(UTC).isoformat(timespec="microseconds")
        fields = (self.run_id, self.name, self.recipe, self.dialect, self.fingerprint)
        return (*fields, created, self.parent, self.shared, self.forked)


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which runs of a log to return: those that match every field that is not None, newest first.

    `status` is a `current_status`; `since` and `until` are inclusive bounds of the creation time; `contains` is a
    substring of the id or the name. At most `limit` of the matching runs are returned, starting after the run `after`.
    """

    recipe: str | None = None
    fingerprint: str | None = None
    status: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    contains: str | None = None
    parent: str | None = None
    after: str | None = None
    limit: int | None = None

    def matches(self, row: RunRow) -> bool:
        """Return True if a run matches; `after` and `limit` do not apply to single runs."""
        return (
            self.recipe in (None, row.recipe)
            and self.fingerprint in (None, row.fingerprint)
            and self.status in (None, row.current_status)
            and (self.since is None or self.since <= row.created)
            and (self.until is None or row.created <= self.until)
            and (self.contains is None or self.contains in row.run_id or self.contains in row.name)
            and self.parent in (None, row.parent)
        )


EVERY_RUN: Final = RunQuery()


class EventLog(Protocol):
    """Storage of runs. Every change is atomic and survives the process that made it.

    All methods may be called from any thread, one at a time. A change that cannot be saved raises StoreError and leaves
    the log unchanged; it may be retried when the cause is gone.
    """

    @property
    def url(self) -> str:
        """The location, without a password."""
        ...

    def create(self, row: RunRow, entries: Sequence[Entry] = ()) -> None:
        """Create a run with its first entries, and claim it for this writer.

        Raises:
            StoreError: L412, a run with this id exists; or it cannot be saved.
        """
        ...

    def add(self, runs: Sequence[tuple[RunRow, Sequence[Entry]]]) -> None:
        """Add whole runs in one change, without a writer: all of them, or none.

        Raises:
            StoreError: L412, a run with one of these ids exists; or they cannot be saved.
        """
        ...

    def append(
        self, run_id: str, entries: Sequence[Entry], *, status: str | None = None, steps: int | None = None
    ) -> None:
        """Append entries to a run that this writer holds, and update its status and step count if passed.

        Claims the run first if no writer holds it. A failed call may be retried unchanged, or with more entries;
        entries that were stored despite the failure are not stored twice.

        Raises:
            StoreError: L411, another writer holds this run, or has written to it; L413, there is no such run; or it
                cannot be saved.
        """
        ...

    def update_run(
        self, run_id: str, *, status: str | None = None, steps: int | None = None, at: str | None = None
    ) -> None:
        """Update the state of a run; None means unchanged, an empty `at` clears it. Claim the run as `append` does.

        Raises:
            StoreError: L411, another writer holds this run; L413, there is no such run; or it cannot be saved.
        """
        ...

    def entries(self, run_id: str, after: int = 0, until: int | None = None) -> Iterator[Entry]:
        """Yield the entries of a run in order, those with `after` < seq <= `until`; shared ones come from its parent.

        Raises:
            StoreError: L413, there is no such run; or it cannot be read.
        """
        ...

    def last(self, run_id: str) -> int:
        """Return the number of a run's last entry; 0 if it has none.

        Raises:
            StoreError: L413, there is no such run; or it cannot be read.
        """
        ...

    def run(self, run_id: str | None = None) -> RunRow:
        """Return a run's row; without an id, that of the run written last.

        Raises:
            StoreError: L413, there is no such run, or no run at all.
        """
        ...

    def runs(self, query: RunQuery = EVERY_RUN) -> list[RunRow]:
        """Return the rows of the runs that match, newest first; by default, of all runs.

        Raises:
            StoreError: L413, there is no run `query.after`.
        """
        ...

    def claim(self, run_id: str, last: int | None = None, *, take_over: bool = False) -> None:
        """Claim a run for this writer, so that no other can write it. `append` and `update_run` do so, too.

        `last` is the number that its last entry must have. With `take_over`, the run is also claimed from a writer of
        which it is unknown whether it still exists.

        Raises:
            StoreError: L411, another writer holds this run, or has written to it; L413, there is no such run; or it
                cannot be saved.
        """
        ...

    def release(self, run_id: str) -> None:
        """Release a run held by this writer, so that others can write it.

        Raises:
            StoreError: this cannot be saved; it may be retried.
        """
        ...

    def checkpoint(self) -> None:
        """Complete the store's file, so that a copy of it is whole, and close connections that no claimed run needs."""
        ...

    def close(self) -> None:
        """Release all runs and close open connections. The log reopens itself when it is used again."""
        ...
