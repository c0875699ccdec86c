from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import networkx as nx
import pytest

from agentnb.expressions.conditions import to_condition
from agentnb.recipe.model import Edge
from tests.recipe.small_recipes import node, recipe


def test_nothing_of_a_recipe_can_be_changed():
    loaded_recipe = recipe(["a"], [("a", "a")])
    for part, name in ((loaded_recipe, "name"), (loaded_recipe.nodes["a"], "kind"), (loaded_recipe.edges[0], "target")):
        with pytest.raises(FrozenInstanceError):
            setattr(part, name, "other")


def test_it_says_in_one_line_what_it_is():
    assert repr(recipe(["a", "b"], [("a", "b")])) == "<Recipe 'made' (test): 2 nodes, 1 edge>"


def test_the_same_recipe_has_the_same_fingerprint():
    assert recipe(["a"]).fingerprint == recipe(["a"]).fingerprint


def one(board):
    return {"n": 1}


def two(board):
    return {"n": 2}


@pytest.mark.parametrize(
    "other",
    [
        recipe([node("a", "function", params={"function": two})]),
        recipe([node("a", "function", params={"function": one}, inputs={"x": ("y",)})]),
        recipe([node("a", "tool", params={"function": one})]),
        recipe([node("a", "function", params={"function": one})], [("a", "a")]),
        recipe([node("a", "function", params={"function": one})], limits={"max_steps": 3}),
        recipe([node("a", "function", params={"function": one, "until": to_condition("n > 1")})]),
    ],
)
def test_everything_that_affects_a_run_changes_the_fingerprint(other):
    assert recipe([node("a", "function", params={"function": one})]).fingerprint != other.fingerprint


def test_conditions_differ_by_their_content():
    def made(when):
        return recipe(["a"], [Edge("a", "a", "conditional", to_condition(when), "same label")]).fingerprint

    assert made("n > 1") == made("n > 1")
    assert len({made("n > 1"), made("n > 2"), made({">": [{"var": "n"}, 3]}), made(one), made(two)}) == 5


def test_places_and_notes_do_not_affect_the_fingerprint():
    loaded_recipe = recipe(["a"])
    assert replace(loaded_recipe, text="other", file="b.yaml", meta={"x": 1}).fingerprint == loaded_recipe.fingerprint


def test_the_graph_contains_everything_of_the_recipe():
    loaded_recipe = recipe(
        [node("a", "agent", reads=("x",), writes=("y",)), node("b", label="B")], [("a", "b", "route")]
    )
    graph = loaded_recipe.graph
    assert isinstance(graph, nx.MultiDiGraph)
    assert (graph.name, graph.graph["dialect"], graph.graph["entry"]) == ("made", "test", ("a",))
    assert graph.nodes["a"] == {
        "kind": "agent",
        "label": "a",
        "reads": ("x",),
        "writes": ("y",),
        "scope": "root",
        "place": None,
    }
    assert graph.nodes["b"]["label"] == "B"
    assert list(graph.edges(data=True)) == [("a", "b", {"kind": "route", "condition": ""})]


def test_parallel_edges_are_kept():
    assert recipe(["a", "b"], [("a", "b"), ("a", "b", "error")]).graph.number_of_edges() == 2


def test_changing_the_graph_changes_no_recipe():
    loaded_recipe = recipe(["a"])
    loaded_recipe.graph.add_node("b")
    assert list(loaded_recipe.nodes) == ["a"]
