"""Where the runs of a sweep go, into a store or into Parquet files; and the table of them, which leaves memory free."""

from __future__ import annotations

import json
import os
import pickle
import tempfile
import weakref
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from agentnb.analysis.many_frames import ManyFrames
from agentnb.analysis.sweep_workers import Job, Result, row_of
from agentnb.engine.persistence.event_log import EventLog
from agentnb.errors import Problem, StoreError, needed
from agentnb.session.reopen import open_stored
from agentnb.store import MemoryLog
from agentnb.text import safe_repr, safe_str
from agentnb.trace.frames import NAMES

if TYPE_CHECKING:
    import pandas as pd

    from agentnb.session import Session

_IN_MEMORY: Final = 2**23  # bytes of rows that are held in memory; more are in a temporary file
_PART: Final = 1_000  # runs in a Parquet file
_JSON: Final = ("inputs", "outputs")  # columns that are JSON text in Parquet, because each run may have other keys


class Rows:
    """Rows of a table, one by one: in memory while they are few, then in a temporary file."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  (closed with this object)
        weakref.finalize(self, self._file.close)
        self._starts = array("q")

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        self._file.seek(0, os.SEEK_END)
        self._starts.append(self._file.tell())
        pickle.dump(dict(row), self._file, pickle.HIGHEST_PROTOCOL)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for start in self._starts:
            self._file.seek(start)
            yield pickle.load(self._file)  # noqa: S301  (this object has written it)

    def __len__(self) -> int:
        return len(self._starts)


class Results(ABC):
    """The results of a sweep as they arrive; as a context it writes what it still holds when it ends."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    @abstractmethod
    def known(self) -> set[str]:
        """Return the ids of the runs that were made before."""

    @abstractmethod
    def add_known(self, job: Job) -> None:
        """Add a run that was made before."""

    @abstractmethod
    def add(self, result: Result) -> None:
        """Add the result of a run."""

    @abstractmethod
    def rows(self, jobs: Mapping[str, Job]) -> list[dict[str, Any]]:
        """Return the rows of the table."""

    @abstractmethod
    def session(self, run_id: str, **options: Any) -> Session:
        """Return a run as a session.

        Raises:
            StoreError: nothing of it was stored.
        """

    @abstractmethod
    def sessions(self, jobs: Mapping[str, Job]) -> Iterator[Session]:
        """Yield the runs as read-only sessions."""

    @abstractmethod
    def frames(self, jobs: Mapping[str, Job]) -> Any:
        """Return the seven tables over all runs."""

    def __len__(self) -> int:
        return self.counts.total()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Write what is still held, also if the sweep is interrupted."""
        self.flush()

    @abstractmethod
    def flush(self) -> None:
        """Write what is still held."""


class Stored(Results):
    """Results in an event log; `resumes`: the runs that it has already are not made again."""

    def __init__(self, log: EventLog, *, resumes: bool) -> None:
        super().__init__()
        self.log, self._resumes, self._rows = log, resumes, Rows()

    def known(self) -> set[str]:
        """Return the ids of the runs in the store; none if it does not exist yet."""
        if not self._resumes:
            return set()
        try:
            return {row.run_id for row in self.log.runs()}
        except StoreError as error:
            if error.problems[0].code != "L410":
                raise
            return set()

    def add_known(self, job: Job) -> None:
        """Add a run that the store has."""
        session = open_stored(self.log, job.run_id)
        status, problem = self.log.run(job.run_id).status, session.error
        self._note(row_of(job, session, status, None if problem is None else problem.what))

    def add(self, result: Result) -> None:
        """Add the result of a run, and store it."""
        self._note(result.row)
        if result.kept is not None:
            kept, entries = result.kept
            self.log.create(replace(kept, writer=None, status=result.row["status"], steps=result.row["steps"]), entries)
            self.log.release(kept.run_id)

    def flush(self) -> None:
        """Do nothing: each run is stored as it arrives."""

    def _note(self, row: dict[str, Any]) -> None:
        self.counts[row["status"]] += 1
        self._rows.add(row)

    def rows(self, jobs: Mapping[str, Job]) -> list[dict[str, Any]]:
        """Return the rows of the table."""
        return list(self._rows)

    def session(self, run_id: str, **options: Any) -> Session:
        """Return a run as a session, at its end.

        Raises:
            StoreError: L413, there is no such run, or nothing of it was stored.
        """
        return open_stored(self.log, run_id, **options)

    def sessions(self, jobs: Mapping[str, Job]) -> Iterator[Session]:
        """Yield every stored run, in the order of the table."""
        stored = {row.run_id for row in self.log.runs()}
        for run_id in jobs:
            if run_id in stored:
                yield open_stored(self.log, run_id)

    def frames(self, jobs: Mapping[str, Job]) -> ManyFrames:
        """Return the seven tables over all runs."""
        return ManyFrames(self.sessions(jobs))


class Parts(Results):
    """Results in a folder: `runs` and the seven frames are subfolders, each with a Parquet file for every 1,000 runs.

    The file of `runs` is written last and renamed into place: runs are known if all of their tables are written.
    """

    def __init__(self, folder: str | os.PathLike[str], columns: Mapping[str, Any]) -> None:
        super().__init__()
        with needed("pyarrow", "parquet", "nb.sweep(parquet=...)"):
            import pyarrow as pa  # noqa: F401  (pandas calls it)
        self.folder, self._columns = Path(folder), columns
        self._held: list[Result] = []
        self._next = 1 + max((int(path.stem.rpartition("-")[2]) for path in self._files("runs")), default=0)

    def _files(self, table: str) -> list[Path]:
        return sorted((self.folder / table).glob("part-*.parquet"))

    def known(self) -> set[str]:
        """Return the ids of the runs in the folder."""
        return {run_id for path in self._files("runs") for run_id in self._read(path)["run_id"]}

    def add_known(self, job: Job) -> None:
        """Count a run that the folder has."""
        self.counts["known"] += 1

    def add(self, result: Result) -> None:
        """Add the result of a run; write a file if there are enough."""
        self.counts[result.row["status"]] += 1
        self._held.append(result)
        if len(self._held) >= _PART:
            self.flush()

    def flush(self) -> None:
        """Write the runs that are held as one more file of each table."""
        if not self._held:
            return
        log = MemoryLog()
        for kept, entries in filter(None, (result.kept for result in self._held)):
            log.create(replace(kept, writer=None), entries)
            log.release(kept.run_id)
        many = ManyFrames(open_stored(log, row.run_id) for row in log.runs())
        name = f"part-{self._next:06d}.parquet"
        for table in NAMES:
            self._put(many[table], table, name)
        rows = [result.row | {key: json.dumps(result.row[key], default=safe_repr) for key in _JSON}
                for result in self._held]  # fmt: skip
        import pandas as pd

        self._put(pd.DataFrame(rows), "runs", name)
        self._next += 1
        self._held = []

    def _put(self, frame: pd.DataFrame, table: str, name: str) -> None:
        place = self.folder / table
        place.mkdir(parents=True, exist_ok=True)
        frame.to_parquet(place / f".{name}", index=False)
        (place / f".{name}").replace(place / name)

    def _read(self, path: Path) -> pd.DataFrame:
        """Return the table in a file.

        A114: a file of a sweep cannot be read.

        Raises:
            StoreError: A114, it is no Parquet file of a sweep.
        """
        import pandas as pd

        try:
            return pd.read_parquet(path)
        except Exception as error:
            raise StoreError(
                Problem("A114", f"{path.name} cannot be read", str(path),
                        f"{type(error).__name__}: {safe_str(error, 300)}", "remove the file: its runs are made again")
            ) from error  # fmt: skip

    def rows(self, jobs: Mapping[str, Job]) -> list[dict[str, Any]]:
        """Return the rows of the runs of this sweep, which may be fewer than the folder has."""
        found = []
        for path in self._files("runs"):
            for row in self._read(path).to_dict("records"):
                job = jobs.get(row["run_id"])
                if job is not None:
                    own = {str(key): None if value != value else value for key, value in row.items()}  # noqa: PLR0124
                    found.append({**own, **{key: json.loads(str(own[key])) for key in _JSON}, "number": job.number})
        return found

    def session(self, run_id: str, **options: Any) -> Session:
        """Raise: tables are no sessions.

        L413: nothing of a run was stored.
        """
        raise StoreError(
            Problem("L413", f"run {safe_repr(run_id)} is not stored as a run", str(self.folder),
                    "Parquet files hold the tables of runs, and not the runs", "sweep with store= to open them again")
        )  # fmt: skip

    def sessions(self, jobs: Mapping[str, Job]) -> Iterator[Session]:
        """Raise: tables are no sessions."""
        for run_id in jobs:
            yield self.session(run_id)

    def frames(self, jobs: Mapping[str, Job]) -> PartFrames:
        """Return the seven tables in the folder."""
        return PartFrames(self.folder)


class PartFrames:
    """The seven tables of a folder of Parquet files, `frames.steps` or `frames["steps"]`, each read when asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, name: str) -> pd.DataFrame:
        import pandas as pd

        return pd.read_parquet(self._folder / name)

    def __getattr__(self, name: str) -> pd.DataFrame:
        if name not in NAMES:
            raise AttributeError(name)
        return self[name]

    def __dir__(self) -> list[str]:
        return list(NAMES)

    def __repr__(self) -> str:
        """Return the names, without reading a table."""
        return f"<frames in {safe_str(self._folder, 200)}: {', '.join(NAMES)}>"


__all__ = ["PartFrames", "Parts", "Results", "Rows", "Stored"]
