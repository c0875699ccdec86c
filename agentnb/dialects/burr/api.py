"""The public entry point of the dialect: an application with the halts that `run` would be called with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentnb.errors import RecipeError
from agentnb.recipe.model import Recipe


def load_application(application: Any, *, halt_before: Sequence[str] = (), halt_after: Sequence[str] = ()) -> Recipe:
    """Return the recipe of an application; each session of it has breakpoints before and after the named actions.

    Args:
        halt_before: names of actions, or tags as "@tag:name".
        halt_after: the same.

    Raises:
        RecipeError: L542, the application has no such action or tag.
    """
    from agentnb.dialects.burr.parts.translation import translate

    recipe, problems = translate(application, halt_before, halt_after)
    if recipe is None:
        raise RecipeError(*problems)
    return recipe
