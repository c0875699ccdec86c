"""The property tests of `dump` and `restore_run` stand in test_deltas.py; here is what they refuse."""

from __future__ import annotations

import json

import pytest

from agentnb.engine.core.plan import Plan
from agentnb.engine.persistence.snapshot import check_fit, dump, make_renumbering, restore_run
from agentnb.errors import StoreError
from agentnb.recipe.model import Node, Recipe
from tests.trace.random_runs import KINDS, counter, go, started


def test_nodes_of_a_record_have_the_numbers_of_the_plan():
    plan = counter()
    route, count = plan.index["route"], plan.index["count"]
    assert make_renumbering(plan, ["route", "gone", "count"]) == {-1: -1, 0: route, 1: -3, 2: count}


def test_a_node_that_moved_elsewhere_is_reported():
    run = go(started(), 9)
    recipe = run.plan.recipe
    leaf = recipe.nodes["leaf"]
    moved = Node(leaf.id, leaf.kind, scope="root", params=leaf.params)
    nodes = {**recipe.nodes, "leaf": moved}
    other = Recipe("other", "graph", nodes, recipe.edges, recipe.entry, regions=recipe.regions)
    plan = Plan(other, KINDS, None)
    with pytest.raises(StoreError, match=r"L404[\s\S]*'leaf' was in 'body' and is now in 'root'"):
        check_fit(plan, run.tables, [node.id for node in run.plan.nodes])
    with pytest.raises(StoreError, match="L404"):
        restore_run(plan, json.loads(json.dumps(dump(run))))


def test_a_node_that_never_ran_may_be_removed():
    run = go(started(), 2)
    recipe = run.plan.recipe
    fewer = {name: node for name, node in recipe.nodes.items() if name != "fix"}
    edges = tuple(edge for edge in recipe.edges if "fix" not in (edge.source, edge.target))
    plan = Plan(Recipe("fewer", "graph", fewer, edges, recipe.entry, regions=recipe.regions), KINDS, None)
    restored = restore_run(plan, json.loads(json.dumps(dump(run))))
    assert go(restored, 1).position == 3
