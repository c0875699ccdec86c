from __future__ import annotations

import pytest

from agentnb.load import load
from tests.dialects.coreason.recipe_texts import agent, codes, content, problems, router
from tests.dialects.coreason.release_recipes import EVALUATOR


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


def test_in_a_draft_the_edges_after_a_missing_target_are_kept():
    edges = [("a", "b"), ("a", "gone"), ("b", "c"), ("a", "lost"), ("c", "d")]
    recipe = load(content(["a", "b", "c", "d"], edges, topology={"status": "draft"}))
    assert ways(recipe) == [("a", "b", "sequential"), ("b", "c", "sequential"), ("c", "d", "sequential")]


def test_an_edge_from_a_missing_node_is_reported():
    assert codes(content(["a"], [("gone", "a")])) == ["R104"]


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
@pytest.mark.parametrize(
    ("edges", "sequential", "parallel", "reported"),
    [
        # the edges of a draft of a and b -> those that a run can follow in each mode, what is reported of them
        (["ab"], ["ab"], ["ab"], []),
        (["ax"], ["ax"], ["ax"], ["R104"]),
        (["xa"], [], [], ["R104"]),
        (["xy"], [], [], ["R104", "R104"]),
        (["ab", "ax"], ["ab"], ["ab", "ax"], ["R104"]),
        (["ax", "ab"], ["ax"], ["ax", "ab"], ["R104", "R118"]),
        (["ax", "ay"], ["ax"], ["ax", "ay"], ["R104", "R104", "R118"]),
        (["ab", "ab"], ["ab", "ab"], ["ab", "ab"], ["R118"]),
        (["ab", "aa"], ["ab", "aa"], ["ab", "aa"], ["R118"]),
    ],
)
def test_a_draft_has_the_edges_that_a_run_can_follow(mode, edges, sequential, parallel, reported):
    pairs = [tuple(edge) for edge in edges]
    document = content(["a", "b"], pairs, topology={"status": "draft"}, policy={"execution_mode": mode})
    recipe = load(document)
    kept = sequential if mode == "sequential" else parallel
    missing = dict.fromkeys(target for _, target in kept if target not in "ab")
    assert {node.id: node.place.path for node in recipe.nodes.values() if node.kind == "missing"} == {
        target: f"topology.edges[{[edge[1] for edge in edges].index(target)}]" for target in missing
    }
    if mode == "sequential":  # in parallel mode, edges lead to the sections
        assert [f"{edge.source}{edge.target}" for edge in recipe.edges] == kept
        assert [code for code in codes(document) if code != "R115"] == reported


def test_the_edges_of_a_node_that_chooses_are_its_routes():
    judge = {**EVALUATOR, "id": "j", "pass_route": "a", "fail_route": ""}
    nodes = [router("r", {"x": "a", "y": "", "z": "j"}, "b"), judge, falling("route_to_fallback", ""), "b"]
    recipe = load(content(nodes, [("a", "b")]))
    assert [(edge.source, edge.target, edge.kind, edge.condition) for edge in recipe.edges] == [
        ("a", "b", "sequential", ""),
        ("r", "a", "route", "x"),
        ("r", "j", "route", "z"),
        ("r", "b", "route", "otherwise"),
        ("j", "a", "route", "pass"),
    ]


def test_an_edge_may_have_a_label():
    document = content(["a", "b"], [("a", "b")])
    document["topology"]["edges"][0]["condition"] = "if it rains"
    assert load(document).edges[0].condition == "if it rains"
