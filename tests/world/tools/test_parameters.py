from __future__ import annotations

from collections import Counter
from types import MappingProxyType

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator

from agentnb.board.values import freeze
from agentnb.errors import RecipeError
from agentnb.secrets import hide
from agentnb.world.tools.parameters import copy_parts, format_path, parse_parameters
from agentnb.world.tools.short_parameters import MISSING


class Line(BaseModel):
    x: int


class Order(BaseModel):
    item: str
    lines: list[Line] = []

    @field_validator("item")
    @classmethod
    def no_bombs(cls, item: str) -> str:
        if item == "crash":
            raise RuntimeError("it crashed")
        if item == "bomb":
            raise ValueError("no bombs")
        return item


OBJECT = {
    "type": "object",
    "required": ["city"],
    "properties": {"city": {"type": "string", "minLength": 2}, "tags": {"type": "array", "items": {"type": "string"}}},
}


def faults(schema, params):
    return [
        (each["path"], each["message"])
        for each in parse_parameters(schema, "here").iter_errors(params, "t.inputParams")
    ]


def problems(schema):
    with pytest.raises(RecipeError) as raised:
        parse_parameters(schema, "here")
    assert {problem.code for problem in raised.value.problems} == {"R190"}
    return [(problem.where, problem.what) for problem in raised.value.problems]


def test_without_a_schema_anything_is_accepted_and_known_names_are_shown():
    assert faults(None, {"a": 1}) == []
    assert parse_parameters(None, "here", ["a"]).json_schema() == {"type": "object", "properties": {"a": {}}}


def test_a_json_schema_reports_all_errors_with_paths():
    assert faults(OBJECT, {"city": "Oslo", "tags": ["a"], "more": 1}) == []
    assert faults(OBJECT, {"tags": [1, "a", 2]}) == [
        ("t.inputParams.city", MISSING),
        ("t.inputParams.tags[0]", "1 is not of type 'string'"),
        ("t.inputParams.tags[2]", "2 is not of type 'string'"),
    ]
    (detail,) = parse_parameters(OBJECT, "here").iter_errors({"city": 5}, "t")
    assert detail == {"path": "t.city", "message": "5 is not of type 'string'", "expected": "type: 'string'",
                      "received": "integer"}  # fmt: skip


def test_a_missing_key_is_reported_at_its_own_path_whatever_it_is_called():
    name = 'it\'s "odd"\n'
    schema = {"type": "object", "properties": {"in": {"required": [name]}}, "additionalProperties": False}
    assert faults(schema, {"in": {}}) == [(f"t.inputParams.in.{name}", MISSING)]
    assert [path for path, _ in faults(schema, {"x": 1})] == ["t.inputParams"]


def test_a_model_reports_all_errors_with_paths():
    assert faults(Order, {"item": "a", "lines": [{"x": "1"}]}) == []
    assert faults(Order, {"lines": [{}, {"x": "one"}]}) == [
        ("t.inputParams.item", MISSING),
        ("t.inputParams.lines[0].x", MISSING),
        ("t.inputParams.lines[1].x", "Input should be a valid integer, unable to parse string as an integer"),
    ]
    assert faults(Order, {"item": "bomb"}) == [("t.inputParams.item", "Value error, no bombs")]
    assert faults(Order, {"item": "crash"}) == [("t.inputParams", "it cannot be checked: RuntimeError: it crashed")]
    received = [
        each["received"] for each in parse_parameters(Order, "here").iter_errors({"item": None, "lines": 1.5}, "t")
    ]
    assert received == ["null", "number"]


def test_each_form_gives_a_separate_json_schema():
    for schema in (OBJECT, Order, {"city": {"type": "string"}}, MappingProxyType(OBJECT), freeze(OBJECT)):
        parameters = parse_parameters(schema, "here")
        shown = parameters.json_schema()
        assert shown["type"] == "object"
        jsonschema.Draft202012Validator.check_schema(shown)
        shown["properties"].clear()
        assert parameters.json_schema()["properties"]


