"""parallel: runs its bodies as branches, at the same time; each has a scope of its own, merged in branch order."""

from __future__ import annotations

from typing import Any

from agentnb.board.scopes import DELETED
from agentnb.board.values import ABSENT
from agentnb.engine.work import Body, Enter, Kind, Outcome, Perform, Work
from agentnb.recipe.model import Node


def bind(node: Node, world: Any) -> Perform:
    """Return the function that opens each region of the node as a branch, and merges what the branches wrote.

    A branch sees the board as it was when the branches began, and its own writes on top of it; never the writes of
    another branch. When all have ended, what they wrote and deleted goes to the board in branch order, whichever
    ended first: where two branches wrote one key, the later branch's value stays.

    A branch keeps the whole value of a key that it wrote. So where two branches append to one list, or write below
    one key, that is one key written twice, and the later branch's value stays: it lacks what the other one added.
    Let each branch write keys of its own, and put them together in the node behind.

    The observation says which branch (by its region) wrote which keys.
    """
    bodies = [Body(region, "child", branch=number) for number, region in enumerate(node.bodies)]

    def perform(work: Work) -> Any:
        return Enter(bodies) if work.phase == "start" else _merged(work)

    return perform


def _merged(work: Work) -> Outcome:
    """Return what all branches wrote, a later one over an earlier one."""
    writes: dict[str, Any] = {}
    wrote: dict[str, list[str]] = {}
    for frame in work.frames:
        found = frame.scope.data
        wrote[frame.row.region] = list(found)
        writes |= {key: ABSENT if value is DELETED else value for key, value in found.items()}
    return Outcome(writes, observation=wrote)


KIND = Kind("parallel", bind, step_type="SYSTEM_EVENT", shape="trapezium")
