"""loader: a Runtime is a source of a recipe; nothing else of this dialect is imported to recognise one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentnb.errors import Problem
    from agentnb.recipe.model import Recipe
    from agentnb.sources import Source


def recognise(source: object) -> bool:
    """Say whether something is a Runtime of this dialect."""
    kind = type(source)
    return kind.__name__ == "Runtime" and kind.__module__ == "agentnb.dialects.activegraph.runtime"


def load(source: Source) -> tuple[Recipe | None, list[Problem]]:
    """Return the recipe of a Runtime's behaviours."""
    runtime: Any = source.content
    recipe: Recipe = runtime.session.recipe
    return recipe, []


__all__ = ["load", "recognise"]
