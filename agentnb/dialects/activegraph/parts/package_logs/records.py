"""The contents of a log of the activegraph package as plain values: an event, a run, and a complete log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from agentnb.errors import Problem, StoreError

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class LogEvent(NamedTuple):
    """One event as the package stores it. `archived` is True if it is in the store's archive."""

    id: str
    type: str
    actor: str | None
    payload: Mapping[str, Any]
    frame_id: str | None
    caused_by: str | None
    timestamp: str
    archived: bool = False


class LogRun(NamedTuple):
    """A run as its store describes it: its parent and fork event if it is a fork, and the number of its events."""

    run_id: str
    parent: str | None
    forked_at: str | None
    label: str | None
    created: str
    goal: str | None
    frame_id: str | None
    events: int = 0
    archived: int = 0


class PackageLog(NamedTuple):
    """One run of a store with all its events, archived ones first; `runs` are all runs of that store.

    `snapshots` are the states, as JSON text, that represent events no longer in the store: hash -> text.
    """

    display_name: str
    run: LogRun
    runs: tuple[LogRun, ...]
    events: tuple[LogEvent, ...]
    snapshots: Mapping[str, str]


def make_event_error(shown: str, run_id: str, event: str, path: str, why: str) -> StoreError:
    """L463: an event of the log does not fit its type."""
    where = f"{shown}, run {run_id!r}, event {event}" + (f", {path}" if path else "")
    return StoreError(
        Problem("L463", f"event {event} cannot be read", where, why,
                "open another run of the store, or repair this row in a copy of the store")
    )  # fmt: skip


def parse_time(text: str) -> datetime | None:
    """Parse a time as the package writes it; None if the text is not a time."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


__all__ = ["EPOCH", "LogEvent", "LogRun", "PackageLog", "make_event_error", "parse_time"]
