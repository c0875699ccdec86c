"""A node whose function comes from its dialect: it is called with the step's Work, and may open the node's regions."""

from __future__ import annotations

from typing import Any

from agentnb.engine.core.work import Kind, Perform
from agentnb.recipe.model import Node


def bind(node: Node, world: Any) -> Perform:
    """Return the function that the dialect has made for the node."""
    perform: Perform = node.params["perform"]
    return perform


KIND = Kind("runnable", bind, keeps_events=True, returns_reduced=True, is_public=False)
