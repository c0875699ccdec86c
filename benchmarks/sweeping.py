"""sweeping: many short runs, in processes and in a store, beside LangGraph's `batch` and Mesa's `batch_run`.

Run it: `python benchmarks/sweeping.py [--runs N] [--memory N] [--check]`. `--check` exits with 1 where a limit is
broken. Every run makes eight trivial steps; a peer keeps no history of its runs, agentnb keeps all of it.

Limits are on the processor's time of whole sweeps, as the system counts it for the workers and for the process that
collects their results: what else the machine does counts little, and time is what it would be at rest (see
`peers.AT_REST`). A machine makes as many runs a second, per core, as both times of a run allow. Each worker has a core,
and the collecting process shares them: so a worker has its time divided by that of both of its rate alone. Rates of
wall time beside them are the median of several, ours and the peers' in turns. `--memory N` sweeps N runs, also into
SQLite and Parquet, and prints by how much the largest memory of the process grew.
"""

from __future__ import annotations

import argparse
import gc
import operator
import os
import platform
import resource
import sys
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Annotated, Any, TypedDict

sys.path.insert(0, str(Path(__file__).parent.parent))

import networkx as nx
from limits import verdict
from peers import AT_REST, plain_loop, version_of

import agentnb as nb
from agentnb.recipe.model import Recipe

PER_CORE = 3_000.0  # runs in a second, at rest
LINEAR = 0.9  # of the rate of one worker, per worker
STEPS = 8
SWEEP = 4_096  # runs of a sweep whose time is measured


def add(n: int) -> dict[str, int]:
    """Return the next number."""
    return {"n": n + 1}


def line() -> Recipe:
    """Return a recipe of eight steps."""
    graph: nx.DiGraph[str] = nx.DiGraph(name="line", inputs=["n"])
    for number in range(STEPS):
        graph.add_node(f"s{number}", function=add, inputs={"n": "n"})
        if number:
            graph.add_edge(f"s{number - 1}", f"s{number}")
    return nb.load(graph)


def rate_of(runs: int, work: Callable[[], Any]) -> float:
    """Return how many of these runs a second has."""
    gc.collect()
    start = perf_counter()
    work()
    return runs / (perf_counter() - start)