@pytest.mark.parametrize(
    ("schema", "required"),
    [
        ({"city": {"type": "string", "required": True}}, True),
        ({"properties": {"type": "object", "required": True}}, True),  # a parameter that is called so
        ({"type": {"type": "string", "required": True}, "items": {"type": "array"}}, True),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, True),
        ({"properties": {"type": {"type": "string"}}}, False),
        ({"properties": {"a": {}}, "$defs": {"b": {"type": "string"}}}, False),
        ({"properties": {}}, False),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"required": ["x"]}}}, True),
        ({"additionalProperties": False}, False),
        ({}, False),
    ],
)
def test_the_forms_of_schemas_are_distinguished(schema, required):
    assert bool(faults(schema, {})) is required


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (5, [("here", "an input schema is an int")]),
        (dict, [("here", "an input schema is a type")]),
        (True, [("here", "an input schema is a bool")]),
        ({"city": "string"}, [("here", "an input schema has only: 'city'")]),
        ({"type": "string"}, [("here", "an input schema is of type 'string'")]),
        ({"type": "objekt"}, [("here.type", "an input schema is not a JSON Schema")]),
        ({"type": "object", "properties": {"a": {"type": "text"}}},
         [("here.properties.a.type", "an input schema is not a JSON Schema")]),
        ({"type": "object", "properties": {"a": {"pattern": "("}}},
         [("here.properties.a.pattern", "an input schema is not a JSON Schema")]),
        ({"type": "object", "patternProperties": {"^(a+)+$": {}}},
         [("here.patternProperties.^(a+)+$", "an input schema is not a JSON Schema")]),
        ({"$ref": "https://example.org/schema.json"}, [("here.$ref",
        "an input schema has a reference that it does not define")]),
        ({"city": {"type": "string"}, "required": ["city"]}, [("here", "'city' is outside 'properties'")]),
        ({"city": {"type": "string"}, "days": {"typ": "number"}},
         [("here.days", "'typ' is not a rule of a parameter"), ("here.days", "a parameter has no type")]),
    ],
)  # fmt: skip
def test_an_invalid_schema_is_reported(schema, expected):
    assert problems(schema) == expected


def test_a_model_without_a_json_schema_is_reported():
    class Odd(BaseModel):
        model_config = {"arbitrary_types_allowed": True}
        inner: RecipeError

    assert problems(Odd) == [("here", "the model 'Odd' has no JSON Schema")]


def test_changing_an_argument_later_has_no_effect():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    parameters = parse_parameters(schema, "here")
    schema["properties"]["a"]["type"] = "number"
    assert list(parameters.iter_errors({"a": "text"}, "t")) == []


def test_a_secret_is_not_reported():
    hide("hush-hush-2")
    schema = {"type": "object", "properties": {"api_key": {"pattern": "^a"}, "city": {"maxLength": 3}}}
    values = {"api_key": "xyzzy-3", "city": "hush-hush-2"}
    errors = str(list(parse_parameters(schema, "here").iter_errors(values, "t")))
    assert "xyzzy" not in errors
    assert "hush" not in errors


def test_schemas_are_separate_copies():
    inner = object()
    frozen = freeze({"a": [1, {"b": [2]}], "c": (3,)})
    copied = copy_parts(frozen)
    copied["a"][1]["b"].append(4)
    assert frozen["a"][1]["b"] == [2]
    assert copy_parts({"x": inner, "y": (1,)}) == {"x": inner, "y": (1,)}
    assert format_path("t", ()) == "t"


# -- against the library itself --------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c"])
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])
SCHEMAS = st.recursive(
    st.fixed_dictionaries({}, optional={"type": TYPES, "minimum": st.integers(-2, 2), "minLength": st.integers(0, 3)}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, max_size=3, unique=True),
            "items": inner,
            "additionalProperties": st.booleans() | inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "enum": st.lists(st.integers(0, 2) | st.text("ab", max_size=1), min_size=1, max_size=2, unique=True),
        },
    ),
    max_leaves=8,
)
ATOMS = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=4)
VALUES = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))


def by_the_library(schema, params):
    """Return the path of each error; of what is missing its own."""
    counts = Counter()
    for error in jsonschema.Draft202012Validator(schema).iter_errors(params):
        path = tuple(error.absolute_path)
        if error.validator == "required":
            path = (*path, next(name for name in "abc" if error.message.startswith(repr(name))))
        counts[format_path("t", path)] += 1
    return counts


@given(SCHEMAS, st.dictionaries(NAMES, VALUES, max_size=3))
def test_every_violation_of_a_json_schema_is_found_at_its_path(schema, params):
    schema = {**schema, "type": "object"}
    errors = Counter(each["path"] for each in parse_parameters(schema, "here").iter_errors(params, "t"))
    assert errors == by_the_library(schema, params)
