"""The rounds or branches inside a node, and how each of them ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agentnb.engine.core.history import AGAIN, ENTER, LEAVE, STATUSES
from agentnb.ui.details.cells import ROWS, to_line

if TYPE_CHECKING:
    from agentnb.session import Session
    from agentnb.trace.row_index import StepIndex

_LOOKED: Final = 20_000  # steps searched, forwards and backwards


def describe_inner_run(session: Session, number: int) -> dict[str, Any] | None:
    """Return the run inside the node of a step; None if the node has no region.

    `opened` and `last` are the steps in which the region was entered and left (None: not yet, or beyond the searched
    steps). `parts` are its rounds or branches: the name, first and last step, number of steps, last node and status of
    each.
    """
    reading = session.trace.reading()
    activation = reading.activation(number)
    owner = (activation.node, activation.frame)
    if not session.recipe.nodes.get(reading.nodes[activation.node].id) or not _is_composite(reading, number):
        return None
    opened = next((step for step in _list_backwards(number) if _get_phase(reading, step, owner) == ENTER), None)
    if opened is None:
        return None
    parts, last = _find_parts(session, reading, opened, owner)
    return {"opened": opened, "last": last, "parts": parts[:ROWS], "more": max(len(parts) - ROWS, 0)}


def _is_composite(reading: StepIndex, number: int) -> bool:
    history, row = reading.owner(number)
    return history.step_flags[row] & 3 in (ENTER, AGAIN, LEAVE)


def _list_backwards(number: int) -> range:
    return range(number, max(number - _LOOKED, 0), -1)


def _get_phase(reading: StepIndex, step: int, owner: tuple[int, int]) -> int | None:
    """Return the phase of a step of this node; None if the step belongs to another node."""
    activation = reading.activation(step)
    if (activation.node, activation.frame) != owner:
        return None
    history, row = reading.owner(step)
    return history.step_flags[row] & 3


def _find_parts(
    session: Session, reading: StepIndex, opened: int, owner: tuple[int, int]
) -> tuple[list[Any], int | None]:
    """Return the rounds or branches since a node was entered, and the step in which it was left."""
    frames = {row.id for row in reading.tables.frames if (row.owner, row.parent, row.opened_at) == (*owner, opened)}
    parts: dict[tuple[int, int], list[int]] = {}
    rounds, last = 1, min(reading.tip, opened + _LOOKED)
    for step in range(opened + 1, last + 1):
        phase = _get_phase(reading, step, owner)
        if phase in (LEAVE, ENTER):
            return [
                _describe_part(session, reading, key, steps) for key, steps in parts.items()
            ], step if phase == LEAVE else None
        if phase == AGAIN:
            rounds += 1
        frame = reading.activation(step).frame
        while frame and frame not in frames:
            frame = reading.tables.frames[frame].parent
        if frame:
            parts.setdefault((frame, rounds), []).append(step)
    return [_describe_part(session, reading, key, steps) for key, steps in parts.items()], None


def _describe_part(session: Session, reading: StepIndex, key: tuple[int, int], steps: list[int]) -> dict[str, Any]:
    frame, rounds = key
    row, last = reading.tables.frames[frame], steps[-1]
    history, at = reading.owner(last)
    region = session.recipe.regions.get(row.region)
    return {
        "title": to_line((region.title if region else "") or row.region),
        "round": rounds,
        "branch": None if row.branch < 0 else row.branch,
        "first": steps[0],
        "last": last,
        "steps": len(steps),
        "node": reading.nodes[reading.activation(last).node].id,
        "status": STATUSES[history.step_flags[at] >> 2 & 3],
    }
