"""Clocks whose times are strings, and ids that continue after those in a log."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from weakref import WeakKeyDictionary

from agentnb import clock as engine
from agentnb import ids

UNSAID: Final = datetime(1800, 1, 1, tzinfo=UTC)  # the time of an event without one
_ULID: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def format_time(when: datetime) -> str:
    """Return a time as this dialect writes it: UTC, whole seconds, a Z; empty if it is not set."""
    if when.tzinfo is not UTC:
        when = when.astimezone(UTC)
    return "" if when == UNSAID else f"{when.isoformat()[:19]}Z"


def parse_time(text: str) -> datetime:
    """Return the time in a text; UNSAID if there is none."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return UNSAID
    return when if when.tzinfo else when.replace(tzinfo=UTC)


class Clock:
    """The wall clock, in whole seconds: `now()` returns "2026-05-15T10:32:01Z"."""

    def __init__(self) -> None:
        self.engine: engine.Clock = engine.Clock()

    def now(self) -> str:
        """Return the time."""
        return format_time(self.engine.now())


class FrozenClock(Clock):
    """A clock that always returns the same time.

    Example:
        >>> FrozenClock("2026-01-01T00:00:00Z").now()
        '2026-01-01T00:00:00Z'
    """

    def __init__(self, t: str = "2026-05-15T10:32:01Z") -> None:
        self.engine = engine.FrozenClock(t)


class TickingClock(Clock):
    """A clock that advances by `step_seconds` at each reading.

    Example:
        >>> clock = TickingClock("2026-01-01T00:00:00Z")
        >>> clock.now(), clock.now()
        ('2026-01-01T00:00:00Z', '2026-01-01T00:00:01Z')
    """

    def __init__(self, start: str = "2026-05-15T10:32:01Z", step_seconds: int = 1) -> None:
        self.engine = engine.TickingClock(start, step_seconds)


class _UserClock(engine.Clock):
    """A run's clock that reads its visible time from the user's clock."""

    def __init__(self, clock: Any) -> None:
        super().__init__()
        self._clock, self._last = clock, UNSAID

    def now(self) -> datetime:
        self._last = parse_time(str(self._clock.now()))
        return self._last

    def peek(self) -> datetime:
        return super().peek() if self._last == UNSAID else self._last


def to_engine_clock(clock: Any) -> engine.Clock:
    """Return the clock of a run: the one inside one of our clocks, otherwise an adapter of the user's clock."""
    if isinstance(clock, engine.Clock):
        return clock
    own = getattr(clock, "engine", None)
    return own if isinstance(own, engine.Clock) else _UserClock(clock)


# The events whose payload contains a counted id.
_COUNTED: Final = frozenset(
    {"object.created", "relation.created", "patch.proposed", "patch.applied", "approval.proposed"}
)


class IDGen(ids.IDGen):
    """Generates evt_001, rel_001, patch_001 ..., and one sequence for the objects of all types: task#1, claim#2.

    Example:
        >>> ids = IDGen()
        >>> ids.event(), ids.object("task"), ids.object("claim")
        ('evt_001', 'task#1', 'claim#2')
    """

    def __init__(self) -> None:
        super().__init__()
        self.ledgers: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # of the runs that count with it

    def event(self) -> str:
        """Return the next id of an event."""
        number = self.counters["evt"] = self.counters.get("evt", 0) + 1
        return f"evt_{number:03d}"

    def relation(self) -> str:
        """Return the next id of a relation."""
        return self("rel")

    def patch(self) -> str:
        """Return the next id of a patch."""
        return self("patch")

    def frame(self) -> str:
        """Return the next id of a frame."""
        return self("frame")

    def approval(self) -> str:
        """Return the next id of an approval."""
        return self("approval")

    def object(self, type_: str) -> str:
        """Return the next id of an object; all types share one sequence."""
        number = self.counters["object"] = self.counters.get("object", 0) + 1
        return f"{type_}#{number}"

    def run(self) -> str:
        """Return a new id of a run, which sorts by time and is not counted."""
        number = int(time.time() * 1000) << 80 | secrets.randbits(80)
        return "".join(_ULID[number >> bits & 31] for bits in range(125, -1, -5))

    def reseed_from_events(self, events: Iterable[Any]) -> None:
        """Continue after the highest ids in these events."""
        for event in events:
            self.saw("evt", event.id)
            if event.type in _COUNTED:
                self.saw_in(event.type, event.payload)

    def saw_in(self, type_: str, payload: Any) -> None:
        """Continue after the id in an event."""
        if type_ not in _COUNTED or not isinstance(payload, Mapping):
            return
        match type_:
            case "object.created":
                self._note_object(str(payload.get("id")))
            case "relation.created":
                self.saw("rel", str(payload.get("id")))
            case "patch.proposed" | "patch.applied" if isinstance(payload.get("patch"), Mapping):
                self.saw("patch", str(payload["patch"].get("id")))
            case "approval.proposed":
                self.saw("approval", str(payload.get("approval_id")))

    def saw(self, prefix: str, id_: str) -> None:
        """Continue after an id with this prefix."""
        head, _, number = id_.rpartition("_")
        if head == prefix and number.isdecimal() and int(number) > self.counters.get(prefix, 0):
            self.counters[prefix] = int(number)

    def skip_drawn(self, drawn: Mapping[str, int]) -> None:
        """Continue after the ids drawn before, too."""
        for name, number in drawn.items():
            self.counters[name] = max(number, self.counters.get(name, 0))

    def _note_object(self, id_: str) -> None:
        _, sign, number = id_.rpartition("#")
        if sign and number.isdecimal() and int(number) > self.counters.get("object", 0):
            self.counters["object"] = int(number)


__all__ = ["UNSAID", "Clock", "FrozenClock", "IDGen", "TickingClock", "format_time", "parse_time", "to_engine_clock"]
