"""store: what it costs to keep a run: steps a second, reopening, forking, bytes a step; beside what others keep.

Run it: `python benchmarks/store.py [--steps N] [--json] [--check]`. `--check` exits with 1 where a limit is broken. The
others, activegraph with its SQLite store and LangGraph with its SqliteSaver, come with
`pip install agentnb-kit[bench]`.

Times are of the wall clock, for a disk is waited for. Beside them a plain loop that does nothing but commit one row a
step to SQLite is timed, the ratio is to that. All is done in a folder of its own, several times; the median counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

import networkx as nx
from limits import verdict
from peers import AT_REST, plain_loop

import agentnb as nb
from agentnb.session.state import get_state

RUNS = 5
STEP_LIMIT, BATCH_LIMIT = 2_000, 20_000  # steps a second
REOPEN_LIMIT, FORK_LIMIT = 1.0, 0.001  # seconds, for 100,000 steps; for one fork


class Row(NamedTuple):
    """One figure: what it is of, its unit, the limit, and whether more is better."""

    what: str
    value: float
    unit: str
    limit: float | None = None
    more: bool = False

    def kept(self, slower: float) -> bool:
        """Say whether the limit is kept on a machine that is `slower` times slower than one at rest."""
        if self.limit is None:
            return True
        return self.value * slower >= self.limit if self.more else self.value / slower <= self.limit


def looping(rounds: int) -> Any:
    """Return a recipe of two nodes that take turns; the board grows by nothing."""
    graph = nx.DiGraph(name="loop", entry="a")
    graph.add_node("a", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    graph.add_node("b", function=lambda n: {"m": n}, inputs={"n": "n"})
    graph.add_edge("a", "b")
    graph.add_edge("b", "a", when=f"n < {rounds}")
    return nb.load(graph)


def run_of(folder: Path, steps: int, durability: Any, store: bool = True) -> tuple[Any, float, Path]:
    """Run the loop with a store; return the session, the seconds, and the file."""
    path = folder / f"runs{len(list(folder.iterdir()))}.db"
    options = {"store": path, "durability": durability} if store else {}
    session = nb.Session(looping(steps // 2), {"n": 0, "m": 0}, budget={"max_steps": None}, **options)
    start = time.perf_counter()
    session.run()
    return session, time.perf_counter() - start, path


def size_of(path: Path) -> int:
    """Return the bytes of a store's file, with what SQLite keeps beside it."""
    return sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*"))


