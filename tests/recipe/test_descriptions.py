from __future__ import annotations

import pytest

from agentnb.errors import Place
from agentnb.recipe.descriptions import (
    OTHERWISE,
    fits_type,
    format_place,
    list_choices,
    list_names,
    list_types,
    parse_typed,
)
from tests.recipe.small_recipes import node, recipe


def test_lists_of_names_are_limited():
    assert list_names(["a", "b"]) == "a, b"
    assert list_names(map(str, range(20)), limit=3) == "0, 1, 2 and 17 more"
    assert list_names([]) == "none"


def test_the_default_place_is_the_recipe():
    loaded_recipe = recipe(["a"])
    assert format_place(loaded_recipe, None) == "recipe 'made'"
    assert format_place(loaded_recipe, Place("a.yaml", 1, 2)) == "a.yaml:1:2"


def test_a_router_chooses_by_text_and_by_default():
    router = node("r", "router", params={"routes": {1: "a", "x": ""}, "default": "b"})
    assert list_choices(router) == [("1", "a"), ("x", ""), (OTHERWISE, "b")]
    assert list_choices(node("r", "router", params={"routes": None})) == []


def test_an_evaluator_passes_or_fails():
    assert list_choices(node("e", "evaluator", params={"pass_route": "a", "fail_route": "b"})) == [
        ("pass", "a"),
        ("fail", "b"),
    ]


def test_other_kinds_have_no_routes():
    assert list_choices(node("a", "agent", params={"routes": {"x": "y"}})) == []


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("4711", {"type": "string"}, "4711"),
        ("null", {"type": "string"}, "null"),
        ('"a"', {"type": "string"}, '"a"'),
        ("4711", {"type": "integer"}, 4711),
        ("abc", {"type": "integer"}, "abc"),
        ("4711", {"type": ["string", "null"]}, "4711"),
        ("null", {"type": ["string", "null"]}, None),
        ("4711", {"type": ("integer", "string")}, 4711),
        ("true", {"type": ["integer", "string"]}, "true"),
        ("4711", {"type": "unheard"}, 4711),
        ("4711", {"type": 5}, 4711),
        ("4711", "string", 4711),
        ("[1]", None, [1]),
        ("[1", None, "[1"),
        ("", None, ""),
        ("[" * 100_000, None, "[" * 100_000),
    ],
)
def test_a_typed_value_is_parsed_as_declared(text, schema, value):
    assert parse_typed(text, schema) == value


def test_simple_types_are_described():
    assert list_types({"type": ["integer", "unheard"]}) == ["integer"]
    assert list_types({}) == list_types(None) == []
    actual = {
        value: [kind for kind in ("integer", "number", "boolean", "string") if fits_type(value, kind)]
        for value in (True, 2)
    }
    assert actual == {True: ["boolean"], 2: ["integer", "number"]}
