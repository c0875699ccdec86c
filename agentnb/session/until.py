"""until: what a run call is asked to stop at, whatever form it was given in: a question about where the run stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentnb.engine.breakpoints import next_turn
from agentnb.engine.history import FAIL, RESUME

if TYPE_CHECKING:
    from agentnb.engine.frames import Activation
    from agentnb.engine.run import Run


@dataclass(frozen=True, slots=True)
class Until:
    """`met` is asked after each step, and says whether the run stops.

    `turn` is asked before a branch's turn, while others run beside it; None where what comes next is not the question.
    """

    met: Callable[[], bool]
    turn: Callable[[Activation], bool] | None = None


def node_is_next(run: Run, node: str) -> Until:
    """Stop where a node is next."""

    def met() -> bool:
        following = next_turn(run)
        return following is not None and following.node.id == node

    return Until(met, lambda act: act.node.id == node)


def is_over(run: Run, act: Activation) -> Until:
    """Stop where an activation has left its frame: a leaf after its step, a composite node after its leave.

    The delivery of an event is over when all deliveries of that event are.
    """
    frame, event, nodes = act.frame.id, act.event, {act.node.index}
    if event >= 0:
        nodes = {node.index for heard in run.plan.listeners.values() for node in heard}

    def met() -> bool:
        if frame not in run.frames:  # left by a side door
            return True
        waiting = [run.tables.acts[number] for number in run.frontier()]
        if event >= 0 and any(turn.event == event for turn in waiting):
            return False
        inside = any(row.parent == frame and row.owner in nodes for row in (one.row for one in run.frames.values()))
        ends = any(turn.frame == frame and turn.node in nodes and turn.what in (RESUME, FAIL) for turn in waiting)
        return not inside and not ends

    return Until(met)


def is_left(run: Run, act: Activation) -> Until | None:
    """Stop where the frame of an activation is left; None for the root's, which lasts to the end."""
    frame = act.frame.id
    return Until(lambda: frame not in run.frames) if frame else None
