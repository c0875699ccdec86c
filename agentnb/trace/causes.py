"""causes: the chain of causes of an event, or of a thing that events speak of: back to its roots, and what it led to.

Things are what a graph of objects is made of: objects, relations, patches, and approvals. What an event speaks of is
read from its payload, so this holds for every run, whoever has made it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from agentnb.engine.history import Event

Part = Literal["cause", "self", "effect"]
# Where the payload of an event names the things that it is about: paths, the first of each row that is there.
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
# What is told of a delivery itself: of one who was given an event, it says no more than the step does.
_OF_DELIVERIES: Final = frozenset(
    {"behavior.started", "relation_behavior.started", "behavior.completed", "pattern.matched", "context.read"}
)


class Linked(NamedTuple):
    """One event of a chain: which part of the chain it is, what it is about, and how far it is from what was asked.

    `away` counts causes between them: 0 for what was asked itself, below 0 for causes, above for effects.
    """

    event: Event
    part: Part
    about: tuple[str, ...]
    away: int


def chain_of(events: Sequence[Event], wanted: str) -> list[Linked]:
    """Return the chain of an event or a thing, in the order of the events; nothing where none tells of it.

    A thing's own events are all that make, change and remove it, and that join it to another. An event that comes
    between two of them is one of the causes, as it has led to the later one.
    """
    known = {event.id: event for event in events}
    about = about_of(events)
    if wanted in known:
        own = [wanted]
    else:
        own = [event.id for event in events if event.type in _NAMED and wanted in about[event.id]]
    after: dict[str, list[str]] = {}
    for event in events:
        if event.cause is not None:
            after.setdefault(event.cause, []).append(event.id)
    before = {id: [event.cause] for id, event in known.items() if event.cause in known}
    away = _reached(own, after, 1) | _reached(own, before, -1) | dict.fromkeys(own, 0)
    parts: Mapping[int, Part] = {-1: "cause", 0: "self", 1: "effect"}
    return [
        Linked(event, parts[(away[event.id] > 0) - (away[event.id] < 0)], about[event.id], away[event.id])
        for event in events
        if event.id in away
    ]


def tells_of_itself(event: Event) -> bool:
    """Say whether an event tells no more than that a step has delivered another one."""
    return event.type in _OF_DELIVERIES


def _reached(own: Iterable[str], ways: Mapping[str, Sequence[Any]], step: int) -> dict[str, int]:
    """Return what can be reached from some events, each with how far it is away, counted by `step`."""
    found, border = {}, list(own)
    seen, away = set(border), 0
    while border:
        away += step
        border = [each for here in border for each in ways.get(here, ()) if each not in seen]
        border = list(dict.fromkeys(border))
        seen.update(border)
        found.update(dict.fromkeys(border, away))
    return found


def about_of(events: Iterable[Event]) -> dict[str, tuple[str, ...]]:
    """Return the ids of the things that each event is about, by the event's id."""
    return dict(_about(events))


def _about(events: Iterable[Event]) -> Iterator[tuple[str, tuple[str, ...]]]:
    ends: dict[str, tuple[str, ...]] = {}
    known: set[str] = set()
    for event in events:
        rows = _NAMED.get(event.type)
        if rows is None:
            found = tuple(dict.fromkeys(text for text in _texts(event.payload) if text in known))
        else:
            found = tuple(filter(None, (_first(event.payload, row) for row in rows)))
        if event.type == "relation.created":
            ends[found[0] if found else ""] = found[1:]
        elif event.type == "relation.removed" and found:
            found += ends.get(found[0], ())
        known.update(found)
        yield event.id, found


def _first(payload: Any, paths: Iterable[str]) -> str:
    """Return the text that stands at the first of some paths; empty where there is none."""
    for path in paths:
        found = payload
        for name in path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        if isinstance(found, str):
            return found
    return ""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif not isinstance(value, bytes) and isinstance(value, Sequence):
        for item in value:
            yield from _texts(item)


__all__ = ["Linked", "Part", "about_of", "chain_of", "tells_of_itself"]
