"""Where a sweep runs: in forked processes of this machine, in threads, or in any executor, chunk by chunk."""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Final

from agentnb.analysis.sweep_workers import INHERITED, Job, Result, Work, row_of, run_chunk, run_inherited, run_pickled
from agentnb.errors import ExecutionError, Problem
from agentnb.recipe.model import Recipe
from agentnb.recipe.pickling import read_only
from agentnb.text import safe_str

CHUNK: Final = 64  # runs that a worker gets at once, at most
_AHEAD: Final = 3  # chunks per worker that are handed over before their results are needed


def results(work: Work, jobs: Sequence[Job], executor: Executor | None) -> Iterator[Result]:
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


def _in_executor(work: Work, jobs: Sequence[Job], executor: Executor) -> Iterator[Result]:
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
                    "define functions in a module rather than in a cell or a lambda; or pip install cloudpickle; or "
                    "leave the executor out")
        ) from error  # fmt: skip
    yield from _chunks_in(executor, jobs, _workers(executor), lambda chunk: (run_pickled, text, chunk))


def _pickled(work: Work) -> bytes:
    """Return the work as a pickle: by cloudpickle, if it is there, functions of a notebook travel, too."""
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(work, pickle.HIGHEST_PROTOCOL)

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, Recipe):
                return _recipe, ({field.name: getattr(value, field.name) for field in fields(value)},)
            if type(value) is MappingProxyType:
                return read_only, (dict(value),)
            return super().reducer_override(value)

    stream = io.BytesIO()
    Pickler(stream).dump(work)
    return stream.getvalue()


def _recipe(values: dict[str, Any]) -> Recipe:
    return Recipe(**values)


def _workers(executor: Any) -> int:
    """Return how many chunks an executor runs at once, as far as it tells."""
    client = getattr(executor, "_client", None)  # Dask's executor
    if client is not None and hasattr(client, "ncores"):
        return max(1, int(sum(client.ncores().values())))
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


def _in_processes(work: Work, jobs: Sequence[Job]) -> Iterator[Result]:
    """Run in forked processes; after one was killed, the runs that were under way are made again, each alone."""
    workers = min(os.cpu_count() or 1, len(jobs))
    number = max(INHERITED, default=0) + 1
    INHERITED[number] = work
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
        del INHERITED[number]


def _alone(number: int, job: Job) -> Result:
    """Make one run in a process of its own."""
    try:
        with _pool(1) as pool:
            return pool.submit(run_inherited, number, [job]).result()[0]
    except BrokenProcessPool:
        return Result(row_of(job, None, "killed", "its process was killed while it ran"), None)


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork"))


__all__ = ["CHUNK", "results"]
