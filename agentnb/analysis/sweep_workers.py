"""The worker of a sweep: executes a chunk of runs and returns their rows and records."""

from __future__ import annotations

import asyncio
import pickle
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from os.path import commonprefix
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from agentnb.board.masking import mask_value, to_display
from agentnb.board.values import freeze
from agentnb.engine.persistence.event_log import Entry, RunRow
from agentnb.errors import AgentNbError
from agentnb.recipe.model import Recipe
from agentnb.recipe.user_functions import is_async
from agentnb.secrets import masking_for
from agentnb.session import Session
from agentnb.session.parts import get_parts
from agentnb.session.state import get_state
from agentnb.session.stored_run import copy_of
from agentnb.text import safe_repr, safe_str

if TYPE_CHECKING:
    from types import FrameType

TOGETHER: Final = 16  # runs that share a worker's event loop if anything is awaited
Record = tuple[RunRow, list[Entry]]  # a run as stored in a store


class Job(NamedTuple):
    """One run to execute: the names of the recipe and the model, the inputs and the seed."""

    number: int
    run_id: str
    inputs: Mapping[str, Any]
    seed: int
    recipe: str = ""
    model: str = ""


class Result(NamedTuple):
    """One finished run: its row of the table, and its record; None if it cannot be stored."""

    row: dict[str, Any]
    record: Record | None = None


class PackedRecords(NamedTuple):
    """The records of several runs (or None); the text shared by all heads, the recipe, is contained only once."""

    begin: str
    records: list[Record | None]

    @classmethod
    def pack(cls, records: Sequence[Record | None]) -> Self:
        """Return records without the text that their heads share."""
        heads = [record[0].head for record in records if record is not None]
        begin = commonprefix(heads)  # noqa: RUF071  (of texts, not of paths)
        return cls(begin, [record and _with_head(record, record[0].head[len(begin) :]) for record in records])

    def unpack(self) -> list[Record | None]:
        """Return the records."""
        return [record and _with_head(record, self.begin + record[0].head) for record in self.records]


def _with_head(record: Record, head: str) -> Record:
    return record[0]._replace(head=head), record[1]


class Chunk(NamedTuple):
    """Runs that were executed together: their numbers and statuses; the rest stays pickled until it is needed.

    `rows` are their rows of the table, `records` their PackedRecords.
    """

    numbers: list[int]
    statuses: list[str]
    rows: bytes
    records: bytes
    seconds: float = 0.0


class TimedOut(BaseException):
    """Raised inside a run when its timeout is exceeded; nodes cannot catch it as an Exception."""


@dataclass(frozen=True)
class SweepSettings:
    """Settings shared by all runs of a sweep: recipes and models by name, options, timeout in seconds.

    `concurrency` is the number of runs that share a worker's event loop; None: several, if anything is awaited.
    """

    recipes: Mapping[str, Recipe]
    models: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    timeout: float | None = None
    concurrency: int | None = None

    def options_of(self, job: Job) -> dict[str, Any]:
        """Return the options of a run's session."""
        chosen = {"llm": self.models[job.model]} if self.models else {}
        return {"seed": job.seed, **self.options, **chosen, "run_id": job.run_id}

    def get_group_size(self) -> int:
        """Return how many runs share an event loop."""
        return self.concurrency or (TOGETHER if self._is_async() else 1)

    def _is_async(self) -> bool:
        """Return True if a node's function or a tool is async, or the model is not a script of answers."""
        tools = self.options.get("tools")
        functions = [*(tools.values() if isinstance(tools, Mapping) else ())]
        functions += [node.params.get("function") for recipe in self.recipes.values() for node in recipe.nodes.values()]
        models = [self.options.get("llm"), *self.models.values()]
        live = any(model is not None and not isinstance(model, list | tuple | Mapping) for model in models)
        return live or any(callable(function) and is_async(function) for function in functions)


# What the worker processes of this machine inherit when they are forked, by the number of their sweep, because a recipe
# may contain functions that cannot be pickled.
INHERITED: dict[int, SweepSettings] = {}


def run_inherited(number: int, jobs: Sequence[Job]) -> Chunk:
    """Run a chunk in a process that was forked from the process of the sweep."""
    return run_chunk(INHERITED[number], jobs)


def run_pickled(work: bytes, jobs: Sequence[Job]) -> Chunk:
    """Run a chunk in a process that has no data of the sweep."""
    return run_chunk(pickle.loads(work), jobs)  # noqa: S301  (it comes from the process that made the sweep)


def run_chunk(work: SweepSettings, jobs: Sequence[Job]) -> Chunk:
    """Execute these runs one after the other, or several at a time on one event loop."""
    start, together = perf_counter(), work.get_group_size()
    records = [_run(work, job) for job in jobs] if together == 1 else asyncio.run(_run_all(work, jobs, together))
    return make_chunk(records)._replace(seconds=perf_counter() - start)


def make_chunk(results: Sequence[Result]) -> Chunk:
    """Return results in the form in which they are sent to the calling process."""
    rows, records = [result.row for result in results], [result.record for result in results]
    return Chunk([row["number"] for row in rows], [row["status"] for row in rows], _pickle_rows(rows),
                 pickle.dumps(PackedRecords.pack(records), pickle.HIGHEST_PROTOCOL))  # fmt: skip


