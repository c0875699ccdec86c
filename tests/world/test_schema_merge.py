from __future__ import annotations

import pytest

from agentnb.world.sample_text import CannotError
from agentnb.world.schema_merge import merge_schemas


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"minimum": 1, "maxLength": 5}, {"minimum": 3, "maxLength": 4}, {"minimum": 3, "maxLength": 4}),
        ({"minItems": 4, "uniqueItems": True}, {"uniqueItems": False}, {"minItems": 4, "uniqueItems": True}),
        ({"minItems": 4}, {"minItems": 2}, {"minItems": 4}),
        ({"required": ["a", "b"]}, {"required": ["c", "a"]}, {"required": ["a", "b", "c"]}),
        ({"type": "integer"}, {"type": "number"}, {"type": ["integer"]}),
        ({"type": "number"}, {"type": ["integer", "null"]}, {"type": ["integer"]}),
        ({"type": ["string", "null"]}, {"type": "string"}, {"type": ["string"]}),
        ({"enum": [1, "a", True]}, {"enum": ["a", 1.5, True]}, {"enum": ["a", True]}),
        ({"multipleOf": 4}, {"multipleOf": 6}, {"multipleOf": 12}),
        ({"properties": {"a": {"minimum": 1}, "b": {}}}, {"properties": {"a": {"maximum": 2}}},
         {"properties": {"a": {"allOf": [{"minimum": 1}, {"maximum": 2}]}, "b": {}}}),
        ({"items": {"minimum": 1}}, {"items": {"maximum": 2}}, {"items": {"allOf": [{"minimum": 1}, {"maximum": 2}]}}),
        ({"anyOf": [1, 2]}, {"anyOf": [3]}, {"anyOf": [{"allOf": [1, 3]}, {"allOf": [2, 3]}]}),
        ({"default": 1}, {"default": 2}, {"default": 2}),
        ({"const": 1}, {"const": True}, {"const": True}),
    ],
)  # fmt: skip
def test_a_merged_schema_requires_both(one, other, both):
    assert merge_schemas(one, other) == both
    assert {key: type(value) for key, value in merge_schemas(one, other).items()} == {
        k: type(v) for k, v in both.items()
    }


def test_merging_does_not_change_its_arguments():
    one, other = {"required": ["a"], "properties": {"a": {}}}, {"required": ["b"], "properties": {"a": {"minimum": 1}}}
    merge_schemas(one, other)
    assert one == {"required": ["a"], "properties": {"a": {}}}
    assert other == {"required": ["b"], "properties": {"a": {"minimum": 1}}}


def test_types_that_exclude_each_other_are_reported():
    with pytest.raises(CannotError, match="string or null and integer"):
        merge_schemas({"type": ["string", "null"]}, {"type": "integer"})
