"""parallel: what a branch in flight costs, with 500 to 10,000 of them, beside LangGraph's `Send`.

Run it: `python benchmarks/parallel.py [--runs N] [--check]`. `--check` exits with 1 where a limit is broken. Each
figure is the median of several runs of the processor's time, ours and the peer's in turns. Every branch runs one
function, sync or async, that returns a number; the async one waits once. The peer has InMemorySaver, we have our
history. The limits are for async branches: a sync function runs in a thread, which costs more than the rest. Branches
that meet in a join have a limit of their own: what one of them costs may not grow with their number.
"""

from __future__ import annotations

import argparse
import asyncio
import operator
import os
import platform
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Any, TypedDict

sys.path.insert(0, str(Path(__file__).parent.parent))

import networkx as nx
from clocks import seconds_of
from limits import verdict
from peers import AT_REST, measured_with_warnings_off, plain_loop, version_of

import agentnb as nb
from agentnb.dialects.polaris import Graph, system
from agentnb.recipe.model import Node, Recipe, Region
from agentnb.session import Session

LIMIT = 60.0  # µs a branch, at rest
AHEAD = 5.0  # times
GROWTH = 1.3  # times, from 400 branches that meet in a join to 3,000


def waiting(number: int) -> Callable[..., Any]:
    """Return a branch's async function."""

    async def branch(_board: Any) -> dict[str, int]:
        await asyncio.sleep(0)
        return {"found": number}

    return branch


def plain(number: int) -> Callable[..., Any]:
    """Return a branch's sync function: it runs in a thread."""
    return lambda _board: {"found": number}


def recipe(branches: int, function: Callable[[int], Callable[..., Any]]) -> Recipe:
    """Return a parallel node with so many branches of one node."""
    names = [f"branch{number}" for number in range(branches)]
    nodes = {"all": Node("all", "parallel", bodies=tuple(names))}
    regions = {"root": Region("root", ("all",))}
    for number, name in enumerate(names):
        node = f"{name}_work"
        nodes[node] = Node(node, "function", scope=name, params={"function": function(number)})
        regions[name] = Region(name, (node,), owner="all")
    return Recipe("branches", "graph", nodes, (), ("all",), regions=regions)


def branch_of(branches: int, function: Callable[[int], Callable[..., Any]]) -> float:
    """Return the seconds of one branch."""
    session = Session(recipe(branches, function))
    seconds = seconds_of(session.run)
    assert session.status == "finished"
    return seconds / branches


def parallel_section(branches: int) -> Any:
    """Return polaris's parallel branches with their join."""
    graph = Graph("meeting")
    graph.add_parallel("all", [system(work)] * branches)
    return graph


async def work() -> int:
    """Return a number, as a system of polaris."""
    return 1


def parallel_edges(branches: int) -> Any:
    """Return a networkx graph whose parallel edges lead to a join."""
    graph = nx.DiGraph(name="meeting", entry="begin")
    graph.add_node("begin", function=dict)
    graph.add_node("meet", kind="join")
    for number in range(branches):
        graph.add_node(f"branch{number}", function=waiting(number))
        graph.add_edge("begin", f"branch{number}", kind="parallel")
        graph.add_edge(f"branch{number}", "meet")
    return graph


def meeting_of(branches: int, make: Callable[[int], Any]) -> float:
    """Return the seconds of one of the branches that meet in a join."""
    session = Session(nb.load(make(branches)), budget={"max_steps": 10**6})
    seconds = seconds_of(session.run)
    assert session.status == "finished"
    return seconds / branches


def check_meetings(runs: int) -> list[str]:
    """Measure branches that meet in a join, print the table, and return what breaks the limit."""
    print("\n| branches that meet | 400 | 3,000 | growth | kept |\n|---|---|---|---|---|", flush=True)
    broken = []
    for name, make in (("polaris `add_parallel`", parallel_section), ("networkx `join`", parallel_edges)):
        rows = [(meeting_of(400, make), meeting_of(3_000, make)) for _ in range(runs)]
        few, many = (median(column) * 1e6 for column in zip(*rows, strict=True))
        growth = median(later / first for first, later in rows)
        if growth > GROWTH:
            broken.append(f"{name}: {growth:.1f} times")
        print(
            f"| {name} | {few:,.1f} µs | {many:,.1f} µs | {growth:.2f} times | {'NO' if growth > GROWTH else 'yes'} |"
        )
    return broken


class State(TypedDict):
    """The state of the peer's graph."""

    found: Annotated[list[int], operator.add]


def send_of(branches: int, *, asynchronous: bool) -> float:
    """Return the seconds of one branch of LangGraph: a `Send` to a node that does the same."""
    os.environ["LANGSMITH_TRACING"] = os.environ["LANGCHAIN_TRACING_V2"] = "false"
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import Send

    async def later(state: Any) -> dict[str, list[int]]:
        await asyncio.sleep(0)
        return {"found": [state["number"]]}

    graph: Any = StateGraph(State)
    graph.add_node("work", later if asynchronous else lambda state: {"found": [state["number"]]})
    graph.add_conditional_edges(START, lambda _: [Send("work", {"number": n}) for n in range(branches)], ["work"])
    graph.add_edge("work", END)
    app = graph.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "bench"}}
    if asynchronous:
        return seconds_of(lambda: asyncio.run(app.ainvoke({"found": []}, config))) / branches
    return seconds_of(lambda: app.invoke({"found": []}, config)) / branches


def main() -> int:
    """Measure, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description="what a parallel branch costs")
    parser.add_argument("--runs", type=int, default=5, help="runs a figure, of which the median counts")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a limit is broken")
    options = parser.parse_args()
    langgraph = version_of("langgraph")
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, Python {platform.python_version()}, {platform.machine()}")
    print(
        f"| branches | agentnb: a branch | at rest | LangGraph {langgraph or 'not installed'} `Send` | ahead | kept |"
    )
    print("|---|---|---|---|---|---|", flush=True)
    broken = []
    for kind, function in (("async", waiting), ("sync", plain)):
        for branches in (500, 1_000, 2_000, 10_000):
            beside = langgraph is not None and branches < 10_000
            theirs = partial(measured_with_warnings_off, partial(send_of, branches, asynchronous=kind == "async"))
            rows = [
                (branch_of(branches, function), theirs() if beside else 0.0, plain_loop()) for _ in range(options.runs)
            ]
            ours = median(row[0] for row in rows) * 1e6
            rest = min(ours, median(row[0] / row[2] for row in rows) * AT_REST)
            ahead = median(row[1] / row[0] for row in rows)
            ok = None if kind == "sync" else rest <= LIMIT and (not beside or ahead >= AHEAD)
            if ok is False:
                broken.append(f"{branches:,} {kind} branches")
            verdict_text = {True: "yes", False: "NO", None: ""}[ok]
            peer = f"{median(row[1] for row in rows) * 1e6:,.0f} µs | {ahead:.1f} times" if beside else " | "
            print(
                f"| {branches:,} {kind} | {ours:,.1f} µs | {rest:,.1f} µs | {peer} | {verdict_text} |",
                flush=True,
            )
    return verdict([*broken, *check_meetings(options.runs)], check=options.check)


if __name__ == "__main__":
    sys.exit(main())
