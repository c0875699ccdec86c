"""Frame inputs and step results, derived from the run's rows, so that they stay consistent when the run goes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentnb.board.values import thaw

if TYPE_CHECKING:
    from agentnb.engine.core.frames import Frame
    from agentnb.engine.core.history import History
    from agentnb.engine.core.run import Run


def given_at(run: Run, frame: int) -> dict[str, Any]:
    """Return the inputs of a run as seen inside the frame with this number."""
    layers: list[dict[str, Any]] = []
    while frame >= 0:
        row = run.tables.frames[frame]
        if row.given is not None:
            layers.append(thaw(row.given))
        frame = row.parent
    found: dict[str, Any] = thaw(run.given)
    for layer in reversed(layers):
        found |= layer
    return found


def last_inside(run: Run, frames: Sequence[Frame]) -> Any:
    """Return the observation of the last step that ran directly in one of these frames; None if there is none."""
    numbers = {frame.id for frame in frames}
    if not numbers:
        return None
    opened = min(frame.row.opened for frame in frames)
    for history, end in reversed(run.parts()):
        for step in range(end, max(history.base, opened), -1):
            if run.tables.acts[history.s_act[step - history.base]].frame in numbers:
                return came_to(history, step)
    return None


def came_to(history: History, step: int) -> Any:
    """Return the result of a step: its observation or, for a failed step, the answer that was the failure."""
    failure = history.errors.get(step)
    if failure is not None:
        return failure.result
    note = history.notes.get(step)
    return None if note is None else thaw(note.observation)
