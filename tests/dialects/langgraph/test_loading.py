"""Loading a graph of LangGraph: what the recipe shows, what is refused by name, and what is not imported."""

from __future__ import annotations

import subprocess
import sys
from typing import Literal, TypedDict

import pytest
from langgraph.channels import EphemeralValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.pregel import NodeBuilder, Pregel
from langgraph.types import Command, RetryPolicy

from agentnb.errors import RecipeError
from agentnb.load import load


class State(TypedDict, total=False):
    n: int


def graph(**words):
    built_graph = StateGraph(State)
    built_graph.add_node("a", lambda state: {"n": 1}, **words)
    built_graph.add_node("b", lambda state: {"n": 2})
    built_graph.add_edge(START, "a")
    built_graph.add_conditional_edges("a", lambda state: "more", {"more": "b", "again": "a"})
    return built_graph


def outer(**words):
    built_graph = StateGraph(State)
    built_graph.add_node("a", graph().compile(), **words)
    built_graph.add_edge(START, "a")
    return built_graph


def test_a_graph_is_loaded_without_compiling_the_object_of_the_user():
    built_graph = graph()
    recipe = load(built_graph)
    assert not built_graph.compiled
    assert list(recipe.nodes) == ["a", "b"]
    assert [(edge.source, edge.target, edge.condition) for edge in recipe.edges] == [
        ("a", "b", "more"), ("a", "a", "again"),
    ]  # fmt: skip
    assert "more" in recipe.draw().dot


@pytest.mark.parametrize(
    "words", [{}, {"destinations": ("b", "c", END)}, {"destinations": {"b": "label", "c": "other"}}]
)
def test_a_command_may_lead_to_the_declared_targets_of_its_node(words):
    def goes(state) -> Command[Literal["b", "c", "__end__"]]:
        return Command(goto="c")

    def unknown(state):
        return Command(goto="c")

    built_graph = StateGraph(State)
    built_graph.add_node("a", unknown if words else goes, **words)
    for name in ("b", "c"):
        built_graph.add_node(name, lambda state: {"n": 2})
    built_graph.add_edge(START, "a")
    recipe = load(built_graph)
    edges = sorted((edge.source, edge.target, edge.kind) for edge in recipe.edges)
    assert edges == [("a", "b", "route"), ("a", "c", "route")]


@pytest.mark.parametrize("handler", ["own", "default"])
def test_a_condition_without_declared_targets_may_lead_to_all_other_nodes_but_error_handlers(handler):
    words = {"error_handler": lambda state: {"n": 0}}
    built_graph = StateGraph(State)
    if handler == "default":
        built_graph.set_node_defaults(**words)
    for name in ("a", "b", "c"):
        built_graph.add_node(name, lambda state: {"n": 1}, **(words if handler == "own" else {}))
    for source in (START, "b"):
        built_graph.add_conditional_edges(source, lambda state: "a")
    routes = [(edge.source, edge.target, edge.condition) for edge in load(built_graph).edges if edge.kind == "route"]
    assert sorted(routes) == [
        *((START, target, target) for target in ("a", "b", "c")), *(("b", target, target) for target in ("a", "c")),
    ]  # fmt: skip


def test_nothing_of_langgraph_is_imported_without_it():
    code = """if True:
        import sys
        import agentnb as nb
        nb.load(nb.samples("triage"))
        print([name for name in sys.modules if name.startswith("lang")])
    """
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def by_hand():
    """Return a graph that is neither a StateGraph nor an entrypoint."""
    node = NodeBuilder().subscribe_only("a").do(lambda value: value).write_to("b")
    channels = {"a": EphemeralValue(str), "b": EphemeralValue(str)}
    return Pregel(nodes={"n": node}, channels=channels, input_channels="a", output_channels="b")


def invokes(**words):
    """Return a graph with a node whose function invokes a graph that was compiled so."""
    inner = graph().compile(**words)

    def run(state):
        return inner.invoke(state)

    built_graph = StateGraph(State)
    built_graph.add_node("a", run)
    built_graph.add_edge(START, "a")
    return built_graph.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (by_hand, "L531"),
        (lambda: outer(retry_policy=RetryPolicy()), "L531"),
        (lambda: outer(timeout=1), "L531"),
        (lambda: invokes(checkpointer=True), "L531"),
        (lambda: invokes(interrupt_before=["a"]), "L531"),
        (lambda: invokes(interrupt_after="*"), "L531"),
        (lambda: StateGraph(State), "L532"),
    ],
)
def test_unsupported_features_are_rejected_by_name(made, code):
    with pytest.raises(RecipeError) as caught:
        load(made())
    assert caught.value.problems[0].code == code


def test_all_unsupported_features_are_reported_at_once():
    workflow = outer(retry_policy=RetryPolicy())
    workflow.add_node("c", graph().compile(), retry_policy=RetryPolicy())
    workflow.add_edge("a", "c")
    with pytest.raises(RecipeError) as caught:
        load(workflow)
    assert len(caught.value.problems) >= 2


@pytest.mark.parametrize("name", ["StateGraph", "CompiledStateGraph", "Pregel", "RemoteGraph"])
def test_a_class_of_another_package_is_not_a_graph(name):
    with pytest.raises(RecipeError, match="R107"):
        load(type(name, (), {"__module__": "langgraphs.graph"})())
