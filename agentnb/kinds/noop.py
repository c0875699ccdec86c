"""Nodes that only write what their directives state; useful as a meeting point, label or breakpoint.

A `join` meets branches: it runs once, when nothing that can still reach it is left in the frontier.
"""

from __future__ import annotations

from typing import Any

from agentnb.engine.core.work import Kind, Outcome, Perform, Work
from agentnb.kinds.context import find_oddity
from agentnb.kinds.directives import Directives
from agentnb.recipe.model import Node


def bind(node: Node, world: Any) -> Perform:
    """Return a function that writes what `params["map"]` states; without it, nothing."""
    if "map" not in node.params:
        return write_nothing
    directives = Directives(node, world)

    def perform(work: Work) -> Outcome:
        return Outcome(nested_writes=directives(work, {}), thought=find_oddity(directives), result={})

    return perform


def write_nothing(work: Work) -> dict[str, Any]:
    """Write nothing."""
    return {}


NOOP = Kind("noop", bind, step_type="SYSTEM_EVENT")
JOIN = Kind("join", bind, step_type="SYSTEM_EVENT", is_join=True)
