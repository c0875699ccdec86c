"""tape: what a record knows of one step: it answers the step's calls, and lets none of them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import ABSENT, thaw
from agentnb.clock import Clock, TickingClock
from agentnb.engine.alike import is_known, unlike
from agentnb.engine.divergence import Divergence, Level, inside
from agentnb.engine.effects import Spent, sent_of
from agentnb.engine.numbering import numbered
from agentnb.engine.recording import error_of

if TYPE_CHECKING:
    from agentnb.engine.done import Done
    from agentnb.engine.history import Call, Event
    from agentnb.engine.work import Effect, Work

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Unrecorded(Spent):
    """Raised at the door for a call that the record does not have: its step is given up, and nothing goes out."""


class ThenClock(TickingClock):
    """Stands at the recorded time of the step that is replayed; it ticks only where the run's own clock did."""

    def __init__(self, like: Clock) -> None:
        super().__init__(EPOCH, like.step.total_seconds() if isinstance(like, TickingClock) else 0.0)

    def stand(self, ns: int) -> None:
        """Stand at so many nanoseconds since the epoch."""
        self.at = EPOCH + timedelta(microseconds=ns // 1000)
        self._ns = ns


class Tape:
    """What is known of one step's calls and events (see `recording.Recorded`).

    `found` are the calls that differ. `unknown` names a call whose answer is not whole here: masked, or of a class that
    is not known. `own_reads` is false where a callable was called then that may have read the
    board. `during` is done as soon as the step has begun so many calls and emitted so many events: people did it while
    the step was under way.

    Args:
        changes: the arguments that people have given calls of this step, in place of its own.
    """

    def __init__(self, recorded: Done, node: str, level: Level, changes: Sequence[Any] = ()) -> None:
        self.recorded, self.node, self.level, self.changes = recorded, node, level, changes
        self.found: list[Divergence] = []
        self.own_reads, self.unknown = True, ""
        self.during: list[tuple[int, int, Callable[[], object]]] = []
        self._asked: set[int] = set()

    def attempts(self, work: Work, number: int, effect: Effect) -> Sequence[Call]:
        """Return the recorded attempts of a call.

        Raises:
            Exception: what the last of them raised.
            Unrecorded: the record has no such call.
        """
        sent = sent_of(effect)  # what nothing can keep fails the node, as it did then
        self.come(work)
        rows = self.recorded.calls.get(number, [])
        if not rows or (rows[0].kind, rows[0].name) != (effect.kind, effect.name):
            self._lost(effect, rows)
            raise Unrecorded
        self._asked.add(number)
        if self.level != "path" and not self._changed(rows[0].arguments):
            differ = inside((self.recorded.step, self.node, "call"), (effect.name,), rows[0].arguments, sent)
            self.found += [row for row in differ if row.sure]  # what is masked is compared as masked
        if effect.target is not None:
            self.own_reads = False
            self._touch(work)
        mine = [row._replace(act=work.act.id) for row in rows]
        if not is_known(mine[-1].result):
            self.unknown = effect.name
        if mine[-1].error is not None:
            work.busy = True
            work.calls.extend(mine)
            raise error_of(mine[-1], self.recorded.failure and self.recorded.failure.error)
        return mine

    def come(self, work: Work) -> None:
        """Do what people did while the step had come no further than it has now."""
        while self.during and self.during[0][0] <= work.called and self.during[0][1] <= len(work.emitted):
            self.during.pop(0)[2]()

    def _changed(self, arguments: Any) -> bool:
        """Say whether a call was sent what a person had given it."""
        return any(next(unlike(arguments, given), None) is None for given in self.changes)

    def _lost(self, effect: Effect, rows: Sequence[Call]) -> None:
        """Note a call that the record does not have."""
        now = f"{effect.kind} {effect.name!r}"
        then = f"{rows[0].kind} {rows[0].name!r}" if rows else None
        why = f"it calls {now}, where the record has {then or 'no further call'}; nothing went out"
        at = (self.recorded.step, self.node)
        self.found.append(Divergence(*at, "call", effect.name, then or ABSENT, now, why, ends=True))

    def _touch(self, work: Work) -> None:
        """Change in place what the callable of a call had changed so: it does not run again."""
        for row in self.recorded.writes:
            key = str(row.path[0])
            if row.in_place:
                work.copies[key] = (thaw(row.new), work.scope.get(key))

    def went_out(self, work: Work, number: int) -> int | None:
        """Return None: a call that never came back has no row."""
        return None

    def emitted(self, work: Work, type: str, payload: Any) -> Event | None:
        """Return the event that a step emits, with the number, the id and the time of the recorded one in its place."""
        place = len(work.emitted)
        if place >= len(self.recorded.events):
            return None
        then, now = self.recorded.events[place], numbered(work.run, work, type, payload, None, {})
        if then.seq < now.seq and _is_taken(work, then.seq):
            return now._replace(time=then.time)  # its number is another's here
        return now._replace(seq=then.seq, id=then.id, time=then.time)

    def last_event(self) -> int:
        """Return 0: what the step emits is numbered in its place."""
        return 0

    def over(self, act: int) -> None:
        """Forget nothing: each step has a tape of its own."""

    def missing(self) -> list[Divergence]:
        """Return the recorded calls that the step did not make."""
        at = (self.recorded.step, self.node)
        rows = [rows[0] for number, rows in self.recorded.calls.items() if number not in self._asked]
        return [
            Divergence(*at, "call", row.name, f"{row.kind} {row.name!r}", ABSENT,
                       f"it called {row.kind} {row.name!r}, and the replay does not")
            for row in rows
        ]  # fmt: skip


def _is_taken(work: Work, seq: int) -> bool:
    """Say whether an event has this number, up to where the run stands: what is behind that is of the record."""
    kept = (event for history, end in work.run.parts() for event in history.events if event.at <= end)
    return any(event.seq == seq for event in (*kept, *work.emitted))


__all__ = ["EPOCH", "Tape", "ThenClock", "Unrecorded"]
