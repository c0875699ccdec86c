"""The deliveries in a log: one delivery of one event to one behavior is one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from agentnb.dialects.activegraph.parts.package_logs.records import LogEvent

STARTED: Final = {"behavior.started": "behavior", "relation_behavior.started": "relation_behavior"}
ENDED: Final = ("behavior.completed", "behavior.failed")
_INSIDE: Final = ("llm.", "tool.", "embedding.", "approval.", "context.")


@dataclass(slots=True)
class Delivery:
    """One delivery of an event to a behavior: its events, and how it ended.

    `trigger` is the id of the delivered event; `events` are indexes in the log, from its start to its end; `end` is
    the index of the event that ended it, or None. `delayed` is True if it first waited for other events.
    """

    behavior: str
    kind: str
    trigger: str
    events: list[int] = field(default_factory=list)
    end: int | None = None
    delayed: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """The identity of its behavior."""
        return self.behavior, self.kind


def find_deliveries(events: Sequence[LogEvent]) -> list[Delivery]:
    """Return the deliveries of a log, in order. Events between two deliveries belong to neither."""
    deliveries: list[Delivery] = []
    scheduled: set[tuple[str, str]] = set()
    delivery: Delivery | None = None
    for at, event in enumerate(events):
        behavior, trigger = _name(event, "behavior"), _name(event, "event_id")
        if event.type in STARTED:
            delivery = Delivery(behavior, STARTED[event.type], trigger, [at], delayed=(behavior, trigger) in scheduled)
            if at and events[at - 1].type == "pattern.matched" and _belongs(events[at - 1], delivery):
                delivery.events.insert(0, at - 1)
            deliveries.append(delivery)
        elif event.type in ENDED:
            if delivery is None or (delivery.behavior, delivery.trigger) != (behavior, trigger):
                delivery = Delivery(behavior, "behavior", trigger)  # rejected before it could start
                deliveries.append(delivery)
            delivery.events.append(at)
            delivery.end, delivery = at, None
        elif event.type == "behavior.scheduled":
            scheduled.add((behavior, trigger))
        elif delivery is not None:
            delivery.events.append(at)
        elif (
            event.type == "context.read"
            and deliveries
            and _belongs(event, deliveries[-1])
            and deliveries[-1].events[-1] == at - 1
        ):
            deliveries[-1].events.append(at)  # reads are recorded after the end of the delivery
    for each in deliveries:
        if each.end is None:
            _cut(each, events)
    return deliveries


def _cut(delivery: Delivery, events: Sequence[LogEvent]) -> None:
    """Reduce an unfinished delivery to the events that certainly belong to it.

    The run was interrupted during this delivery, and perhaps resumed later.
    """

    def is_own(at: int) -> bool:
        event = events[at]
        of_package = event.type in STARTED or event.type == "pattern.matched" or event.type.startswith(_INSIDE)
        return of_package or event.actor == delivery.behavior

    delivery.events[:] = takewhile(is_own, delivery.events)


def _belongs(event: LogEvent, delivery: Delivery) -> bool:
    """Return True if one of the package's own events belongs to this delivery."""
    return (_name(event, "behavior"), _name(event, "event_id")) == (delivery.behavior, delivery.trigger)


def _name(event: LogEvent, key: str) -> str:
    return str(event.payload.get(key) or "")


__all__ = ["ENDED", "STARTED", "Delivery", "find_deliveries"]
