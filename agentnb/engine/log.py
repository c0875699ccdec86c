"""log: what keeps runs. An EventLog holds a row for each run, and a list of entries that only grows.

An entry is JSON text: what has happened since the entry before it (see `slices`). Nothing that was appended is ever
changed; only what a run's row says of where it stands (`status`, `steps`, `at`) is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol


class Entry(NamedTuple):
    """One entry of a run: `seq` counts from 1 within the run, `step` is its last step then, `body` is JSON text."""

    seq: int
    step: int
    body: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """What a log says of one run.

    `head` is JSON text: what the run was begun with (recipe, inputs, options), masked. `at` is JSON text: where the run
    stands, where that is not at the end of its last entry. `parent` is the run that this one shares its first entries
    with, up to number `shared`; it began after step `forked`. `writer` says who writes it at this moment.
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


class EventLog(Protocol):
    """Keeps runs. Every change is kept as a whole or not at all, and outlives the process that made it.

    All methods may be called from any thread, one at a time. A change that cannot be kept raises StoreError and leaves
    the log as it was; it may be tried again when the cause is gone.
    """

    @property
    def url(self) -> str:
        """Where it is, without a password."""
        ...

    def create(self, row: RunRow, entries: Sequence[Entry] = ()) -> None:
        """Begin a run, with its first entries, and claim it for this writer.

        Raises:
            StoreError: L412, there is a run of this id; or it cannot be kept.
        """
        ...

    def append(
        self, run_id: str, entries: Sequence[Entry], *, status: str | None = None, steps: int | None = None
    ) -> None:
        """Append entries to a run that this writer holds, and say how it stands where that is given.

        It claims the run first, where nobody holds it. What failed may be tried again as it was, or with more behind
        it: what has arrived without this writer's knowing is not kept twice.

        Raises:
            StoreError: L411, somebody else holds this run, or has written to it; L413, there is no such run; or it
                cannot be kept.
        """
        ...

    def tell(self, run_id: str, *, status: str | None = None, steps: int | None = None, at: str | None = None) -> None:
        """Say how a run stands; what is None stays, an empty `at` takes back what was said. It claims as `append` does.

        Raises:
            StoreError: L411, somebody else holds this run; L413, there is no such run; or it cannot be kept.
        """
        ...

    def entries(self, run_id: str, after: int = 0, until: int | None = None) -> Iterator[Entry]:
        """Return the entries of a run in order, those with `after` < seq <= `until`; those it shares are its parent's.

        Raises:
            StoreError: L413, there is no such run; or it cannot be read.
        """
        ...

    def last(self, run_id: str) -> int:
        """Return the number of a run's last entry; 0 where it has none.

        Raises:
            StoreError: L413, there is no such run; or it cannot be read.
        """
        ...

    def run(self, run_id: str | None = None) -> RunRow:
        """Return a run's row; without an id, that of the run that was written last.

        Raises:
            StoreError: L413, there is no such run, or none at all.
        """
        ...

    def runs(self) -> list[RunRow]:
        """Return the rows of all runs, the oldest first."""
        ...

    def release(self, run_id: str) -> None:
        """Let others write a run that this writer holds.

        Raises:
            StoreError: it cannot be said; it may be tried again.
        """
        ...

    def close(self) -> None:
        """Release every run and let go of what is open. It may be used again: it opens itself anew."""
        ...
