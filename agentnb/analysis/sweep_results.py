"""Where the runs of a sweep go: into a store or into Parquet files; and their table, which is kept out of memory."""

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
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from agentnb.analysis.many_frames import ManyFrames
from agentnb.analysis.sweep_workers import Chunk, PackedRecords, Record, make_row
from agentnb.engine.persistence.event_log import EventLog
from agentnb.errors import Problem, StoreError, require_library
from agentnb.session.reopen import open_stored
from agentnb.store import MemoryLog
from agentnb.text import safe_repr, safe_str
from agentnb.trace.frames import NAMES

if TYPE_CHECKING:
    import pandas as pd

    from agentnb.analysis.sweep_jobs import Jobs
    from agentnb.session import Session

_IN_MEMORY: Final = 2**23  # bytes of rows that are kept in memory; further rows go to a temporary file
_CHUNKS_AT_ONCE: Final = 8  # chunks whose records are in memory while all runs are read in order
_PART: Final = 1_000  # minimum number of runs in a Parquet file
_JSON: Final = ("inputs", "outputs")  # columns that are JSON text in Parquet, because each run may have other keys


class Blobs:
    """Pickled objects in the order in which they were added: in memory while they are few, then in a temporary file."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  (closed with this object)
        weakref.finalize(self, self._file.close)
        self._starts = array("q")

    def add(self, blob: bytes) -> None:
        """Add an object's pickle."""
        self._file.seek(0, os.SEEK_END)
        self._starts.append(self._file.tell())
        self._file.write(blob)

    def __getitem__(self, index: int) -> Any:
        self._file.seek(self._starts[index])
        return pickle.load(self._file)  # noqa: S301  (this process or one of its workers has written it)

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(len(self)))

    def __len__(self) -> int:
        return len(self._starts)


