"""Text descriptions of recipe parts for the checks, and the routes of a node."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any, Final

from agentnb.errors import Place
from agentnb.recipe.model import Node, Recipe
from agentnb.text import safe_str

# A route with this target ends the run.
END = ""
# The label of a router's default route.
OTHERWISE = "otherwise"
# Kinds that choose a route; the conditions of their ordinary edges are not evaluated.
CHOOSERS = frozenset({"router", "evaluator"})
# JSON Schema's simple types.
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict, Mapping),
    "null": (type(None),),
}


def list_names(names: Iterable[str], limit: int = 12) -> str:
    """Return names as a readable list of at most `limit` items, without iterating over more of them."""
    every = names if isinstance(names, Collection) else list(names)
    more = f" and {len(every) - limit} more" if len(every) > limit else ""
    return ", ".join(safe_str(name, 200) for name in islice(every, limit)) + more if every else "none"


def format_place(recipe: Recipe, place: Place | None) -> str:
    """Return a place as text; the recipe's name if there is none."""
    return str(place) if place else f"recipe {recipe.name!r}"


def list_choices(node: Node) -> list[tuple[str, str]]:
    """Return the routes of a node: (text of the value, target); an empty target is the end."""
    params = node.params
    if node.kind == "evaluator":
        return [(word, params[key]) for word, key in (("pass", "pass_route"), ("fail", "fail_route")) if key in params]
    if node.kind != "router":
        return []
    routes = params.get("routes")
    choices = [(str(value), target) for value, target in routes.items()] if isinstance(routes, Mapping) else []
    choices += [(condition.text, target) for condition, target in params.get("cases", ())]
    default = params.get("default")
    return choices if default is None else [*choices, (OTHERWISE, default)]


def list_types(schema: Any) -> list[str]:
    """Return the simple types that an input's schema allows; empty if it does not restrict them."""
    declared = schema.get("type") if isinstance(schema, Mapping) else None
    types = [declared] if isinstance(declared, str) else declared if isinstance(declared, Iterable) else ()
    return [kind for kind in types if kind in _TYPES]


def fits_type(value: Any, kind: str) -> bool:
    """Return True if a value is of one of JSON Schema's simple types; True and False are not numbers."""
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def parse_typed(text: str, schema: Any = None) -> Any:
    """Parse a typed word as a value for an input with this schema: text if declared, else JSON, else text.

    If text is one of several types, the word is JSON only if its value has one of the other types.
    """
    kinds = list_types(schema)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # RecursionError: the parser's depth limit
        return text
    others = [kind for kind in kinds if kind != "string"]
    return text if len(others) < len(kinds) and not any(fits_type(value, kind) for kind in others) else value


def describe_how_to_allow(entry: str) -> str:
    """Return how to add an entry to `allow`: in Python, and on the command line."""
    return f"pass allow=[{entry!r}] where the recipe is loaded, or --allow {entry} on the command line"
