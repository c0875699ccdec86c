from __future__ import annotations

import pytest

import agentnb as nb
from agentnb.dialects.coreason.parts.field_schemas import is_required, make_field_schema, make_output_schema
from tests.dialects.coreason.recipe_texts import content

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


def of(fields, *required):
    return {"type": "object", "properties": fields, "required": list(required)}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"summary": TEXT, "n": NUMBER}, of({"summary": TEXT, "n": NUMBER}, "summary", "n")),
        ({"title": "string", "n": "integer"}, of({"title": TEXT, "n": NUMBER}, "title", "n")),
        ({"title": "string"}, of({"title": TEXT}, "title")),
        ({"answer": {}}, of({"answer": {}}, "answer")),
        ({"a": {**TEXT, "required": False}, "b": {**TEXT, "required": True}}, of({"a": TEXT, "b": TEXT}, "b")),
        ({"a": TEXT, "required": TEXT}, of({"a": TEXT, "required": TEXT}, "a", "required")),
        ({"a": TEXT, "type": "string"}, of({"a": TEXT, "type": TEXT}, "a", "type")),
        ({"a": {"type": "object", "required": []}}, of({"a": {"type": "object", "required": []}}, "a")),
        ({"who": {"name": "string"}}, of({"who": of({"name": TEXT}, "name")}, "who")),
        ({"type": "object", "total": {"type": "number"}}, of({"total": {"type": "number"}}, "total")),
        ({"type": "object", "a": TEXT, "b": TEXT, "required": ["a"]}, of({"a": TEXT, "b": TEXT}, "a")),
        (
            {"description": "string", "x": {"$ref": "#/a"}},
            of({"description": TEXT, "x": {"$ref": "#/a"}}, "description", "x"),
        ),
    ],
)
def test_fields_are_expanded_to_an_object_schema(written, meant):
    assert make_output_schema(written) == meant


@pytest.mark.parametrize(
    "schema",
    [
        {}, TEXT, {"type": "object"}, {"type": "object", "properties": {"type": TEXT}}, {"enum": ["string"]},
        {"title": "Report", "type": "object", "properties": {}}, {"items": TEXT}, {"not": {"type": "null"}},
        {"$ref": "#/$defs/a", "$defs": {"a": TEXT}}, {"anyOf": [TEXT, NUMBER]}, {"x-note": "of my own"},
        {"properties": {"a": TEXT}, "b": TEXT}, {"title": "string", "type": "string"}, {"definitions": {"a": TEXT}},
        {"$comment": "mine", "a": TEXT}, {"a": TEXT, "required": True}, {"type": "object", "title": "string"},
        {"required": ["title"], "title": "string"},
        {"additionalProperties": TEXT}, {"type": ["string", "null"]}, {"description": "A text"},
    ],
)  # fmt: skip
def test_a_schema_is_not_changed(schema):
    assert make_output_schema(schema) == schema


@pytest.mark.parametrize(("levels", "are_fields"), [(51, True), (52, False)])
def test_nested_fields_are_expanded_to_a_fixed_depth(levels, are_fields):
    written = "string"
    for _ in range(levels):
        written = {"name": written}
    assert (make_output_schema(written) != written) is are_fields


def test_a_field_may_be_a_type_name_or_a_mapping_with_required():
    assert make_field_schema("string") == TEXT
    assert make_field_schema("text") == "text"
    assert make_field_schema({**TEXT, "required": True}) == TEXT
    assert make_field_schema(5) == 5
    assert is_required({"required": True})
    assert not is_required({"required": ["a"]})
    assert not is_required("string")


def test_a_node_fills_abbreviated_fields():
    node = {"id": "g", "type": "generative", "goal": "x", "output_schema": {"title": "string", "n": "integer"}}
    recipe = nb.load(content([node]))
    assert recipe.check() == []
    assert recipe.nodes["g"].writes == ("title", "n")
    run = nb.Session(recipe, llm=[{"title": "Rain"}, {"title": "Rain", "n": 1}])
    run.run()
    assert (dict(run.board), len(run.trace.frames.calls)) == ({"title": "Rain", "n": 1}, 2)


def test_a_deep_mapping_is_expanded_to_a_limit():
    deep = {"a": "string"}
    for _ in range(500):
        deep = {"a": deep}
    assert make_output_schema(deep) == deep
