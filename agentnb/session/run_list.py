"""The list of runs in a store: `nb.runs`, its filters and its pages."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any, Final, get_args

from agentnb.arguments import plain_arguments
from agentnb.engine.persistence.event_log import EventLog, RunQuery, RunRow
from agentnb.engine.persistence.open_journals import flush_all
from agentnb.errors import Problem, StoreError, did_you_mean, warn_caller, with_article
from agentnb.session.status import StatusWord
from agentnb.store import open_log
from agentnb.store.database_errors import make_damaged_row_problem
from agentnb.text import get_class_name, safe_repr

if TYPE_CHECKING:
    import pandas as pd

COLUMNS: Final = {
    "run_id": "object", "name": "object", "recipe": "object", "dialect": "object", "status": "object", "steps": "int64",
    "created": "datetime64[ns, UTC]", "updated": "datetime64[ns, UTC]", "parent": "string", "forked": "Int64",
    "writer": "string", "fingerprint": "object",
}  # fmt: skip
STATUSES: Final = (*get_args(StatusWord), "interrupted")


@plain_arguments
def runs(
    where: str | os.PathLike[str] | EventLog,
    *,
    recipe: str | None = None,
    fingerprint: str | None = None,
    status: str | None = None,
    since: Any = None,
    until: Any = None,
    contains: str | None = None,
    limit: int | None = None,
    after: str | None = None,
) -> pd.DataFrame:
    """Return the runs in a store, one row per run, the newest first.

    `status` is the last one recorded; `interrupted` if it was running and its writer is gone. `parent` and `forked` are
    the run and the step from which a fork began. `writer` is the current writer.

    Args:
        where: a path, a URL, or an EventLog.
        recipe: only runs of the recipe of this name.
        fingerprint: only runs of the recipe with this fingerprint: this version of it.
        status: only runs of this status.
        since: only runs created then or later: a datetime, a date, or text in ISO format; without a zone it is UTC.
        until: only runs created then or earlier; a date includes the whole day.
        contains: only runs whose id or name contains this text.
        limit: the most rows.
        after: the id of a run: only runs listed after it. The next page begins after the last row of this one.

    Raises:
        StoreError: L546 to L548, an argument makes no sense; L413, there is no run `after`; there is no such store, or
            it cannot be read.

    Example:
        >>> page = nb.runs("runs.db", status="failed", since="2026-01-01", limit=20)  # doctest: +SKIP
        >>> nb.runs("runs.db", status="failed", after=page["run_id"].iloc[-1], limit=20)  # doctest: +SKIP
    """
    from agentnb.trace.frames import make_table

    query = run_query(recipe, fingerprint, status, since, until, contains, limit, after)
    return make_table([_format_row(row) for row in list_sound_rows(where, query)], COLUMNS)


def run_query(
    recipe: str | None = None,
    fingerprint: str | None = None,
    status: str | None = None,
    since: Any = None,
    until: Any = None,
    contains: str | None = None,
    limit: int | None = None,
    after: str | None = None,
) -> RunQuery:
    """Return the query with the arguments of `runs`, checked.

    Raises:
        StoreError: L546 to L548, an argument makes no sense.
    """
    first, last = _convert_period(since, until)
    return RunQuery(
        recipe, fingerprint, _convert_status(status), first, last, contains, after=after, limit=_convert_limit(limit)
    )


def list_sound_rows(where: str | os.PathLike[str] | EventLog, query: RunQuery) -> list[RunRow]:
    """Return the rows of a store that match a query and are not damaged; a warning names those that are."""
    flush_all()
    log = open_log(where)
    sound = []
    for row in log.runs(query):
        if row.is_sound():
            sound.append(row)
        else:
            warn_caller(str(make_damaged_row_problem(log.url, f"run {row.run_id!r}")))
    return sound


def _format_row(row: RunRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in COLUMNS} | {"status": row.current_status}


def _convert_status(word: str | None) -> str | None:
    """Return a status.

    L546: no run has such a status.

    Raises:
        StoreError: L546.
    """
    if word is not None and word not in STATUSES:
        raise StoreError(
            Problem("L546", f"{safe_repr(word, 100)} is not a run status", "status",
                    f"a run is one of: {', '.join(STATUSES)}", did_you_mean(str(word), STATUSES, "use one of them"))
        )  # fmt: skip
    return word


def _convert_period(since: Any, until: Any) -> tuple[datetime | None, datetime | None]:
    """Return the first and the last moment of a period.

    L547: a period is not readable, or ends before it begins.

    Raises:
        StoreError: L547.
    """
    first, last = _convert_moment("since", since, time.min), _convert_moment("until", until, time.max)
    if first is not None and last is not None and first > last:
        raise StoreError(
            Problem("L547", "the period ends before it starts", "since, until",
                    f"since is {first.isoformat()}, until is {last.isoformat()}", "swap them")
        )  # fmt: skip
    return first, last


def _convert_moment(name: str, value: Any, of_day: time) -> datetime | None:
    """Return a time in UTC; of a date, the first or the last moment of that day."""
    if value is None:
        return None
    try:
        if isinstance(value, str):
            text = str.strip(value)
            value = date.fromisoformat(text) if len(text) <= len("2026-01-01") else datetime.fromisoformat(text)
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime.combine(value, of_day)
        if isinstance(value, datetime) and value == value:  # noqa: PLR0124  (pandas.NaT is a datetime, equal to nothing)
            zoned = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            return datetime.fromtimestamp(0, UTC) + (zoned - datetime.fromtimestamp(0, UTC))
        why = f"{with_article(get_class_name(value))} is not a time"
    except (ValueError, OverflowError) as error:
        why = str(error)
    raise StoreError(
        Problem("L547", f"{name}={safe_repr(value, 100)} is not a time", name, why,
                "pass a datetime, a date, or text such as '2026-01-31' or '2026-01-31T18:30+01:00'")
    )  # fmt: skip


def _convert_limit(count: int | None) -> int | None:
    """Return the most rows.

    L548: a limit is not a number of rows.

    Raises:
        StoreError: L548.
    """
    if count is None or (type(count) is int and 0 < count < 2**31):
        return count
    raise StoreError(
        Problem("L548", f"limit={safe_repr(count, 100)} is not a number of rows", "limit",
                "it is a positive integer", "leave it out to list every run")
    )  # fmt: skip


__all__ = ["STATUSES", "list_sound_rows", "run_query", "runs"]
