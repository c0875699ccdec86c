"""behavior: a function that events set off; what it told and wrote before it failed stays."""

from __future__ import annotations

from typing import Any

from agentnb.engine.work import Kind, Perform
from agentnb.recipe.model import Node


def bind(node: Node, world: Any) -> Perform:
    """Return what delivers an event to the node's function."""
    deliver: Perform = node.params["deliver"]
    return deliver


KIND = Kind("behavior", bind, step_type="SYSTEM_EVENT", shape="component", keeps=True)
