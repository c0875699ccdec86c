"""Recipes of behaviors for the drawing tests, and runs of them, made by hand."""

from __future__ import annotations

from agentnb.draw.run_view import Reactions, RunView
from agentnb.recipe.model import Edge, Node, Recipe
from tests.draw.drawn_recipes import HOSTILE


def shop() -> Recipe:
    """One that declares, one whose code names a type, one that hears of everything."""
    nodes = [
        Node("take", "behavior", label="take\non order.came", on=("order.came",)),
        Node("pack", "llm_behavior", on=("object.created",), params={"where": {"object.type": "parcel"}}),
        Node("send", "relation_behavior", on=("packed",), params={"relation_type": "goes_to"}),
        Node("log", "behavior", on=("*",)),
    ]
    edges = (Edge("take", "pack", "event", condition="object.created"),)
    events = {
        "own": ("behavior.", "runtime."),
        "tells": {"take": {"object.created": "parcel"}},
        "may": {"pack": ("packed",), "take": ("order.came",)},
    }
    return Recipe("shop", "activegraph", {node.id: node for node in nodes}, edges, (), meta={"events": events})


def shop_run() -> RunView:
    """Stand after `pack` was given an event, and told of one that nobody has declared."""
    reactions = Reactions(
        counts={"order.came": 2, "object.created": 1, "packed": 1, "paid": 1, "behavior.started": 3},
        deliveries={("order.came", "take"): 1, ("object.created", "pack"): 1, ("order.came", "log"): 1},
        emissions={
            ("take", "object.created"): 1,
            ("pack", "packed"): 1,
            ("pack", "paid"): 1,
            ("take", "behavior.started"): 1,
        },
        last_delivery=("object.created", "pack"),
        last_emitted=frozenset({"packed", "paid"}),
    )
    return RunView(current="send", visited={"take": 1, "pack": 1, "log": 1}, reactions=reactions, stops_at={"packed"})


def hostile_behaviors() -> Recipe:
    """Behaviors and types of events with every text that a picture might stumble over."""
    nodes = {
        text: Node(text, "behavior", on=(text, f"event: {text}"), params={"where": {text: text}}) for text in HOSTILE
    }
    tells = {text: {other: other} for text, other in zip(HOSTILE, reversed(HOSTILE), strict=True)}
    return Recipe(HOSTILE[0], "x", nodes, (), (), meta={"events": {"own": (), "tells": tells, "may": {}}})


def hostile_behaviors_run() -> RunView:
    pairs = list(zip(HOSTILE, reversed(HOSTILE), strict=True))
    counts = {(text, text): 1 for text in HOSTILE}
    reactions = Reactions(dict.fromkeys(HOSTILE, 2), counts, dict.fromkeys(pairs, 1), (HOSTILE[0], HOSTILE[0]))
    return RunView(current=HOSTILE[1], visited=dict.fromkeys(HOSTILE, 1), reactions=reactions, stops_at={HOSTILE[2]})
