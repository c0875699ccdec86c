"""Random graphs: keys with and without reducers, nodes that write, choose, send and command; deterministic."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from hypothesis import strategies as st
from langgraph.channels import EphemeralValue
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Overwrite, Send, interrupt

NAMES = ["a", "b", "c", "d", "e", "f"]


def union(old: list, new: list) -> list:
    return sorted({*old, *new})


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]
    total: Annotated[int, operator.add]
    names: Annotated[list, union]
    last: str
    brief: Annotated[str, EphemeralValue]


def node(name: str, plan: dict[str, Any]):
    """Return the function of a node: a record of what it sees, and the writes and targets of its plan."""

    def run(state: dict[str, Any]) -> Any:
        seen = sorted((key, str(value)) for key, value in state.items() if key != "log")
        seen += [interrupt(f"{name}{number}?") for number in range(plan["asks"])]
        update: dict[str, Any] = {"log": [f"{name}:{len(state.get('log', []))}:{seen}"]}
        if "total" in plan["writes"]:
            update["total"] = len(state.get("log", [])) + 1
        if "names" in plan["writes"]:
            update["names"] = [name]
        if "last" in plan["writes"]:
            update["last"] = f"{name}{state.get('total', 0)}"
        if "brief" in plan["writes"]:
            update["brief"] = name
        if "whole" in plan["writes"]:
            update["names"] = Overwrite([name, *state.get("names", [])][:3])
        targets = plan["goto"]
        if plan["fails"] and len(state.get("log", [])) > 3:
            raise ValueError(name)
        if targets is None:
            return update if plan["writes"] else None
        if len(state.get("log", [])) > 8:
            return update
        return Command(goto=[packet(to) for to in targets], update=update)

    run.__name__ = name
    return run


def packet(to: Any) -> Any:
    return Send(to[1], to[2]) if isinstance(to, tuple) else to


def condition(choices: list[list[Any]]):
    """Return a condition that chooses by what is on the board."""

    def choose(state: dict[str, Any]) -> Any:
        length = len(state.get("log", []))
        if length > 8:
            return END
        found = choices[(length + state.get("total", 0)) % len(choices)]
        return [packet(to) for to in found] if len(found) != 1 else packet(found[0])

    return choose


def build(plan: dict[str, Any]) -> Any:
    """Compile the graph of a plan."""
    graph = StateGraph(State)
    for name, each in plan["nodes"].items():
        inner = plan["inside"].get(name)
        graph.add_node(name, node(name, each) if inner is None else build(inner), defer=each["defer"])
    for target in plan["entry"]:
        graph.add_edge(START, target)
    if plan["entry_choice"]:
        graph.add_conditional_edges(START, condition(plan["entry_choice"]))
    for source, target in plan["edges"]:
        graph.add_edge(source, target)
    for sources, target in plan["joins"]:
        graph.add_edge(list(sources), target)
    for source, choices in plan["conditions"].items():
        graph.add_conditional_edges(source, condition(choices))
    return graph.compile()


def _target(names: list[str]):
    sent = st.tuples(st.just("send"), st.sampled_from(names), st.fixed_dictionaries({"total": st.integers(0, 5)}))
    return st.one_of(st.sampled_from(names), st.sampled_from(names), st.just(END), sent)


@st.composite
def plans(draw, depth: int = 0) -> dict[str, Any]:
    """Draw the plan of a graph of two to six nodes, some of which are graphs themselves."""
    names = NAMES[: draw(st.integers(2, 6 - 3 * depth))]
    nodes = {
        name: {
            "writes": draw(st.sets(st.sampled_from(["total", "names", "brief", "last", "whole"]), max_size=2)),
            "goto": draw(st.none() | st.none() | st.lists(_target(names), max_size=2)),
            "defer": draw(st.integers(0, 5)) == 0,
            "fails": draw(st.integers(0, 19)) == 0,
            "asks": max(0, draw(st.integers(0, 9)) - 7),
        }
        for name in names
    }
    pair = st.tuples(st.sampled_from(names), st.sampled_from([*names, END]))
    joined = st.tuples(st.lists(st.sampled_from(names), min_size=2, max_size=3, unique=True), st.sampled_from(names))
    choices = st.lists(st.lists(_target(names), min_size=1, max_size=3), min_size=1, max_size=3)
    graphs = {name for name in names if depth == 0 and draw(st.integers(0, 5)) == 0}
    return {
        "nodes": nodes,
        "inside": {name: draw(plans(depth=1)) for name in sorted(graphs)},
        "entry": draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)),
        "entry_choice": draw(st.none() | st.none() | choices),
        "edges": draw(st.lists(pair, max_size=5, unique=True)),
        "joins": draw(st.lists(joined, max_size=2, unique_by=lambda join: (tuple(sorted(join[0])), join[1]))),
        "conditions": draw(st.dictionaries(st.sampled_from(names), choices, max_size=3)),
    }
