"""noop: a node that does nothing; a place to meet, to mark, to break at."""

from __future__ import annotations

from typing import Any

from agentnb.engine.work import Kind, Perform, Work
from agentnb.recipe.model import Node


def bind(node: Node, world: Any) -> Perform:
    """Return a function that writes nothing."""
    return nothing


def nothing(work: Work) -> dict[str, Any]:
    """Write nothing."""
    return {}


KIND = Kind("noop", bind, step_type="SYSTEM_EVENT", shape="circle")
