from __future__ import annotations

import networkx as nx

from agentnb.errors import RecipeError
from agentnb.load import load


def graph(*edges, nodes="ab", **router):
    made = nx.MultiDiGraph()
    made.add_node("r", kind="router", input_key="topic", **router)
    made.add_nodes_from(nodes)
    made.add_edges_from(edges)
    return made


def chosen(recipe):
    params = recipe.nodes["r"].params
    ways = [(edge.target, edge.condition) for edge in recipe.edges if edge.kind == "route"]
    return dict(params["routes"]), params.get("default"), ways


def codes(given):
    try:
        return [problem.code for problem in load(given).check()]
    except RecipeError as error:
        return [problem.code for problem in error.problems]


def test_routes_are_drawn():
    recipe = load(graph(routes={"x": "a", 1: "b", "end": None, "stop": ""}, default="a"))
    assert chosen(recipe) == (
        {"x": "a", "1": "b", "end": "", "stop": ""},
        "a",
        [("a", "x"), ("b", "1"), ("a", "otherwise")],
    )
    assert recipe.check() == []


def test_an_edge_with_a_value_is_a_route():
    recipe = load(graph(("r", "a", {"value": "x"}), ("r", "b", {"kind": "route"})))
    assert chosen(recipe) == ({"x": "a"}, "b", [("a", "x"), ("b", "")])
    assert recipe.check() == []


def test_a_plain_edge_to_a_target_draws_its_route():
    recipe = load(graph(("r", "a"), ("r", "b"), routes={"x": "a"}, default="b"))
    assert chosen(recipe) == ({"x": "a"}, "b", [("a", "x"), ("b", "otherwise")])
    assert recipe.check() == []


def test_a_plain_edge_elsewhere_is_ignored_and_told():
    assert codes(graph(("r", "a"), ("r", "b"), routes={"x": "a"})) == ["R119", "R115"]


def test_an_error_edge_of_a_router_stays():
    recipe = load(graph(("r", "b", {"kind": "error"}), routes={"x": "a"}))
    assert ("b", "error") in [(edge.target, edge.kind) for edge in recipe.edges]


def test_a_route_has_to_lead_to_a_node():
    assert codes(graph(routes={"x": "gone"}, default="a")) == ["R104"]


def test_routes_are_a_mapping():
    assert "R114" in codes(graph(routes=["a"]))


def test_routes_inside_another_graph_lead_to_its_own_nodes():
    inner = graph(routes={"x": "a"}, default="b")
    outer = nx.DiGraph()
    outer.add_node("a")
    outer.add_node("s", kind="subgraph", graph=inner)
    assert dict(load(outer).nodes["r"].params["routes"]) == {"x": "s/a"}
