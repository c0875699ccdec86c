"""A node whose function comes from its dialect: it is called with the step's Work, and may open the node's regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentnb.engine.core.work import Kind, Perform, Target, Work
from agentnb.recipe.model import Node


def bind(node: Node, world: Any) -> Perform:
    """Return the function that the dialect has made for the node."""
    perform: Perform = node.params["perform"]
    return perform


def choose_after_skip(work: Work) -> Sequence[Target]:
    """Return the targets that the node would choose itself, if its dialect can say so without running it."""
    choose = getattr(work.node.params["perform"], "choose_after_skip", None)
    return () if choose is None else tuple(choose(work))


KIND = Kind(
    "runnable",
    bind,
    keeps_events=True,
    returns_reduced=True,
    is_public=False,
    choose_after_skip=choose_after_skip,
)
