"""Steps a second of one LangGraph program: here with the full history, and in LangGraph with InMemorySaver.

Usage: python benchmarks/langgraph_speed.py [--check]. Both run in turn, so that a busy machine slows both.
"""

from __future__ import annotations

import operator
import statistics
import sys
from typing import Annotated, Any, TypedDict

from clocks import seconds_of
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from limits import verdict

from agentnb.load import load
from agentnb.session import Session

ROUNDS, TIMES, AT_LEAST = 100, 9, 5


class State(TypedDict):
    """A counter, and a list that a reducer extends."""

    n: int
    log: Annotated[list[int], operator.add]


def program() -> StateGraph[Any]:
    """Return a loop of two nodes that ends after 100 rounds."""
    graph = StateGraph(State)
    graph.add_node("count", lambda state: {"n": state["n"] + 1})
    graph.add_node("note", lambda state: {"log": [state["n"]]})
    graph.add_edge(START, "count")
    graph.add_edge("count", "note")
    graph.add_conditional_edges("note", lambda state: END if state["n"] >= ROUNDS else "count", ["count", END])
    return graph


def main() -> int:
    """Print the processor time of a step and the median of the ratios."""
    graph = program()
    compiled, recipe = graph.compile(checkpointer=InMemorySaver()), load(graph)
    inputs: dict[str, Any] = {"n": 0, "log": []}
    pairs = []
    for number in range(TIMES):
        config: Any = {"configurable": {"thread_id": str(number)}, "recursion_limit": 3 * ROUNDS}
        session = Session(recipe, inputs)
        pairs.append((seconds_of(lambda c=config: compiled.invoke(inputs, c)), seconds_of(session.run)))
    theirs, ours = (statistics.median(column) / (2 * ROUNDS) * 1e6 for column in zip(*pairs, strict=True))
    ratio = statistics.median(their / our for their, our in pairs)
    print(f"LangGraph with InMemorySaver {theirs:7.1f} µs a step")
    print(f"agentnb, full history        {ours:7.1f} µs a step: {ratio:.1f} times as many a second")
    broken = [] if ratio >= AT_LEAST else [f"{ratio:.1f} times as many steps a second, at least {AT_LEAST} are wanted"]
    return verdict(broken, check="--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
