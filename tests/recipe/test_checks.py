from __future__ import annotations

import pytest

from agentnb.errors import Place, limit_suggestions
from agentnb.kinds import KINDS
from agentnb.recipe import checks
from agentnb.recipe.checks import iter_dangling_edges, make_entry_problem
from agentnb.recipe.model import ROOT, Edge, Region
from tests.recipe.small_recipes import list_codes, node, recipe


def test_a_good_recipe_has_no_problems():
    assert recipe(["a", "b"], [("a", "b")]).check() == []


def test_edges_must_end_at_nodes():
    loaded_recipe = recipe(["ask", "close"], [Edge("ask", "colse", place=Place("a.yaml", 3, 5, "edges[0]"))])
    (problem,) = checks.check_edges(loaded_recipe)
    assert (problem.code, problem.where) == ("R104", "a.yaml:3:5, edges[0]")
    assert problem.what == "edge 'ask' -> 'colse' leads to a node that does not exist"
    assert problem.do == "did you mean 'close'?"


def test_edges_must_start_at_nodes():
    assert list_codes(checks.check_edges, recipe(["b"], [("a", "b")])) == [("R104", "error")]


def test_a_dangling_edge_of_a_draft_is_a_warning():
    (problem,) = iter_dangling_edges([Edge("a", "b")], ["a"], "made", draft=True)
    assert problem.severity == "warning"
    assert "draft" in problem.why


def test_suggestions_are_made_for_the_first_mistakes_only():
    nodes = [f"node{number}" for number in range(150)]
    with limit_suggestions():
        problems = list(iter_dangling_edges([Edge("node1", f"{name}x") for name in nodes], nodes, "made"))
    assert problems[0].do.startswith("did you mean")
    assert problems[-1].do == "add a node 'node149x', or remove the edge"


@pytest.mark.parametrize("kind", ["router", "evaluator"])
def test_routes_must_lead_to_a_node_or_to_the_end(kind):
    routes = {"routes": {"x": "", "y": "nowhere"}, "default": "a", "pass_route": "nowhere", "fail_route": ""}
    loaded_recipe = recipe(["a", node("choose", kind, params=routes)])
    assert list_codes(checks.check_routes, loaded_recipe) == [("R120", "error")]


def test_a_route_with_another_name_is_not_the_default():
    loaded_recipe = recipe([node("choose", "router", params={"routes": {"otherwise": "nowhere"}, "default": ""})])
    assert list_codes(checks.check_routes, loaded_recipe) == [("R120", "error")]


def test_a_router_without_routes_is_a_warning():
    assert list_codes(checks.check_routes, recipe([node("choose", "router")])) == [("R120", "warning")]


def test_a_drawn_route_is_reported_once():
    loaded_recipe = recipe([node("choose", "router", params={"routes": {"x": "gone"}})], [("choose", "gone", "route")])
    assert [problem.code for problem in loaded_recipe.check()] == ["R104"]


def test_entries_must_be_nodes_of_the_recipe():
    assert list_codes(checks.check_entry, recipe(["a"], entry=["b"])) == [("R105", "error")]
    assert list_codes(checks.check_entry, recipe(["a"], entry=[])) == [("R105", "error")]
    assert list_codes(checks.check_entry, recipe([])) == [("R105", "error")]


def test_entries_must_be_in_the_top_region():
    loaded_recipe = recipe(
        [node("l", "loop", bodies=("l",)), node("in", scope="l")], entry=["in"], regions=[Region("l", ("in",))]
    )
    assert list_codes(checks.check_entry, loaded_recipe) == [("R105", "error")]


def test_a_missing_entry_has_a_suggestion():
    assert make_entry_problem("raed", ["read"], "a.yaml:1:1").do == "did you mean 'read'?"
    assert make_entry_problem("a", [], "a.yaml:1:1").what == "the recipe has no nodes"
    assert make_entry_problem("a", ["b"], "a.yaml:1:1", draft=True).severity == "warning"


@pytest.mark.parametrize(
    "region",
    [Region("l", ("in",), owner="gone"), Region("l", (), owner="l"), Region("l", ("out",), owner="l")],
    ids=["no owner", "has no entry node", "begins outside"],
)
def test_a_region_has_an_owner_and_an_entry_inside(region):
    loaded_recipe = recipe([node("l", "loop", bodies=("l",)), "out", node("in", scope="l")], regions=[region])
    assert list_codes(checks.check_regions, loaded_recipe) == [("R116", "error")]


def test_nodes_must_name_existing_regions():
    assert list_codes(checks.check_regions, recipe([node("a", scope="nowhere")])) == [("R116", "error")]
    assert list_codes(checks.check_regions, recipe([node("a", "loop", bodies=("nowhere",))])) == [("R116", "error")]


@pytest.mark.parametrize("kind", ["loop", "subgraph"])
def test_composite_nodes_must_have_a_region(kind):
    assert list_codes(checks.check_bodies, recipe([node("a", kind)])) == [("R121", "error")]


def test_edges_must_stay_in_their_region():
    region = Region("l", ("in",), owner="l")
    loaded_recipe = recipe([node("l", "loop", bodies=("l",)), node("in", scope="l")], [("l", "in")], regions=[region])
    assert list_codes(checks.check_scopes, loaded_recipe) == [("R122", "error")]


def test_edges_must_have_a_known_kind():
    (problem,) = checks.check_edge_kinds(recipe(["a"], [("a", "a", "paralel")]))
    assert (problem.code, problem.do) == ("R123", "did you mean 'parallel'?")


