"""Load a graph of LangGraph as a Recipe. Translation only: no function of the graph is called."""

from __future__ import annotations

from agentnb.dialects.langgraph.schema import is_graph
from agentnb.errors import Problem
from agentnb.recipe.model import Recipe
from agentnb.sources import Source

recognize = is_graph


def load(source: Source) -> tuple[Recipe | None, list[Problem]]:
    """Return the recipe of a graph, or None, and the problems: what is not supported is an error."""
    from agentnb.dialects.langgraph.parts.translation import translate

    return translate(source.content)
