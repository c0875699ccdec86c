"""Every option of LangGraph's constructors: with it, a graph runs as it does there, or is refused by name."""

from __future__ import annotations

import asyncio
import inspect
import operator
from datetime import timedelta
from typing import Annotated, Any, TypedDict

import pytest
from langgraph import channels
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import NodeError  # noqa: TC002  (LangGraph reads the annotations)
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.pregel import Pregel
from langgraph.pregel.remote import RemoteGraph
from langgraph.runtime import Runtime  # noqa: TC002  (the same)
from langgraph.store.memory import InMemoryStore
from langgraph.types import CachePolicy, Command, RetryPolicy, TracePolicy

from agentnb.errors import RecipeError
from agentnb.load import load
from agentnb.session import Session
from tests.dialects.langgraph.judge import compare


class State(TypedDict, total=False):
    xs: Annotated[list, operator.add]
    n: int


class Part(TypedDict, total=False):
    n: int


def first(state: State, runtime: Runtime) -> Any:
    return {"xs": [str(sorted(state.items()))], "n": state.get("n", 0) + 1}


async def awaits(state: State) -> Any:
    return first(state, None)


def fails(state: State) -> Any:
    raise ValueError("no")


def mends(state: State, error: NodeError) -> Any:
    return {"xs": [f"{error.node}: {error.error}"]}


def goes(state: State) -> Any:
    return Command(goto="b", update={"n": 5})


def graph(
    node: Any = first, *, made: dict | None = None, before: Any = None, compiled: dict | None = None, **words: Any
):
    """Return a graph of two nodes; the options are those of StateGraph, `before` add_node, add_node and compile."""
    built = StateGraph(State, **made or {})
    if before is not None:
        before(built)
    built.add_node("a", node, **words)
    built.add_node("b", awaits if node is awaits else first)
    built.add_edge(START, "a")
    if node is not goes:
        built.add_edge("a", "b")
    return built.compile(**compiled or {})


def edges(add: Any):
    """Return a graph of three nodes that lead on as `add` says."""
    built = StateGraph(State)
    for name in "abc":
        built.add_node(name, first)
    built.add_edge(START, "a")
    add(built)
    return built.compile()


def sequence():
    built = StateGraph(State)
    built.add_sequence([("a", first), first])
    built.set_entry_point("a")
    built.set_finish_point("first")
    return built.compile()


RETRY, CACHE, LIMIT = RetryPolicy(initial_interval=0.001, jitter=False), CachePolicy(), timedelta(seconds=30)
EQUAL = {
    "StateGraph.state_schema": graph,
    "StateGraph.context_schema": lambda: graph(made={"context_schema": Part}),
    "StateGraph.input_schema": lambda: graph(made={"input_schema": Part}),
    "StateGraph.output_schema": lambda: graph(made={"output_schema": Part}),
    "add_node.node": sequence,
    "add_node.action": graph,
    "add_node.defer": lambda: graph(defer=True),
    "add_node.metadata": lambda: graph(metadata={"a": 1}),
    "add_node.input_schema": lambda: graph(input_schema=Part),
    "add_node.retry_policy": lambda: graph(fails, retry_policy=[RETRY]),
    "add_node.cache_policy": lambda: graph(cache_policy=CACHE, compiled={"cache": InMemoryCache()}),
    "add_node.error_handler": lambda: graph(fails, error_handler=mends),
    "add_node.destinations": lambda: graph(goes, destinations=("b",)),
    "add_node.timeout": lambda: graph(awaits, timeout=LIMIT),
    "add_node.trace_policy": lambda: graph(trace_policy=TracePolicy()),
    "add_edge.start_key": lambda: edges(lambda built: built.add_edge("a", "b").add_edge(["a", "b"], "c")),
    "add_edge.end_key": lambda: edges(lambda built: built.add_edge("a", END)),
    "add_conditional_edges.source": lambda: edges(lambda built: built.add_conditional_edges(START, lambda _: "b")),
    "add_conditional_edges.path": lambda: edges(lambda built: built.add_conditional_edges("a", lambda _: ["b", "c"])),
    "add_conditional_edges.path_map": lambda: edges(
        lambda built: built.add_conditional_edges("a", lambda _: [True, False], {True: "b", False: "c"})
    ),
    "add_sequence.nodes": sequence,
    "compile.checkpointer": lambda: graph(compiled={"checkpointer": InMemorySaver()}),
    "compile.cache": lambda: graph(compiled={"cache": InMemoryCache()}),
    "compile.store": lambda: graph(compiled={"store": InMemoryStore()}),
    "compile.debug": lambda: graph(compiled={"debug": False}),
    "compile.name": lambda: graph(compiled={"name": "mine"}),
    "compile.transformers": lambda: graph(compiled={"transformers": []}),
    "set_node_defaults.retry_policy": lambda: graph(
        fails, before=lambda built: built.set_node_defaults(retry_policy=RETRY)
    ),
    "set_node_defaults.cache_policy": lambda: graph(
        before=lambda built: built.set_node_defaults(cache_policy=CACHE), compiled={"cache": InMemoryCache()}
    ),
    "set_node_defaults.error_handler": lambda: graph(
        fails, before=lambda built: built.set_node_defaults(error_handler=mends)
    ),
    "set_node_defaults.timeout": lambda: graph(awaits, before=lambda built: built.set_node_defaults(timeout=LIMIT)),
}
ELSEWHERE = {  # tests that try them
    "compile.interrupt_before": "test_a_graph_that_is_compiled_with_interrupts_stops_there",
    "compile.interrupt_after": "test_a_graph_that_is_compiled_with_interrupts_stops_there",
}


