from __future__ import annotations

from agentnb.expressions.conditions import to_condition
from agentnb.recipe import control_flow
from agentnb.recipe.model import Edge, Region
from tests.recipe.small_recipes import list_codes, node, recipe

HOLDS = to_condition("n > 1")


def test_an_edge_after_an_unconditional_one_is_never_taken():
    loaded_recipe = recipe(["a", "b", "c"], [("a", "b"), ("a", "c")])
    assert list_codes(control_flow.check_taken, loaded_recipe) == [("R118", "warning")]
    assert list_codes(control_flow.check_reached, loaded_recipe) == [("R115", "warning")]


def test_an_edge_after_a_conditional_one_is_reachable():
    loaded_recipe = recipe(["a", "b", "c"], [Edge("a", "b", "conditional", HOLDS), ("a", "c")])
    assert loaded_recipe.check() == []


def test_a_label_is_not_a_condition():
    (problem,) = control_flow.check_taken(recipe(["a", "b", "c"], [Edge("a", "b", condition="if good"), ("a", "c")]))
    assert "label" in problem.why


def test_parallel_and_error_edges_block_nothing():
    edges = [("a", "b", "parallel"), ("a", "c", "parallel"), ("a", "d", "error"), ("a", "e")]
    assert list_codes(control_flow.check_taken, recipe(list("abcde"), edges)) == []


def test_if_all_edges_are_taken_none_is_unreachable():
    assert list_codes(control_flow.check_taken, recipe(["a", "b", "c"], [("a", "b"), ("a", "c")], routing="all")) == []


def test_bodies_routes_and_events_count_as_edges():
    loaded_recipe = recipe(
        [node("a", "loop", bodies=("a",)), node("in", scope="a"), "routed", node("heard", on=("done",)), "told"],
        [("a", "routed", "route"), ("a", "told", "event")],
        regions=[Region("a", ("in",), owner="a")],
    )
    assert list_codes(control_flow.check_reached, loaded_recipe) == []


def test_a_cycle_without_exit_is_reported_once():
    loaded_recipe = recipe(["a", "b"], [("a", "b"), ("b", "a")], limits={"max_steps": 50})
    (problem,) = control_flow.check_ends(loaded_recipe)
    assert (problem.code, problem.severity) == ("R125", "warning")
    assert "50" in problem.why


def test_an_error_edge_is_not_an_exit():
    loaded_recipe = recipe(["a", "b", "c"], [("a", "b"), ("b", "a"), ("b", "c", "error")])
    assert list_codes(control_flow.check_ends, loaded_recipe) == [("R125", "warning")]


def test_a_router_may_end_by_a_route_or_without_a_default():
    for params in (
        {"routes": {"x": "a"}, "default": ""},
        {"routes": {"x": "a"}},
        {"routes": {"x": ""}, "default": "a"},
    ):
        loaded_recipe = recipe(["a", node("r", "router", params=params)], [("a", "r"), ("r", "a", "route")])
        assert list_codes(control_flow.check_ends, loaded_recipe) == []
    loaded_recipe = recipe(
        ["a", node("r", "router", params={"routes": {}, "default": "a"})], [("a", "r"), ("r", "a", "route")]
    )
    assert list_codes(control_flow.check_ends, loaded_recipe) == [("R125", "warning")]


def test_a_node_whose_edges_all_have_conditions_may_end():
    loaded_recipe = recipe(["a"], [Edge("a", "a", "conditional", HOLDS)])
    assert list_codes(control_flow.check_ends, loaded_recipe) == []


def test_a_misspelled_key_has_a_suggestion():
    nodes = [node("a", writes=("topic",)), node("b", reads=("topics", "ticket.text", "anything"))]
    loaded_recipe = recipe(nodes, [("a", "b")], inputs={"ticket": {}})
    (problem,) = control_flow.check_reads(loaded_recipe)
    assert (problem.code, problem.severity, problem.do) == ("R126", "warning", "did you mean 'topic'?")


def test_without_declared_inputs_any_key_may_be_given():
    nodes = [node("a", writes=("topic",)), node("b", reads=("topics",))]
    assert list_codes(control_flow.check_reads, recipe(nodes, [("a", "b")])) == []


def test_an_ignored_edge_names_the_kind_that_ignores_it():
    assert "'router'" in control_flow.make_ignored_edge_problem(Edge("a", "b"), "router", "here").why


def test_nesting_counts_the_regions_inside_one_another():
    assert control_flow.measure_nesting(recipe(["a"])) == 0
    names = ["one", "two", "three"]
    nodes = [
        node("a", "loop", bodies=("one",)),
        node("b", "subgraph", scope="one", bodies=("two",)),
        node("c", "subgraph", scope="one", bodies=("two",)),
        node("d", "parallel", scope="two", bodies=("three",)),
        node("e", scope="three"),
    ]
    regions = [Region(name, (), "", "a") for name in names]
    assert control_flow.measure_nesting(recipe(nodes, regions=regions)) == 3


def test_a_region_in_itself_does_not_count():
    nodes = [node("a", "subgraph", bodies=("one",)), node("b", "subgraph", scope="one", bodies=("one",))]
    assert control_flow.measure_nesting(recipe(nodes, regions=[Region("one", (), "", "a")])) <= 1
