"""Where a sweep runs: in forked processes of this machine, in threads, or in any executor, chunk by chunk."""

from __future__ import annotations

import gc
import io
import multiprocessing
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import fields
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from agentnb.analysis.sweep_jobs import SelectedJobs
from agentnb.analysis.sweep_workers import (
    INHERITED,
    Chunk,
    Job,
    Result,
    SweepSettings,
    make_chunk,
    make_row,
    run_chunk,
    run_inherited,
    run_pickled,
)
from agentnb.errors import ExecutionError, Problem
from agentnb.recipe.model import Recipe
from agentnb.recipe.pickling import read_only
from agentnb.text import safe_str

CHUNK: Final = 64  # maximum number of runs that a worker gets at once
# target duration of a chunk: what is lost if the sweep is killed, and how often progress is updated
_SECONDS: Final = 0.2
_AHEAD: Final = 3  # chunks per worker that are submitted before their results are needed
_CAN_FORK: Final = "fork" in multiprocessing.get_all_start_methods() and sys.platform != "darwin"
_CONTEXT: Final = multiprocessing.get_context("fork") if _CAN_FORK else None
_Run = Callable[[Sequence[Job]], Chunk]


class _Killed(Exception):
    """Raised when a pool has lost a process, and with it the runs that had been submitted."""

    def __init__(self, jobs: list[Job]) -> None:
        super().__init__()
        self.jobs = jobs


def iter_results(work: SweepSettings, jobs: Sequence[Job], executor: Executor | None) -> Iterator[Chunk]:
    """Yield the results as they arrive."""
    if not jobs:
        return
    workers = _count_workers(executor) if executor is not None else min(os.cpu_count() or 1, len(jobs))
    if isinstance(executor, ThreadPoolExecutor):
        yield from _run_in_chunks(executor, work, jobs, workers, partial(run_chunk, work))
    elif executor is None and _CAN_FORK:
        number = max(INHERITED, default=0) + 1
        INHERITED[number] = work
        try:
            yield from _run_in_processes(work, jobs, workers, partial(run_inherited, number), None)
        finally:
            del INHERITED[number]
    else:
        run = partial(run_pickled, _serialize_work(work))
        if executor is None or isinstance(executor, ProcessPoolExecutor):
            yield from _run_in_processes(work, jobs, workers, run, executor)
        else:
            yield from _run_in_chunks(executor, work, jobs, workers, run)


def _serialize_work(work: SweepSettings) -> bytes:
    """Return the work as it is sent to other processes.

    A111: the executor's processes cannot receive the recipe or the options.

    Raises:
        ExecutionError: A111.
    """
    try:
        return _pickle_work(work)
    except Exception as error:
        raise ExecutionError(
            Problem("A111", "the recipe or its options cannot be sent to another process", "nb.sweep(executor=...)",
                    f"{type(error).__name__}: {safe_str(error, 300)}",
                    "define functions in a module rather than in a cell or a lambda; or pip install cloudpickle; or "
                    "leave the executor out")
        ) from error  # fmt: skip


def _pickle_work(work: SweepSettings) -> bytes:
    """Return the work as a pickle; with cloudpickle, if installed, this includes functions of a notebook."""
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(work, pickle.HIGHEST_PROTOCOL)

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, Recipe):
                return _make_recipe, ({field.name: getattr(value, field.name) for field in fields(value)},)
            if type(value) is MappingProxyType:
                return read_only, (dict(value),)
            return super().reducer_override(value)

    stream = io.BytesIO()
    Pickler(stream).dump(work)
    return stream.getvalue()


def _make_recipe(values: dict[str, Any]) -> Recipe:
    return Recipe(**values)


def _count_workers(executor: Any) -> int:
    """Return how many chunks an executor runs at once, as far as known."""
    client = getattr(executor, "_client", None)  # Dask's executor
    if client is not None and hasattr(client, "ncores"):
        return max(1, int(sum(client.ncores().values())))
    return int(getattr(executor, "_max_workers", None) or os.cpu_count() or 1)


