"""drawing: behaviours, and the events that led from one to another in a run so far, beside those that may."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentnb.recipe.model import Edge

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.runtime import Runtime
    from agentnb.recipe.model import Recipe

STARTED = ("behavior.started", "relation_behavior.started", "behavior.scheduled")


def drawn(runtime: Runtime, *, board: bool = True) -> Any:
    """Return the drawing of a runtime's behaviours with its run on it."""
    from agentnb.draw.dot import draw_recipe

    return draw_recipe(seen_recipe(runtime), board=board, run=runtime.session.view())


def seen_recipe(runtime: Runtime) -> Recipe:
    """Return the recipe of a runtime's behaviours, with a way for each event that led from one to another."""
    recipe, events = runtime.session.recipe, runtime.graph.ledger.events()
    by_id = {event.id: event for event in events}
    ways: dict[tuple[str, str, str], Edge] = {}
    for edge in recipe.edges:
        ways[edge.source, edge.target, edge.condition] = edge
    for event in events:
        cause = by_id.get(event.cause or "")
        if event.type in STARTED and cause is not None and cause.actor in recipe.nodes:
            target = str(event.payload["behavior"])
            way = (cause.actor, target, cause.type)
            if target in recipe.nodes and way not in ways:
                ways[way] = Edge(cause.actor, target, "event", condition=cause.type)
    return replace(recipe, edges=tuple(ways.values()))


__all__ = ["drawn", "seen_recipe"]
