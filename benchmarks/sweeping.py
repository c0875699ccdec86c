"""sweeping: many short runs, in processes and in a store, beside LangGraph's `batch` and Mesa's `batch_run`.

Run it: `python benchmarks/sweeping.py [--runs N] [--check]`. `--check` exits with 1 where a limit is broken. Every run
makes eight trivial steps. Rates are runs in a second of wall time, the median of several, ours and the peers' in
turns; a peer keeps no history of its runs, agentnb keeps all of it.
"""

from __future__ import annotations

import argparse
import gc
import operator
import os
import platform
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
from peers import version_of

import agentnb as nb
from agentnb.recipe.model import Recipe

PER_CORE = 3_000.0  # runs in a second, at rest
LINEAR = 0.9  # of the rate of one worker, per worker
STEPS = 8


def add(n: int) -> dict[str, int]:
    """Return the next number."""
    return {"n": n + 1}


def line() -> Recipe:
    """Return a recipe of eight steps."""
    graph = nx.DiGraph(name="line", inputs=["n"])
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
    parser.add_argument("--check", action="store_true", help="fail where a limit is broken")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    recipe, cores = line(), os.cpu_count() or 1
    figures: dict[str, Callable[[], float]] = {
        "one worker": lambda: sweep_with(recipe, 3_000, 1),
        f"{cores} workers": lambda: sweep_with(recipe, 6_000, cores),
        "SQLite, all workers": lambda: sweep_stored(recipe, 2_000),
        "LangGraph batch": lambda: langgraph_batch(300),
        "Mesa batch_run": lambda: mesa_batch(300),
    }
    found = {name: list[float]() for name in figures}
    for _ in range(args.runs):
        for name, measure in figures.items():
            found[name].append(measure())
    rates = {name: median(each) for name, each in found.items()}
    print(f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {cores} cores, "
          f"langgraph {version_of('langgraph')}, mesa {version_of('mesa')}")  # fmt: skip
    for name, rate in rates.items():
        print(f"{name:22} {rate:10,.0f} runs/s")
    share = rates[f"{cores} workers"] / cores / rates["one worker"]
    print(f"{'linear in workers':22} {share:10.2f}")
    broken = []
    if rates["one worker"] < PER_CORE:
        broken.append(f"{rates['one worker']:,.0f} runs a second in one worker, at least {PER_CORE:,.0f}")
    if share < LINEAR:
        broken.append(f"{cores} workers have {share:.2f} of the rate of one, each; at least {LINEAR}")
    return verdict(broken, check=args.check)


if __name__ == "__main__":
    sys.exit(main())
