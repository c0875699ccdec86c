"""What a node of the reactive kinds wrote and told before it failed stays."""

from __future__ import annotations

import pytest

from agentnb.engine.core.event_queue import emit_from_outside
from agentnb.engine.core.plan import Plan
from agentnb.engine.core.run import Run
from agentnb.engine.effects.dispatch import EffectDispatcher
from agentnb.kinds import KINDS
from agentnb.recipe.model import Node, Recipe
from agentnb.world.world import World
from tests.engine.graph_shapes import board, path, step


@pytest.mark.parametrize("kind", ["behavior", "llm_behavior", "relation_behavior"])
def test_writes_and_events_of_a_failed_behavior_remain(kind):
    def deliver(work):
        work.write("heard", work.event.payload)
        work.emit("told", {"by": work.node.id})
        raise ValueError("after that")

    node = Node("hears", kind, params={"deliver": deliver}, on=("said",))
    run = Run(Plan(Recipe("one", "test", {"hears": node}, (), ()), KINDS, World()), EffectDispatcher())
    run.begin({})
    emit_from_outside(run, "said", "hello")
    step(run)
    assert (path(run), board(run)) == (["hears error"], {"heard": "hello"})
    assert [(event.type, event.actor, event.cause) for event in run.events()][1:] == [("told", "hears", "evt_001")]
