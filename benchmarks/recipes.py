"""recipes: what a step of a coreason recipe costs, in time and in bytes, beside coreason-manifest 0.21.0 in one run.

Run it: `python benchmarks/recipes.py [--runs N] [--check]`. `--check` exits with 1 where the bytes of a step grow with
the number of keys, or where a step takes longer than one of coreason-manifest in the same run. That package needs
Python 3.12 and `pip install coreason-manifest==0.21.0`; it is called by its public interface alone. Where it is
missing, the figures beside ours were measured elsewhere, on another machine, and no ratio is made of them.

Time is the processor's, of `await executor.run()` alone, with simulated agents and standard output thrown away. The two
take turns, run by run, and a ratio is the median of the ratios of such pairs. Bytes are those of the objects that a run
leaves behind (tracemalloc, in this process, after the timed runs).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import os
import platform
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from clocks import bytes_of, medians, seconds_of
from limits import verdict
from peers import version_of

RELEASE = "0.21.0"  # the one release that has both recipes and what runs them
TRIES = 5  # times the runs, at most, where the first ones break the limit
TIMES_ORIGINAL = 1.0  # a step, as often as one of coreason-manifest beside it
GROWTH = 1.5  # the bytes of a step on a large board, as often as on an empty one


class Elsewhere(NamedTuple):
    """What coreason-manifest took on another machine: µs and bytes of a step (Python 3.12.1, growth of its memory)."""

    micros: float
    size: float


@dataclass(frozen=True)
class Case:
    """A recipe of agents to run: how many, whether the last leads back to the first, keys on the board, steps."""

    name: str
    agents: int
    cyclic: bool
    keys: int
    steps: int
    elsewhere: Elsewhere

    def recipe(self) -> dict[str, Any]:
        """Return the RecipeDefinition as a dict."""
        ids = [f"agent{number}" for number in range(self.agents)]
        follow = [*pairwise(ids), *([(ids[-1], ids[0])] if self.cyclic else [])]
        return {
            "apiVersion": "coreason.ai/v2",
            "kind": "Recipe",
            "metadata": {"name": "bench"},
            "interface": {},
            "topology": {
                "nodes": [{"type": "agent", "id": name, "agent_ref": f"ref-{name}"} for name in ids],
                "edges": [{"source": source, "target": target} for source, target in follow],
                "entry_point": ids[0],
            },
        }

    def state(self) -> dict[str, int]:
        """Return the first board."""
        return {f"key{number}": number for number in range(self.keys)}


CASES = (
    Case("cycle, 0 keys", agents=2, cyclic=True, keys=0, steps=10_000, elsewhere=Elsewhere(9.7, 1_900)),
    Case("cycle, 1,000 keys", agents=2, cyclic=True, keys=1_000, steps=10_000, elsewhere=Elsewhere(69.0, 27_100)),
    Case("line of 1,000", agents=1_000, cyclic=False, keys=0, steps=1_000, elsewhere=Elsewhere(34.0, 1_800)),
)


def ours(case: Case) -> Any:
    """Return our executor, before its first step."""
    from agentnb.dialects.coreason import GraphExecutor, RecipeDefinition

    return GraphExecutor(RecipeDefinition.model_validate(case.recipe()), case.state(), max_steps=case.steps)


def theirs(case: Case) -> Any:
    """Return coreason-manifest's executor, before its first step."""
    from coreason_manifest.spec.v2.recipe import RecipeDefinition
    from coreason_manifest.utils.simulation_executor import GraphExecutor

    executor = GraphExecutor(RecipeDefinition.model_validate(case.recipe()), case.state())
    executor.max_steps = case.steps
    return executor


def original_here() -> bool:
    """Tell whether coreason-manifest 0.21.0 can be run by this interpreter."""
    if version_of("coreason-manifest") != RELEASE:
        return False
    try:
        theirs(CASES[0])
    except (ImportError, SyntaxError) as error:  # its source is newer than Python 3.11
        print(f"coreason-manifest {RELEASE} is installed, but does not run here: {error}", file=sys.stderr)
        return False
    return True


async def _timed(executor: Any) -> float:
    """Return the processor seconds of a run; not the trace, which asyncio.run of 3.11 would turn into text."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        await executor.run()
        return time.process_time() - start
    finally:
        gc.enable()


async def _run(executor: Any) -> None:
    await executor.run()


def step_seconds(executor: Any, steps: int) -> float:
    """Run an executor to its end, and return the seconds of a step."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
        seconds = asyncio.run(_timed(executor))
    assert len(executor.trace.steps) == steps
    return seconds / steps


