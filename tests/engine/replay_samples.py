"""Runs to be replayed, other plans to replay them with, and what a replay has found."""

from __future__ import annotations

from itertools import pairwise

from agentnb.engine.core.plan import Plan
from agentnb.recipe.model import Edge, Recipe, Region
from agentnb.world.world import World
from tests.engine.graph_shapes import KINDS, step


def never(*_, **__):
    raise AssertionError("nothing goes out")


def to_its_end(run, how=step):
    for _ in range(40):
        if not run.frontier():
            break
        before = run.position
        how(run)
        if run.position == before:
            break
    return run


def to_rows(replay):
    return [(row.step, row.node, row.what, row.path, row.recorded, row.replayed) for row in replay.divergences]


def plan_of(*nodes, edges=(), regions=(), like=None, init=None, world=None):
    """Return the plan of leaves and others, in a line where no edges are given."""
    all_edges = edges or [Edge(first.id, second.id) for first, second in pairwise(nodes)]
    parts = {region.id: region for region in [Region("root", (nodes[0].id,)), *regions]}
    named = {node.id: node for node in nodes}
    recipe = Recipe("made", "test", named, tuple(all_edges), (nodes[0].id,), regions=parts, init=init or {})
    return Plan(recipe, KINDS, world or World(), like)


def counting(work):
    return {"n": work.board.get("n", 0) + 1}
