from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.errors import ExecutionError
from agentnb.expressions.json_schema import Schema
from agentnb.world.sample_data import fill

NODE = {"type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"},
                       "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}, "minItems": 1},
                       "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}}  # fmt: skip
FILLED = {
    "nothing said": {},
    "anything": True,
    "a const": {"const": {"a": [None]}},
    "an enum": {"enum": ["a", 1, None, True]},
    "an enum of a type": {"type": "string", "enum": [1, "a"]},
    "a default that does not fit": {"type": "integer", "default": "x"},
    "examples that do not fit": {"type": "integer", "examples": ["x", "y"]},
    "limits": {"type": "integer", "minimum": 3, "maximum": 4},
    "limits that are not meant": {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5},
    "two limits": {"type": "integer", "minimum": 3, "exclusiveMinimum": 3, "maximum": 4},
    "limits of draft 4": {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer", "minimum": 3,
                          "exclusiveMinimum": True, "maximum": 4},
    "below zero": {"type": "integer", "maximum": -7},
    "a multiple": {"type": "integer", "multipleOf": 7, "minimum": 50, "maximum": 60},
    "a whole multiple of a part": {"type": "integer", "multipleOf": 1.5, "minimum": 1, "maximum": 5},
    "a part": {"type": "number", "multipleOf": 0.01, "minimum": 0, "maximum": 1},
    "a share": {"type": "number", "minimum": 0, "maximum": 1},
    "next to nothing": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1e-12},
    "the largest": {"type": "number", "minimum": 1e308},
    "one number": {"type": "number", "minimum": 2.5, "maximum": 2.5},
    "truth": {"type": "boolean"},
    "null": {"type": "null"},
    "several types": {"type": ["null", "string", "array"], "minLength": 4, "minItems": 4},
    "a list": {"type": "array", "items": {"type": "string"}, "minItems": 4, "maxItems": 5},
    "no list": {"type": "array", "maxItems": 0},
    "all of an enum": {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 3},
    "as many as there are": {"type": "array", "items": {"const": 1}, "uniqueItems": True},
    "a tuple": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "null"}], "items": False, "minItems": 2},
    "a tuple of draft 7": {"$schema": "http://json-schema.org/draft-07/schema#", "minItems": 2,
                           "items": [{"type": "string"}, {"const": 2}], "additionalItems": False},
    "contains": {"type": "array", "items": {"type": "integer"}, "contains": {"minimum": 500}, "minContains": 2},
    "required without a schema": {"type": "object", "required": ["a"], "properties": {"b": {"type": "null"}}},
    "nothing beside": {"properties": {"a": {"type": "integer"}}, "additionalProperties": False},
    "a map": {"type": "object", "additionalProperties": {"type": "integer"}},
    "at least some": {"type": "object", "minProperties": 3, "properties": {"a": {}}},
    "at most some": {"type": "object", "maxProperties": 1, "properties": {"a": {}, "b": {}}, "required": ["b"]},
    "one that may not be": {"properties": {"a": False, "b": {"type": "integer"}}},
    "all of": {"allOf": [{"properties": {"a": {"type": "number", "minimum": 5}}, "required": ["a"]},
                         {"properties": {"a": {"type": "integer", "maximum": 6}}}]},
    "any of, and beside": {"properties": {"a": {"type": "string"}}, "required": ["a", "b"],
                           "anyOf": [{"properties": {"b": {"const": 1}}}, {"properties": {"b": {"type": "null"}}}]},
    "one of": {"type": "integer", "oneOf": [{"multipleOf": 3}, {"multipleOf": 5}], "maximum": 40},
    "any of, one impossible": {"anyOf": [False, {"type": "string", "pattern": "(?=x)"}, {"type": "integer"}]},
    "both": {"anyOf": [{"minimum": 3}, {"minimum": 5}], "oneOf": [{"type": "integer"}], "maximum": 9},
    "if": {"properties": {"a": {"enum": [1, 2]}}, "required": ["a"],
           "if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}, "else": {"required": ["c"]}},
    "not": {"type": "integer", "minimum": 1, "maximum": 3, "not": {"const": 2}},
    "definitions": {"definitions": {"a/b": {"type": "integer"}}, "properties": {"x": {"$ref": "#/definitions/a~1b"}}},
    "a place in a list": {"allOf": [{"required": ["y"]}, {"properties": {"x": {"$ref": "#/allOf/0"}}}]},
    "an anchor": {"$defs": {"n": {"$anchor": "num", "type": "integer"}}, "properties": {"x": {"$ref": "#num"}}},
    "a reference and more": {"$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n", "minimum": 90, "maximum": 92},
    "a tree": {"$ref": "#/$defs/node", "$defs": {"node": NODE}},
    "a line that has to end": {"$ref": "#/$defs/node", "$defs": {"node": {**NODE, "required": ["name", "next"]}}},
    "itself": {"properties": {"again": {"$ref": "#"}, "others": {"type": "array", "items": {"$ref": "#"}}}},
    "each in each": {"$ref": "#/$defs/0", "$defs": {str(i): {"properties": {
        str(j): {"$ref": f"#/$defs/{j}"} for j in range(9)}} for i in range(9)}},
}  # fmt: skip


