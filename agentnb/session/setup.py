"""Set up a session: check what it receives, load its tools and its model, begin its run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentnb.board.values import freeze, thaw
from agentnb.engine.control.budget import Budget
from agentnb.engine.core.plan import Plan
from agentnb.engine.core.run import Run
from agentnb.engine.effects.dispatch import EffectDispatcher
from agentnb.errors import RecipeError
from agentnb.kinds import KINDS
from agentnb.recipe.agent_expansion import WHOLE, graft_agents
from agentnb.recipe.model import Recipe, ToolSpec
from agentnb.session.checks import (
    check_answers,
    check_inputs,
    check_recipe,
    check_tools,
    find_unknown_inputs,
    to_inputs,
)
from agentnb.session.limits import Limits
from agentnb.world.agents import get_agents
from agentnb.world.fault_injection import Chaos
from agentnb.world.llm.env import Environment, list_allowed_variables
from agentnb.world.world import World

if TYPE_CHECKING:
    from agentnb.clock import Clock


def prepare_recipe(recipe: Recipe, tools: Mapping[str, Any] | None) -> Recipe:
    """Return a recipe ready to run: agents passed as tools are expanded inside the nodes that call them.

    Raises:
        ExecutionError: X117, it is not a recipe.
        RecipeError: every error of the recipe.
    """
    check_recipe(recipe)
    return graft_agents(recipe, tools or {})


def make_run(
    recipe: Any,
    inputs: Any,
    *,
    llm: Any,
    tools: Mapping[str, Callable[..., Any]] | None,
    resources: Mapping[type, Any] | None,
    answers: Any,
    budget: Mapping[str, Any] | None,
    clock: Clock | None,
    seed: int,
    validate_inputs: bool,
    strict_expressions: bool,
    chaos: Any,
) -> tuple[Run, Limits, dict[str, Any], str]:
    """Return a run before its first step, its limits, its own copy of the inputs, and a warning about them, if any.

    Raises:
        RecipeError: the recipe has errors, a tool is missing, or inputs are missing or of a wrong type.
        ExecutionError: a limit or the chaos is invalid, or an answer or a tool is for nothing in the recipe.
    """
    recipe = prepare_recipe(recipe, tools)
    check_answers(recipe, answers, llm)
    values = {key: thaw(freeze(value)) for key, value in to_inputs(inputs, recipe.read_inputs).items()}
    warning = ""
    if validate_inputs:
        check_inputs(recipe, values)
        warning = "\n".join(map(str, find_unknown_inputs(recipe, values)))
    world = make_world(recipe, llm=llm, tools=tools, answers=answers, resources=resources, strict=strict_expressions)
    limits = Limits(_get_budget(recipe, budget))
    run = Run(Plan(recipe, KINDS, world), EffectDispatcher(), clock=clock, seed=seed)
    check_tools(recipe, tools)  # after binding, whose errors for a missing tool say more
    run.chaos = Chaos.of(chaos, seed)
    run.begin(values)
    return run, limits, values, warning


def _get_budget(recipe: Recipe, limits: Mapping[str, Any] | None) -> Budget:
    if limits is not None:
        return Budget.of(limits, recipe.limits)
    known = recipe.derived
    if "budget" not in known:
        known["budget"] = Budget.of(None, recipe.limits)
    budget: Budget = known["budget"]
    return budget


def make_world(
    recipe: Recipe,
    *,
    llm: Any = None,
    tools: Mapping[str, Callable[..., Any]] | None = None,
    answers: Any = None,
    resources: Mapping[type, Any] | None = None,
    strict: bool = True,
) -> World:
    """Return the world of a session: its tools, model, answers and resources.

    Raises:
        RecipeError: a tool cannot be loaded, or loading it is not allowed.
        ExecutionError: the `llm` argument or the recipe's provider is not a valid model.
    """
    passed = dict(tools or {})
    if recipe.tools:
        passed |= _load_tools(recipe, passed)
    agents = get_agents(recipe.meta)
    if llm is None and WHOLE in agents:
        llm = agents[WHOLE].llm
    if llm is None and (provider := recipe.meta.get("provider")) is not None:
        from agentnb.world.llm.providers import client_of_recipe

        llm = client_of_recipe(*provider)
    return World(
        tools=passed,
        llm=llm,
        answers=answers,
        resources=resources,
        strict=strict,
        passed_tools=tools or {},
        agents=agents,
        environment=_make_environment(recipe),
    )


def replace_world(
    old: World, before: Recipe, recipe: Recipe, llm: Any = None, tools: Mapping[str, Callable[..., Any]] | None = None
) -> World:
    """Return a session's world for another recipe, model or tools; unchanged parts are reused.

    Raises:
        RecipeError: a tool cannot be loaded, or loading it is not allowed.
    """
    passed = {**old.passed_tools, **(tools or {})}
    fresh = {
        name: spec
        for name, spec in recipe.tools.items()
        if name in (tools or {}) or name not in old.tools or not _is_unchanged(spec, before.tools.get(name))
    }
    unchanged = {name: old.tools[name] for name in recipe.tools if name not in fresh}
    loaded = _load_tools(replace(recipe, tools=fresh), passed) if fresh else {}
    if llm is None and old.llm is None and (provider := recipe.meta.get("provider")) is not None:
        from agentnb.world.llm.providers import client_of_recipe

        llm = client_of_recipe(*provider)
    return World(
        tools={**passed, **unchanged, **loaded},
        llm=old.llm if llm is None else llm,
        answers=old.answers,
        resources=old.resources,
        strict=old.strict,
        passed_tools=passed,
        agents=get_agents(recipe.meta),
        environment=_make_environment(recipe),
    )


def load_available_tools(recipe: Recipe) -> dict[str, Callable[..., Any]]:
    """Return the tools of a recipe that can be loaded."""
    available: dict[str, Callable[..., Any]] = {}
    for name, spec in recipe.tools.items():
        with suppress(RecipeError):
            available |= _load_tools(replace(recipe, tools={name: spec}), {})
    return available


def _make_environment(recipe: Recipe) -> Environment | None:
    allow = recipe.meta.get("allow", ())
    return Environment(list_allowed_variables(allow)) if allow else None


def _is_unchanged(spec: ToolSpec, before: ToolSpec | None) -> bool:
    """Return True if a tool is unchanged, apart from its place in the recipe's text."""
    return before is not None and replace(spec, place=None) == replace(before, place=None)


def _load_tools(recipe: Recipe, passed: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    from agentnb.world.tools.loading import load_tools

    return load_tools(recipe.tools, folder=recipe.folder, allow=recipe.meta.get("allow", ()), passed=passed)
