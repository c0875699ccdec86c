"""The public entry point of the dialect: a graph with the settings that `invoke` would be called with."""

from __future__ import annotations

from typing import Any

from agentnb.errors import RecipeError
from agentnb.recipe.model import Recipe


def load_graph(graph: Any, *, config: dict[str, Any] | None = None, context: Any = None, store: Any = None) -> Recipe:
    """Return the recipe of a graph; its nodes are given this config, runtime context and store.

    Raises:
        RecipeError: every problem at once.
    """
    from agentnb.dialects.langgraph.parts.translation import translate

    recipe, problems = translate(graph, config, context, store)
    if recipe is None:
        raise RecipeError(*problems)
    return recipe
