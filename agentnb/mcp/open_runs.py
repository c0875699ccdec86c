"""The runs that an assistant can list, and those that it has opened."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentnb.engine.persistence.event_log import RunQuery
from agentnb.errors import AgentNbError, ExecutionError, Problem, did_you_mean
from agentnb.recordings.formats import STORE, format_of
from agentnb.recordings.formats import open as open_run
from agentnb.secrets import Masking, masking_for
from agentnb.session.recording import Recording
from agentnb.session.run_list import list_sound_rows
from agentnb.session.state import get_state
from agentnb.store import open_log
from agentnb.text import safe_repr, safe_str

if TYPE_CHECKING:
    from agentnb.session import Session

MOST_OPEN: Final = 20
_SUFFIXES: Final = frozenset({".db", ".sqlite", ".sqlite3", ".json", ".jsonl"})
_MOST_FILES: Final = 200
_PAGE: Final = 50  # rows that are read from a store at a time
_KNOWN: Final = 200  # ids among which a similar one is looked for
_NAME: Final = 60  # characters of an open run's name: all open runs are in the first answer


class OpenRuns:
    """The runs of some stores, files and folders, and the open ones by their id; the least recently used is closed.

    Args:
        sources: stores, recordings, or folders with them.
        live: a session of this process; it is open from the start, and never closed.
        changes: whether runs may be changed; else stored runs are opened as recordings.
        options: how stored runs are opened to continue them: `recipe`, `llm`, `tools`, `answers`.
    """

    def __init__(self, sources: Sequence[str] = (), live: Session | None = None, *, changes: bool = False,
                 options: Mapping[str, Any] | None = None) -> None:  # fmt: skip
        self._places, self.live, self.changes = tuple(sources), live, changes
        self._options = dict(options or {})
        self._open: dict[str, Session] = {}  # the last one was used last
        if live is not None:
            self._open[live.run_id] = live

    def masking(self) -> Masking:
        """Return a context in which texts are masked by the secrets of the open runs."""
        return masking_for(*dict.fromkeys(get_state(session).run.tables.secrets for session in self._open.values()))

    # -- listed -------------------------------------------------------------------------------------------------------

    def rows(self, query: RunQuery) -> Iterator[dict[str, Any]]:
        """Yield a row per run that matches: the open ones first, then those of the places, the newest first.

        With `query.after`, the rows that follow the one of that id: a run of a store, else an open one.

        X523: there is no such run.

        Raises:
            ExecutionError: X523.
        """
        open_rows, sources, after_run = list(self._open_rows(query)), list(self._iter_sources()), query.after
        if after_run is not None:
            ids = [row["run"] for row in open_rows]
            stores = [at for at, source in enumerate(sources) if _has(source, after_run)]
            if stores:
                open_rows, sources = [], sources[stores[0] :]
            else:
                query = replace(query, after=None)
                if after_run in sources:
                    open_rows, sources = [], sources[sources.index(after_run) + 1 :]
                elif after_run in ids:
                    open_rows = open_rows[ids.index(after_run) + 1 :]
                else:
                    raise self._make_missing_run_error(after_run)
        yield from open_rows
        for source in sources:
            yield from self._iter_rows(source, query)
            query = replace(query, after=None)

    def _open_rows(self, query: RunQuery) -> Iterator[dict[str, Any]]:
        """Yield the rows of the open runs that match, the one used last first, and of the forks of the live one."""
        if query.since is not None or query.until is not None:
            return
        for name, session in reversed(self._open.items()):
            row = {"run": name, "name": safe_str(session.name, _NAME), "status": str(session.status),
                   "steps": len(session.trace.steps), "open": True,
                   **({"live": True} if session is self.live else {})}  # fmt: skip
            if _fits(query, session, row):
                yield row
        for session in self._iter_live_forks():
            row = {"run": session.run_id, "name": session.name, "status": str(session.status), "live": True}
            if session.run_id not in self._open and _fits(query, session, row):
                yield row

    def _iter_live_forks(self) -> Iterator[Session]:
        """Yield the forks of the live session, and theirs."""
        forks = [] if self.live is None else list(self.live.forks)
        for session in forks:
            if len(forks) < _MOST_FILES:
                forks += session.forks
            yield session

    def _iter_sources(self) -> Iterator[str]:
        """Yield the stores and files of the places."""
        for source in self._places:
            if "://" in source or not Path(source).is_dir():
                yield source
                continue
            paths = sorted(path for path in Path(source).iterdir() if path.suffix in _SUFFIXES and path.is_file())
            yield from map(str, paths[:_MOST_FILES])

    def _iter_rows(self, source: str, query: RunQuery) -> Iterator[dict[str, Any]]:
        """Yield the rows of a store's runs that match and are not open, page by page; or of a file, or a problem."""
        query = replace(query, limit=_PAGE)
        while True:
            try:
                kind = format_of(source)
                if kind != STORE:
                    if query == RunQuery(contains=query.contains, limit=_PAGE) and (query.contains or "") in source:
                        yield {"run": source, "format": kind}
                    return
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a damaged row, which says so when it is opened
                    rows = list_sound_rows(source, query)
            except AgentNbError as error:
                problem = error.problems[0] if error.problems else None
                yield {"run": source, "problem": str(error) if problem is None else f"{problem.code}: {problem.what}"}
                return
            for row in rows:
                if row.run_id in self._open:
                    continue
                parent = {} if row.parent is None else {"parent": row.parent, "forked": row.forked}
                yield {"run": row.run_id, "name": row.name, "status": row.current_status, "steps": row.steps,
                       "created": row.created.isoformat(timespec="seconds"), "store": source, **parent}  # fmt: skip
            if not rows:
                return
            query = replace(query, after=rows[-1].run_id)

    # -- open ---------------------------------------------------------------------------------------------------------

    def get(self, name: str) -> Session:
        """Return an open run by its id, or opened now; the one used last for an empty id.

        X523: there is no such run.

        Raises:
            ExecutionError: X523.
        """
        if not name and self._open:
            name = next(reversed(self._open))
        if name not in self._open:
            self._open_run(name)
        session = self._open[name] = self._open.pop(name)
        return session

    def add(self, session: Session) -> str:
        """Keep a session open that was made here, a fork; return its id."""
        self._open[session.run_id] = session
        self._close_oldest()
        return session.run_id

    def is_free(self, session: Session) -> bool:
        """Return True if moving a run and setting its breakpoints changes nothing that anybody else sees."""
        return isinstance(session, Recording)

    def close(self) -> None:
        """Close every run that was opened here."""
        for name in [name for name, session in self._open.items() if session is not self.live]:
            _close(self._open.pop(name))

    def _open_run(self, name: str) -> None:
        for session in self._iter_live_forks():
            if session.run_id == name:
                self.add(session)
                return
        for source in self._iter_sources() if name else ():
            if source == name or _has(source, name):
                self._open[name] = self._open_stored(source, None if source == name else name)
                self._close_oldest()
                return
        raise self._make_missing_run_error(name)

    def _make_missing_run_error(self, name: str) -> ExecutionError:
        known = [row["run"] for row in islice(self.rows(RunQuery()), _KNOWN)]
        which = f"there is no run {safe_repr(name, 100)}" if name else "no run is open"
        return ExecutionError(
            Problem("X523", which, "the runs of this server", "runs are opened by the ids that list_runs shows",
                    did_you_mean(name, known, "call list_runs"))
        )  # fmt: skip

    def _open_stored(self, source: str, run_id: str | None) -> Session:
        options = self._options if self.changes and run_id is not None and "recipe" in self._options else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # another version of the recipe: its Problems say so when it matters
            session = open_run(source, run_id, **options)
        if options or isinstance(session, Recording):
            return session
        with closing(session):  # the recording needs its history, not its store
            return _make_recording(session)

    def _close_oldest(self) -> None:
        for name in [name for name, session in self._open.items() if session is not self.live][: -MOST_OPEN or None]:
            _close(self._open.pop(name))


def _has(source: str, run_id: str) -> bool:
    """Return True if a place is a store that has this run."""
    try:
        return format_of(source) == STORE and open_log(source).run(run_id) is not None
    except AgentNbError:
        return False


def _fits(query: RunQuery, session: Session, row: Mapping[str, Any]) -> bool:
    """Return True if an open run matches the filters that apply to it."""
    return (
        query.recipe in (None, session.recipe.name)
        and query.status in (None, row["status"])
        and (query.contains is None or query.contains in row["run"] or query.contains in session.name)
    )


def _make_recording(session: Session) -> Session:
    """Return a stored run as a recording, whose `step` and `run` go through the record."""
    state, locked, ended = get_state(session), get_state(session).read_only_reason, str(session.status)
    assert locked is not None
    recording = Recording.of_run(state.run, session.name, session.run_id, locked, ended, inputs=session.inputs)
    recording.breakpoints.from_rows(session.breakpoints.to_rows())
    return recording


def _close(session: Session) -> None:
    close: Callable[[], None] = session.close
    try:
        close()
    except AgentNbError:  # it has no store, or is running; nothing is lost
        return


__all__ = ["MOST_OPEN", "OpenRuns"]
