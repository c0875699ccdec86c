"""The public entry point of the dialect: a graph with the settings that `invoke` would be called with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentnb.errors import RecipeError
from agentnb.recipe.model import Recipe


def load_graph(
    graph: Any,
    *,
    config: dict[str, Any] | None = None,
    context: Any = None,
    store: Any = None,
    state: Mapping[str, Any] | None = None,
) -> Recipe:
    """Return the recipe of a graph; its nodes receive this config, runtime context and store.

    Args:
        state: the final state of a thread. Runs continue from it, and the reducers add their inputs to it. It is the
            board of an earlier session, or `graph.get_state(config).values`.

    Raises:
        RecipeError: every problem at once.
    """
    from agentnb.dialects.langgraph.parts.translation import translate

    recipe, problems = translate(graph, config, context, store, state)
    if recipe is None:
        raise RecipeError(*problems)
    return recipe
