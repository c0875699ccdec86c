"""resuming: what the steps in flight of a run had done when its process ended; run again, they need not do it twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from agentnb.board.codec import encode
from agentnb.board.values import freeze
from agentnb.engine.effects import is_told, sent_of

if TYPE_CHECKING:
    from agentnb.engine.history import Call, Event
    from agentnb.engine.joining import Joined
    from agentnb.engine.run import Run
    from agentnb.engine.work import Effect, Work


class Asked(NamedTuple):
    """A call that went out and never came back: of which activation, the how manieth of its step, what it was."""

    act: int
    number: int
    attempt: int
    kind: str
    name: str
    arguments: Any
    began: int


class Unfinished:
    """Calls and events of the steps in flight, by activation (see `recording.Recorded`).

    A step that asks something else than it did is another step: nothing of what was known holds for it any more.
    """

    def __init__(self, joined: Joined | None = None) -> None:
        self._told: dict[int, list[Call]] = {}
        self._out: dict[int, dict[int, list[Any]]] = {}
        self._events: dict[int, list[Event]] = {}
        if joined is not None:
            self._told = {act: list(rows.values()) for act, rows in joined.told.items()}
            self._out = {act: dict(calls) for act, calls in joined.out.items()}
            self._events = {act: list(events) for act, events in joined.announced.items()}

    def __bool__(self) -> bool:
        """Whether there is anything left."""
        return bool(self._told or self._out or self._events)

    def attempts(self, work: Work, number: int, effect: Effect) -> Sequence[Call]:
        """Return the attempts of a call that were told, the first first."""
        act = work.act.id
        rows = [row for row in self._told.get(act, ()) if row.call == number]
        if rows and not _alike(rows[0], effect):
            self.over(act)
            return ()
        return rows

    def went_out(self, work: Work, number: int) -> int | None:
        """Return when a call went out that never came back."""
        return next((call.began for call in self.asked() if (call.act, call.number) == (work.act.id, number)), None)

    def emitted(self, work: Work, type: str, payload: Any) -> Event | None:
        """Return the event that the step has emitted here before."""
        events = self._events.get(work.act.id, ())
        place = len(work.emitted)
        if place >= len(events):
            return None
        event = events[place]
        if event.type != type or encode(event.payload, lenient=True) != encode(freeze(payload), lenient=True):
            self.over(work.act.id)
            return None
        work.run.clock.now()  # as it was asked then: what comes later is dated alike
        return event

    def last_event(self) -> int:
        """Return the highest number of an event of theirs."""
        return max((event.seq for events in self._events.values() for event in events), default=0)

    def asked(self) -> Iterator[Asked]:
        """Yield the calls that went out and never came back."""
        for act, calls in self._out.items():
            back = {(row.call, row.attempt) for row in self._told.get(act, ())}
            for number, (attempt, kind, name, arguments, began) in calls.items():
                if (number, attempt) not in back:
                    yield Asked(act, number, attempt, kind, name, arguments, began)

    def facts(self) -> Iterator[tuple[str, int, Any]]:
        """Yield what is known: "out", "back" or "emit", the activation, and the call, its row or the event."""
        yield from (("out", call.act, call) for call in self.asked())
        yield from (("back", act, row) for act, rows in self._told.items() for row in rows)
        yield from (("emit", act, event) for act, events in self._events.items() for event in events)

    def take(self, other: Unfinished) -> None:
        """Take all that another one knows."""
        self._told.update(other._told)
        self._out.update({act: {**calls} for act, calls in other._out.items()})
        self._events.update(other._events)

    def add(self, work: Work) -> None:
        """Take what a step of this process has done so far."""
        act, emitted = work.act.id, work.emitted
        out = {number: [attempt, effect.kind, effect.name, sent, began]
               for number, (attempt, effect, sent, began) in work.out.items() if is_told(effect)}  # fmt: skip
        self._out.setdefault(act, {}).update(out)
        rows = {(row.call, row.attempt): row for row in (*self._told.get(act, ()), *work.calls)}
        self._told[act] = list(rows.values())
        self._events[act] = [*emitted, *self._events.get(act, [])[len(emitted) :]]

    def acts(self) -> list[int]:
        """Return the activations of the steps of which anything is known."""
        return list({**self._told, **self._out, **self._events})

    def over(self, act: int) -> None:
        """Forget a step: it is committed, or given up."""
        for table in (self._told, self._out, self._events):
            table.pop(act, None)


def cut(run: Run, work: Work) -> None:
    """Have a step that is given up know what it has done, when it runs again."""
    if not isinstance(run.recorded, Unfinished):
        run.recorded = Unfinished()
    run.recorded.add(work)


def in_flight(run: Run) -> Unfinished:
    """Return what the steps in flight have done, those of another process that have not begun again among them."""
    found = Unfinished()
    if isinstance(run.recorded, Unfinished):
        found.take(run.recorded)
    for flight in tuple(run.flights.values()):
        found.add(flight.act.work)
    return found


def unanswered(run: Run) -> list[Asked]:
    """Return the calls of another process that never came back, of steps that have not begun again."""
    known = run.recorded
    return [call for call in known.asked() if call.act not in run.flights] if isinstance(known, Unfinished) else []


def _alike(row: Call, effect: Effect) -> bool:
    """Say whether a call asks what was asked then; secrets are compared as they are kept."""
    same = (row.kind, row.name) == (effect.kind, effect.name)
    return same and encode(row.arguments, lenient=True) == encode(sent_of(effect), lenient=True)


__all__ = ["Asked", "Unfinished", "cut", "in_flight", "unanswered"]
