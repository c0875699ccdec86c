from __future__ import annotations

from agentnb.load import load
from tests.dialects.coreason.recipe_texts import agent, codes, content, problems, router


def ways(recipe):
    return [(edge.source, edge.target, edge.kind) for edge in recipe.edges]


def falling(behavior, target="b"):
    return agent("a", recovery={"behavior": behavior, "fallback_node_id": target})


def test_an_id_names_one_node():
    text = "metadata: {name: t}\ninterface: {}\ntopology:\n  - {id: a, type: agent}\n  - {id: a, type: agent}\n"
    assert ("R106", "error", "<text>:5:10, topology[1].id") in problems(text)


def test_a_route_to_a_missing_node_is_reported_at_its_value():
    text = (
        "metadata: {name: t}\ninterface: {}\ntopology:\n"
        "  - {id: r, type: router, input_key: k, routes: {x: b}, default_route: c}\n"
    )
    assert problems(text) == [
        ("R104", "error", "<text>:4:53, topology[0].routes.x"),
        ("R104", "error", "<text>:4:72, topology[0].default_route"),
    ]


def test_the_edges_of_a_router_are_ignored_and_reported():
    recipe = load(content([router("r", {"x": "a"}, "a"), "a"], [("r", "a")]))
    assert [problem.code for problem in recipe.check()] == ["R119"]
    assert {kind for _, _, kind in ways(recipe)} == {"route"}


def test_a_fallback_is_an_error_edge_if_enabled():
    assert ("a", "b", "error") in ways(load(content([falling("route_to_fallback"), "b"])))
    assert ways(load(content([falling("fail_workflow"), "b"], [("a", "b")]))) == [("a", "b", "sequential")]


def test_a_fallback_must_exist_even_in_a_draft_and_if_unused():
    for behavior in ("route_to_fallback", "fail_workflow"):
        for status in ("valid", "draft"):
            assert codes(content([falling(behavior, "gone")], topology={"status": status})) == ["R104"]


def test_only_the_first_edge_is_taken():
    assert codes(content(["a", "b", "c"], [("a", "b"), ("a", "c")])) == ["R118", "R115"]


def test_in_a_draft_an_edge_from_a_missing_node_is_not_taken():
    recipe = load(content(["a", "b"], [("a", "gone"), ("a", "b")], topology={"status": "draft"}))
    assert ways(recipe) == [("a", "gone", "sequential")]
    assert recipe.nodes["gone"].kind == "missing"


def test_in_a_draft_a_missing_target_after_a_taken_edge_is_harmless():
    recipe = load(content(["a", "b"], [("a", "b"), ("a", "gone")], topology={"status": "draft"}))
    assert ways(recipe) == [("a", "b", "sequential")]
    assert "gone" not in recipe.nodes


def test_an_edge_from_a_missing_node_is_reported():
    assert codes(content(["a"], [("gone", "a")])) == ["R104"]
