"""Load a Burr application as a Recipe. Translation only: no action or condition is called."""

from __future__ import annotations

from agentnb.dialects.burr.schema import is_application
from agentnb.errors import Problem
from agentnb.recipe.model import Recipe
from agentnb.sources import Source

recognize = is_application


def load(source: Source) -> tuple[Recipe | None, list[Problem]]:
    """Return the recipe of an application, and the problems: warnings about what is not called."""
    from agentnb.dialects.burr.parts.translation import translate

    return translate(source.content)
