"""Sweep: recipes over many inputs, seeds and models, in the processes of this machine or in any executor.

A worker executes a chunk of runs and returns their records; only the calling process writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, cast

from agentnb.analysis.sweep_executors import iter_results
from agentnb.analysis.sweep_jobs import Jobs, SelectedJobs, to_inputs
from agentnb.analysis.sweep_results import ChunkResults, ParquetResults, Results, StoreResults
from agentnb.analysis.sweep_workers import Job, SweepSettings
from agentnb.arguments import plain_arguments
from agentnb.display import get_view
from agentnb.errors import ExecutionError, Problem, did_you_mean
from agentnb.recipe.model import Recipe
from agentnb.session import Session
from agentnb.store import open_log
from agentnb.text import safe_repr

if TYPE_CHECKING:
    import os

    import pandas as pd

_OWN: Final = {
    "seed": "pass seeds=[...]: each of the inputs is run with each of them",
    "run_id": "leave it out: the ids follow from recipe, inputs, seed and model",
}
_OPTIONS: Final = [name for name in signature(Session).parameters if name not in {"recipe", "inputs", "store", *_OWN}]
_TYPES: Final = {
    "run_id": "object", "inputs": "object", "seed": "int64", "status": "object", "steps": "int64",
    "seconds": "float64", "tokens": "int64", "cost": "float64", "outputs": "object", "error": "object",
}  # fmt: skip


@plain_arguments
def sweep(
    recipe: Recipe | Sequence[Recipe] | Mapping[str, Recipe],
    inputs: Any,
    *,
    seeds: Iterable[int] | None = None,
    models: Mapping[str, Any] | None = None,
    executor: Executor | None = None,
    store: Any = None,
    parquet: str | os.PathLike[str] | None = None,
    progress: bool = True,
    timeout: float | None = None,
    concurrency: int | None = None,
    **session_options: Any,
) -> Sweep:
    """Run a recipe once for each of its inputs and seeds; return the runs.

    A run that fails, exceeds its timeout, or kills its process is a row of the result. With a store or a folder of
    Parquet files, runs are written as they end, memory use stays flat, and an interrupted sweep continues where it
    stopped: finished runs are not repeated.

    Args:
        recipe: a recipe; or several, in a list or by name: each is run with all inputs.
        inputs: a list of mappings, or a DataFrame with one row per run and one column per input.
        seeds: every input is run with each of these seeds; default: seed 0.
        models: models by name, each as `llm=` of a Session; every input is run with each of them.
        executor: where to run; default: one process per core of this machine. For other process executors, the recipe
            and the options must be picklable. Dask: `client.get_executor()`.
        store: a path, a URL, or an EventLog; without one, the runs are kept in memory.
        parquet: a folder, instead of a store: the table of the runs and the seven frames are written to its
            subfolders, one file per 1,000 runs.
        progress: show a progress bar, in a notebook or on a terminal.
        timeout: the time limit of a run in seconds; a run that exceeds it has the status `timeout`.
        concurrency: how many runs share an event loop in each worker; default: 16 if anything in a run is awaited (an
            async function, a model), else 1.
        session_options: as for a Session: llm, tools, budget ...

    Raises:
        ExecutionError: A110, the inputs are neither mappings nor a table; A111, the executor cannot receive the recipe;
            A113, two recipes have the same name, there is none, or both a store and a folder are given; A115,
            `concurrency` or `timeout` is not positive; A117, an option is unknown; A119, a seed is not an integer.
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
    _check_numbers(concurrency, timeout)
    _check_options(session_options)
    seeds = _list_seeds(seeds)
    work = SweepSettings(_name_recipes(recipe), dict(models or {}), session_options, timeout, concurrency)
    if store is not None and parquet is not None:
        raise ExecutionError(
            Problem("A113", "both a store and a folder for Parquet files", "nb.sweep(store=..., parquet=...)",
                    "runs are written to one place", "leave one of them out")
        )  # fmt: skip
    jobs = Jobs(work, to_inputs(inputs), seeds)
    results: Results = ChunkResults()
    if parquet is not None:
        results = ParquetResults(parquet)
    elif store is not None:
        results = StoreResults(open_log(store))
    result = Sweep(work, results, jobs)
    known, todo = results.load_run_ids(), cast("Sequence[Job]", jobs)
    if known:
        for run_id in jobs.iter_ids():
            if run_id in known:
                results.add_known(run_id, known[run_id])
        todo = SelectedJobs(jobs, (number for number, run_id in enumerate(jobs.iter_ids()) if run_id not in known))
    with _progress_bar(len(jobs), len(jobs) - len(todo), shown=progress) as advance, results:
        for chunk in iter_results(work, todo, executor):
            results.add(chunk)
            advance(len(chunk.numbers))
    return result


def _check_numbers(concurrency: int | None, timeout: float | None) -> None:
    """Check the values of `concurrency` and `timeout`.

    A115: a number that a sweep was given is not positive.

    Raises:
        ExecutionError: A115.
    """
    meanings = {"concurrency": (concurrency, "how many runs share an event loop"),
                "timeout": (timeout, "the seconds that a run may take")}  # fmt: skip
    for name, (number, meaning) in meanings.items():
        if number is not None and not number > 0:
            raise ExecutionError(
                Problem("A115", f"{name} is {safe_repr(number)}", f"nb.sweep({name}=...)", f"it is {meaning}",
                        "leave it out, or pass a positive number")
            )  # fmt: skip


