"""Sessions of the engine's small shapes, and of nodes that listen, with a budget."""

from __future__ import annotations

from agentnb.engine.control.budget import Budget
from agentnb.engine.core.plan import Plan
from agentnb.engine.core.run import Run
from agentnb.engine.effects.dispatch import EffectDispatcher
from agentnb.recipe.model import Recipe, Region
from agentnb.session import Session
from agentnb.session.limits import Limits
from agentnb.session.session import make_session
from agentnb.world.world import World
from tests.engine.graph_shapes import KINDS, begun


def over(run: Run, budget=None, name="made") -> Session:
    """Return a session of a run that has begun."""
    return make_session(run, Limits(Budget.of(budget, {})), name, {})


def budgeted(name, budget=None) -> Session:
    """Return a session of one of the shapes, with the events that set it off."""
    return over(begun(name), budget, name)


def listening(*nodes, budget=None, edges=(), regions=(), entry=()) -> Session:
    """Return a session of nodes of test kinds, most of which listen."""
    around = {region.id: region for region in [Region("root", tuple(entry)), *regions]}
    recipe = Recipe("listening", "test", {node.id: node for node in nodes}, tuple(edges), tuple(entry), regions=around)
    run = Run(Plan(recipe, KINDS, World()), EffectDispatcher())
    run.begin({})
    return over(run, budget)
