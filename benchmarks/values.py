"""values: what it costs to read a large value in a node and to write it back, beside LangGraph and a deep copy.

Run it: `python benchmarks/values.py [--runs N] [--check]`. `--check` exits with 1 where a limit is broken. Each figure
is the median of several runs of the processor's time, ours and the peer's in turns; limits are ratios to the peer, or
times at rest (see `peers.AT_REST`).
"""

from __future__ import annotations

import argparse
import copy
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, TypedDict

sys.path.insert(0, str(Path(__file__).parent.parent))

from clocks import seconds_of
from limits import verdict
from loops import one, two_nodes
from peers import AT_REST, measured_with_warnings_off, plain_loop, version_of

from agentnb.engine.core.work import Append
from agentnb.session import Session

STEPS = 100  # of a run; its start and end are spread over them
Board = Mapping[str, Any]


def message(number: int, *, nested: bool) -> dict[str, Any]:
    """Return a chat message: two texts and a number, and a tool call if nested."""
    flat = {"role": "user", "text": f"message number {number}", "n": number}
    return flat | ({"tool_calls": [{"name": "search", "args": {"query": f"q{number}"}}]} if nested else {})


def with_one_more(board: Board, *, nested: bool) -> dict[str, Any]:
    """Read the messages and write them back with one more."""
    return {"log": [*board["log"], message(len(board["log"]), nested=nested)]}


def read_and_append(board: Board) -> dict[str, Any]:
    """Read the messages and append one."""
    return {"log": Append({"role": "user", "text": board["log"][-1]["text"], "n": len(board["log"])})}


def count_docs(board: Board) -> dict[str, Any]:
    """Read the documents, write how many they are."""
    return {"n": len(board["docs"])}


def sum_docs(board: Board) -> dict[str, Any]:
    """Read a number of each document, write the sum."""
    return {"n": sum(doc["n"] for doc in board["docs"])}


def step_of(node: Callable[..., Any], board: dict[str, Any]) -> float:
    """Return the seconds of one step."""
    session = Session(two_nodes(node, node), board)
    session.run(max_steps=4)
    return seconds_of(lambda: session.run(max_steps=STEPS)) / STEPS


class State(TypedDict):
    """The state of the peer's graph."""

    log: list[Any]


def langgraph_step(size: int, *, nested: bool) -> float:
    """Return the seconds of a step of LangGraph with InMemorySaver that does the same."""
    os.environ["LANGSMITH_TRACING"] = os.environ["LANGCHAIN_TRACING_V2"] = "false"
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, StateGraph

    graph: Any = StateGraph(State)
    graph.add_node("a", partial(with_one_more, nested=nested))
    graph.add_edge(START, "a")
    graph.add_conditional_edges("a", lambda state: "a" if len(state["log"]) < size + STEPS else END, ["a", END])
    app = graph.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "bench"}, "recursion_limit": STEPS + 10}
    log = messages(size, nested=nested)
    return seconds_of(lambda: app.invoke({"log": log}, config)) / STEPS


def messages(size: int, *, nested: bool) -> list[Any]:
    """Return so many messages."""
    return [message(number, nested=nested) for number in range(size)]


@dataclass(frozen=True)
class Figure:
    """What is measured, beside what, and the limit: a ratio to the peer, or microseconds at rest."""

    what: str
    ours: Callable[[], float]
    peer: str = ""
    theirs: Callable[[], float] | None = None
    ratio: float | None = None
    microseconds: float | None = None


def figures() -> Iterator[Figure]:
    """Yield all figures."""
    langgraph = version_of("langgraph")
    for size in (200, 2_000, 20_000):
        for nested in (False, True):
            node = partial(with_one_more, nested=nested)
            theirs = partial(measured_with_warnings_off, partial(langgraph_step, size, nested=nested))
            yield Figure(
                f"{size:,} {'nested' if nested else 'flat'} messages, read and written back with one more",
                partial(step_of, node, {"log": messages(size, nested=nested)}),
                f"LangGraph {langgraph}" if langgraph else "not installed: pip install agentnb-kit[bench]",
                theirs if langgraph else None,
                0.1,
            )
    flat, docs = {"log": messages(2_000, nested=False)}, {"docs": messages(2_000, nested=True)}
    deep = partial(seconds_of, partial(copy.deepcopy, docs))
    yield Figure(
        "2,000 flat messages, the last read, `Append`", partial(step_of, read_and_append, flat), microseconds=50
    )
    yield Figure(
        "2,000 nested documents read, an integer written", partial(step_of, sum_docs, docs), "deepcopy", deep, 0.05
    )
    yield Figure(
        "`len(board[...])` of 2,000 nested documents",
        lambda: max(step_of(count_docs, docs) - step_of(one, {"n": 0}), 0.0),
        microseconds=10,
    )


def main() -> int:
    """Measure, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description="what reading and writing a large value costs")
    parser.add_argument("--runs", type=int, default=5, help="runs a figure, of which the median counts")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a limit is broken")
    options = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, Python {platform.python_version()}, {platform.machine()}")
    print("| a step | agentnb | beside | times | at rest | limit | kept |\n|---|---|---|---|---|---|---|", flush=True)
    broken = []
    for figure in figures():
        rows = [(figure.ours(), figure.theirs() if figure.theirs else 0.0, plain_loop()) for _ in range(options.runs)]
        ours = median(row[0] for row in rows) * 1e6
        rest = min(ours, median(row[0] / row[2] for row in rows) * AT_REST)
        beside, times, limit, ok = figure.peer, "", "", None
        if figure.theirs:
            ratio = median(row[0] / row[1] for row in rows)
            beside, times = f"{median(row[1] for row in rows) * 1e6:,.0f} µs ({figure.peer})", f"{ratio:.3f}"
            limit, ok = f"{figure.ratio:g} times", ratio <= (figure.ratio or 0.0)
        elif figure.microseconds:
            limit, ok = f"{figure.microseconds:g} µs", rest <= figure.microseconds
        if ok is False:
            broken.append(figure.what)
        verdict_text = {True: "yes", False: "NO", None: ""}[ok]
        print(
            f"| {figure.what} | {ours:,.1f} µs | {beside} | {times} | {rest:,.1f} µs | {limit} | {verdict_text} |",
            flush=True,
        )
    return verdict(broken, check=options.check)


if __name__ == "__main__":
    sys.exit(main())
