"""Causal chains of an event or an object: from its root causes to its effects.

Objects are the parts of an object graph: objects, relations, patches, and approvals. The objects that an event concerns
are read from its payload, so this works for every run, whatever its dialect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from agentnb.engine.core.history import Event

Part = Literal["cause", "self", "effect"]
# The paths in a payload that name the objects an event concerns; of each row, the first path that exists.
_NAMED: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "object.created": (("object.id", "id"),),
    "object.removed": (("id",),),
    "relation.created": (("relation.id", "id"), ("relation.source", "source"), ("relation.target", "target")),
    "relation.removed": (("id",),),
    "patch.proposed": (("patch.id",), ("patch.target", "target")),
    "patch.applied": (("patch.id",), ("patch.target", "target")),
    "patch.rejected": (("patch_id",), ("target",)),
    "patch.changed": (("patch_id", "patch.id"), ("target", "patch.target")),
    "approval.proposed": (("approval_id",),),
    "approval.granted": (("approval_id",),),
    "approval.denied": (("approval_id",),),
    "approval.changed": (("approval_id",),),
}
# Events that only report a delivery: they add nothing to the step.
_OF_DELIVERIES: Final = frozenset(
    {"behavior.started", "relation_behavior.started", "behavior.completed", "pattern.matched", "context.read"}
)


class LinkedEvent(NamedTuple):
    """One event of a chain: its relation to the requested item, the objects it concerns, and its distance.

    `distance` is counted in causes: 0 for the requested item itself, negative for causes, positive for effects.
    """

    event: Event
    part: Part
    objects: tuple[str, ...]
    distance: int


def find_chain(events: Sequence[Event], subject: str) -> list[LinkedEvent]:
    """Return the chain of an event or an object, in the order of the events; empty if no event concerns it.

    An object's own events are all that create, change, remove and relate it. An event between two of them is one of the
    causes, because it has led to the later one.
    """
    known = {event.id: event for event in events}
    objects_by_event = index_by_object(events)
    if subject in known:
        own = [subject]
    else:
        own = [event.id for event in events if event.type in _NAMED and subject in objects_by_event[event.id]]
    effects_of: dict[str, list[str]] = {}
    for event in events:
        if event.cause is not None:
            effects_of.setdefault(event.cause, []).append(event.id)
    causes_of = {id: [event.cause] for id, event in known.items() if event.cause in known}
    away = _find_reachable(own, effects_of, 1) | _find_reachable(own, causes_of, -1) | dict.fromkeys(own, 0)
    parts: Mapping[int, Part] = {-1: "cause", 0: "self", 1: "effect"}
    return [
        LinkedEvent(
            event, parts[(away[event.id] > 0) - (away[event.id] < 0)], objects_by_event[event.id], away[event.id]
        )
        for event in events
        if event.id in away
    ]


def reports_delivery(event: Event) -> bool:
    """Return True if an event only reports that a step has delivered another one."""
    return event.type in _OF_DELIVERIES


def _find_reachable(event_ids: Iterable[str], edges: Mapping[str, Sequence[Any]], step: int) -> dict[str, int]:
    """Return the events reachable from some events, each with its distance, counted by `step`."""
    distances, border = {}, list(event_ids)
    seen, away = set(border), 0
    while border:
        away += step
        border = [each for event_id in border for each in edges.get(event_id, ()) if each not in seen]
        border = list(dict.fromkeys(border))
        seen.update(border)
        distances.update(dict.fromkeys(border, away))
    return distances


def index_by_object(events: Iterable[Event]) -> dict[str, tuple[str, ...]]:
    """Return the ids of the objects that each event concerns, by the event's id."""
    return dict(_iter_about(events))


def _iter_about(events: Iterable[Event]) -> Iterator[tuple[str, tuple[str, ...]]]:
    ends: dict[str, tuple[str, ...]] = {}
    known: set[str] = set()
    for event in events:
        rows = _NAMED.get(event.type)
        if rows is None:
            ids = tuple(dict.fromkeys(text for text in _iter_texts(event.payload) if text in known))
        else:
            ids = tuple(filter(None, (_find_first_text(event.payload, row) for row in rows)))
        if event.type == "relation.created":
            ends[ids[0] if ids else ""] = ids[1:]
        elif event.type == "relation.removed" and ids:
            ids += ends.get(ids[0], ())
        known.update(ids)
        yield event.id, ids


def _find_first_text(payload: Any, paths: Iterable[str]) -> str:
    """Return the text at the first of some paths that exists; empty if none does."""
    for path in paths:
        value = payload
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if isinstance(value, str):
            return value
    return ""


def _iter_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _iter_texts(item)
    elif not isinstance(value, bytes) and isinstance(value, Sequence):
        for item in value:
            yield from _iter_texts(item)


__all__ = ["LinkedEvent", "Part", "find_chain", "index_by_object", "reports_delivery"]
