"""llm_behavior: a function that events set off, and that is given what a model has answered."""

from __future__ import annotations

from typing import Any

from agentnb.engine.work import Kind, Perform
from agentnb.recipe.model import Node


def bind(node: Node, world: Any) -> Perform:
    """Return what delivers an event to the node's function."""
    deliver: Perform = node.params["deliver"]
    return deliver


KIND = Kind("llm_behavior", bind, step_type="REASONING", shape="note", keeps=True)
