"""The queue while many branches are open: the position of each activation, and the number of activations per frame.

A branch that advances changes only its own place in the queue, so the cost of a step does not depend on the number of
branches.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from agentnb.engine.core.history import RESUME, carry

if TYPE_CHECKING:
    from agentnb.engine.core.frames import Activation, Frame
    from agentnb.engine.core.history import Push
    from agentnb.engine.core.run import Run


class QueueIndex:
    """An index of the queue after one step, updated by `advance`.

    `rows` maps each activation to its push row; `within` has the number of activations in each frame and the frames
    inside it; `groups` has the same for all frames opened by one composite node, by frame and number of that node.
    `ready` holds the activations scheduled since then that can run at once; None if unknown.
    """

    __slots__ = ("frame_counts", "groups", "queue_version", "ready", "rows")

    def __init__(self, run: Run) -> None:
        history = run.history
        self.rows: dict[int, int] = {}
        self.frame_counts: Counter[int] = Counter()
        self.groups: Counter[tuple[int, int]] = Counter()
        self.ready: list[int] | None = None
        rows = history.queue_rows(run.queue_start, len(history.push_activations), run.position)
        for row in rows:
            self.add(run, history.push_activations[row], row)
        self.queue_version = (history, run.position, run.queue_start, len(history.push_activations))
        if len(self.rows) != len(rows):  # an activation is queued twice
            self.rows.clear()

    def is_current(self, run: Run) -> bool:
        """Return True if the queue has not changed since."""
        history, *numbers = self.queue_version
        return history is run.history and numbers == [run.position, run.queue_start, len(run.history.push_activations)]

    def add(self, run: Run, number: int, row: int) -> None:
        """Add an activation of the queue."""
        self.rows[number] = row
        self._count(_get_frame(run, number), 1)

    def remove(self, activation: Activation) -> None:
        """Remove an activation."""
        del self.rows[activation.id]
        self._count(activation.frame, -1)

    def _count(self, frame: Frame, change: int) -> None:
        within, groups = self.frame_counts, self.groups
        while True:
            within[frame.id] += change
            parent = frame.parent
            if parent is None:
                return
            groups[parent.id, frame.row.owner] += change
            frame = parent


def _get_frame(run: Run, number: int) -> Frame:
    return run.root if run.tables.activations[number].node < 0 else run.find_activation(number).frame


def advance(run: Run, activation: Activation, pushes: list[Push], front: list[Push]) -> int:
    """Replace an activation in the queue by its successors; return the new start of the queue.

    -1 if the queue must be rewritten: something waits between the activation and the place of its successors.
    """
    index = run.queue_index
    if index is None or not index.is_current(run):
        index = run.queue_index = QueueIndex(run)
    frame, row = activation.frame, index.rows.get(activation.id)
    if row is None or (pushes and index.frame_counts[frame.id] > 1):
        return -1
    new = [*front, *pushes]
    if not new and frame.parent is not None and index.groups[frame.parent.id, frame.row.owner] == 1:
        new = carry([run.get_activation(frame.row.owner, frame.parent, RESUME).id])
    history, step = run.history, run.position + 1
    start = len(history.push_activations)
    if new:
        if any(number in index.rows for number, _, _ in new):
            return -1
        history.push(new)
    history.replace(row, step, start, start + len(new))
    index.remove(activation)
    for position, (number, _, _) in enumerate(new, start):
        index.add(run, number, position)
    pos = history.find_queue_start(row) if row == run.queue_start else run.queue_start
    index.queue_version = (history, step, pos, len(history.push_activations))
    if index.ready is not None:
        _record_ready(run, index, activation, new)
    return pos


def _record_ready(run: Run, index: QueueIndex, activation: Activation, new: list[Push]) -> None:
    """Record which activation can run after a step of `activation`, if it is the only one of its lane."""
    lane = activation.frame.lane if not new else run.find_activation(new[0][0]).frame.lane
    remaining = index.frame_counts[lane.id]
    if remaining == 1 and len(new) == 1:
        assert index.ready is not None
        index.ready.append(new[0][0])
    elif remaining:
        index.ready = None  # several wait in this lane