class Results(ABC):
    """The results of a sweep as they arrive. A context manager, which writes unwritten results at its end."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def load_run_ids(self) -> Mapping[str, str]:
        """Return the runs of an earlier, interrupted sweep: run id -> status."""
        return {}

    def add_known(self, run_id: str, status: str) -> None:
        """Add a run of an earlier, interrupted sweep."""
        self.counts[status] += 1

    def add(self, chunk: Chunk) -> None:
        """Add the results of some runs."""
        self.counts.update(chunk.statuses)

    @abstractmethod
    def rows(self, jobs: Jobs) -> list[dict[str, Any]]:
        """Return the rows of the table."""

    @abstractmethod
    def session(self, run_id: str, **options: Any) -> Session:
        """Return a run as a session.

        Raises:
            StoreError: nothing of it was stored.
        """

    @abstractmethod
    def sessions(self, jobs: Jobs) -> Iterator[Session]:
        """Yield the runs as read-only sessions."""

    def frames(self, jobs: Jobs) -> Any:
        """Return the seven tables over all runs."""
        return ManyFrames(self.sessions(jobs))

    def __len__(self) -> int:
        return self.counts.total()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:  # noqa: B027  (most hold nothing that is not written)
        """Write unwritten results, even if the sweep is interrupted."""


class ChunkResults(Results):
    """Results of a sweep without a store: chunks as the workers sent them, in memory or in a temporary file."""

    def __init__(self) -> None:
        super().__init__()
        self._rows, self._records = Blobs(), Blobs()
        self._numbers: list[array[int]] = []  # by chunk

    def add(self, chunk: Chunk) -> None:
        """Keep the results of some runs."""
        super().add(chunk)
        self._rows.add(chunk.rows)
        self._records.add(chunk.records)
        self._numbers.append(array("q", chunk.numbers))

    def rows(self, jobs: Jobs) -> list[dict[str, Any]]:
        """Return the rows of the table."""
        return list(chain.from_iterable(self._rows))

    def session(self, run_id: str, **options: Any) -> Session:
        """Return a run as a session, at its end.

        Raises:
            StoreError: L413, there is no such run, or nothing of it could be stored.
        """
        log = MemoryLog()
        for record in chain.from_iterable(map(PackedRecords.unpack, self._records)):
            if record is not None and record[0].run_id == run_id:
                log.add([record])
                break
        return open_stored(log, run_id, **options)

    def sessions(self, jobs: Jobs) -> Iterator[Session]:
        """Yield every run, in the order of the table."""
        places = sorted((number, chunk, row) for chunk, numbers in enumerate(self._numbers)
                        for row, number in enumerate(numbers))  # fmt: skip
        load = lru_cache(_CHUNKS_AT_ONCE)(lambda chunk: self._records[chunk].unpack())
        for _, chunk, row in places:
            record = load(chunk)[row]
            if record is not None:
                log = MemoryLog()
                log.add([record])
                yield open_stored(log, record[0].run_id)


def _load_records(chunk: Chunk) -> list[Record]:
    packed: PackedRecords = pickle.loads(chunk.records)  # noqa: S301  (a worker's)
    return [record for record in packed.unpack() if record is not None]


class StoreResults(Results):
    """Results in a store; runs that it already contains are not repeated."""

    def __init__(self, log: EventLog) -> None:
        super().__init__()
        self.log, self._rows = log, Blobs()
        self._known: dict[str, str] = {}

    def load_run_ids(self) -> Mapping[str, str]:
        """Return the runs in the store; none if it does not exist yet."""
        try:
            return {row.run_id: row.status for row in self.log.runs()}
        except StoreError as error:
            if error.problems[0].code != "L410":
                raise
            return {}

    def add_known(self, run_id: str, status: str) -> None:
        """Add a run that is already in the store."""
        super().add_known(run_id, status)
        self._known[run_id] = status

    def add(self, chunk: Chunk) -> None:
        """Store some runs in one change, and keep their rows."""
        super().add(chunk)
        self.log.add(_load_records(chunk))
        self._rows.add(chunk.rows)

    def rows(self, jobs: Jobs) -> list[dict[str, Any]]:
        """Return the rows of the table; those of earlier runs are read from the store."""
        rows = list(chain.from_iterable(self._rows))
        for run_id, status in self._known.items():
            session = open_stored(self.log, run_id)
            problem = session.error
            job = jobs.find(run_id)
            assert job is not None  # the id is known
            rows.append(make_row(job, session, status, None if problem is None else problem.what))
        return rows

    def session(self, run_id: str, **options: Any) -> Session:
        """Return a run as a session, at its end.

        Raises:
            StoreError: L413, there is no such run, or nothing of it was stored.
        """
        return open_stored(self.log, run_id, **options)

    def sessions(self, jobs: Jobs) -> Iterator[Session]:
        """Yield every stored run, in the order of the table."""
        stored = self.load_run_ids()
        for run_id in jobs.iter_ids():
            if run_id in stored:
                yield open_stored(self.log, run_id)


class ParquetResults(Results):
    """Results in a folder: `runs` and the seven frames are subfolders, each with one Parquet file per 1,000 runs.

    The file of `runs` is written last and renamed into place, so runs are known only once all of their tables are
    written.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__()
        with require_library("pyarrow", "parquet", "nb.sweep(parquet=...)"):
            import pyarrow as pa  # noqa: F401  (pandas calls it)
        self.folder = Path(folder)
        self._held: list[Chunk] = []
        self._next = 1 + max((int(path.stem.rpartition("-")[2]) for path in self._list_files("runs")), default=0)

    def _list_files(self, table: str) -> list[Path]:
        return sorted((self.folder / table).glob("part-*.parquet"))

    def load_run_ids(self) -> Mapping[str, str]:
        """Return the runs in the folder."""
        paths = self._list_files("runs")
        return {run_id: "known" for path in paths for run_id in self._read(path, ["run_id"])["run_id"]}

    def add(self, chunk: Chunk) -> None:
        """Add the results of some runs; write a file if there are enough."""
        super().add(chunk)
        self._held.append(chunk)
        if sum(len(each.numbers) for each in self._held) >= _PART:
            self.flush()

    def __exit__(self, *_: object) -> None:
        """Write unwritten results, even if the sweep is interrupted."""
        self.flush()

    def flush(self) -> None:
        """Write the unwritten runs as one more file of each table."""
        if not self._held:
            return
        import pandas as pd

        name, log = f"part-{self._next:06d}.parquet", MemoryLog()
        log.add([record for each in self._held for record in _load_records(each)])
        frames = ManyFrames(open_stored(log, row.run_id) for row in log.runs())
        for table in NAMES:
            self._put(frames[table], table, name)
        rows = [row | {key: json.dumps(row[key], default=safe_repr) for key in _JSON}
                for each in self._held for row in pickle.loads(each.rows)]  # noqa: S301  # fmt: skip
        self._put(pd.DataFrame(rows), "runs", name)
        self._next += 1
        self._held = []

    def _put(self, frame: pd.DataFrame, table: str, name: str) -> None:
        directory = self.folder / table
        directory.mkdir(parents=True, exist_ok=True)
        frame.to_parquet(directory / f".{name}", index=False)
        (directory / f".{name}").replace(directory / name)

    def _read(self, path: Path, columns: list[str] | None = None) -> pd.DataFrame:
        """Return the table in a file, or some of its columns.

        A114: a file of a sweep cannot be read.

        Raises:
            StoreError: A114, it is not a Parquet file of a sweep.
        """
        import pandas as pd

        try:
            return pd.read_parquet(path, columns=columns)
        except Exception as error:
            raise StoreError(
                Problem("A114", f"{path.name} cannot be read", str(path),
                        f"{type(error).__name__}: {safe_str(error, 300)}", "remove the file: its runs are made again")
            ) from error  # fmt: skip

    def rows(self, jobs: Jobs) -> list[dict[str, Any]]:
        """Return the rows of the runs of this sweep; the folder may contain more."""
        rows = []
        for path in self._list_files("runs"):
            for row in self._read(path).to_dict("records"):
                job = jobs.find(row["run_id"])
                if job is not None:
                    own = {str(key): None if value != value else value for key, value in row.items()}  # noqa: PLR0124
                    rows.append({**own, **{key: json.loads(str(own[key])) for key in _JSON}, "number": job.number})
        return rows

    def session(self, run_id: str, **options: Any) -> Session:
        """Raise an error: tables cannot be opened as sessions.

        L413: nothing of a run was stored.
        """
        raise StoreError(
            Problem("L413", f"run {safe_repr(run_id)} is not stored as a run", str(self.folder),
                    "Parquet files contain the tables of runs, not the runs", "sweep with store= to open them again")
        )  # fmt: skip

    def sessions(self, jobs: Jobs) -> Iterator[Session]:
        """Raise an error: tables cannot be opened as sessions."""
        for run_id in jobs.iter_ids():
            yield self.session(run_id)

    def frames(self, jobs: Jobs) -> ParquetFrames:
        """Return the seven tables in the folder."""
        return ParquetFrames(self.folder)


class ParquetFrames:
    """The seven tables of a folder of Parquet files, `frames.steps` or `frames["steps"]`, each read on access."""

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


__all__ = ["Blobs", "ChunkResults", "ParquetFrames", "ParquetResults", "Results", "StoreResults"]
