"""Sweep: one recipe over many inputs and seeds, in the processes of this machine or in any executor.

A worker makes a chunk of runs and returns of each what a store keeps; only the calling process writes to the store.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentnb.analysis.many_frames import ManyFrames
from agentnb.board.codec import encode
from agentnb.board.masking import masked
from agentnb.board.values import freeze
from agentnb.engine.persistence.event_log import Entry, EventLog, RunRow
from agentnb.errors import AgentNbError, ExecutionError, Problem, StoreError
from agentnb.recipe.model import Recipe
from agentnb.session import Session
from agentnb.session.reopen import open_stored
from agentnb.session.state import state_of
from agentnb.store import MemoryLog, open_log
from agentnb.text import safe_str

if TYPE_CHECKING:
    from types import FrameType

    import pandas as pd

CHUNK: Final = 32  # runs that a worker gets at once, at most
_AHEAD: Final = 3  # chunks per worker that are handed over before their results are needed
_TYPES: Final = {
    "run_id": "object", "inputs": "object", "seed": "int64", "status": "object", "steps": "int64",
    "seconds": "float64", "tokens": "int64", "cost": "float64", "outputs": "object", "error": "object",
}  # fmt: skip


class Job(NamedTuple):
    """One run that is to be made."""

    number: int
    run_id: str
    inputs: Mapping[str, Any]
    seed: int


@dataclass
class Result:
    """One run that was made: its row of the table, and what a store keeps of it; None if there is nothing to keep."""

    row: dict[str, Any]
    kept: tuple[RunRow, list[Entry]] | None


class TimedOut(BaseException):
    """Raised inside a run when its time is over; nodes cannot catch it as an Exception."""


class _Work(NamedTuple):
    recipe: Recipe
    options: Mapping[str, Any]
    timeout: float | None


# What the worker processes of this machine inherit when they are forked, by the number of their sweep: a recipe may
# hold functions that cannot be pickled.
_INHERITED: dict[int, _Work] = {}


def sweep(
    recipe: Recipe,
    inputs: Any,
    *,
    seeds: Iterable[int] | None = None,
    executor: Executor | None = None,
    store: Any = None,
    progress: bool = True,
    timeout: float | None = None,
    **session_options: Any,
) -> Sweep:
    """Run a recipe once for each of its inputs and seeds; return the runs.

    A run that fails, exceeds its time, or kills its process is a row of the result. With a store the runs are written
    to it as they end, and a sweep that was interrupted continues where it stopped: finished runs are not repeated.

    Args:
        inputs: a list of mappings, or a DataFrame with one row per run and one column per input.
        seeds: each of the inputs is run with each of these seeds; default: seed 0.
        executor: where to run; default: one process per core of this machine. For any other executor of processes, the
            recipe and the options must be picklable.
        store: a path, a URL, or an EventLog; without one the runs are kept in memory.
        progress: show a progress bar, in a notebook or on a terminal.
        timeout: the seconds that a run may take; it ends with the status `timeout`.
        session_options: as for a Session: llm, tools, budget ...

    Raises:
        ExecutionError: A110, the inputs are neither mappings nor a table; A111, the executor cannot receive the recipe.
        StoreError: the runs cannot be stored.

    Example:
        >>> import agentnb as nb
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> numbers = [{"number": 2.0}, {"number": 9.0}]
        >>> with ThreadPoolExecutor(2) as pool:
        ...     swept = nb.sweep(nb.samples("refine"), numbers, executor=pool, progress=False)
        >>> list(swept.runs["status"])
        ['finished', 'finished']
    """
    given = inputs_of(inputs)
    jobs = list(_jobs(recipe, given, [0] if seeds is None else list(seeds), session_options))
    log = MemoryLog() if store is None else open_log(store)
    known = _stored_ids(log) if store is not None else set()
    found = Sweep(recipe, log, jobs, session_options)
    todo = []
    for job in jobs:
        if job.run_id in known:
            found.add_stored(job)
        else:
            todo.append(job)
    work = _Work(recipe, session_options, timeout)
    with _progress_bar(len(jobs), len(jobs) - len(todo), shown=progress) as advance:
        for result in _results(work, todo, executor):
            found.add(result)
            advance()
    return found


def _stored_ids(log: EventLog) -> set[str]:
    """Return the ids of the runs in a store; none if it does not exist yet."""
    try:
        return {row.run_id for row in log.runs()}
    except StoreError as error:
        if error.problems[0].code != "L410":
            raise
        return set()


def inputs_of(inputs: Any) -> list[dict[str, Any]]:
    """Return the inputs of the runs as a list of mappings.

    Raises:
        ExecutionError: A110, they are neither mappings nor a table.
    """
    if hasattr(inputs, "to_dict") and hasattr(inputs, "columns"):
        return [{str(key): value for key, value in row.items()} for row in inputs.to_dict("records")]
    rows = [inputs] if isinstance(inputs, Mapping) else inputs
    if isinstance(rows, Iterable) and not isinstance(rows, str | bytes):
        found = list(rows)
        if all(isinstance(row, Mapping) for row in found):
            return [dict(row) for row in found]
    raise ExecutionError(
        Problem("A110", "the inputs of a sweep are not a list of mappings", "nb.sweep(inputs=...)",
                f"got a {type(inputs).__name__}", "pass a list of dicts, one per run, or a DataFrame")
    )  # fmt: skip


def _jobs(
    recipe: Recipe, inputs: Sequence[Mapping[str, Any]], seeds: Sequence[int], options: Mapping[str, Any]
) -> Iterator[Job]:
    """Yield the runs, each with an id that follows from its recipe, inputs and seed."""
    seen: Counter[str] = Counter()
    prefix = safe_str(options.get("name") or recipe.name, 60)
    for given in inputs:
        for seed in seeds:
            text = json.dumps([recipe.fingerprint, encode(freeze(dict(given)), lenient=True), seed], sort_keys=True)
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            again = f"-{seen[digest]}" if seen[digest] else ""
            seen[digest] += 1
            yield Job(sum(seen.values()) - 1, f"{prefix}-{digest}{again}", given, seed)


# -- in a worker ----------------------------------------------------------------------------------------------------


def run_inherited(number: int, jobs: Sequence[Job]) -> list[Result]:
    """Run a chunk in a process that was forked from the one that made the sweep."""
    return run_chunk(_INHERITED[number], jobs)


def run_pickled(work: bytes, jobs: Sequence[Job]) -> list[Result]:
    """Run a chunk in a process that knows nothing of the sweep."""
    return run_chunk(pickle.loads(work), jobs)  # noqa: S301  (it comes from the process that made the sweep)


def run_chunk(work: _Work, jobs: Sequence[Job]) -> list[Result]:
    """Make these runs, one after the other."""
    return [_run(work, job) for job in jobs]


def _run(work: _Work, job: Job) -> Result:
    session, error, status = None, None, "failed"
    try:
        options = {"seed": job.seed, **work.options, "run_id": job.run_id}
        session = Session(work.recipe, job.inputs, **options)
        with _time_limit(session, work.timeout):
            session.run()
        status = str(session.status)
        if session.error is not None:
            error = session.error.what
    except TimedOut:
        status, error = "timeout", f"it took longer than {work.timeout:g} seconds"
    except AgentNbError as raised:
        error = safe_str(raised)
    except Exception as raised:  # noqa: BLE001  (a run that cannot be made is a row of the sweep)
        error = safe_str(f"{type(raised).__name__}: {raised}")
    row = row_of(job, session, status, error)
    return Result(row, None if session is None else _kept(session, status))


def row_of(job: Job, session: Session | None, status: str, error: str | None) -> dict[str, Any]:
    """Return the row of a run in the table of a sweep, without secrets."""
    row = {"number": job.number, "run_id": job.run_id, "inputs": masked(dict(job.inputs)), "seed": job.seed,
           "status": status, "steps": 0, "seconds": 0.0, "tokens": 0, "cost": 0.0, "outputs": {},
           "error": error}  # fmt: skip
    if session is None:
        return row
    history, calls = state_of(session).run.history, state_of(session).run.history.calls
    board = {key: session.board[key] for key in session.recipe.outputs or session.board if key in session.board}
    row |= {
        "steps": session.position,
        "seconds": (history.s_t1[-1] - history.s_t0[0]) / 1e9,
        "tokens": sum((call.tokens_in or 0) + (call.tokens_out or 0) for call in calls),
        "cost": float(sum(call.cost_usd or 0 for call in calls)),
        "outputs": masked(board),
    }
    return row


def _kept(session: Session, status: str) -> tuple[RunRow, list[Entry]] | None:
    """Return what a store keeps of a run; None if its values cannot be stored."""
    log = MemoryLog()
    try:
        session.save(log)
    except AgentNbError:
        return None
    row = log.run(session.run_id)
    return replace(row, writer=None, status=status), list(log.entries(session.run_id))


@contextmanager
def _time_limit(session: Session, seconds: float | None) -> Iterator[None]:
    """End the body after some seconds: at once in the main thread of a process, else before the next step."""
    if seconds is None:
        yield
        return
    over = threading.Event()

    def stop() -> None:
        over.set()
        state_of(session).run.halt.on = True

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise TimedOut

    if hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        return
    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if over.is_set():
        raise TimedOut


# -- in the calling process -----------------------------------------------------------------------------------------


def _results(work: _Work, jobs: Sequence[Job], executor: Executor | None) -> Iterator[Result]:
    """Yield the results as they arrive."""
    if not jobs:
        return
    if executor is not None:
        yield from _in_executor(work, jobs, executor)
    elif "fork" in multiprocessing.get_all_start_methods() and sys.platform != "darwin":
        yield from _in_processes(work, jobs)
    else:
        with ProcessPoolExecutor() as pool:
            yield from _in_executor(work, jobs, pool)


def _in_executor(work: _Work, jobs: Sequence[Job], executor: Executor) -> Iterator[Result]:
    """Run in an executor; one of threads shares the recipe, any other receives it pickled.

    A111: the executor's processes cannot receive the recipe or the options.
    """
    if isinstance(executor, ThreadPoolExecutor):
        yield from _chunks_in(executor, jobs, _workers(executor), lambda chunk: (run_chunk, work, chunk))
        return
    try:
        text = _pickled(work)
    except Exception as error:
        raise ExecutionError(
            Problem("A111", "the recipe or its options cannot be sent to another process", "nb.sweep(executor=...)",
                    f"{type(error).__name__}: {safe_str(error, 300)}",
                    "define functions in a module rather than in a cell or a lambda, or leave the executor out")
        ) from error  # fmt: skip
    yield from _chunks_in(executor, jobs, _workers(executor), lambda chunk: (run_pickled, text, chunk))


def _read_only(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


class _Pickler(pickle.Pickler):
    """Pickles read-only mappings, too: recipes are made of them."""

    def reducer_override(self, value: Any) -> Any:
        """Return how to make a read-only mapping again."""
        return (_read_only, (dict(value),)) if type(value) is MappingProxyType else NotImplemented


def _pickled(work: _Work) -> bytes:
    stream = BytesIO()
    _Pickler(stream, pickle.HIGHEST_PROTOCOL).dump(work)
    return stream.getvalue()


def _workers(executor: Any) -> int:
    return int(getattr(executor, "_max_workers", None) or os.cpu_count() or 1)


def _chunks_in(executor: Executor, jobs: Sequence[Job], workers: int, call: Any) -> Iterator[Result]:
    """Hand over chunks, a few ahead of the results, so that memory does not grow with the number of runs."""
    waiting = deque(_chunks(jobs, workers))
    flying: dict[Future[list[Result]], Sequence[Job]] = {}
    try:
        while waiting or flying:
            while waiting and len(flying) < workers * _AHEAD:
                chunk = waiting.popleft()
                flying[executor.submit(*call(chunk))] = chunk
            for future in wait(flying, return_when=FIRST_COMPLETED).done:
                chunk = flying.pop(future)
                yield from _results_of(future, chunk)
    finally:
        for future in flying:
            future.cancel()


def _results_of(future: Future[list[Result]], chunk: Sequence[Job]) -> list[Result]:
    """Return the results of a chunk; if the executor lost it, one failed row per run."""
    try:
        return future.result()
    except BrokenProcessPool:
        raise
    except Exception as error:  # noqa: BLE001  (what an executor raises is its own affair)
        text = safe_str(f"{type(error).__name__}: {error}")
        return [Result(row_of(job, None, "killed", text), None) for job in chunk]


def _chunks(jobs: Sequence[Job], workers: int) -> Iterator[Sequence[Job]]:
    size = max(1, min(CHUNK, len(jobs) // (workers * _AHEAD) or 1))
    for start in range(0, len(jobs), size):
        yield jobs[start : start + size]


def _in_processes(work: _Work, jobs: Sequence[Job]) -> Iterator[Result]:
    """Run in forked processes; after one was killed, the runs that were under way are made again, each alone."""
    workers = min(os.cpu_count() or 1, len(jobs))
    number = max(_INHERITED, default=0) + 1
    _INHERITED[number] = work
    try:
        rest: list[Job] = list(jobs)
        while rest:
            done: set[int] = set()
            try:
                with _pool(workers) as pool:
                    for result in _chunks_in(pool, rest, workers, lambda chunk: (run_inherited, number, chunk)):
                        done.add(result.row["number"])
                        yield result
                rest = []
            except BrokenProcessPool:
                rest = [job for job in rest if job.number not in done]
                under_way, rest = rest[: workers * _AHEAD * CHUNK], rest[workers * _AHEAD * CHUNK :]
                for job in under_way:
                    yield _alone(number, job)
    finally:
        del _INHERITED[number]


def _alone(number: int, job: Job) -> Result:
    """Make one run in a process of its own."""
    try:
        with _pool(1) as pool:
            return pool.submit(run_inherited, number, [job]).result()[0]
    except BrokenProcessPool:
        return Result(row_of(job, None, "killed", "its process was killed while it ran"), None)


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork"))


@contextmanager
def _progress_bar(total: int, done: int, *, shown: bool) -> Iterator[Any]:
    """Yield a function to call after each run."""
    if not shown or not total:
        yield lambda: None
        return
    from agentnb.display import view

    with view("progress")(total, done) as advance:
        yield advance


# -- results --------------------------------------------------------------------------------------------------------


class Sweep:
    """The runs of a sweep. `runs` is a table with one row per run; `frames` are the seven tables over all runs."""

    def __init__(self, recipe: Recipe, log: EventLog, jobs: Sequence[Job], options: Mapping[str, Any]) -> None:
        self.recipe, self.log = recipe, log
        self._jobs = {job.run_id: job for job in jobs}
        self._options = dict(options)
        self._rows: dict[int, dict[str, Any]] = {}

    def add(self, result: Result) -> None:
        """Add the result of a run, and store it."""
        row = result.row
        self._rows[row["number"]] = row
        if result.kept is not None:
            kept, entries = result.kept
            self.log.create(replace(kept, writer=None), entries)
            self.log.tell(kept.run_id, status=row["status"], steps=row["steps"])
            self.log.release(kept.run_id)

    def add_stored(self, job: Job) -> None:
        """Add a run that the store has."""
        session = open_stored(self.log, job.run_id)
        status, problem = self.log.run(job.run_id).status, session.error
        self._rows[job.number] = row_of(job, session, status, None if problem is None else problem.what)

    @property
    def runs(self) -> pd.DataFrame:
        """One row per run: run_id, inputs, seed, status, steps, seconds, tokens, cost, outputs, error.

        `status` is that of the session; or `timeout`, or `killed` if its process was. `seconds` is wall time, `cost` in
        US dollars; `outputs` are the declared outputs, or the whole board.
        """
        from agentnb.trace.frames import table

        return table([self._rows[number] for number in sorted(self._rows)], _TYPES)

    @property
    def failed(self) -> pd.DataFrame:
        """The rows of `runs` that did not finish."""
        runs = self.runs
        return runs[~runs["status"].isin(["finished", "idle"])].reset_index(drop=True)

    @property
    def frames(self) -> ManyFrames:
        """The seven tables over all runs, each with a leading column `run_id`; see `nb.frames`."""
        return ManyFrames(self.iter_runs())

    def session(self, run_id: str) -> Session:
        """Return one run as a session, at its end; it can be stepped back, forked and continued.

        Raises:
            StoreError: L413, there is no such run, or nothing of it was stored.
        """
        names = ("llm", "tools", "resources", "answers", "hooks")
        options = {name: self._options[name] for name in names if name in self._options}
        return open_stored(self.log, run_id, recipe=self.recipe, **options)

    def iter_runs(self) -> Iterator[Session]:
        """Yield every stored run as a read-only session, in the order of the table."""
        stored = {row.run_id for row in self.log.runs()}
        for number in sorted(self._rows):
            run_id = self._rows[number]["run_id"]
            if run_id in stored:
                yield open_stored(self.log, run_id)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        """Return one line: how many runs have which status."""
        counts = Counter(row["status"] for row in self._rows.values())
        return f"<Sweep of {len(self)} runs: {', '.join(f'{count} {status}' for status, count in counts.items())}>"


__all__ = ["Job", "Result", "Sweep", "inputs_of", "run_chunk", "run_inherited", "run_pickled", "sweep"]
