"""Event deliveries: which event reached which node in which step, and who emitted it. Computed, not stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agentnb.engine.core.history import Event
    from agentnb.trace.row_index import Reading


class Delivered(NamedTuple):
    """One delivery: a step, the event that reached its node, and the node that emitted the event.

    Nodes are numbers; `source` is -1 for an event from outside.
    """

    step: int
    source: int
    target: int
    event: Event


def deliveries(reading: Reading) -> Iterator[Delivered]:
    """Yield the deliveries of a run, step by step."""
    acts = reading.tables.acts
    if all(row.event < 0 for row in acts):
        return
    events = {event.seq: event for event in reading.events()}
    for history, last in reading.parts():
        for row in range(1, last + 1):
            act = acts[history.s_act[row]]
            event = events.get(act.event) if act.event >= 0 else None
            if event is not None:
                yield Delivered(history.base + row, _find_emitter(reading, event), act.node, event)


def _find_emitter(reading: Reading, event: Event) -> int:
    """Return the node in whose step an event was emitted; -1 if in none."""
    return -1 if event.step is None else reading.act(event.step).node


__all__ = ["Delivered", "deliveries"]
