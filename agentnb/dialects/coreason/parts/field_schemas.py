"""JSON Schemas from a recipe's short forms.

A map of fields is short for an object with these fields, and a type's name for its schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentnb.expressions.json_schema import TYPES

# The JSON Schema keywords that constrain a value, and those that only annotate it.
_ASKS: Final = frozenset({
    "type", "enum", "const", "properties", "required", "additionalProperties", "patternProperties", "propertyNames",
    "minProperties", "maxProperties", "dependencies", "dependentRequired", "dependentSchemas",
    "unevaluatedProperties", "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "minContains",
    "maxContains", "minItems", "maxItems", "uniqueItems", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "allOf", "anyOf", "oneOf", "not", "if",
    "then", "else", "definitions", "contentSchema", "contentEncoding", "contentMediaType",
})  # fmt: skip
_REMARKS: Final = frozenset(
    {"title", "description", "default", "examples", "format", "deprecated", "readOnly", "writeOnly"}
)
_MOST: Final = 50  # levels that are examined


def make_output_schema(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a node's output: as written, or of an object with all these fields.

    A mapping describes fields if one of its keys is not a JSON Schema keyword and every value describes a field:
    `{title: string}`, `{total: {type: number}}`. A field with `required: false`, or missing from a list of required
    fields, may be left out.

    Example:
        >>> make_output_schema({"title": "string"})
        {'type': 'object', 'properties': {'title': {'type': 'string'}}, 'required': ['title']}
    """
    fields = _find_fields(source)
    if fields is None:
        return dict(source)
    named = source.get("required")
    required = list(named) if isinstance(named, list) else [
        name for name, field in fields.items() if not (isinstance(field, Mapping) and field.get("required") is False)
    ]  # fmt: skip
    return {
        "type": "object",
        "properties": {name: make_field_schema(field) for name, field in fields.items()},
        "required": required,
    }


def make_field_schema(source: Any) -> Any:
    """Return the schema of one field: for a type name, the type; without a boolean `required`."""
    if isinstance(source, str) and source in TYPES:
        return {"type": source}
    if not isinstance(source, Mapping):
        return source
    if isinstance(source.get("required"), bool):
        source = {word: rule for word, rule in source.items() if word != "required"}
    return make_output_schema(source)


def is_required(source: Any) -> bool:
    """Return True if a field is described as required."""
    return isinstance(source, Mapping) and source.get("required") is True


def _find_fields(source: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any] | None:
    """Return a mapping that is meant as fields; None if it is a schema, or ambiguous."""
    if isinstance(source.get("properties"), Mapping) or any(str(word).startswith("$") for word in source):
        return None
    around = {word for word, rule in source.items()
              if (word == "type" and rule == "object") or (word == "required" and isinstance(rule, list))}  # fmt: skip
    fields = {word: rule for word, rule in source.items() if word not in around}
    own = any(word not in _ASKS | _REMARKS for word in fields) or (not around and fields.keys() <= _REMARKS)
    return fields if fields and own and all(_describes_field(rule, depth) for rule in fields.values()) else None


def _describes_field(rule: Any, depth: int) -> bool:
    if isinstance(rule, Mapping) and depth < _MOST:
        return not rule or any(word in _ASKS or str(word).startswith("$") for word in rule) or (
            _find_fields(rule, depth + 1) is not None
        )  # fmt: skip
    return isinstance(rule, str) and rule in TYPES