@pytest.mark.parametrize("schema", FILLED.values(), ids=FILLED)
def test_sample_data_fits_its_schema_and_depends_on_the_seed_alone(schema):
    compiled = Schema(schema)
    for seed in ("0:plan:0", 1, None):
        value = fill(compiled, seed)
        assert list(compiled.faults(value)) == []
        assert repr(fill(schema, seed)) == repr(value)


IMPOSSIBLE = {
    "wrong": ({"type": "strng"}, "its schema is invalid: type: 'strng'"),
    "no schema": ([], "its schema is invalid"),
    "nothing": (False, "allows no value"),
    "an empty enum": ({"enum": []}, "empty enum"),
    "not there": ({"$ref": "#/$defs/x"}, "which is not in it"),
    "no anchor": ({"$ref": "#x"}, "which is not in it"),
    "elsewhere": ({"$ref": "https://example.org/s"}, "which is not in it"),
    "only itself": ({"$ref": "#"}, "without an end"),
    "without an end": ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "without an end"),
    "two types": ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "it requires both"),
    "no number": ({"type": "number", "minimum": 3, "maximum": 2}, "smallest number"),
    "no whole number": ({"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 4}, "no multiple of 1"),
    "too few": ({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "minItems": 3}, "different values"),
    "too long": ({"type": "array", "minItems": 10**9}, "no list is as long"),
    "infinite": ({"type": "number", "minimum": float("inf")}, "without an end"),
    "not a number": ({"type": "integer", "maximum": float("nan")}, "without an end"),
    "a pattern": ({"type": "string", "pattern": "(?=x)y"}, "cannot be written out"),
    "not a text": ({"not": {"type": "string"}}, "does not match"),
    "not beside": ({"required": ["a"], "additionalProperties": False, "properties": {}}, "allows no value"),
}


@pytest.mark.parametrize(("schema", "why"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_schema_that_cannot_be_simulated_is_reported_with_the_remedy(schema, why):
    with pytest.raises(ExecutionError, match="X408") as caught:
        fill(schema, 1, where="node 'plan'")
    (problem,) = caught.value.problems
    assert problem.where == "node 'plan'"
    assert re.search(re.escape(why), problem.why)
    assert "llm" in problem.do


def test_every_property_has_a_value_and_a_text_contains_its_name():
    schema = {"properties": {"title": {"type": "string"}, "due_day": {"format": "date"}, "tags": {"items": {}},
                             "by": {"properties": {"mail": {"format": "email"}}}}}  # fmt: skip
    value = fill(schema, 5)
    assert list(value) == ["title", "due_day", "tags", "by"]
    assert re.fullmatch(r"title \d+", value["title"])
    assert re.fullmatch(r"tags \d+", value["tags"][0])
    assert value["by"]["mail"].startswith("mail.")
    assert re.fullmatch(r"plan \d+", fill({"type": "string"}, 5, "plan"))


def test_other_seeds_give_other_values():
    schema = {"properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}
    assert len({str(fill(schema, seed)) for seed in range(10)}) > 5


def test_defaults_take_precedence_over_examples():
    assert fill({"type": "string", "default": "d", "examples": ["e"]}, 1) == "d"
    assert {fill({"type": "string", "examples": ["e", "f"]}, seed) for seed in range(10)} == {"e", "f"}


def test_sample_data_shares_no_value_with_the_schema():
    schema = {"const": {"list": [1]}}
    fill(schema, 1)["list"].append(2)
    assert schema == {"const": {"list": [1]}}


def test_a_recursive_schema_is_expanded_by_one_level():
    tree = fill({"$ref": "#/$defs/node", "$defs": {"node": NODE}}, 1)
    assert set(tree) == {"name", "kids", "next"}
    assert all(list(kid) == ["name"] for kid in tree["kids"])


def test_null_is_the_last_resort():
    assert isinstance(fill({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1), int)
    assert isinstance(fill({"type": ["null", "integer"]}, 1), int)


def test_it_is_the_same_in_another_process():
    schema = {"properties": {"a": {}, "n": {"type": "number"}, "u": {"format": "uuid"}}, "required": ["z", "y"]}
    program = f"from agentnb.world.sample_data import fill; print(fill({schema!r}, '0:plan:1'))"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == str(fill(schema, "0:plan:1"))


leaves = st.sampled_from([
    {"type": "string"}, {"type": "string", "minLength": 8, "maxLength": 9}, {"type": "integer", "minimum": -3},
    {"type": "number", "maximum": 0.5}, {"type": "boolean"}, {"type": "null"}, {"enum": [1, "x"]}, {},
])  # fmt: skip
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda items, low: {"type": "array", "items": items, "minItems": low}, inner, st.integers(0, 3)),
        st.builds(lambda parts: {"anyOf": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(
            lambda parts, closed: {"type": "object", "properties": parts, "required": list(parts)[:2],
                                   "additionalProperties": not closed},
            st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
            st.booleans(),
        ),
    ),
    max_leaves=8,
)  # fmt: skip


@given(schemas, st.integers())
def test_any_common_schema_has_sample_data(schema, seed):
    assert list(Schema(schema).faults(fill(schema, seed))) == []


def test_an_object_that_requires_more_keys_than_possible_is_reported():
    with pytest.raises(ExecutionError, match="X408") as caught:
        fill({"type": "object", "minProperties": 20_000}, seed=1)
    assert "as many keys" in caught.value.problems[0].why
