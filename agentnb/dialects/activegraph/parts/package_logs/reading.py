"""Read a run from a store that the activegraph package wrote: SQLite or PostgreSQL, archive included."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from agentnb.dialects.activegraph.parts.package_logs.records import LogEvent, LogRun, PackageLog, make_event_error
from agentnb.errors import Problem, StoreError, did_you_mean, with_article
from agentnb.store.other_tables import DatabaseReader, read_database
from agentnb.text import get_class_name

SCHEMA: Final = "1"  # the supported version of the package's tables
_EVENT: Final = ("id", "type", "actor", "payload", "frame_id", "caused_by", "timestamp")
_RUN: Final = ("run_id", "parent_run_id", "forked_at_event_id", "label", "created_at", "goal", "frame_id")
_ASKED: Final = {"events": {*_EVENT, "seq", "run_id"}, "runs": {*_RUN}, "meta": {"key", "value"}}
SNAPSHOT: Final = "runtime.snapshot"  # the type of the event that refers to a snapshot


def read_log(where: str | os.PathLike[str], run_id: str | None = None) -> PackageLog:
    """Return a run from its store; without an id, the run that was written last. The store is not changed.

    Raises:
        StoreError: L410, there is no store; L461, it is not a store of the package; L462, another version of the
            package wrote it; L463, an event cannot be read; L464, there is no such run; or the store cannot be read.
    """
    try:
        return read_database(where, partial(_log, run_id=run_id))
    except StoreError as error:
        if [problem.code for problem in error.problems] == ["L416"]:
            (problem,) = error.problems
            raise _make_store_error(problem.where, problem.why) from None
        raise


def read_runs(where: str | os.PathLike[str]) -> tuple[LogRun, ...]:
    """Return the runs of a store, oldest first.

    Raises:
        StoreError: as for `read_log`.
    """
    return read_database(where, lambda reader: tuple(run for run, _ in _list_runs(reader, _list_tables(reader))))


def _log(reader: DatabaseReader, run_id: str | None) -> PackageLog:
    tables = _list_tables(reader)
    stored_runs = _list_runs(reader, tables)
    runs = tuple(run for run, _ in stored_runs)
    run = _choose_run(reader.display_name, stored_runs, run_id)
    events = tuple(_read_events(reader, run.run_id, tables))
    return PackageLog(reader.display_name, run, runs, events, _find_snapshots(reader, events, tables))


# -- contents of the store -------------------------------------------------------------------------------------------


def _list_tables(reader: DatabaseReader) -> set[str]:
    """Return the names of the tables, after checking that they belong to the package.

    L462: another version of the activegraph package wrote this store.

    Raises:
        StoreError: L461, they do not belong to the package; L462, they have another version.
    """
    tables = reader.tables()
    for table, columns in _ASKED.items():
        missing = columns - reader.columns(table) if table in tables else {"*"}
        if missing:
            what = f"it has no table {table!r}" if missing == {"*"} else f"its table {table!r} lacks {sorted(missing)}"
            raise _make_store_error(reader.display_name, what)
    version = [value for (value,) in reader.rows("SELECT value FROM meta WHERE key = 'schema_version'")]
    if version not in ([], [SCHEMA]):
        raise StoreError(
            Problem("L462", "this store was written by another version of activegraph", reader.display_name,
                    f"its tables have version {version[0]}, and only {SCHEMA} is supported",
                    "install the newest agentnb, or convert the store to that version with `activegraph migrate`")
        )  # fmt: skip
    return tables


def _make_store_error(shown: str, why: str) -> StoreError:
    """L461: this is not a store of activegraph."""
    return StoreError(
        Problem("L461", "this is not a store of the activegraph package", shown, why,
                "pass the file or URL that its Runtime received as persist_to=; runs of agentnb open with nb.open")
    )  # fmt: skip


# -- runs ------------------------------------------------------------------------------------------------------------


def _list_runs(reader: DatabaseReader, tables: set[str]) -> list[tuple[LogRun, int]]:
    """Return each run with the number of its last event, including runs that have only events."""
    counts: dict[str, Counter[str]] = {"events": Counter(), "events_archive": Counter()}
    last: dict[str, int] = {}
    for table, count in counts.items():
        if table in tables:
            for run_id, number, seq in reader.rows(f"SELECT run_id, COUNT(*), MAX(seq) FROM {table} GROUP BY run_id"):  # noqa: S608  (a name of ours)
                count[run_id], last[run_id] = number, max(seq or 0, last.get(run_id, 0))
    rows = reader.rows(f"SELECT {', '.join(_RUN)} FROM runs ORDER BY created_at, run_id")  # noqa: S608  (names of ours)
    known = {row[0] for row in rows}
    rows += [(run_id, None, None, None, "", None, None) for run_id in last if run_id not in known]
    return [
        (
            LogRun(id, parent, at, label, _to_text(created), goal, frame, *(count[id] for count in counts.values())),
            last.get(id, 0),
        )
        for id, parent, at, label, created, goal, frame in rows
    ]


def _choose_run(shown: str, runs: Sequence[tuple[LogRun, int]], run_id: str | None) -> LogRun:
    """L464: the store has no such run, or no runs.

    Raises:
        StoreError: L464.
    """
    if run_id is None and runs:
        return max(runs, key=lambda row: row[1])[0]
    names = [run.run_id for run, _ in runs]
    if run_id in names:
        return runs[names.index(run_id)][0]
    what = "there is no run yet" if run_id is None else f"there is no run {run_id!r}"
    choices = ", ".join(f"{run.run_id!r}" + (f" ({run.label or run.goal})" if run.label or run.goal else "")
                     for run, _ in runs[-5:])  # fmt: skip
    why = (
        f"the runs of this store are: {choices}"
        if len(names) < 6
        else f"it has {len(names)} runs, the newest: {choices}"
    )
    raise StoreError(
        Problem("L464", what, shown, why if names else "this store has no run",
                did_you_mean(run_id or "", names, "leave run_id out for the run that was written last"))
    )  # fmt: skip


# -- events ----------------------------------------------------------------------------------------------------------


def _read_events(reader: DatabaseReader, run_id: str, tables: set[str]) -> Iterator[LogEvent]:
    """Yield the events of a run by number; an event in both the archive and the log is yielded once."""
    seen = set()
    for table in ("events_archive", "events"):
        if table not in tables:
            continue
        payload = "payload" if reader.kind == "sqlite" else "payload::text"
        columns = ", ".join(payload if name == "payload" else name for name in _EVENT)
        for row in reader.rows(f"SELECT {columns} FROM {table} WHERE run_id = ? ORDER BY seq", run_id):  # noqa: S608  (names of ours)
            if row[0] not in seen:
                seen.add(row[0])
                yield _parse_event(reader.display_name, run_id, row, archived=table == "events_archive")


def _parse_event(shown: str, run_id: str, row: tuple[Any, ...], *, archived: bool) -> LogEvent:
    id, type, actor, text, frame_id, caused_by, timestamp = row
    if not (isinstance(id, str) and isinstance(type, str)):
        raise make_event_error(shown, run_id, repr(id), "", "its id and its type are not strings")
    try:
        payload = json.loads(text)
    except ValueError as error:
        raise make_event_error(shown, run_id, repr(id), "payload", f"its payload is not JSON: {error}") from None
    except TypeError:
        raise make_event_error(
            shown, run_id, repr(id), "payload", f"its payload is {_describe_type(text)}, not JSON text"
        ) from None
    except RecursionError:  # the parser's own depth limit
        raise make_event_error(shown, run_id, repr(id), "payload", "its payload is nested too deeply") from None
    if not isinstance(payload, dict):
        raise make_event_error(
            shown, run_id, repr(id), "payload", f"its payload is {_describe_type(payload)}, not a mapping"
        )
    return LogEvent(id, type, actor, payload, frame_id, caused_by, _to_text(timestamp), archived)


def _describe_type(value: Any) -> str:
    return "null" if value is None else with_article(get_class_name(value))


def _to_text(value: Any) -> str:
    """Return a time as text (PostgreSQL returns a datetime)."""
    if isinstance(value, datetime):
        return value.isoformat()
    return "" if value is None else str(value)


def _find_snapshots(reader: DatabaseReader, events: Sequence[LogEvent], tables: set[str]) -> Mapping[str, str]:
    """Return the snapshots that represent earlier events of a run: hash -> text."""
    hashes = {str(event.payload.get("state_hash", "")) for event in events if event.type == SNAPSHOT}
    query = "SELECT state_hash, blob FROM snapshots WHERE state_hash = ?"
    rows = [row for name in hashes if "snapshots" in tables for row in reader.rows(query, name)]
    return {name: blob for name, blob in rows}  # noqa: C416  (rows are tuples of any length)


__all__ = ["SCHEMA", "SNAPSHOT", "read_log", "read_runs"]
