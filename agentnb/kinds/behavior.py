"""Functions activated by events; the events and writes before a failure are not undone.

A `relation_behavior` is activated once for each relation that an event concerns; an `llm_behavior` receives a model's
answer.
"""

from __future__ import annotations

from typing import Any

from agentnb.engine.core.work import Kind, Perform
from agentnb.recipe.model import Node


def bind(node: Node, world: Any) -> Perform:
    """Return the function that delivers an event to the node's function."""
    deliver: Perform = node.params["deliver"]
    return deliver


BEHAVIOR = Kind("behavior", bind, step_type="SYSTEM_EVENT", keeps_writes=True)
RELATION_BEHAVIOR = Kind("relation_behavior", bind, step_type="SYSTEM_EVENT", keeps_writes=True)
LLM_BEHAVIOR = Kind("llm_behavior", bind, step_type="REASONING", keeps_writes=True)
