"""deliveries: which event came to which node in which step, and whose step had told of it. Read, not kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agentnb.engine.history import Event
    from agentnb.trace.reading import Reading


class Delivered(NamedTuple):
    """One delivery: a step, the event that came to its node, and the node whose step had told of it.

    Nodes go by their numbers; `source` is -1 where the event came from outside.
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
                yield Delivered(history.base + row, _teller(reading, event), act.node, event)


def _teller(reading: Reading, event: Event) -> int:
    """Return the node in whose step an event was told; -1 where in none."""
    return -1 if event.step is None else reading.act(event.step).node


__all__ = ["Delivered", "deliveries"]
