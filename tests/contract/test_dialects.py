"""What holds of every dialect in the table. A new one adds a good source and a bad one here, nothing else."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import Annotated, TypedDict

import networkx as nx
import pytest
from burr.core import ApplicationBuilder, action
from langgraph.channels import Topic
from langgraph.graph import START, StateGraph

import agentnb.dialects
import agentnb.dialects.activegraph as ag
from agentnb.dialects.polaris import Graph, Out
from agentnb.dialects.table import DIALECTS
from agentnb.errors import RecipeError
from agentnb.load import load
from agentnb.session import Session


def coreason(target="b"):
    return {
        "metadata": {"name": "made"},
        "interface": {"inputs": {"x": {"type": "string"}}},
        "topology": {
            "entry_point": "a",
            "nodes": [{"id": "a", "type": "agent", "agent_ref": "one"}, {"id": "b", "type": "human", "prompt": "?"}],
            "edges": [{"source": "a", "target": target}],
        },
    }


def networkx(when="x > 1"):
    graph = nx.DiGraph(name="made", inputs=["x"])
    graph.add_node("a", function=len)
    graph.add_node("b", kind="human")
    graph.add_edge("a", "b", when=when)
    return graph


def agentruntime(uses="b"):
    return {
        "meta": {"name": "made"},
        "state": {"shape": {"x": "the input"}},
        "graph": {
            "inputs": ["x"],
            "outputs": ["x"],
            "nodes": [{"id": "a", "type": "noop"}, {"id": "b", "type": "noop", "map": {"set": {"x": "{{ x }}"}}}],
            "edges": [{"from": "a", "to": uses}],
        },
    }


def polaris(hollow=False):
    def start(x: Out[int]) -> str:
        return str(x)

    def end(text: Out[str]) -> bool:
        return bool(text)

    start.__name__, end.__name__ = "a", "b"
    graph = Graph("made").given(int).add_system(start).add_system(end)
    return graph.add_loop("again", int, bool, lambda inner: None) if hollow else graph


def symphony(calls=1):
    return {"name": "made", "task": "answer", "maxCalls": calls}


def _heard(event, graph, ctx):
    """Do nothing with an event."""


def activegraph():
    behaviors = [ag.behavior(name=name, on=[name])(_heard) for name in ("a", "b")]
    return ag.Runtime(ag.Graph(), behaviors=behaviors)


def langgraph(channel=None):
    # With annotations that are values: the module's own are texts.
    state = TypedDict("State", {"x": Annotated[list, channel] if channel else str})  # noqa: UP013
    graph = StateGraph(state)
    graph.add_sequence([("a", lambda state: {}), ("b", lambda state: {})])
    graph.add_edge(START, "a")
    return graph.compile(name="made")


def burr():
    @action(reads=[], writes=["y"])
    def a(state, x):
        return state.update(y=x)

    @action(reads=["y"], writes=[])
    def b(state):
        return state

    return ApplicationBuilder().with_actions(a, b).with_transitions(("a", "b")).with_entrypoint("a").build()


# dialect -> (makes a recipe 'made' of two nodes 'a' and 'b'; makes it with one mistake)
EXAMPLES = {
    "coreason": (coreason, lambda: coreason("gone")),
    "agentruntime": (agentruntime, lambda: agentruntime("gone")),
    "networkx": (networkx, lambda: networkx("x >")),
    "polaris": (polaris, lambda: polaris(hollow=True)),
    "symphony": (symphony, lambda: symphony("gone")),
    "langgraph": (langgraph, lambda: langgraph(Topic(str))),
    "burr": (burr, None),  # Burr itself checks an application when it is built
    "activegraph": (activegraph, None),  # what is wrong with behaviors is told where they are made
}
# Where its nodes or inputs are not those.
NODES = {"symphony": ["system_prompt", "request", "llm", "result"]}
INPUTS = {"polaris": ["builtins.int"], "symphony": ["task"], "activegraph": []}
NAMES = {"activegraph": "behaviors", "burr": "application"}
ENTRIES = {"activegraph": ()}  # events set off what listens


@pytest.fixture(params=list(DIALECTS))
def dialect(request):
    return DIALECTS[request.param]


@pytest.fixture
def good(dialect):
    return EXAMPLES[dialect.name][0]


@pytest.fixture(params=[name for name, (_, bad) in EXAMPLES.items() if bad is not None])
def bad(request):
    return EXAMPLES[request.param][1]


def test_it_recognizes_its_own_sources_only(dialect):
    assert {name for name, (make, _) in EXAMPLES.items() if dialect.recognize(make())} == {dialect.name}


@pytest.mark.parametrize("other", [None, 3, "text", [], {}, object()])
def test_it_does_not_claim_unknown_sources(dialect, other):
    assert not dialect.recognize(other)


def test_its_recipe_names_its_dialect(dialect, good):
    recipe = load(good())
    nodes = NODES.get(dialect.name, ["a", "b"])
    assert (recipe.name, recipe.dialect) == (NAMES.get(dialect.name, "made"), dialect.name)
    assert list(recipe.nodes) == nodes
    assert recipe.entry == ENTRIES.get(dialect.name, (nodes[0],))
    assert recipe.check() == []
    assert list(recipe.inputs) == INPUTS.get(dialect.name, ["x"])
    assert recipe.regions["root"].entry == recipe.entry


def test_every_part_has_its_place_in_the_source(good):
    recipe = load(good())
    for part in (*recipe.nodes.values(), *recipe.edges):
        assert part.place is not None
        assert part.place.path


def test_the_same_source_gives_the_same_fingerprint(good):
    assert load(good()).fingerprint == load(good()).fingerprint


def test_nothing_in_a_recipe_can_be_set(good):
    recipe = load(good())
    for mapping in (recipe.nodes, recipe.inputs, recipe.regions, recipe.init, recipe.limits, recipe.meta):
        with pytest.raises(TypeError):
            mapping["new"] = 1
    for node in recipe.nodes.values():
        with pytest.raises(TypeError):
            node.params["new"] = 1


def test_its_recipe_can_be_drawn(good):
    assert 'data-node="a"' in load(good()).draw().svg or "system_prompt" in load(good()).draw().dot


def test_a_misspelled_input_is_reported_with_the_right_name(dialect, good):
    for name in INPUTS.get(dialect.name, ["x"]):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                Session(load(good()), {f"{name}{name[-1]}": "1"})
            except RecipeError as error:
                reported = str(error)
            else:
                reported = "\n".join(str(warning.message) for warning in caught)
        assert repr(name) in reported.partition("do:")[2]


def test_an_input_that_behaviors_cannot_read_is_reported():
    with pytest.warns(UserWarning, match="input 'goal' is not known"):
        Session(load(activegraph()), {"goal": "tea"}).run()
    task = {"type": "task", "data": {}, "version": 1}
    assert Session(load(activegraph()), {"task#1": task}).board["task#1"] == task


def test_its_public_names_are_completed(dialect):
    module = importlib.import_module(f"agentnb.dialects.{dialect.name}")
    assert {*getattr(module, "__all__", ())} <= {*dir(module)}


def test_a_mistake_has_all_four_answers(bad):
    with pytest.raises(RecipeError) as caught:
        load(bad())
    for problem in caught.value.problems:
        assert all((problem.code, problem.what, problem.where, problem.why, problem.do))


def test_its_package_has_a_docstring(dialect):
    assert (Path(agentnb.dialects.__file__).parent / dialect.name / "__init__.py").exists()
    module = importlib.import_module(f"agentnb.dialects.{dialect.name}.loader")
    assert module.load is dialect.load
