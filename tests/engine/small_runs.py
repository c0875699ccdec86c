"""Small runs of test kinds, where a session would hide what is to be seen."""

from __future__ import annotations

from itertools import pairwise

from agentnb.engine.core.drivers import run_plain
from agentnb.engine.core.plan import Plan
from agentnb.engine.core.run import Run
from agentnb.engine.effects.dispatch import EffectDispatcher
from agentnb.recipe.model import Edge, Recipe, Region
from agentnb.world.world import World
from tests.engine.graph_shapes import KINDS, leaf


def run_of(*functions, edges=(), inputs=None, nodes=(), regions=(), world=None, routing="first"):
    """Return a run of a line of leaves `n0`, `n1` ..., each doing one function of its work."""
    line = [leaf(f"n{number}", function) for number, function in enumerate(functions)]
    all_nodes = [*line, *nodes]
    all_edges = [*(Edge(one.id, two.id) for one, two in pairwise(line)), *edges]
    entry = () if not all_nodes else (all_nodes[0].id,)
    parts = {region.id: region for region in [Region("root", entry), *regions]}
    named = {node.id: node for node in all_nodes}
    recipe = Recipe("made", "test", named, tuple(all_edges), entry, regions=parts, routing=routing)
    run = Run(Plan(recipe, KINDS, world or World()), EffectDispatcher())
    run.begin(inputs or {})
    return run


def one(run):
    """One step without a loop; return its code."""
    return run_plain(run, once=True)


def data(run):
    from agentnb.board.values import thaw

    return {key: thaw(value) for key, value in run.root.scope.data.items()}
