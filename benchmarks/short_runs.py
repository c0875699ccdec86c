"""short_runs: what a run of eight trivial steps costs: made and finished, its frames, kept; a long line; the import.

Run it: `python benchmarks/short_runs.py [--runs N] [--check]`. `--check` exits with 1 where a limit is broken. Each
figure is the median of several measurements of the processor's time, ours and the peer's in turns; limits are times at
rest (see `peers.AT_REST`). Garbage of a group of runs is collected after it, not meanwhile.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, TypedDict

sys.path.insert(0, str(Path(__file__).parent.parent))

import networkx as nx
from clocks import seconds_of
from limits import verdict
from peers import AT_REST, measured_with_warnings_off, plain_loop, version_of

import agentnb as nb
from agentnb.recipe.model import Recipe
from agentnb.store import open_log

STEPS = 8
GROUP = 200  # runs that are measured together: the first ones after a garbage collection pay for its emptied caches
KEPT = 200
LINE = 20_000


def line(nodes: int) -> nx.DiGraph[str]:
    """Return a line of nodes that count."""
    graph: nx.DiGraph[str] = nx.DiGraph(name="line")
    names = [f"n{number}" for number in range(nodes)]
    for name in names:
        graph.add_node(name, function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    nx.add_path(graph, names)
    return graph


def run_once(recipe: Recipe, **options: Any) -> nb.Session:
    """Make a session and finish its run."""
    session = nb.Session(recipe, {"n": 0}, **options)
    session.run()
    return session


def run_of(recipe: Recipe) -> float:
    """Return the seconds of a run, made and finished."""

    def runs() -> None:
        for _ in range(GROUP):
            run_once(recipe)

    return seconds_of(runs) / GROUP


def session_of(recipe: Recipe) -> float:
    """Return the seconds of making a session."""

    def sessions() -> None:
        for _ in range(GROUP):
            nb.Session(recipe, {"n": 0})

    return seconds_of(sessions) / GROUP


def frames_of(recipe: Recipe) -> float:
    """Return the seconds of all frames of a run."""
    sessions = [run_once(recipe) for _ in range(GROUP)]

    def frames() -> None:
        for session in sessions:
            list(session.trace.frames.values())

    return seconds_of(frames) / GROUP


def kept(recipe: Recipe) -> float:
    """Return the seconds of a run that is kept in SQLite, in batches."""
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "runs.db")
        log = open_log(store)
        run_once(recipe, store=store, durability="batch").close()  # makes the file, which is not what is measured

        def runs() -> None:
            for _ in range(KEPT):
                run_once(recipe, store=store, durability="batch").close()

        seconds = seconds_of(runs) / KEPT
        assert len(log.runs()) == KEPT + 1
        log.close()
    return seconds


class Board(TypedDict):
    """The state of the peer's graph."""

    n: int


def langgraph_app() -> Any:
    """Return LangGraph's compiled graph of the same line, without checkpoints."""
    os.environ["LANGSMITH_TRACING"] = os.environ["LANGCHAIN_TRACING_V2"] = "false"
    from langgraph.graph import START, StateGraph

    graph: Any = StateGraph(Board)
    before = START
    for number in range(STEPS):
        graph.add_node(f"n{number}", lambda board: {"n": board["n"] + 1})
        graph.add_edge(before, f"n{number}")
        before = f"n{number}"
    return graph.compile()


def langgraph_of(app: Any) -> float:
    """Return the seconds of one run of it."""
    return seconds_of(lambda: [app.invoke({"n": 0}) for _ in range(GROUP)]) / GROUP


def import_of(statement: str) -> float:
    """Return the seconds that a new process spends on a statement, without those of an empty one."""

    def spent(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603  (code of this file)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return max(spent(statement) - spent("pass"), 1e-4)


@dataclass(frozen=True)
class Row:
    """One figure: what it is of, how it is measured, its limit in seconds at rest, its peer and that one's name."""

    what: str
    measure: Callable[[], float]
    limit: float | None
    beside: str = ""
    peer: Callable[[], float] | None = None


def rows() -> list[Row]:
    """Return the figures."""
    recipe, graph = nb.load(line(STEPS)), line(LINE)
    long = nb.load(graph)
    name, peer = "", None
    if (langgraph := version_of("langgraph")) is not None:
        app = measured_with_warnings_off(langgraph_app)
        name, peer = f"LangGraph {langgraph}, no checkpoints", lambda: langgraph_of(app)
    imports = "import networkx, pydantic; pydantic.BaseModel"
    return [
        Row(f"a run of {STEPS} steps, made and finished", lambda: run_of(recipe), 120e-6, name, peer),
        Row("  its session alone", lambda: session_of(recipe), None),
        Row("  its seven frames", lambda: frames_of(recipe), 3e-3),
        Row("  kept in SQLite, in batches", lambda: kept(recipe), 1e-3),
        Row(f"a line of {LINE:,} nodes: load", lambda: seconds_of(lambda: nb.load(graph)), 0.4),
        Row("  a session", lambda: seconds_of(lambda: nb.Session(long, {"n": 0})), 0.02),
        Row("`import agentnb`", lambda: import_of("import agentnb"), 0.12, f"`{imports}`", lambda: import_of(imports)),
        Row("  with `load` and `Session`", lambda: import_of("import agentnb as nb; nb.load; nb.Session"), None),
    ]


def shown(seconds: float) -> str:
    """Return a time for people."""
    return f"{seconds * 1e6:,.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:,.2f} ms"


def main() -> int:
    """Measure, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description="what short runs cost")
    parser.add_argument("--runs", type=int, default=7, help="measurements a figure, of which the median counts")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a limit is broken")
    options = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, Python {platform.python_version()}, {platform.machine()}")
    print("| what | agentnb | at rest | beside it | times | limit | kept |\n|---|---|---|---|---|---|---|", flush=True)
    broken = []
    for row in rows():
        row.measure()  # what is imported and compiled once is not what is measured
        measures = [(row.measure(), row.peer() if row.peer else 0.0, plain_loop()) for _ in range(options.runs)]
        ours = median(each[0] for each in measures)
        rest = min(ours, median(each[0] / each[2] for each in measures) * AT_REST * 1e-6)
        peer = f"{row.beside}: {shown(median(each[1] for each in measures))}" if row.peer else ""
        times = f"{median(each[1] / each[0] for each in measures):.1f}" if row.peer else ""
        ok = row.limit is None or rest <= row.limit
        if not ok:
            broken.append(row.what.strip())
        limit, verdict_text = ("", "") if row.limit is None else (shown(row.limit), "yes" if ok else "NO")
        print(
            f"| {row.what} | {shown(ours)} | {shown(rest)} | {peer} | {times} | {limit} | {verdict_text} |", flush=True
        )
    return verdict(broken, check=options.check)


if __name__ == "__main__":
    sys.exit(main())
