"""What people do to a modelled run: going back, edits, another next node, forks, runs."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any

from tests.property import naive_paths
from tests.property.model_state import Entry, Frame, State


class Moves(ABC):
    """The acts of people on a model. An act that is refused changes nothing at all."""

    recipe: Any
    states: list[State]
    left: list[list[State]]
    position: int
    limit: int | None

    @property
    def now(self) -> State:
        return self.states[self.position]

    @property
    def tip(self) -> int:
        return len(self.states) - 1

    @property
    def status(self) -> str:
        now = self.now
        if now.failed is not None and now.head == now.failed:
            return "failed"
        if not now.queue:
            return "finished"
        if self.spent:
            return "exhausted"
        return "paused" if self.position else "ready"

    @property
    def spent(self) -> bool:
        """Say whether what is next would count, and no step is left that may; a failed node is not tried again then."""
        now = self.now
        counts = bool(now.queue) and now.head.turn == "start" and self.recipe.nodes[now.head.node].counted
        return self.limit is not None and now.used >= self.limit and counts

    @abstractmethod
    def step(self) -> bool:
        """Run what is next; say whether there was anything."""

    def run(self, steps: int) -> None:
        end = self.position + steps
        while self.position < end and self.step() and self.status != "failed":
            pass

    def goto(self, step: int) -> None:
        self.position = step

    def open_tip(self) -> None:
        """Go on from here: what came after is left behind."""
        if self.position < self.tip:
            self.left.append(copy.deepcopy(self.states))
            del self.states[self.position + 1 :]

    def edit(self, changes: dict[str, Any]) -> bool:
        after = self.now.copy()
        try:
            for text, value in changes.items():
                path = naive_paths.meaning(text, after.board)
                after.write(after.here, path, value)
        except naive_paths.RefusedError:
            return False
        self.open_tip()
        after.done.append(("edit", changes))
        self.states[self.position] = after
        return True

    def set_next(self, node: str) -> bool:
        after, region = self.now.copy(), self.recipe.nodes[node].scope
        head = after.head
        frame: Frame | None = after.frames[head.frame] if head else after.frames[0]
        while frame is not None and frame.region != region:
            frame = None if frame.parent is None else after.frames[frame.parent]
        if frame is None:  # in another branch it may wait already
            frame = next((after.frames[other.frame] for other in after.queue if other.node == node), None)
        if frame is None:
            return False
        entry, left = Entry(node, frame.id), self.tops_left(after, head, frame)
        if entry in after.queue and not left:
            after.queue.remove(entry)
            after.queue.insert(0, entry)
        else:
            others = [
                other
                for other in after.queue[1:]
                if other != entry and not any(after.within(other.frame, top.id) for top in left)
            ]
            after.queue = [entry, *others]
        after.close(left)
        self.open_tip()
        after.done.append(("set_next", node))
        self.states[self.position] = after
        return True

    def tops_left(self, state: State, head: Entry | None, frame: Frame) -> list[Frame]:
        """Return the outermost frames that are left when the run goes on in `frame`."""
        if head is None:
            return []
        if head.frame == frame.id:
            return state.inside(head.node, frame.id) if head.turn != "start" else []
        frame_record = state.frames[head.frame]
        while frame_record.parent != frame.id:
            if frame_record.parent is None:  # another branch: nothing is left for it
                return []
            frame_record = state.frames[frame_record.parent]
        return state.inside(str(frame_record.owner), frame.id)

    def fork(self, at: int) -> Any:
        fork = copy.copy(self)
        fork.states, fork.left, fork.position = copy.deepcopy(self.states[: at + 1]), [], at
        return fork