def _pickle_rows(rows: list[dict[str, Any]]) -> bytes:
    """Return rows as a pickle; an input or output that cannot be pickled is replaced by its representation."""
    try:
        return pickle.dumps(rows, pickle.HIGHEST_PROTOCOL)
    except Exception:  # noqa: BLE001  (what pickling a user's object raises is its own affair)
        return pickle.dumps([_make_picklable(row) for row in rows], pickle.HIGHEST_PROTOCOL)


def _make_picklable(row: Mapping[str, Any]) -> dict[str, Any]:
    picklable = dict(row)
    for column in ("inputs", "outputs"):
        for key, value in row[column].items():
            try:
                pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
            except Exception:  # noqa: BLE001  (the same)
                picklable[column] = {**picklable[column], key: safe_repr(value)}
    return picklable


async def _run_all(work: SweepSettings, jobs: Sequence[Job], together: int) -> list[Result]:
    limit = asyncio.Semaphore(together)

    async def run_job(job: Job) -> Result:
        async with limit:
            return await _run_async(work, job)

    return await asyncio.gather(*map(run_job, jobs))


def _run(work: SweepSettings, job: Job) -> Result:
    session: Session | None = None
    try:
        session = Session(work.recipes[job.recipe], job.inputs, **work.options_of(job))
        with nullcontext() if work.timeout is None else _time_limit(session, work.timeout):
            session.run()
    except (TimedOut, Exception) as raised:  # noqa: BLE001  (a run that cannot be made is a row of the sweep)
        return _make_result(work, job, session, raised)
    return _make_result(work, job, session)


async def _run_async(work: SweepSettings, job: Job) -> Result:
    session: Session | None = None
    try:
        session = Session(work.recipes[job.recipe], job.inputs, **work.options_of(job))
        limit = asyncio.timeout(work.timeout)
        try:
            async with limit:
                await session.arun()
        except TimeoutError:
            if limit.expired():
                raise TimedOut from None
            raise
    except (TimedOut, Exception) as raised:  # noqa: BLE001  (the same)
        return _make_result(work, job, session, raised)
    return _make_result(work, job, session)


def _make_result(work: SweepSettings, job: Job, session: Session | None, raised: BaseException | None = None) -> Result:
    """Return the result of a run that has finished or raised an exception."""
    error: str | None
    match raised:
        case None:
            assert session is not None
            problem = session.error
            status, error = get_state(session).status, None if problem is None else problem.what
        case TimedOut():
            status, error = "timeout", f"it took longer than {work.timeout:g} seconds"
        case AgentNbError():
            status, error = "failed", safe_str(raised)
        case _:
            status, error = "failed", safe_str(f"{type(raised).__name__}: {raised}")
    if session is None:
        return Result(make_row(job, session, status, error))
    with masking_for(get_state(session).run.tables.secrets):
        row, record = make_row(job, session, status, error), _record(session, status)
    if "hooks" not in work.options:  # a listener may have kept a reference to the session
        get_parts(session).release()
    return Result(row, record)


def make_row(job: Job, session: Session | None, status: str, error: str | None) -> dict[str, Any]:
    """Return the row of a run in the table of a sweep, without secrets."""
    row = {"number": job.number, "run_id": job.run_id, "inputs": mask_value(dict(job.inputs)), "seed": job.seed,
           "status": status, "steps": 0, "seconds": 0.0, "tokens": 0, "cost": 0.0, "outputs": {},
           "error": error, "recipe": job.recipe, "model": job.model}  # fmt: skip
    if session is None:
        return row
    state = get_state(session)
    history, calls, board = state.run.history, state.run.history.calls, state.board
    outputs = {key: board[key] for key in state.recipe.outputs or board if key in board}
    row |= {
        "steps": state.run.position,
        "seconds": (history.end_times[-1] - history.start_times[0]) / 1e9,
        "tokens": sum((call.tokens_in or 0) + (call.tokens_out or 0) for call in calls),
        "cost": float(sum(call.cost_usd or 0 for call in calls)),
        "outputs": to_display(freeze(outputs)),
    }
    return row


def _record(session: Session, status: str) -> Record | None:
    """Return a run as stored in a store; None if its values cannot be stored."""
    try:
        row, entry = copy_of(get_state(session), status)
    except AgentNbError:
        return None
    return row, [entry]


@contextmanager
def _time_limit(session: Session, seconds: float) -> Iterator[None]:
    """End the body after some seconds: at once in the main thread of a process, otherwise before the next step."""
    over = threading.Event()

    def stop() -> None:
        over.set()
        get_state(session).run.halt.is_requested = True

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise TimedOut

    if hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread():
        previous_handler = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous_handler)
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


__all__ = [
    "INHERITED",
    "TOGETHER",
    "Chunk",
    "Job",
    "PackedRecords",
    "Record",
    "Result",
    "SweepSettings",
    "make_chunk",
    "make_row",
    "run_chunk",
    "run_inherited",
    "run_pickled",
]
