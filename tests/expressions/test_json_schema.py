from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from types import MappingProxyType

import pytest

from agentnb.board.values import freeze
from agentnb.expressions.json_schema import LONGEST, Fault, Schema, is_types_only

DRAFT = "https://json-schema.org/draft/2020-12/schema"
ORDER = {
    "type": "object",
    "required": ["lines"],
    "properties": {"lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}},
    "$defs": {"line": {"type": "object", "properties": {"count": {"type": "integer", "minimum": 1}}}},
}


def faults(schema, value):
    return [(fault.path, fault.message) for fault in Schema(schema).faults(value)]


def test_a_valid_value_has_no_errors():
    assert faults(ORDER, {"lines": [{"count": 1}]}) == []
    assert faults({}, object()) == []


def test_each_error_has_its_path_and_its_rule():
    assert faults(ORDER, {"lines": [{"count": 0}, {"count": "two"}]}) == [
        (("lines", 0, "count"), "0 is less than the minimum of 1"),
        (("lines", 1, "count"), "'two' is not of type 'integer'"),
    ]
    assert faults(ORDER, {}) == [((), "'lines' is a required property")]
    assert faults({"not": {}}, 1) == [((), "1 should not be valid under {}")]


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"type": "array", "items": {"type": "integer"}}, (1, 2), True),
        ({"type": "array", "minItems": 3}, (1, 2), False),
        ({"const": [1]}, (1,), True),
        ({"type": "object", "required": ["a"]}, MappingProxyType({"a": 1}), True),
        ({"type": "object"}, freeze({"a": 1}), True),
        ({"type": "number"}, True, False),
        ({"const": 1}, True, False),
        ({"uniqueItems": True}, [1, True], True),
        ({"type": "integer"}, 1.0, True),
        ({"type": "null"}, None, True),
        ({"format": "date"}, "no date", True),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True}, 3, False),
        ({"$schema": "https://example.org/of-my-own", "minimum": 3}, 2, False),
        ({"$schema": DRAFT, "items": {"$ref": "#"}, "type": "array"}, ((),), True),
        (True, object(), True),
        (False, 1, False),
    ],
)  # fmt: skip
def test_valid_values_are_accepted(schema, value, fits):
    assert (not faults(schema, value)) is fits


def test_a_schema_may_be_frozen():
    for frozen in (MappingProxyType({"properties": MappingProxyType({"a": {"enum": (1, 2)}})}),
                   freeze({"properties": {"a": {"enum": [1, 2]}}})):  # fmt: skip
        schema = Schema(frozen)
        assert schema.wrong is None
        assert schema.rules == {"properties": {"a": {"enum": [1, 2]}}}
        assert [fault.path for fault in schema.faults({"a": 3})] == [("a",)]


@pytest.mark.parametrize(
    ("schema", "path", "word"),
    [
        ({"type": "strng"}, ("type",), "strng"),
        ({"properties": {"a": {"minLength": "3"}}}, ("properties", "a", "minLength"), "integer"),
        ({"properties": {"a": {"pattern": "("}}}, ("properties", "a", "pattern"), "regex"),
        ({"$schema": 3}, ("$schema",), "string"),
        ([], (), "list is not a JSON Schema"),
        (None, (), "NoneType is not a JSON Schema"),
        ("object", (), "str is not a JSON Schema"),
    ],
)
def test_an_invalid_schema_is_reported(schema, path, word):
    schema = Schema(schema)
    (fault,) = schema.own_faults()
    assert fault.path == path
    assert word in fault.message
    assert schema.wrong == fault
    assert [each.message for each in schema.faults({})] == [f"its schema is invalid: {fault.message}"]


def test_a_valid_schema_has_no_errors():
    assert list(Schema(ORDER).own_faults()) == []
    assert Schema(ORDER).wrong is None


def deep(levels):
    results = {}
    for _ in range(levels):
        results = {"properties": {"a": results}}
    return results


@pytest.mark.parametrize(
    ("schema", "value", "word"),
    [
        ({"$ref": "#/nope"}, 1, "'/nope', which is not in it"),
        ({"$ref": "http://example.invalid/schema"}, 1, "which is not in it"),
        ({"$ref": "file:///etc/hosts"}, 1, "which is not in it"),
        ({"$ref": "http://[bad"}, 1, "which is not in it"),
        ({"$ref": "#"}, 1, "refers to itself"),
        ({"$ref": "#/required", "required": ["a"]}, {"a": 1}, "cannot be checked"),
        ({"multipleOf": 0.1}, float("nan"), "cannot be checked"),
        ({"multipleOf": 0.1}, 10**400, "cannot be checked"),
        ({"patternProperties": {"a": {}}}, {1: 2}, "cannot be checked"),
    ],
)
def test_a_value_that_cannot_be_validated_is_reported_and_raises_nothing(schema, value, word):
    ((path, message),) = faults(schema, value)
    assert path == ()
    assert word in message


