"""Read a run from a store that may be damaged: up to the first damaged or missing entry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agentnb.engine.persistence.event_log import Entry, EventLog, RunRow, is_sound
from agentnb.errors import Problem, StoreError

DAMAGED: Final = "L422"


class SoundEntries:
    """The entries of a run up to the first that is damaged or missing.

    After iteration, `damage` describes the entry that could not be read; None if all are intact.

    Args:
        until: the number of the last entry that belongs to the run; None for all.
    """

    def __init__(self, log: EventLog, row: RunRow, until: int | None = None) -> None:
        self.log, self.row, self.until = log, row, until
        self.damage: Exception | None = None
        self._last, self._step = 0, 0

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries in order.

        Raises:
            StoreError: the store cannot be read for another reason.
        """
        run_id, checked = self.row.run_id, self.row.checked
        for entry in self._iter_readable():
            if entry.seq != self._last + 1:
                break
            if not is_sound(run_id, entry, checked=checked):
                self.damage = ValueError(f"the checksum of entry {entry.seq} does not match")
                return
            self._last, self._step = entry.seq, entry.step
            yield entry
        if self.damage is None and self._last < (self.log.last(run_id) if self.until is None else self.until):
            self.damage = ValueError(f"entry {self._last + 1} is missing")

    def _iter_readable(self) -> Iterator[Entry]:
        """Yield the entries of the store in large chunks; one by one if a chunk cannot be read."""
        run_id, last_seq = self.row.run_id, 0
        try:
            for entry in self.log.entries(run_id, 0, self.until):
                last_seq = entry.seq
                yield entry
        except StoreError as error:
            if error.problems[0].code != DAMAGED:
                raise
        else:
            return
        while self.until is None or last_seq < self.until:
            try:
                entries = list(self.log.entries(run_id, last_seq, last_seq + 1))
            except StoreError as error:
                self.damage = error
                return
            if not entries:
                return
            yield entries[0]
            last_seq += 1

    def problem(self, row: RunRow) -> Problem:
        """Return the warning for a run that opens without its end; `row` belongs to the run, which may be a fork."""
        return Problem(
            "L435",
            f"run {row.run_id!r} is damaged and opens at step {self._step}",
            f"{self.log.url}, entry {self._last + 1} of run {self.row.run_id!r}",
            f"{str(self.damage).splitlines()[0]}; the store counts {row.steps} steps of this run",
            "restore the store from a backup; or continue from here with the recipe and save to another store: "
            "session.save('other.db')",
            "warning",
        )


__all__ = ["SoundEntries"]
