"""Stop conditions of a run call, in a common form: predicates over the current position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentnb.engine.control.breakpoints import next_turn
from agentnb.engine.core.history import FAIL, RESUME

if TYPE_CHECKING:
    from agentnb.engine.core.frames import Activation
    from agentnb.engine.core.run import Run


@dataclass(frozen=True, slots=True)
class Until:
    """`met` is called after each step and returns True if the run stops.

    `turn` is called before each activation of a branch while others are in flight; None if the next node is irrelevant.
    """

    met: Callable[[], bool]
    turn: Callable[[Activation], bool] | None = None


def node_is_next(run: Run, node: str) -> Until:
    """Stop when a node is next."""

    def met() -> bool:
        following = next_turn(run)
        return following is not None and following.node.id == node

    return Until(met, lambda act: act.node.id == node)


def is_over(run: Run, act: Activation) -> Until:
    """Stop when an activation has left its frame: a leaf after its step, a composite node at its end.

    The delivery of an event is over when all deliveries of that event are.
    """
    frame, event, nodes = act.frame.id, act.event, {act.node.index}
    if event >= 0:
        nodes = {node.index for heard in run.plan.listeners.values() for node in heard}

    def met() -> bool:
        if frame not in run.frames:  # left by an error or a cancellation
            return True
        waiting = [run.tables.acts[number] for number in run.frontier()]
        if event >= 0 and any(turn.event == event for turn in waiting):
            return False
        inside = any(row.parent == frame and row.owner in nodes for row in (one.row for one in run.frames.values()))
        ends = any(turn.frame == frame and turn.node in nodes and turn.what in (RESUME, FAIL) for turn in waiting)
        return not inside and not ends

    return Until(met)


def is_left(run: Run, act: Activation) -> Until | None:
    """Stop when the frame of an activation is left; None for the root's, which lasts to the end."""
    frame = act.frame.id
    return Until(lambda: frame not in run.frames) if frame else None
