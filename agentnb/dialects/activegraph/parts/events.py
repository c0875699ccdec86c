"""Events of a log as this dialect's users see them, and the JSON form of their payloads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from agentnb.board.values import FrozenDict, FrozenList, Opaque, enter, freeze, make_frozen_dict, make_frozen_list, thaw
from agentnb.bounds import Walk
from agentnb.dialects.activegraph.errors import NonSerializableEventError
from agentnb.dialects.activegraph.parts.clocks import format_time
from agentnb.errors import Problem, with_article
from agentnb.text import get_class_name

if TYPE_CHECKING:
    from agentnb.engine.core.history import Event as Kept

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
    """Return True for an event about the run itself, which behaviors get only if they name its type."""
    return type_.startswith(LIFECYCLE) or type_ == "context.read"


@dataclass(frozen=True)
class Event:
    """One entry of the log. Its payload is a copy: changing it does not change the log."""

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


def to_event(row: Kept) -> Event:
    """Return an event of a run as this dialect's users see it."""
    _, _, id_, type_, actor, cause, time, payload, _, mark = row
    event = _new(Event)
    fields = {"id": id_, "type": type_, "payload": {} if payload is None else thaw(payload), "actor": actor or None,
              "frame_id": mark, "caused_by": cause, "timestamp": format_time(time)}  # fmt: skip
    _set(event, "__dict__", fields)  # one is created per step, and setting seven fields one by one costs twice as much
    return event


def freeze_json(value: Any, path: str = "", walk: Walk | None = None) -> Any:
    """Return a value as converted by JSON (see `to_canonical`), frozen.

    Raises:
        NonSerializableEventError: X501, it is not JSON-serializable.
        BoardError: B102, it is nested too deeply, or too large.
    """
    kind, walk = type(value), Walk(value) if walk is None else walk
    if kind is not dict and kind is not FrozenDict and kind is not list:
        return freeze(to_canonical(value, path, walk), walk=walk)
    enter(walk, value)
    frozen: FrozenDict | FrozenList
    if kind is list:
        frozen = make_frozen_list([freeze_json(item, f"{path}.{at}", walk) for at, item in enumerate(value)])
    else:
        frozen = make_frozen_dict(
            {key if type(key) is str else _to_key(key): item if type(item) in _AS_THEY_ARE
             else freeze_json(item, f"{path}.{key}", walk) for key, item in value.items()}
        )  # fmt: skip
    walk.depth -= 1
    return frozen


def to_events(events: Iterable[Kept]) -> list[Event]:
    """Return events of a run as this dialect's users see them."""
    return [to_event(event) for event in events]


def to_plain(value: Any) -> Any:
    """Return a value as converted by JSON (see `to_canonical`); a pydantic model as its fields."""
    if not hasattr(value, "model_dump"):
        return to_canonical(value)
    try:
        return to_canonical(value.model_dump(mode="json"))
    except ValueError:  # pydantic does not name the field that is not JSON-serializable
        return to_canonical(value.model_dump())


def to_canonical(value: Any, path: str = "", walk: Walk | None = None) -> Any:
    """Return a value as converted by JSON: tuples as lists, sets sorted, Decimals and dates as text.

    X501: a value is not JSON-serializable.

    Raises:
        NonSerializableEventError: X501, it is not.
        BoardError: B102, it is nested too deeply, or too large.
    """
    if type(value) in _AS_THEY_ARE:
        return value
    walk = Walk(value) if walk is None else walk
    enter(walk, value)
    plain = _to_plain_part(value, path, walk)
    walk.depth -= 1
    return plain


def _to_plain_part(value: Any, path: str, walk: Walk) -> Any:
    kind = type(value)
    if kind is dict or issubclass(kind, Mapping):
        return {_to_key(key): item if type(item) in _AS_THEY_ARE else to_canonical(item, f"{path}.{key}", walk)
                for key, item in value.items()}  # fmt: skip
    match value:
        case list() | tuple() | FrozenList():
            return [to_canonical(item, f"{path}.{at}", walk) for at, item in enumerate(value)]
        case set() | frozenset():
            return sorted(to_canonical(item, path, walk) for item in value)
        case Decimal() | UUID():
            return str(value)
        case datetime() | date():
            return value.isoformat()
        case str():  # of a subclass, such as an Enum, whose `str` may say something else
            return str.__str__(value)
        case int() | float():
            return int(value) if isinstance(value, int) else float(value)
    name = get_class_name(value.value if isinstance(value, Opaque) else value)
    raise NonSerializableEventError(
        Problem("X501", f"the field {path.strip('.')!r} is {with_article(name)}, which JSON cannot represent",
                "an event's payload", "payloads are stored as JSON, so that they can be read anywhere",
                "emit a plain value: model.model_dump(), dataclasses.asdict(value) or str(value)")
    )  # fmt: skip


def _to_key(key: Any) -> str:
    match key:
        case str():
            return str.__str__(key)  # as above
        case bool():
            return "true" if key else "false"
        case None:
            return "null"
    return str(key)


__all__ = ["LIFECYCLE", "Event", "freeze_json", "is_lifecycle", "to_canonical", "to_event", "to_events", "to_plain"]
