from __future__ import annotations

from agentnb.errors import Place
from agentnb.recipe.words import MOST_GUESSES, OTHERWISE, Guesses, choices, listed, where_is
from tests.recipe.making import node, recipe


def test_names_are_listed_up_to_so_many():
    assert listed(["a", "b"]) == "a, b"
    assert listed(map(str, range(20)), most=3) == "0, 1, 2 and 17 more"
    assert listed([]) == "none"


def test_a_place_is_the_recipe_where_none_is_known():
    made = recipe(["a"])
    assert where_is(made, None) == "recipe 'made'"
    assert where_is(made, Place("a.yaml", 1, 2)) == "a.yaml:1:2"


def test_guessing_ends_after_so_many():
    guess = Guesses(["read"])
    assert {guess("raed", "no") for _ in range(MOST_GUESSES)} == {"did you mean 'read'?"}
    assert guess("raed", "no") == "no"


def test_a_router_chooses_by_text_and_by_default():
    router = node("r", "router", params={"routes": {1: "a", "x": ""}, "default": "b"})
    assert choices(router) == [("1", "a"), ("x", ""), (OTHERWISE, "b")]
    assert choices(node("r", "router", params={"routes": None})) == []


def test_an_evaluator_passes_or_fails():
    assert choices(node("e", "evaluator", params={"pass_route": "a", "fail_route": "b"})) == [
        ("pass", "a"),
        ("fail", "b"),
    ]


def test_other_kinds_choose_nothing():
    assert choices(node("a", "agent", params={"routes": {"x": "y"}})) == []
