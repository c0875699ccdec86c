"""The queue while many branches are open: the position of each activation, and the number of activations per frame.

A branch that advances changes only its own place in the queue, or the end of the queue, so the cost of a step does not
depend on the number of branches. A join is queued once, behind everything in its frame that can still reach it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from agentnb.engine.core.history import RESUME, carry

if TYPE_CHECKING:
    from agentnb.engine.core.frames import Activation, Frame
    from agentnb.engine.core.history import Push
    from agentnb.engine.core.run import Run

    Pushes = list[Push]


class QueueIndex:
    """An index of the queue after one step, updated by `advance`.

    `rows` maps each activation to its push row; `within` has the number of activations in each frame and the frames
    inside it; `groups` has the same for all frames opened by one composite node, by frame and number of that node.
    `joins` are the joins in the queue; `reaching` has the number of activations of a frame that can still reach a join,
    by frame and node of the join; `waiting` has the joins for which there are any, by frame, in the order of the queue.
    `ready` holds the activations scheduled since then that can run at once; None if unknown.
    """

    __slots__ = ("frame_counts", "groups", "joins", "queue_version", "reaching", "ready", "rows", "waiting")

    def __init__(self, run: Run) -> None:
        history = run.history
        self.rows: dict[int, int] = {}
        self.frame_counts: Counter[int] = Counter()
        self.groups: Counter[tuple[int, int]] = Counter()
        self.joins: set[int] = set()
        self.waiting: dict[int, dict[int, None]] = {}
        self.reaching: Counter[tuple[int, int]] = Counter()
        self.ready: list[int] | None = None
        rows = history.queue_rows(run.queue_start, len(history.push_activations), run.position)
        for row in rows:
            self.add(run, history.push_activations[row], row)
        self.queue_version = (history, run.position, run.queue_start, len(history.push_activations))
        # An activation is queued twice, or a person has moved one behind a join that waits for it.
        if len(self.rows) != len(rows) or (self.joins and not self._find_waiting(run)):
            self.rows.clear()

    def is_current(self, run: Run) -> bool:
        """Return True if the queue has not changed since."""
        history, *numbers = self.queue_version
        return history is run.history and numbers == [run.position, run.queue_start, len(run.history.push_activations)]

    def _find_waiting(self, run: Run) -> bool:
        """Find the joins that wait; return True if they are behind everything else in their frames."""
        for number in self.rows:
            frame = _get_frame(run, number)
            own = frame if number in self.joins and self.waits(run, number) else None
            if any(outer is not own and outer.id in self.waiting for outer in frame.iter_enclosing()):
                return False
            if own is not None:
                self.waiting.setdefault(frame.id, {})[number] = None
        return True

    def add(self, run: Run, number: int, row: int) -> None:
        """Add an activation of the queue."""
        frame = _get_frame(run, number)
        self.rows[number] = row
        self._count(frame, 1)
        if run.plan.joins:
            node = run.plan.nodes[run.tables.activations[number].node]
            if node.kind.is_join:
                self.joins.add(number)
            for join in node.joins:
                self.reaching[frame.id, join] += 1

    def remove(self, activation: Activation) -> None:
        """Remove an activation."""
        del self.rows[activation.id]
        self._count(activation.frame, -1)
        if activation.id in self.joins:
            self.joins.remove(activation.id)
            self.waiting.get(activation.frame.id, {}).pop(activation.id, None)
        for join in activation.node.joins:
            self.reaching[activation.frame.id, join] -= 1

    def waits(self, run: Run, number: int) -> bool:
        """Return True if others in its frame can still reach a join."""
        row = run.tables.activations[number]
        return self.reaching[row.frame, row.node] > 0

    def update_waiting(self, run: Run, activation: Activation, new: Pushes) -> list[int] | None:
        """Return the joins that wait, if an activation's step has left something else behind one of them.

        None if a join in the queue has to wait that did not.
        """
        added, waiting = {number for number, _, _ in new}, self.waiting.setdefault(activation.frame.id, {})
        for number in added:
            frame, node = _get_frame(run, number), run.plan.nodes[run.tables.activations[number].node]
            known = {run.get_activation(join, frame).id for join in node.joins} & self.joins
            if known - added - self.waiting.get(frame.id, {}).keys():
                return None
        reaching = self.reaching
        ended = [join for join in activation.node.joins if not reaching[activation.frame.id, join]]
        ready = {run.get_activation(join, activation.frame).id for join in ended} & waiting.keys()
        while ready and (first := next(iter(waiting))) in ready:  # these are before the others, and stay there
            ready.remove(first)
            del waiting[first]
        for number in ready:
            del waiting[number]
        return [*waiting] if ready or any(not self.waits(run, number) for number in added) else []

    def move_joins(self, run: Run, frame: Frame, new: Pushes, known: dict[int, Push], moved: list[int]) -> Pushes:
        """Return what is new in a frame and the joins that are moved, with those that wait behind everything else.

        The joins that are `known` and not moved stay where they are.
        """
        late = [push for push in new if self.waits(run, push[0])]
        joins = [known.pop(number, push) for number, push in zip(moved, carry(moved), strict=True)] + late
        for number in moved:
            self.write(run, [], self.rows[number])
            del self.waiting[frame.id][number]
        for number, push in known.items():
            self.write(run, [push], self.rows[number])
        for number, _, _ in joins:
            self.waiting[frame.id][number] = None
        return [push for push in new if not self.waits(run, push[0])] + joins

    def split(self, activation: Activation, pushes: Pushes, front: Pushes) -> tuple[dict[int, Push] | None, Pushes]:
        """Return the pushes that are joins in the queue already, in the order of the queue, and the others.

        None if an activation would be queued twice, or if that order is unknown.
        """
        known: dict[int, Push] = {}
        new = [*front, *pushes]
        if self.joins:
            known = {push[0]: push for push in pushes if push[0] in self.joins}
            new = [push for push in new if push[0] not in known]
        elif len(new) < 2:
            return None if new and new[0][0] in self.rows else known, new
        added = {number for number, _, _ in new}
        if len(added) + len(known) < len(front) + len(pushes) or self.rows.keys() & added or activation.id in known:
            return None, new
        if len(known) > 1:
            waiting = self.waiting.get(activation.frame.id, {})
            if not waiting.keys() >= known.keys():
                return None, new
            known = {number: known[number] for number in waiting if number in known}
        return known, new

    def write(self, run: Run, pushes: Pushes, place: int | None = None) -> None:
        """Append activations of the queue to the pushes of the step, at the end of the queue or in a row's place."""
        history, start = run.history, len(run.history.push_activations)
        for row, (number, _, _) in enumerate(pushes, start):
            self.rows[number] = row
        history.push(pushes)
        if place is not None:
            history.replace(place, run.position + 1, start, start + len(pushes))

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


