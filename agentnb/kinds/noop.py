"""noop: a node that does nothing but write what it is told; a place to meet, to mark, to break at."""

from __future__ import annotations

from typing import Any

from agentnb.engine.work import Kind, Outcome, Perform, Work
from agentnb.kinds.context import odd
from agentnb.kinds.directives import Directives
from agentnb.recipe.model import Node


def bind(node: Node, world: Any) -> Perform:
    """Return a function that writes what `params["map"]` says; without it, nothing."""
    if "map" not in node.params:
        return nothing
    places = Directives(node, world)

    def perform(work: Work) -> Outcome:
        return Outcome(places=places(work, {}), thought=odd(places), result={})

    return perform


def nothing(work: Work) -> dict[str, Any]:
    """Write nothing."""
    return {}


KIND = Kind("noop", bind, step_type="SYSTEM_EVENT", shape="circle")