def seconds_of_processor(who: int) -> float:
    """Return the seconds that this process, or its children that have ended, have had of a processor."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def seconds_of_a_run(recipe: Recipe) -> dict[str, float]:
    """Return the processor's seconds of a run: in a worker; and where it is collected, in memory and in SQLite."""
    inputs = [{"n": number} for number in range(SWEEP)]
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        places: dict[str, dict[str, Any]] = {"SQLite": {"store": Path(folder) / "runs.db"}, "memory": {}}
        for place in places.values():  # make the file, and import what is imported late
            nb.sweep(recipe, [{"n": -1}], progress=False, **place)
        for name, place in places.items():
            gc.collect()
            own_seconds, child_seconds = map(seconds_of_processor, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
            nb.sweep(recipe, inputs, progress=False, **place)
            seconds[name] = (seconds_of_processor(resource.RUSAGE_SELF) - own_seconds) / SWEEP
            seconds["worker"] = (seconds_of_processor(resource.RUSAGE_CHILDREN) - child_seconds) / SWEEP
    return seconds


def at_rest(recipe: Recipe, runs: int) -> dict[str, float]:
    """Return the times of a run as they would be at rest; of all measurements the calmest half counts."""
    seconds = []
    for _ in range(2 * runs):
        before = plain_loop()
        times = seconds_of_a_run(recipe)
        seconds.append((max(before, plain_loop()), times))
    calm = sorted(seconds, key=lambda each: each[1]["worker"])[: max(1, len(seconds) // 2)]
    return {
        name: median(min(times[name], times[name] / loop * AT_REST * 1e-6) for loop, times in calm)
        for name in calm[0][1]
    }


def growth_of(recipe: Recipe, runs: int) -> None:
    """Print by how much the largest memory of the process grows in sweeps of so many runs."""
    inputs = [{"n": number} for number in range(runs)]

    def largest() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    with tempfile.TemporaryDirectory() as folder:
        places: list[dict[str, Any]] = [{}, {"store": Path(folder) / "runs.db"}, {"parquet": Path(folder) / "parts"}]
        for place in places:
            nb.sweep(recipe, [{"n": -1}], progress=False, **place)
            before = largest()
            swept = nb.sweep(recipe, inputs, progress=False, **place)
            print(f"{len(swept):,} runs, {next(iter(place), 'memory'):8} {largest() - before:6,.0f} MB more at most",
                  flush=True)  # fmt: skip


def sweep_with(recipe: Recipe, runs: int, workers: int) -> float:
    """Return the rate of a sweep in so many processes that have started."""
    inputs = [{"n": number} for number in range(runs)]
    with ProcessPoolExecutor(workers) as pool:
        nb.sweep(recipe, inputs[: 64 * workers], executor=pool, progress=False)
        return rate_of(runs, lambda: nb.sweep(recipe, inputs, executor=pool, progress=False))


def sweep_stored(recipe: Recipe, runs: int) -> float:
    """Return the rate of a sweep into SQLite, by all processes of this machine."""
    inputs = [{"n": number} for number in range(runs)]
    with tempfile.TemporaryDirectory() as folder:
        return rate_of(runs, lambda: nb.sweep(recipe, inputs, store=Path(folder) / "runs.db", progress=False))


class State(TypedDict):
    """The state of the peer's graph."""

    n: Annotated[int, operator.add]


def langgraph_batch(runs: int) -> float:
    """Return the rate of LangGraph's `batch`, in threads, without checkpoints."""
    os.environ["LANGSMITH_TRACING"] = os.environ["LANGCHAIN_TRACING_V2"] = "false"
    from langgraph.graph import START, StateGraph

    graph = StateGraph(State)
    graph.add_sequence([(f"s{number}", lambda _state: {"n": 1}) for number in range(STEPS)])
    graph.add_edge(START, "s0")
    compiled = graph.compile()
    inputs: list[Any] = [{"n": number} for number in range(runs)]
    return rate_of(runs, lambda: compiled.batch(inputs))


def mesa_batch(runs: int) -> float:
    """Return the rate of Mesa's `batch_run` in one process: a model without agents, eight steps."""
    import mesa

    class Counter(mesa.Model):  # type: ignore[misc]
        """Adds one in each step."""

        def __init__(self, n: int = 0, **more: Any) -> None:
            super().__init__(**more)
            self.n = n
            self.datacollector = mesa.DataCollector({"n": "n"})

        def step(self) -> None:
            """Add one, and collect it."""
            self.n += 1
            self.datacollector.collect(self)

    return rate_of(
        runs,
        lambda: mesa.batch_run(
            Counter, {"n": list(range(runs))}, number_processes=1, max_steps=STEPS, data_collection_period=1,
            display_progress=False,
        ),
    )  # fmt: skip


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="how often each figure is measured")
    parser.add_argument("--memory", type=int, default=0, help="how many runs are swept to see what memory grows by")
    parser.add_argument("--check", action="store_true", help="fail where a limit is broken")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    recipe, cores = line(), os.cpu_count() or 1
    if args.memory:
        growth_of(recipe, args.memory)
        return 0
    print(f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {cores} cores, "
          f"langgraph {version_of('langgraph')}, mesa {version_of('mesa')}")  # fmt: skip
    times = at_rest(recipe, args.runs)
    per_core, share = 1 / (times["worker"] + times["memory"]), times["worker"] / (times["worker"] + times["memory"])
    print(f"{'a run in its worker':28} {times['worker'] * 1e6:8,.0f} µs")
    for name in ("memory", "SQLite"):
        both = times["worker"] + times[name]
        print(f"{f'collecting it, {name}':28} {times[name] * 1e6:8,.0f} µs {1 / both:10,.0f} runs/s per core"
              f"{times['worker'] / both:8.2f} linear in workers")  # fmt: skip
    figures: dict[str, Callable[[], float]] = {
        "one worker": lambda: sweep_with(recipe, 3_000, 1),
        f"{cores} workers": lambda: sweep_with(recipe, 6_000, cores),
        "SQLite, all workers": lambda: sweep_stored(recipe, 2_000),
        "LangGraph batch": lambda: langgraph_batch(300),
        "Mesa batch_run": lambda: mesa_batch(300),
    }
    measurements = {name: list[float]() for name in figures}
    for _ in range(args.runs):
        for name, measure in figures.items():
            measurements[name].append(measure())
    for name, rates in measurements.items():
        print(f"{name:28} {median(rates):22,.0f} runs/s of wall time")
    broken = []
    if per_core < PER_CORE:
        broken.append(f"{per_core:,.0f} runs a second per core, at least {PER_CORE:,.0f}")
    if share < LINEAR:
        broken.append(f"{share:.2f} of linear in workers; at least {LINEAR}")
    return verdict(broken, check=args.check)


if __name__ == "__main__":
    sys.exit(main())
