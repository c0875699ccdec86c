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


def merge_schemas(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema that requires both; if one level cannot express both, the second one's rule is used.

    Raises:
        CannotError: they contradict each other.
    """
    both = {**left, **right}
    for word in left.keys() & right.keys():
        both[word] = _merge_rule(word, left[word], right[word])
    return both


def _merge_rule(word: str, left: Any, right: Any) -> Any:
    if left == right and type(left) is type(right):
        return right
    if word in _LEAST:
        return max(left, right)
    if word in _MOST:
        return min(left, right)
    if word in _BOTH and not isinstance(left, list | tuple) and not isinstance(right, list | tuple):
        return {"allOf": [left, right]}
    match word:
        case "properties" | "patternProperties":
            return {
                **left,
                **{key: {"allOf": [left[key], rule]} if key in left else rule for key, rule in right.items()},
            }
        case "required":
            return list(dict.fromkeys((*left, *right)))
        case "type":
            return _intersect_types(left, right)
        case "enum":
            known = {json.dumps(value, sort_keys=True) for value in left}
            return [value for value in right if json.dumps(value, sort_keys=True) in known]
        case "anyOf" | "oneOf" if len(left) * len(right) <= _MOST_WAYS:
            return [{"allOf": [first, second]} for first in left for second in right]
        case "multipleOf" if isinstance(left, int) and isinstance(right, int):
            return math.lcm(left, right)
    return right


def _intersect_types(left: Any, right: Any) -> list[str]:
    first, second = ([types] if isinstance(types, str) else list(types) for types in (left, right))
    common = [kind for kind in second if kind in first or (kind == "integer" and "number" in first)]
    common += [kind for kind in first if kind == "integer" and "number" in second and kind not in common]
    if not common:
        raise CannotError(f"it requires both {' or '.join(first)} and {' or '.join(second)}")
    return common
