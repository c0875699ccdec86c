"""peers: the loop of two trivial nodes elsewhere: as plain Python, LangGraph, Burr and pydantic-graph.

Each function runs the loop once and returns the seconds of one step. None of them reaches the network.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple, TypedDict

from clocks import seconds_of

LOOPS = 500  # of two steps each

# A step of the plain loop, in µs, on the machine that the limits are for, while it has nothing else to do. Where the
# plain loop is slower, the machine is: then a figure's time is its ratio to the plain loop beside it, times this.
AT_REST = 0.28


class Peer(NamedTuple):
    """Another library: the package that brings it, the history that it keeps here, and what runs the loop."""

    name: str
    package: str
    keeps: str
    run: Callable[[], float]


class Counts(TypedDict):
    """The state of the loop: `n` counts its rounds, `m` is what the second node makes of it."""

    n: int
    m: int


def first(board: Any) -> dict[str, int]:
    """Count on."""
    return {"n": board["n"] + 1}


def second(board: Any) -> dict[str, int]:
    """Pass it on."""
    return {"m": board["n"]}


def plain_loop(steps: int = 5_000) -> float:
    """Run the two functions with a dict and nothing else: no history, no way back."""
    nodes, board, current = {"a": (first, "b"), "b": (second, "a")}, {"n": 0, "m": 0}, "a"

    def loop() -> None:
        nonlocal current
        for _ in range(steps):
            function, current = nodes[current]
            board.update(function(board))

    return seconds_of(loop) / steps


def langgraph_loop() -> float:
    """Run it in LangGraph with InMemorySaver: one checkpoint a step."""
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        os.environ[name] = "false"
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, StateGraph

    graph: Any = StateGraph(Counts)
    graph.add_node("a", first)
    graph.add_node("b", second)
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    graph.add_conditional_edges("b", lambda board: "a" if board["n"] < LOOPS else END, ["a", END])
    app = graph.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "bench"}, "recursion_limit": 2 * LOOPS + 10}
    return seconds_of(lambda: app.invoke({"n": 0, "m": 0}, config)) / (2 * LOOPS)


def burr_loop() -> float:
    """Run it in Burr with its local tracker, which writes files into a folder that goes away again."""
    os.environ["HAMILTON_TELEMETRY_ENABLED"] = os.environ["BURR_TELEMETRY_ENABLED"] = "false"
    from burr.core import ApplicationBuilder, State, action, default, expr
    from burr.tracking import LocalTrackingClient

    @action(reads=["n"], writes=["n"])
    def a(state: State) -> State:
        return state.update(**first(state))

    @action(reads=["n"], writes=["m"])
    def b(state: State) -> State:
        return state.update(**second(state))

    @action(reads=["n"], writes=[])
    def stop(state: State) -> State:
        return state

    with tempfile.TemporaryDirectory() as folder:
        builder: Any = ApplicationBuilder().with_actions(a, b, stop)
        app = (
            builder.with_transitions(("a", "b", default), ("b", "a", expr(f"n < {LOOPS}")), ("b", "stop", default))
            .with_state(n=0, m=0)
            .with_entrypoint("a")
            .with_tracker(LocalTrackingClient("bench", storage_dir=folder))
            .build()
        )
        return seconds_of(lambda: app.run(halt_after=["stop"])) / (2 * LOOPS)


def pydantic_graph_loop() -> float:
    """Run it in pydantic-graph, iterated node by node; a copy of its state is kept after each."""
    from pydantic_graph import GraphBuilder, StepContext

    graph: Any = GraphBuilder(state_type=dict, output_type=int, auto_instrument=False)

    async def a(ctx: Any) -> int:
        ctx.state.update(first(ctx.state))
        return int(ctx.state["n"])

    async def b(ctx: Any) -> int:
        ctx.state.update(second(ctx.state))
        return int(ctx.state["m"])

    for function in (a, b):
        function.__annotations__["ctx"] = StepContext[dict, None, Any]
    node_a, node_b = graph.step(a), graph.step(b)
    more = graph.decision().branch(graph.match(int, matches=lambda n: n < LOOPS).to(node_a))
    more = more.branch(graph.match(int).to(graph.end_node))
    graph.add(graph.edge_from(graph.start_node).to(node_a), graph.edge_from(node_a).to(node_b))
    graph.add(graph.edge_from(node_b).to(more))
    built, history = graph.build(), []

    async def loop() -> None:
        state = {"n": 0, "m": 0}
        async with built.iter(state=state) as run:
            async for _ in run:
                history.append(dict(state))  # noqa: PERF401  (the state as it is now, not at the end)

    return seconds_of(lambda: asyncio.run(loop())) / (2 * LOOPS)


PEERS = (
    Peer("LangGraph", "langgraph", "InMemorySaver, a checkpoint a step", langgraph_loop),
    Peer("Burr", "apache-burr", "its local tracker, to files", burr_loop),
    Peer("pydantic-graph", "pydantic-graph", "nothing of its own: a copied dict a step", pydantic_graph_loop),
)


def version_of(package: str) -> str | None:
    """Return the version of a package; None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def measured(peer: Peer) -> float:
    """Run a peer's loop once; its warnings are its own."""
    return measured_with_warnings_off(peer.run)


def measured_with_warnings_off(run: Callable[[], float]) -> float:
    """Return what a peer's measurement returns; its warnings are its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run()
