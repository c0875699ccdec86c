"""wiring: the world of one session: the recipe's tools, loaded here and nowhere before, and its model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentnb.recipe.model import Recipe
from agentnb.world.world import World


def world_of(
    recipe: Recipe,
    *,
    llm: Any = None,
    tools: Mapping[str, Callable[..., Any]] | None = None,
    answers: Any = None,
    resources: Mapping[type, Any] | None = None,
    strict: bool = True,
) -> World:
    """Return what a session of this recipe may reach.

    Raises:
        RecipeError: a tool cannot be loaded, or may not.
        ExecutionError: what is given for the model, or the recipe's provider, can be none.
    """
    given = dict(tools or {})
    if recipe.tools:
        given |= _loaded(recipe, given)
    if llm is None and (provider := recipe.meta.get("provider")) is not None:
        from agentnb.world.llm.providers import client_of

        llm = client_of(*provider)
    return World(tools=given, llm=llm, answers=answers, resources=resources, strict=strict)


def rebound(recipe: Recipe, tools: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Return what is given in place of a recipe's tools, called as those are: with their config."""
    named = {name: recipe.tools[name] for name in tools if name in recipe.tools}
    return {**tools, **(_loaded(replace(recipe, tools=named), tools) if named else {})}


def _loaded(recipe: Recipe, given: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    from agentnb.world.tools.loading import load_tools

    folder = recipe.meta.get("folder") or (Path(recipe.file).resolve().parent if recipe.file else None)
    return load_tools(recipe.tools, folder=folder, allow=recipe.meta.get("allow", ()), given=given)
