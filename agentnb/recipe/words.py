"""words: how the rules put a recipe's parts into words, and what a node that chooses may choose."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from agentnb.errors import Place, did_you_mean
from agentnb.recipe.model import Node, Recipe

# A route with this target ends the run.
END = ""
# What stands at the route of a router that is taken when no other fits.
OTHERWISE = "otherwise"
# Kinds that choose where to go; their ordinary edges are never asked.
CHOOSERS = frozenset({"router", "evaluator"})
MOST_GUESSES = 100
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


def listed(names: Iterable[str], most: int = 12) -> str:
    """Return names as people read them, at most so many."""
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more if every else "none"


def where_is(recipe: Recipe, place: Place | None) -> str:
    """Return a place as text; where none is known, the recipe's name."""
    return str(place) if place else f"recipe {recipe.name!r}"


class Guesses:
    """Names the known word nearest to a wrong one, for the first hundred: among thousands of names it is slow."""

    def __init__(self, known: Collection[str]) -> None:
        self.known, self.left = known, MOST_GUESSES

    def __call__(self, word: str, otherwise: str) -> str:
        """Return "did you mean 'x'?", else the order `otherwise`."""
        self.left -= 1
        return did_you_mean(word, self.known, otherwise) if self.left >= 0 else otherwise


def choices(node: Node) -> list[tuple[str, str]]:
    """Return where a node that chooses may go: (the value's text, the target); an empty target is the end."""
    params = node.params
    if node.kind == "evaluator":
        return [(word, params[key]) for word, key in (("pass", "pass_route"), ("fail", "fail_route")) if key in params]
    if node.kind != "router":
        return []
    routes = params.get("routes")
    found = [(str(value), target) for value, target in routes.items()] if isinstance(routes, Mapping) else []
    found += [(condition.text, target) for condition, target in params.get("cases", ())]
    default = params.get("default")
    return found if default is None else [*found, (OTHERWISE, default)]


def types_of(schema: Any) -> list[str]:
    """Return the simple types that an input's schema allows; none where it says nothing of them."""
    wanted = schema.get("type") if isinstance(schema, Mapping) else None
    given = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, Iterable) else ()
    return [kind for kind in given if kind in _TYPES]


def fits(value: Any, kind: str) -> bool:
    """Say whether a value is of one of JSON Schema's simple types; True and False are no numbers."""
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def typed(text: str, schema: Any = None) -> Any:
    """Return what a typed word means for an input with this schema: a declared text as it is; else JSON, else text.

    Where a text is one of several types, it is JSON only if that is of another of them.
    """
    kinds = types_of(schema)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    others = [kind for kind in kinds if kind != "string"]
    return text if len(others) < len(kinds) and not any(fits(value, kind) for kind in others) else value