def test_a_value_nested_too_deep_is_reported():
    value = {}
    for _ in range(5000):
        value = {"a": value}
    assert "too deep" in faults({"properties": {"a": {"$ref": "#"}}}, value)[0][1]
    assert "too deep" in faults(deep(5000), {})[0][1]


def test_a_message_is_short_and_its_rule_is_complete():
    ((_, message),) = faults({"type": "integer"}, "x" * 5000)
    assert message.endswith("... is not of type 'integer'")
    assert all(len(message) <= LONGEST for _, message in faults({"enum": ["y" * 5000]}, 1))


@pytest.mark.parametrize(
    ("schema", "message"),
    [({"type": "string"}, "an object is not of type 'string'"),
     ({"properties": {"a": {"uniqueItems": True}}}, "a list has non-unique elements")],
)  # fmt: skip
def test_content_of_objects_and_lists_is_not_quoted(schema, message):
    assert faults(schema, {"password": "open sesame", "a": ["open sesame", "open sesame"]})[0][1] == message


def test_a_rule_quotes_the_schema_and_never_the_value():
    schema = {"properties": {"a": {"minimum": 3}}, "required": ["b"], "additionalProperties": False}
    assert {fault.rule for fault in Schema(schema).faults({"a": 2, "c": 1})} == {
        "minimum: 3",
        "'b' is a required property",
        "Additional properties are not allowed ('c' was unexpected)",
    }
    assert Fault((), "x").rule == ""


def test_jsonschema_is_imported_at_the_first_validation():
    program = "import sys, agentnb.expressions.json_schema as s; s.Schema({}); print('jsonschema' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


