"""Recipes of very many parts: the work of a load grows with their number, not with its square.

Work is counted in calls of functions, not in time: four times the parts may take six times the calls.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import networkx as nx
import pytest
import yaml

import agentnb as nb
from agentnb.dialects import activegraph, polaris
from agentnb.errors import RecipeError

SMALL, TIMES, MOST = 80, 4, 6
CASES: dict[str, Callable[[int], Any]] = {}


def case(make: Callable[[int], Any]) -> Callable[[int], Any]:
    CASES[make.__name__] = make
    return make


def coreason(nodes: list[Any], edges: list[Any], **more: Any) -> dict[str, Any]:
    head = {"apiVersion": "coreason.ai/v2", "kind": "Recipe", "metadata": {"name": "n"}, "interface": {}}
    return {**head, "topology": {"nodes": nodes, "edges": edges, "entry_point": "n0"}, **more}


def agents(n: int, **more: Any) -> list[dict[str, Any]]:
    return [{"id": f"n{i}", "type": "agent", "agent_ref": "r", **more} for i in range(n)]


def runtime(nodes: list[Any], edges: list[Any], **more: Any) -> dict[str, Any]:
    graph = {"inputs": ["a"], "outputs": ["a"], "nodes": nodes, "edges": edges}
    return {"meta": {"name": "n"}, "state": {"reducer": "replace", "shape": {"a": ""}}, "graph": graph, **more}


def noops(n: int) -> list[dict[str, Any]]:
    return [{"id": f"n{i}", "type": "noop"} for i in range(n)]


def edges(n: int, source: str, target: str, leads: str = "n") -> list[dict[str, str]]:
    return [{source: f"n{i}", target: f"{leads}{i + 1}"} for i in range(n - 1)]


@case
def coreason_line(n: int) -> Any:
    return coreason(agents(n), edges(n, "source", "target"))


@case
def coreason_text(n: int) -> Any:
    return json.dumps(coreason(agents(n, wrong=1), edges(n, "source", "target")))


@case
def coreason_yaml(n: int) -> Any:
    return yaml.safe_dump(coreason(agents(n, system_prompt_override=5), edges(n, "source", "target")))


@case
def coreason_one_id(n: int) -> Any:
    return coreason(agents(1) * n, edges(n, "source", "target"))


@case
def coreason_lost_edges(n: int) -> Any:
    return coreason(agents(n), edges(n, "source", "target", "x"))


@case
def coreason_missing_and_unknown_keys(n: int) -> Any:
    return coreason([{"idd": f"n{i}", "type": "agent"} for i in range(n)], [{"sorce": "a", "taget": "b"}] * n)


@case
def coreason_schema(n: int) -> Any:
    node = {"id": "n0", "type": "generative", "goal": "g", "output_schema": {"type": [{"a": i} for i in range(n)]}}
    return coreason([node], [])


@case
def agentruntime_line(n: int) -> Any:
    return runtime(noops(n), edges(n, "from", "to"))


@case
def agentruntime_lost_edges(n: int) -> Any:
    return runtime(noops(n), edges(n, "from", "to", "x"))


@case
def agentruntime_lost_tools(n: int) -> Any:
    nodes = [{"id": f"n{i}", "type": "tool", "uses": f"u{i}"} for i in range(n)]
    tools = [{"id": f"t{i}", "kind": "python", "impl": "tools/a.py#f"} for i in range(n)]
    return runtime(nodes, edges(n, "from", "to"), tools=tools)


@case
def agentruntime_lost_prompts(n: int) -> Any:
    nodes = [{"id": f"n{i}", "type": "llm", "prompt": f"x{i}"} for i in range(n)]
    return runtime(nodes, [], prompts={"templates": {f"p{i}": {"user": "u"} for i in range(n)}})


@case
def agentruntime_lost_partials(n: int) -> Any:
    user = "".join(f"{{{{> r{i} }}}}" for i in range(n))
    prompts = {"partials": {f"q{i}": "x" for i in range(n)}, "templates": {"p": {"user": user}}}
    return runtime([{"id": "n0", "type": "llm", "prompt": "p"}], [], prompts=prompts)


@case
def lost_aliases(n: int) -> Any:
    return "".join(f"a{i}: &a{i} 1\n" for i in range(n)) + "".join(f"b{i}: *b{i}\n" for i in range(n))


@case
def symphony_tools(n: int) -> Any:
    return {"name": "d", "description": "d", "task": "t", "tools": [{"name": f"t{i}"} for i in range(n)]}


@case
def networkx_lost_entries(n: int) -> Any:
    graph = nx.DiGraph(name="g", entry=[f"x{i}" for i in range(n)])
    graph.add_nodes_from((i, {"kind": "noop"}) for i in range(n))
    return graph


@case
def networkx_entries_as_text(n: int) -> Any:
    graph = nx.DiGraph(name="g", entry=[str(i) for i in range(n)])
    graph.add_nodes_from((i, {"kind": "noop"}) for i in range(n))
    return graph


@case
def networkx_conditions(n: int) -> Any:
    graph = nx.MultiDiGraph(name="g", entry="a")
    graph.add_nodes_from(["a", "b"], kind="noop")
    graph.add_edges_from(("a", "b", {"when": f"x == {i}"}) for i in range(n))
    return graph


@polaris.system
async def work() -> int:
    return 1


@case
def polaris_switch(n: int) -> Any:
    graph = polaris.Graph()
    graph.add_switch("s", int, lambda value: value, {i: lambda inner: inner.add_system(work) for i in range(n)})
    return graph


@case
def polaris_loops(n: int) -> Any:
    graph = polaris.Graph()
    for i in range(n):
        graph.add_loop(f"l{i}", int, lambda value: value > 0, lambda inner: inner.add_system(work))
    return graph


@case
def activegraph_behaviors(n: int) -> Any:
    activegraph.clear_registry()
    results = []
    for i in range(n):

        @activegraph.behavior(name=f"b{i}", on=["goal.created"], where={"a": i})
        def act(event: Any, graph: Any, ctx: Any) -> None:
            """Do nothing."""

        results.append(act)
    return activegraph.Runtime(activegraph.Graph(), behaviors=results)


def calls_of(source: Any) -> int:
    """Return how many functions a load calls, those of C included."""
    count = 0

    def note(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        nb.load(source)
    except RecipeError:
        pass
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_the_time_to_load_grows_linearly_with_the_number_of_parts(make):
    calls_of(make(3))  # what is imported late
    few, many = calls_of(make(SMALL)), calls_of(make(TIMES * SMALL))
    assert many < MOST * few, f"{few:,} calls for {SMALL} parts, {many:,} for {TIMES * SMALL}"
