"""Frames and activations. A frame is an open region of a run; an activation is one scheduling of a node in a frame.

The inputs of a frame and the result of the last step inside it are derived from the rows of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.scopes import Scope
from agentnb.board.values import thaw
from agentnb.engine.core.history import COUNTED, ActivationRow, FrameRow

if TYPE_CHECKING:
    from agentnb.engine.core.history import History
    from agentnb.engine.core.plan import PlanNode
    from agentnb.engine.core.run import Run
    from agentnb.engine.core.supersteps import Stage
    from agentnb.engine.core.work import Perform, Work


UNKNOWN: Final = -2  # as `Activation.next`


class Frame:
    """An open region of one run: its scope, the iteration of its body, and the activations in it."""

    __slots__ = ("activations", "depth", "id", "iteration", "lane", "parent", "row", "scope", "stage")

    def __init__(self, row: FrameRow, parent: Frame | None, scope: Scope) -> None:
        self.row, self.id, self.parent, self.scope = row, row.id, parent, scope
        self.depth: int = parent.depth + 1 if parent else 0
        self.iteration = 1
        self.activations: dict[int, Activation] = {}
        self.stage: Stage | None = None
        # A lane is a unit of concurrency: the root, or a branch of a parallel section with everything inside it.
        self.lane: Frame = self if parent is None or row.branch >= 0 else parent.lane

    def iter_enclosing(self) -> Iterator[Frame]:
        """Yield this frame and those around it, the innermost first."""
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.parent

    def is_within(self, frame: Frame) -> bool:
        """Return True if this frame is `frame` or is nested in it."""
        current: Frame | None = self
        while current is not None and current.depth >= frame.depth:
            if current is frame:
                return True
            current = current.parent
        return False


class Activation:
    """One scheduling of a node in a frame, created once and reused, with its scope and next activation resolved.

    `next` is the number of the activation that always follows: UNKNOWN until it is determined, else as in
    `PlanNode.always`. `quick` is True if the frontier can simply advance by one when no join is concerned (an ordinary
    activation in the root frame). `next_activations` maps each target to the number of the activation that the edge to
    it leads to.
    """

    work: Work

    __slots__ = (
        "cost",
        "event",
        "flag",
        "frame",
        "id",
        "next",
        "next_activations",
        "node",
        "perform",
        "purpose",
        "quick",
        "row",
        "scope",
        "work",
    )

    def __init__(self, number: int, row: ActivationRow, node: PlanNode, frame: Frame, run: Run) -> None:
        self.id = number
        self.row = row
        self.node = node
        self.frame = frame
        self.scope = frame.scope
        _, _, what, self.event, _ = row
        self.purpose, plan = what, run.plan
        perform = plan.performs[node.index]
        self.perform: Perform = perform if run.wrap_perform is None else run.wrap_perform(self, perform)
        self.cost = 0 if what else node.cost
        self.flag = COUNTED if self.cost else 0
        self.quick = plan.advances_by_one and not what and frame.parent is None
        self.next = UNKNOWN
        self.next_activations: dict[int, int] = {}


def get_frame_inputs(run: Run, frame: int) -> dict[str, Any]:
    """Return the inputs of a run as seen inside frame number `frame`."""
    layers: list[dict[str, Any]] = []
    while frame >= 0:
        row = run.tables.frames[frame]
        if row.inputs is not None:
            layers.append(thaw(row.inputs))
        frame = row.parent
    inputs: dict[str, Any] = thaw(run.inputs)
    for layer in reversed(layers):
        inputs |= layer
    return inputs


def get_last_observation(run: Run, frames: Sequence[Frame]) -> Any:
    """Return the observation of the last step that ran directly in one of these frames; None if there is none."""
    numbers = {frame.id for frame in frames}
    if not numbers:
        return None
    opened = min(frame.row.opened_at for frame in frames)
    for history, end in reversed(run.parts()):
        for step in range(end, max(history.base, opened), -1):
            if run.tables.activations[history.step_activations[step - history.base]].frame in numbers:
                return get_step_result(history, step)
    return None


def get_step_result(history: History, step: int) -> Any:
    """Return the result of a step: its observation or, for a failed step, the answer that caused the failure."""
    failure = history.errors.get(step)
    if failure is not None:
        return failure.result
    note = history.notes.get(step)
    return None if note is None else thaw(note.observation)