@pytest.mark.parametrize("option", EQUAL)
def test_with_an_option_a_graph_runs_as_in_langgraph(option):
    graph, inputs = EQUAL[option](), {"n": 1, "xs": ["x"]}
    if not option.endswith("timeout"):
        compare(graph, inputs)
        return
    session = Session(load(graph), inputs)  # only nodes that await may have one
    session.run()
    assert dict(session.board) == asyncio.run(graph.ainvoke(inputs))


def test_every_option_is_covered():
    verbs = ("add_node", "add_edge", "add_conditional_edges", "add_sequence", "compile", "set_node_defaults")
    functions = {"StateGraph": StateGraph.__init__, **{verb: getattr(StateGraph, verb) for verb in verbs}}
    known = set()
    for name, function in functions.items():
        known |= {f"{name}.{option}" for option in inspect.signature(function).parameters.keys() - {"self", "kwargs"}}
    assert known == EQUAL.keys() | ELSEWHERE.keys()


# -- channels ----------------------------------------------------------------------------------------------------------

CHANNELS: dict[str, Any] = {
    "AnyValue": channels.AnyValue,
    "LastValue": channels.LastValue,
    "EphemeralValue": channels.EphemeralValue,
    "BinaryOperatorAggregate": channels.BinaryOperatorAggregate(list, operator.add),
    "DeltaChannel": channels.DeltaChannel(lambda old, new: [*old, *(item for items in new for item in items)]),
    "Topic": channels.Topic(list, accumulate=True),
}
REFUSED: dict[str, Any] = {
    "LastValueAfterFinish": channels.LastValueAfterFinish,
    "NamedBarrierValue": channels.NamedBarrierValue(list, {"a"}),
    "NamedBarrierValueAfterFinish": channels.NamedBarrierValueAfterFinish(list, {"a"}),
}


def graph_with(channel: Any) -> Any:
    """Return a graph with a key in such a channel."""
    keys = {"key": Annotated[list, channel], "seen": Annotated[list, operator.add]}
    schema = TypedDict("Own", keys, total=False)  # type: ignore[misc]
    built = StateGraph(schema)
    built.add_node("a", lambda state: {"key": ["a"], "seen": [str(state.get("key"))]})
    built.add_node("b", lambda state: {"seen": [str(state.get("key"))]})
    built.add_edge(START, "a")
    built.add_edge("a", "b")
    return built.compile()


@pytest.mark.parametrize("name", CHANNELS)
def test_with_a_channel_a_graph_runs_as_in_langgraph(name):
    compare(graph_with(CHANNELS[name]), {"seen": []})


@pytest.mark.parametrize("name", REFUSED)
def test_a_channel_that_is_not_for_state_is_rejected(name):
    with pytest.raises(RecipeError, match=f"L531.*channel of class {name}"):
        load(graph_with(REFUSED[name]))


def test_every_channel_is_covered():
    elsewhere = {"UntrackedValue"}  # test_an_untracked_value_is_seen_by_the_next_nodes
    assert CHANNELS.keys() | REFUSED.keys() | elsewhere == set(channels.__all__) - {"BaseChannel"}


# -- other graphs ------------------------------------------------------------------------------------------------------


def test_a_remote_graph_is_rejected():
    with pytest.raises(RecipeError, match=r"L531.*RemoteGraph"):
        load(RemoteGraph("agent", url="http://localhost:1"))


def test_a_node_that_is_a_manually_assembled_graph_is_rejected():
    by_hand = Pregel(nodes={}, channels={"a": channels.EphemeralValue(str)}, input_channels="a", output_channels="a",
                     auto_validate=False)  # fmt: skip
    with pytest.raises(RecipeError, match=r"L531.*hand-built Pregel"):
        load(graph(by_hand))


def test_every_option_of_an_entrypoint_and_a_task_is_known():
    of_entrypoint = inspect.signature(entrypoint.__init__).parameters.keys() - {"self", "kwargs"}
    assert of_entrypoint == {
        "checkpointer", "store", "cache", "context_schema", "cache_policy", "retry_policy", "timeout",
    }  # fmt: skip
    of_task = inspect.signature(task).parameters.keys() - {"kwargs"}
    assert of_task == {"__func_or_none__", "name", "retry_policy", "cache_policy", "timeout"}


def test_the_choice_at_the_start_of_a_graph_does_not_count_as_a_step():
    chooses = StateGraph(State).add_node("b", first)
    chooses.add_conditional_edges(START, lambda state: "b", ["b"])
    run = Session(load(chooses.compile()), {}, budget={"max_steps": 1})
    run.run()
    assert (run.status, run.position, run.board["n"]) == ("finished", 2, 1)
