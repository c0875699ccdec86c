"""Continue or replay a run with another version of its recipe: the new plan, and whether it fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agentnb.engine.control.budget import Budget
from agentnb.engine.core.history import NO_ACTIVATION, ActivationRow
from agentnb.engine.core.plan import Plan
from agentnb.engine.core.time_travel import find_history
from agentnb.errors import Problem, StoreError
from agentnb.kinds import KINDS
from agentnb.recipe.model import Recipe
from agentnb.session.checks import check_answers, check_tools
from agentnb.session.setup import load_available_tools, prepare_recipe, replace_world
from agentnb.world.agents import get_agents
from agentnb.world.llm.simulated import SimulatedClient
from agentnb.world.world import World

if TYPE_CHECKING:
    from agentnb.engine.core.run import Run
    from agentnb.recipe.model import Node

Tools = Mapping[str, Callable[..., Any]]


def make_continued_plan(run: Run, recipe: Recipe | None, llm: Any, tools: Tools | None) -> Plan:
    """Return the plan of a run that continues with another recipe, model or tools; None means no change.

    Raises:
        RecipeError: the recipe has errors, or a tool is missing.
        ExecutionError: an answer of the model or a tool is for nothing in the recipe.
    """
    plan = run.plan
    if recipe is None and llm is None and tools is None:
        return plan
    now = prepare_recipe(recipe or plan.recipe, {**plan.world.passed_tools, **(tools or {})})
    check_answers(now, None, llm)
    continued = Plan(now, plan.kinds, replace_world(plan.world, plan.recipe, now, llm, tools), plan)
    check_tools(now, tools)
    return continued


def make_replay_plan(run: Run, recipe: Recipe) -> Plan:
    """Return the plan of an edited recipe in which no call has effects; missing tools are allowed.

    Raises:
        RecipeError: the recipe has errors.
    """
    now = prepare_recipe(recipe, run.plan.world.passed_tools)
    world = _ReplayWorld(run.plan.world, now)
    if not world.tools:  # of a read-only run: what a tool is sent depends on its signature
        world.tools = load_available_tools(now)
    return Plan(now, KINDS, world, run.plan)  # a read-only run has no kinds that can run


class _ReplayWorld(World):
    """The world of a replay: none of it is called, so tools may be missing."""

    def __init__(self, world: World, recipe: Recipe) -> None:
        self.__dict__.update(vars(world))
        self.agents = dict(get_agents(recipe.meta))
        if self.llm is None and recipe.meta.get("provider") is not None:
            self.llm = SimulatedClient()

    def tool(self, name: str, node: Node) -> Callable[..., Any]:
        """Return the callable of this name, else one that raises when it is called."""
        if callable(self.tools.get(name)):
            return super().tool(name, node)

        def call_missing(*_: Any, **__: Any) -> Any:
            return World.tool(self, name, node)

        return call_missing


def convert_budget(budget: Budget, before: Recipe, recipe: Recipe) -> Budget:
    """Return a session's budget for another recipe: limits taken from the old recipe are replaced by the new ones."""
    if recipe.limits == before.limits:
        return budget
    own = {name: value for name, value in asdict(budget).items() if value != before.limits.get(name)}
    return Budget.of(own, recipe.limits)


def check_shared(run: Run, recipe: Recipe, step: int) -> None:
    """Raise if the steps of a run up to `step`, or the next nodes there, do not fit another recipe.

    Raises:
        StoreError: L433, names the nodes that are missing or moved.
    """
    missing: dict[str, None] = {}
    moved: dict[str, None] = {}
    for activation in _iter_activations(run, step):
        name, region = run.plan.nodes[activation.node].id, run.tables.frames[activation.frame].region
        node = recipe.nodes.get(name)
        if node is None:
            missing[repr(name)] = None
        elif node.scope != region:
            moved[f"{name!r} ran in region {region!r} and is now in {node.scope!r}"] = None
    for number in _open_frames(run, step):
        row = run.tables.frames[number]
        owner = recipe.nodes.get(run.plan.nodes[row.owner].id)
        if owner is not None and row.region not in owner.bodies:
            moved[f"region {row.region!r} is open and no longer part of {owner.id!r}"] = None
    if missing or moved:
        reasons = [f"it has no {', '.join(missing)}"] if missing else []
        raise StoreError(
            Problem("L433", f"the steps up to {step} do not fit this recipe", f"recipe {recipe.name!r}",
                    "; ".join([*reasons, *moved]),
                    "fork before the first step of those nodes, or leave them unchanged in the recipe")
        )  # fmt: skip


def _iter_activations(run: Run, step: int) -> Iterator[ActivationRow]:
    """Yield the activations of the steps up to `step`, and those that are next there."""
    last = find_history(run, step)
    chain = run.chain[: run.chain.index(last) + 1]
    ends = [*(history.base for history in chain[1:]), step]
    rows = run.tables.activations
    numbers = dict.fromkeys(
        number
        for history, end in zip(chain, ends, strict=True)
        for number in history.step_activations[: end - history.base + 1]
    )
    numbers |= dict.fromkeys(last.queue_after(step))
    yield from (rows[number] for number in numbers if number != NO_ACTIVATION and rows[number].node >= 0)


def _open_frames(run: Run, step: int) -> list[int]:
    """Return the frames that are open after a step, without the root."""
    opened: dict[int, None] = {}
    last = find_history(run, step)
    for history in run.chain[: run.chain.index(last) + 1]:
        for at in sorted({*history.opened_frames, *history.closed_frames}):
            if at <= step:
                opened |= dict.fromkeys(history.opened_frames.get(at, ()))
                for number in history.closed_frames.get(at, ()):
                    opened.pop(number, None)
    return list(opened)


__all__ = ["check_shared", "convert_budget", "make_continued_plan", "make_replay_plan"]
