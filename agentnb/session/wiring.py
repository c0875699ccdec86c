"""wiring: the world of one session: the recipe's tools, loaded here and nowhere before, and its model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentnb.recipe.grafts import WHOLE, grafted
from agentnb.recipe.model import Recipe, ToolSpec
from agentnb.session.checks import check_recipe
from agentnb.world.agents import agents_in
from agentnb.world.world import World


def ready(recipe: Recipe, tools: Mapping[str, Any] | None) -> Recipe:
    """Return a recipe as a session runs it: where it calls an agent that is given as a tool, the agent stands inside.

    Raises:
        ExecutionError: X117, it is no recipe.
        RecipeError: every error of the recipe.
    """
    check_recipe(recipe)
    return grafted(recipe, tools or {})


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
    agents = agents_in(recipe.meta)
    if llm is None and WHOLE in agents:
        llm = agents[WHOLE].llm
    if llm is None and (provider := recipe.meta.get("provider")) is not None:
        from agentnb.world.llm.providers import client_of

        llm = client_of(*provider)
    return World(
        tools=given,
        llm=llm,
        answers=answers,
        resources=resources,
        strict=strict,
        given=tools or {},
        agents=agents,
    )


def refitted(
    old: World, before: Recipe, recipe: Recipe, llm: Any = None, tools: Mapping[str, Callable[..., Any]] | None = None
) -> World:
    """Return a session's world for another recipe, model or tools; what has not changed is taken over as it is.

    Raises:
        RecipeError: a tool cannot be loaded, or may not.
    """
    given = {**old.given, **(tools or {})}
    fresh = {
        name: spec
        for name, spec in recipe.tools.items()
        if name in (tools or {}) or name not in old.tools or not _same(spec, before.tools.get(name))
    }
    kept = {name: old.tools[name] for name in recipe.tools if name not in fresh}
    loaded = _loaded(replace(recipe, tools=fresh), given) if fresh else {}
    if llm is None and old.llm is None and (provider := recipe.meta.get("provider")) is not None:
        from agentnb.world.llm.providers import client_of

        llm = client_of(*provider)
    return World(
        tools={**given, **kept, **loaded},
        llm=old.llm if llm is None else llm,
        answers=old.answers,
        resources=old.resources,
        strict=old.strict,
        given=given,
        agents=agents_in(recipe.meta),
    )


def _same(spec: ToolSpec, before: ToolSpec | None) -> bool:
    """Say whether a tool is the one that it was, wherever it stands in the recipe's text."""
    return before is not None and replace(spec, place=None) == replace(before, place=None)


def _loaded(recipe: Recipe, given: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    from agentnb.world.tools.loading import load_tools

    folder = recipe.meta.get("folder") or (Path(recipe.file).resolve().parent if recipe.file else None)
    return load_tools(recipe.tools, folder=folder, allow=recipe.meta.get("allow", ()), given=given)
