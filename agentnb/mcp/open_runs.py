"""The runs that an assistant can list, and those that it has opened."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentnb.errors import AgentNbError, ExecutionError, Problem, did_you_mean
from agentnb.recordings.formats import STORE, format_of
from agentnb.recordings.formats import open as open_run
from agentnb.session.recording import Recording
from agentnb.session.reopen import runs
from agentnb.session.state import state_of
from agentnb.text import safe_repr

if TYPE_CHECKING:
    from agentnb.session import Session

MOST_OPEN: Final = 20
_SUFFIXES: Final = frozenset({".db", ".sqlite", ".sqlite3", ".json", ".jsonl"})
_MOST_FILES: Final = 200


class OpenRuns:
    """The runs of some stores, files and folders, and the open ones by their id; the least recently used is closed.

    Args:
        places: stores, recordings, or folders with them.
        live: a session of this process; it is open from the start, and never closed.
        changes: whether runs may be changed; else stored runs are opened as recordings.
        options: how stored runs are opened to continue them: `recipe`, `llm`, `tools`, `answers`.
    """

    def __init__(self, places: Sequence[str] = (), live: Session | None = None, *, changes: bool = False,
                 options: Mapping[str, Any] | None = None) -> None:  # fmt: skip
        self._places, self.live, self.changes = tuple(places), live, changes
        self._options = dict(options or {})
        self._open: dict[str, Session] = {}  # the last one was used last
        if live is not None:
            self._open[live.run_id] = live

    # -- listed -------------------------------------------------------------------------------------------------------

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row per run: the open ones first, then those of the places, the newest first."""
        for name, session in reversed(self._open.items()):
            yield {"run": name, "name": session.name, "status": str(session.status), "steps": len(session.trace.steps),
                   "open": True, **({"live": True} if session is self.live else {})}  # fmt: skip
        for session in self._live_forks():
            if session.run_id not in self._open:
                yield {"run": session.run_id, "name": session.name, "status": str(session.status), "live": True}
        for place in self._sources():
            for row in self._rows_of(place):
                if row["run"] not in self._open:
                    yield row

    def _live_forks(self) -> Iterator[Session]:
        """Yield the forks of the live session, and theirs."""
        found = [] if self.live is None else list(self.live.forks)
        for session in found:
            if len(found) < _MOST_FILES:
                found += session.forks
            yield session

    def _sources(self) -> Iterator[str]:
        """Yield the stores and files of the places."""
        for place in self._places:
            if "://" in place or not Path(place).is_dir():
                yield place
                continue
            found = sorted(path for path in Path(place).iterdir() if path.suffix in _SUFFIXES and path.is_file())
            yield from map(str, found[:_MOST_FILES])

    def _rows_of(self, place: str) -> Iterator[dict[str, Any]]:
        try:
            kind = format_of(place)
            if kind != STORE:
                yield {"run": place, "format": kind}
                return
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a damaged row, which says so when it is opened
                frame = runs(place)
        except AgentNbError as error:
            problem = error.problems[0] if error.problems else None
            yield {"run": place, "problem": str(error) if problem is None else f"{problem.code}: {problem.what}"}
            return
        for row in reversed(frame.to_dict("records")):
            parent = {} if not isinstance(row["parent"], str) else {"parent": row["parent"], "forked": row["forked"]}
            yield {"run": row["run_id"], "name": row["name"], "status": row["status"], "steps": row["steps"],
                   "created": row["created"].isoformat(timespec="seconds"), "store": place, **parent}  # fmt: skip

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
        known: list[str] = []
        for session in self._live_forks():
            if session.run_id == name:
                self.add(session)
                return
        for place in self._sources() if name else ():
            for row in self._rows_of(place):
                if row["run"] == name and "problem" not in row:
                    self._open[name] = self._opened(place, None if "format" in row else name)
                    self._close_oldest()
                    return
                known.append(row["run"])
        which = f"there is no run {safe_repr(name, 100)}" if name else "no run is open"
        raise ExecutionError(
            Problem("X523", which, "the runs of this server", "a run is opened by the id that list_runs shows",
                    did_you_mean(name, known, "call list_runs"))
        )  # fmt: skip

    def _opened(self, place: str, run_id: str | None) -> Session:
        options = self._options if self.changes and run_id is not None and "recipe" in self._options else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # another version of the recipe: its Problems say so when it matters
            session = open_run(place, run_id, **options)
        return session if options or isinstance(session, Recording) else _recording_of(session)

    def _close_oldest(self) -> None:
        for name in [name for name, session in self._open.items() if session is not self.live][: -MOST_OPEN or None]:
            _close(self._open.pop(name))


def _recording_of(session: Session) -> Session:
    """Return a stored run as a recording, whose `step` and `run` go through the record."""
    state, locked, ended = state_of(session), state_of(session).locked, str(session.status)
    assert locked is not None
    made = Recording.of_run(state.run, session.name, session.run_id, locked, ended, inputs=session.inputs)
    made.breakpoints.from_rows(session.breakpoints.to_rows())
    return made


def _close(session: Session) -> None:
    close: Callable[[], None] = session.close
    try:
        close()
    except AgentNbError:  # it has no store, or is running; nothing is lost
        return


__all__ = ["MOST_OPEN", "OpenRuns"]
