"""Runs its bodies as concurrent branches; each has a scope of its own, merged in branch order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentnb.board.scopes import DELETED
from agentnb.board.values import ABSENT
from agentnb.engine.core.reducers import Reducer, merge_writes
from agentnb.engine.core.work import Body, Enter, Kind, Outcome, Perform, Work
from agentnb.recipe.model import Node


def bind(node: Node, world: Any) -> Perform:
    """Return the function that opens each region of the node as a branch, and merges what the branches wrote.

    A branch sees the board as it was when the branches began, plus its own writes; never the writes of another branch.
    When all have ended, their writes and deletions are applied to the board in branch order, whichever ended first: if
    two branches wrote one key, the later branch's value remains.

    A key with a reducer is combined instead: the contributions of the branches, in branch order, beginning with the
    value from before the branches. The reducer is that of the node in the branch which wrote the key, otherwise that of
    the parallel node itself.

    A branch's scope holds the whole value of a key that it wrote. So if two branches append to one list, or write below
    one key, that is one key written twice, and the later branch's value remains: it lacks what the other one added. Let
    each branch write its own keys, and combine them in the node after it.

    The observation states which branch (by its region) wrote which keys.
    """
    bodies = [Body(region, "child", branch=number) for number, region in enumerate(node.bodies)]
    reducers = node.params.get("reducers") or {}

    def perform(work: Work) -> Any:
        return Enter(bodies) if work.phase == "start" else _merge(work, reducers)

    return perform


def _merge(work: Work, reducers: Mapping[str, Reducer]) -> Outcome:
    """Return the writes of all branches, a later one replacing or combined with an earlier one."""
    writes: dict[str, Any] = {}
    wrote: dict[str, list[str]] = {}
    for frame in work.frames:
        data = frame.scope.data
        wrote[frame.row.region] = list(data)
        writes |= {key: ABSENT if value is DELETED else value for key, value in data.items()}
    writes |= merge_writes(work.run, work.frames, work.node.id, reducers)
    return Outcome(writes, observation=wrote)


KIND = Kind("parallel", bind, step_type="SYSTEM_EVENT")
