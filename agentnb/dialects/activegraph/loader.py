"""Recognition and loading of Runtimes; recognizing one imports nothing else of this dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentnb.errors import Problem
    from agentnb.recipe.model import Recipe
    from agentnb.sources import Source


def recognize(source: object) -> bool:
    """Return True for a Runtime of this dialect."""
    kind = type(source)
    return kind.__name__ == "Runtime" and kind.__module__ == "agentnb.dialects.activegraph.api"


def load(source: Source) -> tuple[Recipe | None, list[Problem]]:
    """Return the recipe of a Runtime's behaviors."""
    runtime: Any = source.content
    recipe: Recipe = runtime.session.recipe
    return recipe, []


__all__ = ["load", "recognize"]
