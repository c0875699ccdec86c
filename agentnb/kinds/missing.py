"""missing: a node that a draft leads to and that nobody has written yet. It is drawn; a run that comes to it fails."""

from __future__ import annotations

from typing import Any

from agentnb.engine.work import Kind, Perform, Work
from agentnb.errors import ExecutionError, Problem
from agentnb.recipe.model import Node


def bind(node: Node, world: Any) -> Perform:
    """Return the function that fails, X402."""
    problem = Problem(
        "X402",
        f"node {node.id!r} is not there yet",
        str(node.place or f"node {node.id!r}"),
        "the recipe is a draft, and one of its ways leads to a node that nobody has written",
        f"add a node {node.id!r}, or lead the way elsewhere",
    )

    def perform(work: Work) -> Any:
        raise ExecutionError(problem)

    return perform


KIND = Kind("missing", bind, step_type="SYSTEM_EVENT", shape="box")
