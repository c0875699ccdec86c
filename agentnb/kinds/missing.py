"""A placeholder for a node that a draft leads to but does not define. It is drawn; a run that reaches it fails."""

from __future__ import annotations

from typing import Any

from agentnb.engine.core.work import Kind, Perform, Work
from agentnb.errors import ExecutionError, Problem
from agentnb.recipe.model import Node


def bind(node: Node, world: Any) -> Perform:
    """Return the function that fails with X402."""
    problem = Problem(
        "X402",
        f"node {node.id!r} does not exist yet",
        str(node.place or f"node {node.id!r}"),
        "the recipe is a draft, and an edge leads to a node that is not defined",
        f"add a node {node.id!r}, or change the edge",
    )

    def perform(work: Work) -> Any:
        raise ExecutionError(problem)

    return perform


KIND = Kind("missing", bind, step_type="SYSTEM_EVENT", is_public=False)