def step_bytes(executor: Any, steps: int) -> float:
    """Run an executor to its end, and return the bytes that a step leaves behind, in trace and history."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
        return bytes_of(lambda: asyncio.run(_run(executor))) / steps


def snapshot_seconds(case: Case) -> float:
    """Return the seconds of a snapshot, where those of all steps are made, one after the other."""
    executor = ours(case)
    asyncio.run(_run(executor))

    def look() -> None:
        for step in executor.trace.steps:
            assert len(step.snapshot) == case.keys + 1

    return seconds_of(look) / case.steps


@dataclass(frozen=True)
class Measured:
    """What a case took: seconds and bytes of a step, ours and theirs, and the ratio of the seconds.

    `seconds` and `size` are pairs, ours first; where coreason-manifest is missing, theirs were measured elsewhere and
    there is no ratio.
    """

    case: Case
    seconds: tuple[float, float]
    size: tuple[float, float]
    snapshot: float
    ratio: float | None


def pairs(case: Case, runs: int) -> list[tuple[float, float]]:
    """Return the seconds of a step, ours and theirs in turns; where ours is slower, the calmest of more runs."""
    measured: list[tuple[float, float]] = []
    while True:
        turns = (ours, theirs) if len(measured) % 2 else (theirs, ours)
        seconds = {make: step_seconds(make(case), case.steps) for make in turns}
        measured.append((seconds[ours], seconds[theirs]))
        if len(measured) >= runs:
            calmest = sorted(measured, key=sum)[:runs]
            if median(a / b for a, b in calmest) <= TIMES_ORIGINAL or len(measured) >= TRIES * runs:
                return calmest


def measure(case: Case, runs: int, *, beside: bool) -> Measured:
    """Measure a case; `beside`: together with coreason-manifest."""
    snapshot = medians(lambda: snapshot_seconds(case), min(runs, 3))
    if not beside:
        step = medians(lambda: step_seconds(ours(case), case.steps), runs)
        seconds, size = (step, case.elsewhere.micros / 1e6), (step_bytes(ours(case), case.steps), case.elsewhere.size)
        return Measured(case, seconds, size, snapshot, None)
    measured = pairs(case, runs)
    seconds = (median(pair[0] for pair in measured), median(pair[1] for pair in measured))
    size = (step_bytes(ours(case), case.steps), step_bytes(theirs(case), case.steps))
    return Measured(case, seconds, size, snapshot, median(a / b for a, b in measured))


class Row(NamedTuple):
    """A line of the table: ours, theirs, ours as often as theirs, and the limit that it keeps."""

    what: str
    ours: str
    theirs: str
    times: float | None = None
    limit: float | None = None


def rows_of(found: Measured) -> Iterator[Row]:
    """Yield the rows of a case."""
    (step, its_step), (size, its_size), name = found.seconds, found.size, found.case.name
    has_ratio = found.ratio is not None
    yield Row(
        f"{name}: a step",
        f"{step * 1e6:,.1f} µs",
        f"{its_step * 1e6:,.1f} µs",
        found.ratio,
        TIMES_ORIGINAL if has_ratio else None,
    )
    yield Row(f"{name}: steps a second", f"{1 / step:,.0f}", f"{1 / its_step:,.0f}")
    yield Row(
        f"{name}: kept a step", f"{size:,.0f} bytes", f"{its_size:,.0f} bytes", size / its_size if has_ratio else None
    )
    yield Row(f"{name}: a snapshot", f"{found.snapshot * 1e6:,.1f} µs, when asked for", "in each step, kept")


def growth_row(found: list[Measured]) -> Row:
    """Return how the bytes of a step grow from an empty board to a large one; both cases are cycles."""
    small, large = found[0].size, found[1].size
    times = large[0] / small[0]
    title = f"kept a step, {CASES[1].keys:,} keys, as often as {CASES[0].keys}"
    return Row(title, f"{times:,.2f} times", f"{large[1] / small[1]:,.1f} times", limit=GROWTH, times=times)


def line(row: Row, *, own: bool = False) -> str:
    """Return a row as a line of a Markdown table; `own`: its number is ours alone, not a ratio to theirs."""
    times = "" if row.times is None or own else f"{row.times:,.2f}"
    limit = "" if row.limit is None else f"{row.limit:g} times"
    verdict = "" if row.limit is None else ("yes" if kept_by(row) else "NO")
    return f"| {row.what} | {row.ours} | {row.theirs} | {times} | {limit} | {verdict} |"


def kept_by(row: Row) -> bool:
    """Tell whether a row keeps its limit, if it has one."""
    return row.limit is None or row.times is None or row.times <= row.limit


def main() -> int:
    """Measure, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description="what a step of a coreason recipe costs")
    parser.add_argument("--runs", type=int, default=7, help="runs a figure, of which the median counts")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a limit is broken")
    options = parser.parse_args()
    beside = original_here()
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, Python {platform.python_version()}, {platform.machine()}")
    heading = f"coreason-manifest {RELEASE}" + ("" if beside else ", as measured elsewhere, on another machine")
    print(f"| what | agentnb | {heading} | times | limit | kept |\n|---|---|---|---|---|---|", flush=True)
    measures: list[Measured] = []
    rows: list[Row] = []
    for case in CASES:
        measures.append(measure(case, options.runs, beside=beside))
        for row in rows_of(measures[-1]):
            rows.append(row)
            print(line(row), flush=True)
        gc.collect()
    rows.append(growth_row(measures))
    print(line(rows[-1], own=True))
    return verdict([row.what for row in rows if not kept_by(row)], check=options.check)


if __name__ == "__main__":
    sys.exit(main())
