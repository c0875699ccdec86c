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
        f"node {node.id!r} is not there yet",
        str(node.place or f"node {node.id!r}"),
        "the recipe is a draft, and one of its ways leads to a node that nobody has written",
        f"add a node {node.id!r}, or lead the way elsewhere",
    )

    def perform(work: Work) -> Any:
        raise ExecutionError(problem)

    return perform


KIND = Kind("missing", bind, step_type="SYSTEM_EVENT")