def _check_options(options: Mapping[str, Any]) -> None:
    """Check that each option is a Session option that a sweep does not set itself.

    A117: an option of a sweep is unknown, or is set by the sweep itself.

    Raises:
        ExecutionError: A117.
    """
    for name in options:
        if name in _OWN:
            what, why, do = f"nb.sweep() sets {name!r} itself", "it differs from run to run", _OWN[name]
        elif name not in _OPTIONS:
            what, why = f"there is no option {name!r}", f"the options of a session are: {', '.join(_OPTIONS)}"
            do = did_you_mean(name, [*_OPTIONS, "seeds", "models", "timeout", "store"], "use one of them")
        else:
            continue
        raise ExecutionError(Problem("A117", what, f"nb.sweep({name}=...)", why, do))


def _list_seeds(seeds: Iterable[int] | None) -> list[int]:
    """Return the seeds as a list.

    A119: a seed of a sweep is not an integer.

    Raises:
        ExecutionError: A119.
    """
    seed_list = [0] if seeds is None else list(seeds)
    for seed in seed_list:
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise ExecutionError(
                Problem("A119", f"the seed {safe_repr(seed, 60)} is not an integer", "nb.sweep(seeds=...)",
                        "each of the inputs is run with each seed", "pass numbers: seeds=range(10)")
            )  # fmt: skip
    return seed_list


def _name_recipes(recipe: Any) -> dict[str, Recipe]:
    """Return the recipes by name.

    A113: the recipes of a sweep cannot be told apart.

    Raises:
        ExecutionError: A113, two have the same name, or there is none.
    """
    if isinstance(recipe, Recipe):
        return {"": recipe}
    rows = list(recipe.items() if isinstance(recipe, Mapping) else ((each.name, each) for each in recipe))
    names = Counter(str(name) for name, _ in rows)
    twice = [name for name, count in names.items() if count > 1]
    if twice or not rows:
        what = f"two recipes are named {twice[0]!r}" if twice else "there is no recipe"
        raise ExecutionError(
            Problem("A113", what, "nb.sweep(recipe=...)", "the table of the runs names the recipe of each",
                    "name the recipes: {'first': recipe, 'second': other}")
        )  # fmt: skip
    return {str(name): each for name, each in rows}


@contextmanager
def _progress_bar(total: int, done: int, *, shown: bool) -> Iterator[Any]:
    """Yield a function to call with the number of runs finished since the last call."""
    if not shown or not total:
        yield lambda _count: None
        return
    with get_view("progress")(total, done) as advance:
        yield advance


# -- results --------------------------------------------------------------------------------------------------------


class Sweep:
    """The runs of a sweep. `runs` is a table with one row per run; `frames` are the seven tables over all runs."""

    def __init__(self, work: SweepSettings, results: Results, jobs: Jobs) -> None:
        self._work, self._results, self._jobs = work, results, jobs

    @property
    def recipe(self) -> Recipe:
        """The recipe; if there are several, the first."""
        return next(iter(self._work.recipes.values()))

    @property
    def runs(self) -> pd.DataFrame:
        """One row per run: run_id, inputs, seed, status, steps, seconds, tokens, cost, outputs, error.

        `status` is that of the session; or `timeout`, or `killed` if its process was. `seconds` is wall time, `cost` in
        US dollars; `outputs` are the declared outputs, or the whole board. A sweep over several recipes or models has
        the columns `recipe` and `model`, too.
        """
        from agentnb.trace.frames import make_table

        more = {"recipe": len(self._work.recipes) > 1, "model": bool(self._work.models)}
        types = _TYPES | {name: "object" for name, shown in more.items() if shown}
        return make_table(sorted(self._results.rows(self._jobs), key=lambda row: row["number"]), types)

    @property
    def failed(self) -> pd.DataFrame:
        """The rows of `runs` that did not finish."""
        runs = self.runs
        return runs[~runs["status"].isin(["finished", "idle"])].reset_index(drop=True)

    @property
    def frames(self) -> Any:
        """The seven tables over all runs, each with a leading column `run_id`; see `nb.frames`."""
        return self._results.frames(self._jobs)

    @property
    def charts(self) -> Any:
        """Charts of the runs, by Altair: outcomes, durations, outputs; see `SweepCharts`."""
        return get_view("sweep_charts")(self)

    @plain_arguments
    def session(self, run_id: str) -> Session:
        """Return one run as a session, at its end; it can be stepped back, forked and continued.

        Raises:
            StoreError: L413, there is no such run, or nothing of it was stored.
        """
        names = ("llm", "tools", "resources", "answers", "hooks")
        job = self._jobs.find(run_id)
        recipe = self.recipe if job is None else self._work.recipes[job.recipe]
        options = self._work.options if job is None else self._work.options_of(job)
        return self._results.session(
            run_id, recipe=recipe, **{name: options[name] for name in names if name in options}
        )

    def iter_runs(self) -> Iterator[Session]:
        """Yield every stored run as a read-only session, in the order of the table."""
        return self._results.sessions(self._jobs)

    def __len__(self) -> int:
        return len(self._results)

    def __repr__(self) -> str:
        """Return one line with the number of runs by status."""
        counts = self._results.counts
        return f"<Sweep of {len(self)} runs: {', '.join(f'{count} {status}' for status, count in counts.items())}>"


__all__ = ["Sweep", "sweep"]
