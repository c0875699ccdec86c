from __future__ import annotations

import networkx as nx
import pytest

from agentnb.errors import RecipeError
from agentnb.load import load
from agentnb.session import Session


def graph(*edges, nodes="ab", **router):
    built_graph = nx.MultiDiGraph()
    built_graph.add_node("r", kind="router", input_key="topic", **router)
    built_graph.add_nodes_from(nodes)
    built_graph.add_edges_from(edges)
    return built_graph


def chosen(recipe):
    params = recipe.nodes["r"].params
    route_edges = [(edge.target, edge.condition) for edge in recipe.edges if edge.kind == "route"]
    return dict(params["routes"]), params.get("default"), route_edges


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


def test_an_edge_with_a_value_becomes_a_route():
    recipe = load(graph(("r", "a", {"value": "x"}), ("r", "b", {"kind": "route"})))
    assert chosen(recipe) == ({"x": "a"}, "b", [("a", "x"), ("b", "otherwise")])
    assert recipe.check() == []


def test_a_plain_edge_to_a_target_is_drawn_as_its_route():
    recipe = load(graph(("r", "a"), ("r", "b"), routes={"x": "a"}, default="b"))
    assert chosen(recipe) == ({"x": "a"}, "b", [("a", "x"), ("b", "otherwise")])
    assert recipe.check() == []


def test_a_plain_edge_to_another_node_is_ignored_and_reported():
    assert codes(graph(("r", "a"), ("r", "b"), routes={"x": "a"})) == ["R119", "R115"]


def test_an_error_edge_of_a_router_is_kept():
    recipe = load(graph(("r", "b", {"kind": "error"}), routes={"x": "a"}))
    assert ("b", "error") in [(edge.target, edge.kind) for edge in recipe.edges]


def test_routes_must_lead_to_nodes():
    assert codes(graph(routes={"x": "gone"}, default="a")) == ["R104"]


def test_routes_are_a_mapping():
    assert "R114" in codes(graph(routes=["a"]))


def test_routes_in_a_nested_graph_lead_to_its_own_nodes():
    inner = graph(routes={"x": "a"}, default="b")
    outer = nx.DiGraph()
    outer.add_node("a")
    outer.add_node("s", kind="subgraph", graph=inner)
    assert dict(load(outer).nodes["r"].params["routes"]) == {"x": "s/a"}


def judged(**more):
    built_graph = nx.MultiDiGraph(entry="write")
    built_graph.add_node("write", function=lambda board: {"draft": board.get("draft", 0) + 1})
    built_graph.add_node("judge", kind="evaluator", target="draft", threshold=0.5, max_refinements=3, **more)
    built_graph.add_node("done", kind="noop")
    built_graph.add_edge("write", "judge")
    return built_graph


@pytest.mark.parametrize("by_edges", [True, False])
def test_an_evaluator_chooses_its_route_by_the_verdict(by_edges):
    if by_edges:
        graph = judged()
        graph.add_edge("judge", "done", value="pass")
        graph.add_edge("judge", "write", value="fail")
    else:
        graph = judged(pass_route="done", fail_route="write")
    recipe = load(graph)
    assert {(e.condition, e.target) for e in recipe.edges if e.kind == "route"} == {("pass", "done"), ("fail", "write")}
    session = Session(recipe, tools={"judge": lambda draft: draft / 4})
    session.run()
    assert [step.node_id for step in session.trace.steps] == ["write", "judge", "write", "judge", "done"]


def test_an_evaluator_without_routes_ends_the_run():
    session = Session(load(judged()), tools={"judge": lambda draft: 1})
    session.run()
    assert (session.status, session.position, session.trace.score) == ("finished", 2, 1.0)


@pytest.mark.parametrize(("kind", "given", "missing"), [
    ("evaluator", {"threshold": 1}, "target"), ("evaluator", {"target": "a"}, "threshold"), ("generative", {}, "goal"),
])  # fmt: skip
def test_missing_required_parameters_of_a_kind_are_reported(kind, given, missing):
    built_graph = nx.DiGraph()
    built_graph.add_node("n", kind=kind, **given)
    with pytest.raises(RecipeError) as caught:
        load(built_graph)
    assert [(p.code, p.what) for p in caught.value.problems] == [("R113", f"attribute {missing!r} is missing")]


@pytest.mark.parametrize(
    ("edges", "router", "routes", "default", "drawn"),
    [
        ([], {"routes": {"x": "a"}}, {"x": "a"}, None, [("a", "x")]),
        ([], {"routes": {"x": None, "y": ""}, "default": ""}, {"x": "", "y": ""}, "", []),
        ([], {"default": "a"}, {}, "a", [("a", "otherwise")]),
        ([("a", {"value": "x"})], {"routes": {"x": "b"}}, {"x": "b"}, None, [("a", "x"), ("b", "x")]),
        ([("a", {"value": "x"})], {"routes": {"x": "a"}}, {"x": "a"}, None, [("a", "x")]),
        ([("a", {"kind": "route"})], {"default": "b"}, {}, "a", [("a", "otherwise")]),
        ([("a", {})], {"default": "a"}, {}, "a", [("a", "otherwise")]),
        ([("a", {"value": 1}), ("b", {"value": True})], {}, {"1": "a", "True": "b"}, None, [("a", "1"), ("b", "True")]),
    ],
)
def test_routes_come_from_attributes_and_edges(edges, router, routes, default, drawn):
    recipe = load(graph(*(("r", target, attributes) for target, attributes in edges), **router))
    assert chosen(recipe) == (routes, default, drawn)


def test_a_route_without_an_edge_is_where_its_router_is():
    recipe = load(graph(("r", "a", {"value": "x"}), routes={"y": "b"}))
    assert [edge.place.path for edge in recipe.edges] == ["edges['r', 'a']", "nodes['r']"]


def test_routes_that_are_no_mapping_are_reported_where_they_are():
    with pytest.raises(RecipeError) as caught:
        load(graph(routes=["a"]))
    (problem,) = [problem for problem in caught.value.problems if problem.code == "R114"]
    assert problem.where.endswith("nodes['r'].routes")
    assert problem.what == "'routes' is a list"


@pytest.mark.parametrize(
    ("attributes", "edges", "routes"),
    [
        ({}, [], ("", "")),
        ({"pass_route": "done"}, [], ("done", "")),
        ({"fail_route": "done", "pass_route": None}, [], ("", "done")),
        ({"pass_route": "", "fail_route": "write"}, [], ("", "write")),
        ({"pass_route": "done"}, [("write", "fail")], ("done", "write")),
        ({"pass_route": "done"}, [("write", "pass")], ("done", "")),
    ],
)
def test_an_evaluator_has_two_routes(attributes, edges, routes):
    built_graph = judged(**attributes)
    for target, value in edges:
        built_graph.add_edge("judge", target, value=value)
    params = load(built_graph).nodes["judge"].params
    assert (params["pass_route"], params["fail_route"]) == routes
    assert not {"routes", "default"} & params.keys()