def commits(folder: Path, steps: int = 3_000) -> float:
    """Return the rows a second that plain SQLite commits one by one, as the store sets it up."""
    import sqlite3

    connection = sqlite3.connect(folder / f"plain{len(list(folder.iterdir()))}.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("CREATE TABLE rows (seq INTEGER PRIMARY KEY, body TEXT)")
    start = time.perf_counter()
    for number in range(steps):
        connection.execute("INSERT INTO rows VALUES (?, ?)", (number, "x" * 100))
    return steps / (time.perf_counter() - start)


def langgraph(folder: Path, steps: int = 500) -> float:
    """Return the steps a second of LangGraph with its SqliteSaver: a checkpoint a step."""
    import os
    from typing import TypedDict

    os.environ["LANGSMITH_TRACING"] = "false"
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph

    class State(TypedDict):
        n: int
        m: int

    graph: Any = StateGraph(State)
    graph.add_node("a", lambda board: {"n": board["n"] + 1})
    graph.add_node("b", lambda board: {"m": board["n"]})
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    graph.add_conditional_edges("b", lambda board: "a" if board["n"] < steps // 2 else END, ["a", END])
    with SqliteSaver.from_conn_string(str(folder / f"lg{len(list(folder.iterdir()))}.db")) as saver:
        app = graph.compile(checkpointer=saver)
        start = time.perf_counter()
        app.invoke({"n": 0, "m": 0}, {"configurable": {"thread_id": "b"}, "recursion_limit": steps + 10})
        return steps / (time.perf_counter() - start)


def activegraph(folder: Path, steps: int = 1_000) -> float:
    """Return the behaviors a second that the activegraph package runs with its SQLite store."""
    from activegraph import Behavior, Graph, Runtime

    def count(event: Any, graph: Any, _: Any) -> None:
        number = event.payload["n"]
        if number < steps:
            graph.emit("count", {"n": number + 1})

    behavior = Behavior(name="count", fn=count, on=["count"])
    path = str(folder / f"ag{len(list(folder.iterdir()))}.db")
    graph = Graph()
    runtime = Runtime(graph, behaviors=[behavior], persist_to=path)
    from activegraph import Event

    start = time.perf_counter()
    graph.emit(Event(id=graph.ids.event(), type="count", payload={"n": 1}, actor="user", frame_id=None,
                     caused_by=None, timestamp=graph.clock.now()))  # fmt: skip
    runtime.run_until_idle()
    return steps / (time.perf_counter() - start)


def of_others(folder: Path) -> list[Row]:
    """Return what the other libraries do in a second; one that is missing, or refuses, is left out and told."""
    rows = []
    for name, work in (("LangGraph, SqliteSaver: steps", langgraph), ("activegraph, SQLite: behaviors", activegraph)):
        try:
            work(folder)
            rows.append(Row(f"{name} a second", median(work(folder) for _ in range(3)), "1/s"))
        except ImportError as error:
            print(f"{name}: not here ({error})", file=sys.stderr)
    return rows


def measured(folder: Path, steps: int) -> list[Row]:
    """Return all figures of one run of this script."""

    def rate(durability: Any, count: int, store: bool = True) -> float:
        return median(count / run_of(folder, count, durability, store)[1] for _ in range(RUNS))

    rows = [
        Row("plain SQLite, a commit a row: rows a second", median(commits(folder) for _ in range(RUNS)), "1/s"),
        *of_others(folder),
        Row("not kept: steps a second", rate("step", steps, store=False), "1/s"),
        Row("kept step by step: steps a second", rate("step", 5_000), "1/s", STEP_LIMIT, more=True),
        Row("kept in batches: steps a second", rate("batch", steps), "1/s", BATCH_LIMIT, more=True),
    ]
    for durability in ("step", "batch"):
        session, _, path = run_of(folder, steps, durability)
        session.close()
        get_state(session).log.close()  # what SQLite keeps beside the file goes into it
        rows.append(Row(f"bytes a step, durability {durability!r}", size_of(path) / steps, "bytes"))
        recipe = session.recipe
        took = median(reopened(path, recipe) for _ in range(RUNS)) * 100_000 / steps
        rows.append(Row(f"100,000 steps reopened, durability {durability!r}", took, "s", REOPEN_LIMIT))
    reopened_run = nb.open(path, recipe=recipe)
    rows.append(Row("fork of a kept run", median(forked(reopened_run) for _ in range(30)), "s", FORK_LIMIT))
    return rows


def reopened(path: Path, recipe: Any) -> float:
    """Return the seconds that it takes to open a run again, ready to go on."""
    start = time.perf_counter()
    session = nb.open(path, recipe=recipe)
    took = time.perf_counter() - start
    session.close()
    return took


def forked(session: Any) -> float:
    """Return the seconds of one fork that is kept."""
    start = time.perf_counter()
    session.fork()
    return time.perf_counter() - start


def printed(rows: list[Row], slow: float) -> None:
    """Print the figures as a table."""
    print(f"this machine is {slow:.1f} times slower than at rest\n")
    print("| what | median | limit | kept |\n|---|---|---|---|")
    for row in rows:
        limit = "" if row.limit is None else f"{row.limit:,g} {row.unit}"
        verdict = "" if row.limit is None else "yes" if row.kept(slow) else "NO"
        value = f"{row.value:,.0f}" if row.value >= 100 else f"{row.value:.4g}"
        print(f"| {row.what} | {value} {row.unit} | {limit} | {verdict} |")


def main() -> int:
    """Measure, print, and with --check say whether all limits are kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    slower: Callable[[], float] = lambda: max(plain_loop() * 1e6 / AT_REST, 1.0)  # noqa: E731
    before = slower()
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(Path(folder), args.steps)
    slow = max(before, slower())
    if args.json:
        print(json.dumps({"slower": slow, "rows": [row._asdict() for row in rows]}, indent=2))
    else:
        printed(rows, slow)
    return verdict([row.what for row in rows if not row.kept(slow)], check=args.check)


if __name__ == "__main__":
    raise SystemExit(main())