def test_nodes_must_have_a_known_kind():
    (problem,) = checks.check_kinds(recipe([node("a", "agnet")]), KINDS)
    assert (problem.code, problem.severity, problem.do) == ("R117", "error", "did you mean 'agent'?")


def evaluator(**params):
    return recipe([node("a", "evaluator", params={"target": ("x",), "threshold": 0.5, **params})])


@pytest.mark.parametrize(
    ("params", "severity", "words"),
    [
        ({"threshold": 7}, "warning", "no result passes"),
        ({"threshold": -0.1}, "warning", "every result passes"),
        ({"threshold": float("nan")}, "warning", "no result passes"),
        ({"threshold": "high"}, "error", "must be a number"),
        ({"max_refinements": -1}, "warning", "ends the run"),
        ({"max_refinements": True}, "error", "must be a number"),
    ],
)
def test_evaluators_must_have_valid_numbers(params, severity, words):
    (problem,) = checks.check_evaluators(evaluator(**params))
    assert (problem.code, problem.severity) == ("R136", severity)
    assert words in problem.why


def test_a_valid_evaluator_is_not_reported():
    for params in ({}, {"threshold": 0}, {"threshold": 1, "max_refinements": 0}, {"max_refinements": 9}):
        assert evaluator(**params).check() == []


def test_each_invalid_evaluator_is_reported():
    loaded_recipe = recipe([node(name, "evaluator", params={"target": "x", "threshold": 2}) for name in "ab"])
    assert list_codes(checks.check_evaluators, loaded_recipe) == [("R136", "warning")] * 2


def test_control_flow_is_checked_only_if_the_parts_are_valid():
    loaded_recipe = recipe(["a", "alone"], [("a", "gone")])
    assert [problem.code for problem in loaded_recipe.check()] == ["R104"]
    assert [problem.code for problem in recipe(["a", "alone"]).check()] == ["R115"]


def test_errors_come_first_and_problems_are_unique():
    from dataclasses import replace

    loaded_recipe = recipe(["a", node("b", "router")], [("a", "gone")])
    (warning,) = (problem for problem in loaded_recipe.check() if problem.severity == "warning")
    again = replace(loaded_recipe, notes=(warning,)).check()
    assert [problem.severity for problem in again] == ["error", "warning"]


def test_the_top_region_needs_no_owner():
    assert list_codes(checks.check_regions, recipe(["a"], regions=[Region(ROOT, ("a",))])) == []


LINES = {
    "R115": "  nodes: [{id: a, type: agent, agent_ref: x}, {id: b, type: agent, agent_ref: x}]\n  edges: []",
    "R118": "  nodes: [{id: a, type: agent, agent_ref: x}, {id: b, type: agent, agent_ref: x}]\n"
    "  edges: [{source: a, target: b}, {source: a, target: a}]",
    "R119": "  nodes: [{id: a, type: router, input_key: k, routes: {}, default_route: ''}]\n"
    "  edges: [{source: a, target: a}]",
    "R125": "  nodes: [{id: a, type: agent, agent_ref: x}]\n  edges: [{source: a, target: a}]",
    "R126": "  nodes: [{id: a, type: agent, agent_ref: x, inputs_map: {t: tikcet}}]\n  edges: []",
    "R136": "  nodes: [{id: a, type: evaluator, target_variable: x, evaluator_agent_ref: x, evaluation_profile: x,"
    "pass_threshold: 2, max_refinements: 1, pass_route: '', fail_route: '', feedback_variable: f}]\n  edges: []",
}
SPOTS = {
    "R115": "4:52, topology.nodes[1].id",
    "R118": "5:35, topology.edges[1]",
    "R119": "5:11, topology.edges[0]",
    "R125": "4:16, topology.nodes[0].id",
    "R126": "4:16, topology.nodes[0].id",
    "R136": "4:16, topology.nodes[0].id",
}


@pytest.mark.parametrize("code", LINES)
def test_a_warning_has_its_place_in_the_source(code):
    from agentnb.load import load

    head = "metadata: {name: t}\ninterface: {inputs: {ticket: {}}}\ntopology:  {entry_point: a,\n"
    body = LINES[code].replace("\n", ",\n") + "}"
    assert (code, "warning", f"<text>:{SPOTS[code]}") in [
        (problem.code, problem.severity, problem.where) for problem in load(head + body).check()
    ]


@pytest.mark.parametrize(
    ("code", "made"),
    [
        ("R120", recipe([node("r", "router", params={"routes": {"x": "no"}}, place=Place("g", path="nodes['r']"))])),
        ("R121", recipe([node("r", "loop", place=Place("g", path="nodes['r']"))])),
        ("R116", recipe([node("r", scope="gone", place=Place("g", path="nodes['r']"))])),
        ("R123", recipe(["a"], [Edge("a", "a", "odd", place=Place("g", path="nodes['r']"))])),
        (
            "R122",
            recipe(
                [node("l", "loop", bodies=("l",)), node("in", scope="l")],
                [Edge("l", "in", place=Place("g", path="nodes['r']"))],
                regions=[Region("l", ("in",), owner="l")],
            ),
        ),
    ],
)
def test_a_check_reports_the_place_of_the_part(code, made):
    assert (code, "g, nodes['r']") in [(problem.code, problem.where) for problem in made.check()]