def _run_in_chunks(
    executor: Executor, work: SweepSettings, jobs: Sequence[Job], workers: int, run: _Run
) -> Iterator[Chunk]:
    """Submit chunks, a few ahead of the results, so that memory does not grow with the number of runs.

    The first chunks are small; once the duration of a run is known, a chunk has enough runs to fill `_SECONDS`. The
    runs of a lost chunk are submitted again, each alone; a run that is lost again is a row `killed`.

    Raises:
        _Killed: the executor is a pool of processes, and one of them was killed.
    """
    flying: dict[Future[Chunk], Sequence[Job]] = {}
    lost: list[Job] = []
    least = work.get_group_size()  # a chunk with fewer runs would leave an event loop idle
    size, begin = min(least, len(jobs) // (workers * _AHEAD) or 1), 0
    try:
        while lost or begin < len(jobs) or flying:
            while (lost or begin < len(jobs)) and len(flying) < workers * _AHEAD:
                chunk = [lost[-1]] if lost else jobs[begin : begin + size]
                flying[executor.submit(run, chunk)] = chunk
                if lost:
                    lost.pop()
                else:
                    begin += len(chunk)
            for future in wait(flying, return_when=FIRST_COMPLETED).done:
                result = _get_result(future, flying[future])
                chunk = flying.pop(future)
                if result is None:
                    lost += chunk
                    continue
                each = result.seconds / len(chunk)
                share = (len(jobs) - begin) // (workers * _AHEAD)
                size = max(1, min(CHUNK, share, max(least, int(_SECONDS / each) if each else 1)))
                yield result
    except BrokenProcessPool as error:
        for future in [future for future in flying if future.done() and future.exception() is None]:
            del flying[future]
            yield future.result()
        raise _Killed([job for chunk in flying.values() for job in chunk] + lost) from error
    finally:
        for future in flying:
            future.cancel()


def _get_result(future: Future[Chunk], jobs: Sequence[Job]) -> Chunk | None:
    """Return the results of a chunk; None if it was lost and must be repeated, run by run.

    Raises:
        BrokenProcessPool: the whole executor is lost.
    """
    try:
        return future.result()
    except BrokenProcessPool:
        raise
    except Exception as error:  # noqa: BLE001  (what an executor raises is its own affair)
        if len(jobs) > 1:
            return None
        return _make_killed_chunk(jobs[0], f"{type(error).__name__}: {error}")


def _make_killed_chunk(job: Job, error: str) -> Chunk:
    return make_chunk([Result(make_row(job, None, "killed", safe_str(error)))])


def _run_in_processes(
    work: SweepSettings, jobs: Sequence[Job], workers: int, run: _Run, executor: ProcessPoolExecutor | None
) -> Iterator[Chunk]:
    """Run in a pool of processes; if one is killed, the runs in progress are repeated, each alone.

    The caller's pool is used until one of its processes is killed, because a broken pool cannot be used again.
    """
    context = getattr(executor, "_mp_context", None) if executor is not None else _CONTEXT
    rest: Sequence[Job] = jobs
    while rest:
        done = bytearray(jobs[-1].number + 1)  # by the numbers of the jobs
        try:
            with nullcontext(executor) if executor is not None else _make_pool(workers, context) as pool:
                for chunk in _run_in_chunks(pool, work, rest, workers, run):
                    for number in chunk.numbers:
                        done[number] = True
                    yield chunk
            rest = ()
        except _Killed as killed:
            executor = None
            for job in killed.jobs:
                yield _run_alone(job, run, context)
            for job in killed.jobs:
                done[job.number] = True
            rest = SelectedJobs(rest, (index for index, job in enumerate(rest) if not done[job.number]))


def _run_alone(job: Job, run: _Run, context: Any) -> Chunk:
    """Execute one run in a separate process."""
    try:
        with _make_pool(1, context) as pool:
            return pool.submit(run, [job]).result()
    except BrokenProcessPool:
        return _make_killed_chunk(job, "its process was killed while it ran")


def _make_pool(workers: int, context: Any) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker)


def _start_worker() -> None:
    gc.freeze()  # inherited objects live as long as the worker, so the collector can skip them
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """End this process when the process of the pool ends, because a killed parent cannot shut its pool down."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


__all__ = ["CHUNK", "iter_results"]
