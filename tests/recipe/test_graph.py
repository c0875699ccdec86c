from __future__ import annotations

import networkx as nx

from tests.recipe.making import node, recipe


def test_the_graph_has_what_a_recipe_has():
    made = recipe([node("a", "agent", reads=("x",), writes=("y",)), node("b", label="B")], [("a", "b", "route")])
    graph = made.graph
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


def test_two_edges_between_the_same_nodes_stay_two():
    assert recipe(["a", "b"], [("a", "b"), ("a", "b", "error")]).graph.number_of_edges() == 2


def test_changing_the_graph_changes_no_recipe():
    made = recipe(["a"])
    made.graph.add_node("b")
    assert list(made.nodes) == ["a"]
