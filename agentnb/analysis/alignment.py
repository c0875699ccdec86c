"""Alignment of two runs: which step of one corresponds to which step of the other.

Steps are aligned by node, frame, phase and visit, not by their numbers: a loop that runs once more shifts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from agentnb.analysis.runs import name_frames

if TYPE_CHECKING:
    from agentnb.trace.row_index import StepIndex


class StepKey(NamedTuple):
    """What identifies a step across runs: the `visit`-th step of a node in a frame, in this phase."""

    node: str
    frame: str
    phase: int
    visit: int


class Pair(NamedTuple):
    """A step of each of two runs; None where the other run has no such step."""

    key: StepKey
    step_a: int | None
    step_b: int | None


class StepKeys:
    """The keys of all steps of a run, and the names of its frames and scopes."""

    def __init__(self, reading: StepIndex) -> None:
        self.reading = reading
        self.frames = name_frames(reading)
        self.keys = list(self._get_keys())
        self.numbers = {key: step for step, key in enumerate(self.keys, 1)}

    def _get_keys(self) -> Iterator[StepKey]:
        nodes, acts = self.reading.nodes, self.reading.tables.acts
        visits: dict[tuple[str, str, int], int] = {}
        for history, last in self.reading.parts():
            for row in range(1, last + 1):
                act = acts[history.s_act[row]]
                place = nodes[act.node].id, self.frame(act.frame), history.s_flag[row] & 3
                visits[place] = visit = visits.get(place, 0) + 1
                yield StepKey(*place, visit)

    def frame(self, number: int) -> str:
        """Return the name of a frame, or of the frame that opened a scope."""
        return self.frames.get(number) or self.reading.frame_name(number)


def align(a: StepKeys, b: StepKeys) -> Iterator[Pair]:
    """Yield the pairs of steps of two runs, in the order of both; where they differ, in that of the first.

    Branches that ran in another order are the same steps.
    """
    numbers_a, numbers_b = a.numbers, b.numbers
    at_a, at_b, size_a, size_b = 0, 0, len(a.keys), len(b.keys)
    while at_a < size_a or at_b < size_b:
        key_a = a.keys[at_a] if at_a < size_a else None
        key_b = b.keys[at_b] if at_b < size_b else None
        if key_a is not None and key_a not in numbers_b:
            yield Pair(key_a, at_a + 1, None)
            at_a += 1
        elif key_b is not None and key_b not in numbers_a:
            yield Pair(key_b, None, at_b + 1)
            at_b += 1
        elif key_b is not None and numbers_a[key_b] <= at_a:  # yielded with its step of the first run
            at_b += 1
        elif key_a is not None:
            yield Pair(key_a, at_a + 1, numbers_b[key_a])
            at_a += 1


__all__ = ["Pair", "StepKey", "StepKeys", "align"]
