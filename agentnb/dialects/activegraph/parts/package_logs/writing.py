"""Export a run as a log of the activegraph package, in a store that its Runtime.load opens."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Protocol

from agentnb.board.masking import mask_value
from agentnb.dialects.activegraph.parts.events import to_event
from agentnb.dialects.activegraph.parts.package_logs.reading import SCHEMA, SNAPSHOT
from agentnb.dialects.activegraph.parts.package_logs.records import EPOCH, LogEvent, LogRun, PackageLog, parse_time
from agentnb.dialects.activegraph.parts.package_logs.session import ActiveGraphRun
from agentnb.errors import Problem, StoreError
from agentnb.secrets import masking_for
from agentnb.session.session import Session
from agentnb.session.state import get_state
from agentnb.store.other_tables import DatabaseWriter, write_for

_OURS: Final = {"events", "runs", "meta"}
# The types of integers, JSON and times in each database.
_TYPES: Final = {
    "sqlite": ("INTEGER PRIMARY KEY AUTOINCREMENT", "TEXT", "TEXT"),
    "postgresql": ("BIGSERIAL PRIMARY KEY", "JSONB", "TIMESTAMPTZ"),
}
# Files of older versions may lack them.
_ARCHIVE: Final = (
    """CREATE TABLE IF NOT EXISTS events_archive (seq INTEGER, id TEXT NOT NULL, type TEXT NOT NULL, actor TEXT,
    payload TEXT NOT NULL, frame_id TEXT, caused_by TEXT, timestamp TEXT NOT NULL, run_id TEXT NOT NULL,
    archived_at TEXT NOT NULL, UNIQUE(id, run_id))""",
    "CREATE INDEX IF NOT EXISTS idx_archive_run ON events_archive(run_id, seq)",
    "CREATE TABLE IF NOT EXISTS snapshots (state_hash TEXT PRIMARY KEY, blob TEXT NOT NULL, created_at TEXT NOT NULL)",
)
_LAST: Final = "SELECT COALESCE(MAX(seq), 0) FROM (SELECT seq FROM events UNION ALL SELECT seq FROM events_archive)"
_LAST_EVENT: Final = "SELECT COALESCE(MAX(seq), 0) FROM events"
_ADD: Final = """INSERT INTO events (id, type, actor, payload, frame_id, caused_by, timestamp, run_id, seq)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_ADD_ARCHIVED: Final = """INSERT INTO events_archive (id, type, actor, payload, frame_id, caused_by, timestamp, run_id,
    seq, archived_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_ADD_ON_SERVER: Final = """INSERT INTO events (id, type, actor, payload, frame_id, caused_by, timestamp, run_id)
    VALUES (?, ?, ?, ?::jsonb, ?, ?, ?::timestamptz, ?)"""
_ADD_RUN: Final = """INSERT INTO runs (run_id, parent_run_id, forked_at_event_id, label, created_at, goal, frame_id)
    VALUES (?, ?, ?, ?, ?, ?, ?)"""
_ADD_STATE: Final = "INSERT OR IGNORE INTO snapshots VALUES (?, ?, ?)"


class HasSession(Protocol):
    """An object with a session: a Runtime."""

    @property
    def session(self) -> Session:
        """The session of its run."""
        ...


def to_activegraph(session: Session | HasSession, where: str | os.PathLike[str], run_id: str | None = None) -> str:
    """Write the run of a session or a Runtime to a store that the package's `Runtime.load` opens; return its location.

    The events up to the session's current step are written; from a log that `nb.open_activegraph` opened, all events
    are written unchanged. Secrets are masked, as in every export. A run is added to an existing store of the package.

    Args:
        run_id: the id of the run in the store; default: its own.

    Raises:
        StoreError: L461, the file belongs to another program; L465, the store already has a run with this id; L466, two
            events have the same id; L467, a server cannot store the state that the run begins with; or the store cannot
            be written.
    """
    source = session if isinstance(session, Session) else session.session
    with masking_for(get_state(source).run.tables.secrets):
        return write_log(source.package_log if isinstance(source, ActiveGraphRun) else log_of(source), where, run_id)


def log_of(session: Session) -> PackageLog:
    """Return the events of a session up to its current step as a log of the package."""
    log_events = [to_event(event) for event in get_state(session).run.events()]
    events = tuple(
        LogEvent(event.id, event.type, event.actor, event.payload, event.frame_id, event.caused_by, event.timestamp)
        for event in log_events
    )
    goal = next((event.payload.get("goal") for event in events if event.type == "goal.created"), None)
    frame = next((event.frame_id for event in events if event.frame_id), None)
    start_time = next((event.timestamp for event in events if event.timestamp), "")
    run = LogRun(session.run_id, None, None, None, start_time, None if goal is None else str(goal), frame, len(events))
    return PackageLog(f"session {session.name!r}", run, (run,), events, {})


def write_log(log: PackageLog, where: str | os.PathLike[str], run_id: str | None = None) -> str:
    """Write a log to a store of the package; return its location.

    L466: two events of a run have the same id.

    Raises:
        StoreError: as for `to_activegraph`.
    """
    twice = [id for id, count in Counter(event.id for event in log.events).items() if count > 1]
    if twice:
        raise StoreError(
            Problem("L466", f"{twice[0]!r} is the id of more than one event", log.display_name,
                    "in a log of the activegraph package an id names one event of its run", "use unique event ids")
        )  # fmt: skip
    masked = _mask(log._replace(run=log.run._replace(run_id=run_id or log.run.run_id)))
    return write_for(where, partial(_write, log=masked))


def _write(change: DatabaseWriter, log: PackageLog) -> None:
    _create_tables(change)
    run, now = log.run, datetime.now(UTC).isoformat(timespec="seconds")
    if change.rows("SELECT 1 FROM runs WHERE run_id = ?", run.run_id):
        raise StoreError(
            Problem("L465", f"this store has a run {run.run_id!r} already", change.display_name,
                    "each run id can be written once",
                    "use another id, to_activegraph(path, run_id=...), or use another store")
        )  # fmt: skip
    if change.kind == "sqlite":
        _write_to_file(change, log, now)
    else:
        _write_to_server(change, log)
    created = run.created if change.kind == "sqlite" or parse_time(run.created) else ""
    change.do(_ADD_RUN, run.run_id, run.parent, run.forked_at, run.label, created or now, run.goal, run.frame_id)


def _write_to_file(change: DatabaseWriter, log: PackageLog, now: str) -> None:
    for statement in _ARCHIVE:
        change.do(statement)
    ((last,),) = change.rows(_LAST)
    rows = [(*_make_row(log.run.run_id, event), seq) for seq, event in enumerate(log.events, last + 1)]
    archived = [event.archived for event in log.events]
    change.execute_many(_ADD_ARCHIVED, [(*row, now) for row, is_old in zip(rows, archived, strict=True) if is_old])
    change.execute_many(_ADD, [row for row, is_old in zip(rows, archived, strict=True) if not is_old])
    change.execute_many(_ADD_STATE, [(name, text, now) for name, text in log.snapshots.items()])


def _write_to_server(change: DatabaseWriter, log: PackageLog) -> None:
    """Write the events to a server, for which the package has no archive.

    L467: a run that starts with a snapshot cannot be stored on a server.

    Raises:
        StoreError: L467.
    """
    if log.events and log.events[0].type == SNAPSHOT:
        raise StoreError(
            Problem("L467", f"run {log.run.run_id!r} starts with a snapshot", change.display_name,
                    "on a PostgreSQL server the package cannot store snapshots", "write it to a file: run.db")
        )  # fmt: skip
    rows = [_make_row(log.run.run_id, event) for event in log.events]
    last = EPOCH
    for at, row in enumerate(rows):
        last = parse_time(row[6]) or last  # a server accepts only valid times
        rows[at] = (*row[:6], last.isoformat(), row[7])
    change.execute_many(_ADD_ON_SERVER, rows)


def append_events(change: DatabaseWriter, run_id: str, last: str | None, events: Sequence[LogEvent]) -> None:
    """Append events to a run of a store; `last` is the expected id of its last event.

    L469: another program has written this run since.

    Raises:
        StoreError: L469.
    """
    rows = change.rows("SELECT id FROM events WHERE run_id = ? ORDER BY seq DESC LIMIT 1", run_id)
    if last is not None and rows and rows[0][0] != last:
        raise StoreError(
            Problem("L469", f"another program has written run {run_id!r}", change.display_name,
                    f"its last event should be {last!r}, but is {rows[0][0]!r}",
                    "load the run again and continue there")
        )  # fmt: skip
    if change.kind == "sqlite":
        ((seq,),) = change.rows(_LAST_EVENT if "events_archive" not in change.tables() else _LAST)
        change.execute_many(_ADD, [(*_make_row(run_id, event), number) for number, event in enumerate(events, seq + 1)])
    else:
        change.execute_many(_ADD_ON_SERVER, [_make_row(run_id, event) for event in events])


def _make_row(run_id: str, event: LogEvent) -> tuple[Any, ...]:
    payload = json.dumps(event.payload)
    fields = (event.id, event.type, event.actor, payload, event.frame_id, event.caused_by, event.timestamp)
    return (*fields, run_id)


def _create_tables(change: DatabaseWriter) -> None:
    """Create missing tables.

    Raises:
        StoreError: L461, the existing tables do not belong to the package.
    """
    tables = change.tables()
    if not (tables & _OURS if change.kind == "postgresql" else tables):
        for statement in _make_table_statements(*_TYPES[change.kind]):
            change.do(statement)
        change.do("INSERT INTO meta VALUES ('schema_version', ?)", SCHEMA)
        return
    query = "SELECT value FROM meta WHERE key = 'schema_version'"
    if not tables >= _OURS or change.rows(query) != [(SCHEMA,)]:
        raise StoreError(
            Problem("L461", "this is not a store of the activegraph package", change.display_name,
                    "it belongs to another program, or its tables have another version",
                    "use a path that does not exist yet")
        )  # fmt: skip


def _make_table_statements(count: str, text: str, time: str) -> tuple[str, ...]:
    return (
        f"""CREATE TABLE events (seq {count}, id TEXT NOT NULL, type TEXT NOT NULL, actor TEXT, payload {text} NOT NULL,
        frame_id TEXT, caused_by TEXT, timestamp {time} NOT NULL, run_id TEXT NOT NULL, UNIQUE(id, run_id))""",
        "CREATE INDEX idx_events_run ON events(run_id, seq)",
        "CREATE INDEX idx_events_type ON events(type)",
        f"""CREATE TABLE runs (run_id TEXT PRIMARY KEY, parent_run_id TEXT, forked_at_event_id TEXT, label TEXT,
        created_at {time} NOT NULL, goal TEXT, frame_id TEXT)""",
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    )


# -- masking ---------------------------------------------------------------------------------------------------------


def _mask(log: PackageLog) -> PackageLog:
    """Return a log with secrets masked; a snapshot is identified by the hash of the masked state."""
    names: dict[str, str] = {}
    snapshots = {}
    for name, text in log.snapshots.items():
        state = json.loads(text)
        masked_state = mask_value(state)
        masked = text if masked_state == state else json.dumps(masked_state, sort_keys=True, separators=(",", ":"))
        names[name] = name if masked is text else f"sha256:{hashlib.sha256(masked.encode()).hexdigest()}"
        snapshots[names[name]] = masked
    events = tuple(event._replace(payload=_rename_states(mask_value(event.payload), names)) for event in log.events)
    fields: dict[str, Any] = {
        name: mask_value(value) for name, value in log.run._asdict().items() if isinstance(value, str)
    }
    return log._replace(run=log.run._replace(**fields), events=events, snapshots=snapshots)


def _rename_states(payload: Any, names: Mapping[str, str]) -> Any:
    new_hash = names.get(str(payload.get("state_hash"))) if names else None
    return payload if new_hash is None else {**payload, "state_hash": new_hash}


__all__ = ["append_events", "log_of", "to_activegraph", "write_log"]
