"""events: what a log tells, as this dialect's users see it; and what JSON makes of what they tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from agentnb.board.values import DEPTH_LIMIT, FrozenDict, FrozenList, Opaque, freeze, frozen_dict, frozen_list, thaw
from agentnb.dialects.activegraph.errors import NonSerializableEventError
from agentnb.dialects.activegraph.times import text_of
from agentnb.errors import Problem

if TYPE_CHECKING:
    from agentnb.engine.history import Event as Kept

LIFECYCLE: Final = (
    "behavior.",
    "relation_behavior.",
    "runtime.",
    "llm.",
    "tool.",
    "pattern.",
    "approval.",
    "dev.",
    "authority.",
)
_new, _set = object.__new__, object.__setattr__
_AS_THEY_ARE: Final = frozenset({str, int, float, bool, type(None)})


def is_lifecycle(type_: str) -> bool:
    """Say whether an event tells of the run itself: behaviours hear of it only by its very name."""
    return type_.startswith(LIFECYCLE) or type_ == "context.read"


@dataclass(frozen=True)
class Event:
    """One line of the log. Its payload is the caller's own copy: to change it changes nothing that is kept."""

    id: str
    type: str
    payload: dict[str, Any] = field(default_factory=dict)
    actor: str | None = None
    frame_id: str | None = None
    caused_by: str | None = None
    timestamp: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return its seven fields."""
        return {
            "id": self.id,
            "type": self.type,
            "payload": self.payload,
            "actor": self.actor,
            "frame_id": self.frame_id,
            "caused_by": self.caused_by,
            "timestamp": self.timestamp,
        }


def event_of(kept: Kept) -> Event:
    """Return an event of a run as this dialect's users see it."""
    _, _, id_, type_, actor, cause, time, payload, _, mark = kept
    event = _new(Event)
    fields = {"id": id_, "type": type_, "payload": {} if payload is None else thaw(payload), "actor": actor or None,
              "frame_id": mark, "caused_by": cause, "timestamp": text_of(time)}  # fmt: skip
    _set(event, "__dict__", fields)  # a behaviour is given one a step: seven fields set one by one cost twice as much
    return event


def frozen(value: Any, path: str = "", depth: int = 0) -> Any:
    """Return a value as JSON would give it back (see `canonical`), frozen.

    Raises:
        NonSerializableEventError: X501, JSON cannot say it.
        BoardError: B102, it is nested too deep.
    """
    kind = value.__class__
    if depth <= DEPTH_LIMIT and (kind is dict or kind is FrozenDict):
        return frozen_dict(
            {key if key.__class__ is str else _key(key): item if item.__class__ in _AS_THEY_ARE
             else frozen(item, f"{path}.{key}", depth + 1) for key, item in value.items()}
        )  # fmt: skip
    if depth <= DEPTH_LIMIT and kind is list:
        return frozen_list([frozen(item, f"{path}.{at}", depth + 1) for at, item in enumerate(value)])
    return freeze(canonical(value, path), depth=depth)


def events_of(kept: Iterable[Kept]) -> list[Event]:
    """Return events of a run as this dialect's users see them."""
    return [event_of(event) for event in kept]


def canonical(value: Any, path: str = "") -> Any:
    """Return a value as JSON would give it back: tuples as lists, sets sorted, Decimals and dates as text.

    X501: a value cannot be told in JSON.

    Raises:
        NonSerializableEventError: X501, JSON cannot say it.
    """
    kind = value.__class__
    if kind in _AS_THEY_ARE:
        return value
    if kind is dict or isinstance(value, Mapping):
        return {_key(key): item if item.__class__ in _AS_THEY_ARE else canonical(item, f"{path}.{key}")
                for key, item in value.items()}  # fmt: skip
    match value:
        case list() | tuple() | FrozenList():
            return [canonical(item, f"{path}.{at}") for at, item in enumerate(value)]
        case set() | frozenset():
            return sorted(canonical(item, path) for item in value)
        case Decimal() | UUID():
            return str(value)
        case datetime() | date():
            return value.isoformat()
        case bool() | int() | float() | str():  # of a class of its own, as an Enum's text is
            return next(plain(value) for plain in (int, float, str) if isinstance(value, plain))
    kind = type(value.value) if isinstance(value, Opaque) else kind
    raise NonSerializableEventError(
        Problem("X501", f"the field {path.strip('.')!r} is a {kind.__name__}, which JSON cannot say",
                "an event's payload", "what is told is kept as JSON, so that it can be read back anywhere",
                "tell a plain value: model.model_dump(), dataclasses.asdict(value) or str(value)")
    )  # fmt: skip


def _key(key: Any) -> str:
    match key:
        case str():
            return key
        case bool():
            return "true" if key else "false"
        case None:
            return "null"
    return str(key)


__all__ = ["LIFECYCLE", "Event", "canonical", "event_of", "events_of", "frozen", "is_lifecycle"]