@pytest.mark.skipif(find_spec("rfc3987_syntax") is None, reason="comes with Jupyter, not with agentnb")
@pytest.mark.starts_programs
def test_the_grammar_of_iris_is_built_at_the_first_use():
    program = """
import sys
from agentnb.expressions.json_schema import Schema
assert list(Schema({"type": "object", "required": ["a"], "format": "iri"}).faults({}))
assert not {"rfc3987_syntax", "rfc3987_syntax.syntax_helpers"} & sys.modules.keys()
from jsonschema import FormatChecker
assert FormatChecker().conforms("http://a/\u00e9", "iri")
assert not FormatChecker().conforms("a b", "iri")
assert "rfc3987_syntax.syntax_helpers" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("schema", "value", "rule"),
    [
        ({"minimum": 3}, 1, "minimum: 3"),
        ({"properties": {"a": {"enum": [1, 2]}}}, {"a": "s3cret"}, "enum: [1, 2]"),
        ({"required": ["a"]}, {}, "'a' is a required property"),
        (
            {"additionalProperties": False},
            {"a": "s3cret"},
            "Additional properties are not allowed ('a' was unexpected)",
        ),
        (False, "s3cret", "no value is allowed here"),
        ({"$ref": "#/nowhere"}, 1, ""),
    ],
)
def test_a_rule_is_reported_without_the_value(schema, value, rule):
    assert [fault.rule for fault in Schema(schema).faults(value)] == [rule]


@pytest.mark.parametrize(
    ("schema", "only"),
    [
        ({}, True),
        (True, True),
        ({"type": "string", "title": "t", "description": "d", "default": 1, "examples": [1]}, True),
        ({"type": ["integer", "null"]}, True),
        (False, False),
        ("string", False),
        ({"type": 42}, False),
        ({"type": "text"}, False),
        ({"type": []}, False),
        ({"type": ["string", "string"]}, False),
        ({"type": [["string"]]}, False),
        ({"description": 3}, False),
        ({"minimum": 3}, False),
        ({"$ref": "#"}, False),
    ],
)
def test_some_schemas_contain_types_only(schema, only):
    assert is_types_only(schema) is only
    assert not (only and list(Schema(schema).own_faults()))


EVIL = "(a+)+$"
EVIL_TEXT = "a" * 36 + "!"


def test_an_ambiguous_pattern_is_matched_in_bounded_time():
    schema = {"properties": {"a": {"type": "string", "pattern": EVIL}}}
    assert faults(schema, {"a": EVIL_TEXT}) == [(("a",), f"{EVIL_TEXT!r} does not match {EVIL!r}")]
    assert faults(schema, {"a": "aaa"}) == []
    assert faults({"propertyNames": {"pattern": EVIL}}, {EVIL_TEXT: 1}) != []


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"patternProperties": {EVIL: {}}, "additionalProperties": False}, ("patternProperties", EVIL)),
        ({"items": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": EVIL}}, ("items", "pattern")),
        ({"pattern": EVIL + "(?!b)"}, ("pattern",)),
        ({"$ref": "#/default", "default": {"pattern": EVIL + "(?!b)"}}, ("default", "pattern")),
    ],
)
def test_a_pattern_without_a_time_bound_is_an_error_of_the_schema(schema, path):
    (fault,) = Schema(schema).own_faults()
    assert (fault.path, "could take too long to match" in fault.message) == (path, True)
    assert "its schema is invalid" in faults(schema, {EVIL_TEXT: 1})[0][1]


def test_a_text_that_is_too_long_is_not_matched():
    long = "a" * 10_001
    assert faults({"pattern": "^a+$"}, long) == [((), "a string of 10,001 characters is too long for the pattern")]
    looks = {"pattern": r"^(?!.*\.\.)[\w.+-]+@[\w-]+\.[\w.-]+$"}
    assert faults(looks, "ada@example.org") == []
    assert "does not match" in faults(looks, "a..b@example.org")[0][1]
    assert "at most 100," in faults(looks, "a" * 101)[0][1]
    keyed = {"patternProperties": {"^a+$": {}}}
    assert "longer than 10,000 characters" in faults(keyed, [{long: 1}])[0][1]
    assert faults(keyed, {"a": 1}) == faults({"type": "string"}, long) == []


@pytest.mark.parametrize(
    ("ref", "leads"),
    [
        ("#", True),
        ("#/$defs/a", True),
        ("#/$defs/a~1b", True),
        ("#/$defs/c~0d", True),
        ("#/$defs/e%20f", True),
        ("#/prefixItems/1", True),
        ("#/prefixItems/2", False),
        ("#/prefixItems/x", False),
        ("#/$defs/z", False),
        ("#/$defs/a/title/x", False),
        ("#name", True),
        ("#other", True),
        ("#nobody", False),
        ("", False),
        ("a.json", False),
    ],
)
def test_an_unresolvable_reference_is_reported(ref, leads):
    schema = {
        "$defs": {"a": {"title": "t"}, "a/b": {}, "c~d": {"$anchor": "name"}, "e f": {"$dynamicAnchor": "other"}},
        "prefixItems": [{}, {}],
        "properties": {"p": {"$ref": ref}},
    }
    actual = [(fault.path, fault.message) for fault in Schema(schema).iter_lost_references()]
    assert actual == ([] if leads else [(("properties", "p", "$ref"), f"it refers to {ref!r}, which is not in it")])
    assert list(Schema({**schema, "$id": "https://example.org/a"}).iter_lost_references()) == []


@pytest.mark.parametrize(
    ("items", "unique"),
    [
        ([1, 1.0], False),
        ([1, True], True),
        ([0, False], True),
        ([{"a": 1, "b": [2]}, {"b": [2], "a": 1}], False),
        ([{"a": 1}, {"a": True}], True),
        ([[1], [1]], False),
        ([[1], (1,)], False),
        ([[1, 2], [2, 1]], True),
        ([{}, []], True),
        (["a", "b", "a"], False),
        ([None, False, 0, ""], True),
        ([{"a": {1}}, {"a": {1}}], False),  # no JSON, so the library compares
        ([], True),
    ],
)
def test_unique_items_are_compared_as_json(items, unique):
    assert (faults({"uniqueItems": True}, items) == []) is unique
    assert faults({"uniqueItems": False}, items) == []
    assert faults({"uniqueItems": True}, "aa") == []


def test_the_maximum_length_of_a_matched_text_is_accepted():
    longest = "a" * 10_000
    assert (
        faults({"pattern": "^a+$"}, longest) == faults({"patternProperties": {"^a+$": {}}}, {longest: [longest]}) == []
    )
    for value in ({longest + "a": 1}, {"a": longest + "a"}, [("x", longest + "a")]):
        assert "longer than 10,000 characters" in faults({"patternProperties": {"^b$": {}}}, value)[0][1]
    looks = {"pattern": r"^(?!.*\.\.)[\w.+-]+@[\w-]+\.[\w.-]+$"}
    assert "does not match" in faults(looks, "a" * 100)[0][1]


@pytest.mark.parametrize("size", [LONGEST - 40, LONGEST, 3 * LONGEST])
def test_a_message_has_the_maximum_length(size):
    (fault,) = Schema({"enum": ["y" * size]}).faults(1)
    message = f"1 is not one of ['{'y' * size}']"
    assert fault.message == (message if len(message) <= LONGEST else f"{message[: LONGEST - 3]}...")
    (fault,) = Schema({"type": "integer"}).faults("x" * size)
    assert fault.message == f"'{'x' * 56}... is not of type 'integer'"


def test_errors_of_references_and_patterns_are_quoted_briefly():
    (fault,) = Schema({"pattern": "(a+)+" + "b" * 100 + "$(?!b)"}).own_faults()
    assert fault.message.startswith(f"the pattern {'(a+)+' + 'b' * 52 + '...'!r} could take too long to match: ")