def advance(run: Run, activation: Activation, pushes: Pushes, front: Pushes) -> int:
    """Replace an activation in the queue by its successors; return the new start of the queue.

    -1 if the queue must be rewritten: something waits between the activation and the place of its successors.
    """
    index = run.queue_index
    if index is None or not index.is_current(run):
        index = run.queue_index = QueueIndex(run)
    frame, row, start = activation.frame, index.rows.get(activation.id), run.queue_start
    is_alone, is_last = index.frame_counts[frame.id] == 1, index.frame_counts[frame.id] == len(index.rows)
    known, new = index.split(activation, pushes, front)
    if row is None or known is None or (pushes and not (is_alone or is_last)):
        return -1
    if not (new or known) and frame.parent is not None and index.groups[frame.parent.id, frame.row.owner] == 1:
        new = carry([run.get_activation(frame.row.owner, frame.parent, RESUME).id])
    index.remove(activation)
    for number, _, _ in new:
        index.add(run, number, row)
    if index.joins:
        moved = index.update_waiting(run, activation, new)
        if moved is None or (moved and not is_last) or front:
            return -1
        new = index.move_joins(run, frame, new, known, moved)
    here, end = (new, []) if is_alone else (front, new[len(front) :])
    if here or row != start:
        index.write(run, here, row)
    else:
        start = run.history.row_after(start)
    if end:
        index.write(run, end)
    pos = run.history.find_queue_start(start)
    index.queue_version = (run.history, run.position + 1, pos, len(run.history.push_activations))
    run.note_joins(queued=bool(index.joins))
    if index.ready is not None:
        _record_ready(run, index, activation, new)
    return pos


def _record_ready(run: Run, index: QueueIndex, activation: Activation, new: Pushes) -> None:
    """Record which activation can run after a step of `activation`, if it is the only one of its lane."""
    lane = activation.frame.lane if not new else run.find_activation(new[0][0]).frame.lane
    remaining = index.frame_counts[lane.id]
    if remaining == 1 and len(new) == 1:
        assert index.ready is not None
        index.ready.append(new[0][0])
    elif remaining:
        index.ready = None  # several wait in this lane
