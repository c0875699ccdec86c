"""words: how the rules put a recipe's parts into words, and what a node that chooses may choose."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from agentnb.errors import Place, did_you_mean
from agentnb.recipe.model import Node, Recipe

# A route with this target ends the run.
END = ""
# What stands at the route of a router that is taken when no other fits.
OTHERWISE = "otherwise"
# Kinds that choose where to go; their ordinary edges are never asked.
CHOOSERS = frozenset({"router", "evaluator"})
MOST_GUESSES = 100


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
    default = params.get("default")
    return found if default is None else [*found, (OTHERWISE, default)]
