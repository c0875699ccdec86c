"""What a worker of a sweep does: it makes a chunk of runs and returns of each its row and what a store keeps."""

from __future__ import annotations

import asyncio
import pickle
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentnb.board.masking import masked
from agentnb.engine.persistence.event_log import Entry, RunRow
from agentnb.errors import AgentNbError
from agentnb.recipe.model import Recipe
from agentnb.recipe.user_functions import is_async
from agentnb.session import Session
from agentnb.session.state import state_of
from agentnb.store import MemoryLog
from agentnb.text import safe_str

if TYPE_CHECKING:
    from types import FrameType

TOGETHER: Final = 16  # runs that share a worker's event loop, where something awaits


class Job(NamedTuple):
    """One run that is to be made: which recipe and which model, by their names, with which inputs and seed."""

    number: int
    run_id: str
    inputs: Mapping[str, Any]
    seed: int
    recipe: str = ""
    model: str = ""


@dataclass
class Result:
    """One run that was made: its row of the table, and what a store keeps of it; None if there is nothing to keep."""

    row: dict[str, Any]
    kept: tuple[RunRow, list[Entry]] | None


class TimedOut(BaseException):
    """Raised inside a run when its time is over; nodes cannot catch it as an Exception."""


@dataclass(frozen=True)
class Work:
    """What all runs of a sweep share: the recipes and models by name, the options, the seconds that a run may take.

    `concurrency` is how many runs share a worker's event loop; None: several, where something awaits.
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

    def together(self) -> int:
        """Return how many runs share an event loop."""
        return self.concurrency or (TOGETHER if self._awaits() else 1)

    def _awaits(self) -> bool:
        """Return True if a node's function or a tool is async, or a model is asked that is no script of answers."""
        tools = self.options.get("tools")
        functions = [*(tools.values() if isinstance(tools, Mapping) else ())]
        functions += [node.params.get("function") for recipe in self.recipes.values() for node in recipe.nodes.values()]
        models = [self.options.get("llm"), *self.models.values()]
        live = any(model is not None and not isinstance(model, list | tuple | Mapping) for model in models)
        return live or any(callable(function) and is_async(function) for function in functions)


# What the worker processes of this machine inherit when they are forked, by the number of their sweep: a recipe may
# hold functions that cannot be pickled.
INHERITED: dict[int, Work] = {}


def run_inherited(number: int, jobs: Sequence[Job]) -> list[Result]:
    """Run a chunk in a process that was forked from the one that made the sweep."""
    return run_chunk(INHERITED[number], jobs)


def run_pickled(work: bytes, jobs: Sequence[Job]) -> list[Result]:
    """Run a chunk in a process that knows nothing of the sweep."""
    return run_chunk(pickle.loads(work), jobs)  # noqa: S301  (it comes from the process that made the sweep)


def run_chunk(work: Work, jobs: Sequence[Job]) -> list[Result]:
    """Make these runs: one after the other, or several at a time on one event loop."""
    together = work.together()
    return [_run(work, job) for job in jobs] if together == 1 else asyncio.run(_run_all(work, jobs, together))


async def _run_all(work: Work, jobs: Sequence[Job], together: int) -> list[Result]:
    limit = asyncio.Semaphore(together)

    async def one(job: Job) -> Result:
        async with limit:
            return await _run_async(work, job)

    return await asyncio.gather(*map(one, jobs))


def _run(work: Work, job: Job) -> Result:
    session: Session | None = None
    try:
        session = Session(work.recipes[job.recipe], job.inputs, **work.options_of(job))
        with _time_limit(session, work.timeout):
            session.run()
    except (TimedOut, Exception) as raised:  # noqa: BLE001  (a run that cannot be made is a row of the sweep)
        return _result(work, job, session, raised)
    return _result(work, job, session)


async def _run_async(work: Work, job: Job) -> Result:
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
        return _result(work, job, session, raised)
    return _result(work, job, session)


def _result(work: Work, job: Job, session: Session | None, raised: BaseException | None = None) -> Result:
    """Return the result of a run that has ended, or ended by an exception."""
    error: str | None
    match raised:
        case None:
            assert session is not None
            status, error = str(session.status), None if session.error is None else session.error.what
        case TimedOut():
            status, error = "timeout", f"it took longer than {work.timeout:g} seconds"
        case AgentNbError():
            status, error = "failed", safe_str(raised)
        case _:
            status, error = "failed", safe_str(f"{type(raised).__name__}: {raised}")
    row = row_of(job, session, status, error)
    return Result(row, None if session is None else _kept(session, status))


def row_of(job: Job, session: Session | None, status: str, error: str | None) -> dict[str, Any]:
    """Return the row of a run in the table of a sweep, without secrets."""
    row = {"number": job.number, "run_id": job.run_id, "inputs": masked(dict(job.inputs)), "seed": job.seed,
           "status": status, "steps": 0, "seconds": 0.0, "tokens": 0, "cost": 0.0, "outputs": {},
           "error": error, "recipe": job.recipe, "model": job.model}  # fmt: skip
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


__all__ = ["INHERITED", "Job", "Result", "Work", "row_of", "run_chunk", "run_inherited", "run_pickled"]
