"""Merging of two JSON Schemas into one that requires both, as far as one level of rules can express it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from agentnb.world.sample_text import CannotError

_LEAST: Final = frozenset(
    {"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains", "uniqueItems"}
)
_MOST: Final = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"})
_BOTH: Final = frozenset({"items", "additionalProperties", "additionalItems", "contains"})
_MOST_WAYS: Final = 100


def merge_schemas(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema that requires both; if one level cannot express both, the second one's rule is used.

    Raises:
        CannotError: they contradict each other.
    """
    both = {**one, **other}
    for word in one.keys() & other.keys():
        both[word] = _rule(word, one[word], other[word])
    return both


def _rule(word: str, one: Any, other: Any) -> Any:
    if one == other and type(one) is type(other):
        return other
    if word in _LEAST:
        return max(one, other)
    if word in _MOST:
        return min(one, other)
    if word in _BOTH and not isinstance(one, list | tuple) and not isinstance(other, list | tuple):
        return {"allOf": [one, other]}
    match word:
        case "properties" | "patternProperties":
            return {**one, **{key: {"allOf": [one[key], rule]} if key in one else rule for key, rule in other.items()}}
        case "required":
            return list(dict.fromkeys((*one, *other)))
        case "type":
            return _intersect_types(one, other)
        case "enum":
            known = {json.dumps(value, sort_keys=True) for value in one}
            return [value for value in other if json.dumps(value, sort_keys=True) in known]
        case "anyOf" | "oneOf" if len(one) * len(other) <= _MOST_WAYS:
            return [{"allOf": [first, second]} for first in one for second in other]
        case "multipleOf" if isinstance(one, int) and isinstance(other, int):
            return math.lcm(one, other)
    return other


def _intersect_types(one: Any, other: Any) -> list[str]:
    first, second = ([types] if isinstance(types, str) else list(types) for types in (one, other))
    common = [kind for kind in second if kind in first or (kind == "integer" and "number" in first)]
    common += [kind for kind in first if kind == "integer" and "number" in second and kind not in common]
    if not common:
        raise CannotError(f"it asks for {' or '.join(first)} and for {' or '.join(second)} at once")
    return common
