"""Recorded effects: a step's record answers its calls, and no call is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from agentnb.board.codec import is_known
from agentnb.board.values import ABSENT, thaw
from agentnb.clock import EPOCH, Clock, TickingClock
from agentnb.engine.core.events import make_event
from agentnb.engine.core.interfaces import StepAbandoned
from agentnb.engine.effects.recorded_calls import freeze_arguments
from agentnb.engine.effects.recorded_errors import rebuild_error
from agentnb.engine.replay.divergence import Divergence, Level, iter_inner_differences
from agentnb.engine.replay.equality import iter_innermost_differences
from agentnb.recipe.call_settings import select_settings
from agentnb.recipe.model import NOTHING

if TYPE_CHECKING:
    from datetime import datetime

    from agentnb.engine.core.history import Call, Event
    from agentnb.engine.core.run import Run
    from agentnb.engine.core.work import Work
    from agentnb.engine.replay.step_record import StepRecord
    from agentnb.world.effect import Effect


class UnrecordedCall(StepAbandoned):
    """Raised for a call that the record does not contain: the step is abandoned, and nothing is sent."""


class RecordedClock(TickingClock):
    """A clock set to the recorded time of the step being replayed; it ticks only if the run's own clock did."""

    def __init__(self, like: Clock) -> None:
        super().__init__(EPOCH, like.step.total_seconds() if isinstance(like, TickingClock) else 0.0)

    def set_time(self, ns: int) -> None:
        """Set the clock to a time in nanoseconds since the epoch."""
        self.at = EPOCH + timedelta(microseconds=ns // 1000)
        self._ns = ns


class StepRecording:
    """The recorded calls and events of one step (see `interfaces.RecordedSteps`).

    `divergences` holds the calls that differ. `unknown_call` names a call whose answer is incomplete: masked, or of an
    unknown class. `compares_reads` is False if the recorded run called a callable that may have read the board.
    `during` holds actions to run when the step has started a given number of calls and emitted a given number of
    events: interventions made while the step was in flight.

    Args:
        changes: the arguments that people substituted in calls of this step.
        settings: the settings of calls of the recorded recipe and of this one, masked; see `get_call_settings`.
    """

    def __init__(
        self,
        recorded: StepRecord,
        node: str,
        level: Level,
        changes: Sequence[Any] = (),
        settings: tuple[Mapping[str, Any], Mapping[str, Any]] = (NOTHING, NOTHING),
    ) -> None:
        self.recorded, self.node, self.level, self.changes = recorded, node, level, changes
        self.settings = settings
        self.divergences: list[Divergence] = []
        self.compares_reads, self.unknown_call = True, ""
        self.during: list[tuple[int, int, Callable[[], object]]] = []
        self._replayed_calls: set[int] = set()

    def attempts(self, work: Work, number: int, effect: Effect) -> Sequence[Call]:
        """Return the recorded attempts of a call.

        Raises:
            Exception: the exception of the last attempt.
            UnrecordedCall: the record has no such call.
        """
        # arguments that cannot be recorded fail the node, as they did in the recorded run
        sent = freeze_arguments(effect)
        self.run_interventions(work)
        rows = self.recorded.calls.get(number, [])
        if not rows or (rows[0].kind, rows[0].name) != (effect.kind, effect.name):
            self._add_unrecorded(effect, rows)
            raise UnrecordedCall
        self._replayed_calls.add(number)
        if self.level != "path" and effect.kind != "sleep" and not self._was_substituted(rows[0].arguments):
            differ = iter_inner_differences(
                (self.recorded.step, self.node, "call"), (effect.name,), rows[0].arguments, sent
            )
            self.divergences += [row for row in differ if row.sure]  # masked values are compared as masks
            self.divergences += self._compare_settings(effect)
        if effect.target is not None:
            self.compares_reads = False
            self._repeat_changes(work)
        own = [row._replace(activation=work.activation.id) for row in rows]
        if not is_known(own[-1].result):
            self.unknown_call = effect.name
        if own[-1].error is not None:
            work.busy = True
            work.calls.extend(own)
            raise rebuild_error(own[-1], self.recorded.failure and self.recorded.failure.error)
        return own

    def find_change(self, work: Work, number: int, effect: Effect) -> None:
        """Return None: the recorded rows have what was sent and answered after a change."""

    def get_next_kind(self, work: Work) -> str | None:
        """Return the kind of the record's next call. Failed calls are included; they are answered by their failure."""
        rows = self.recorded.calls.get(work.call_count)
        return rows[0].kind if rows else None

    def run_interventions(self, work: Work) -> None:
        """Run the interventions that were made before the step reached this point."""
        while self.during and self.during[0][0] <= work.call_count and self.during[0][1] <= len(work.emitted):
            self.during.pop(0)[2]()

    def _compare_settings(self, effect: Effect) -> Iterable[Divergence]:
        """Return the differences in a call's settings, which its arguments do not contain.

        None if a recipe is unknown.
        """
        recorded_settings, replayed_settings = (
            select_settings(settings, effect.kind, effect.name) for settings in self.settings
        )
        if not recorded_settings or not replayed_settings:
            return ()
        return iter_inner_differences(
            (self.recorded.step, self.node, "setting"), (effect.name,), recorded_settings, replayed_settings
        )

    def _was_substituted(self, arguments: Any) -> bool:
        """Return True if a call was sent with arguments that a person had substituted."""
        return any(next(iter_innermost_differences(arguments, substitute), None) is None for substitute in self.changes)

    def _add_unrecorded(self, effect: Effect, rows: Sequence[Call]) -> None:
        """Record a divergence for a call that the record does not contain."""
        replayed_call = f"{effect.kind} {effect.name!r}"
        recorded_call = f"{rows[0].kind} {rows[0].name!r}" if rows else None
        why = f"it calls {replayed_call}, and the record has {recorded_call or 'no further call'}; nothing was sent"
        at = (self.recorded.step, self.node)
        self.divergences.append(
            Divergence(*at, "call", effect.name, recorded_call or ABSENT, replayed_call, why, ends=True)
        )

    def _repeat_changes(self, work: Work) -> None:
        """Repeat the in-place changes made by a call's callable, which does not run again."""
        for row in self.recorded.writes:
            key = str(row.path[0])
            if row.in_place:
                work.copies[key] = (thaw(row.new), work.scope.get(key))

    def get_sent_time(self, work: Work, number: int) -> int | None:
        """Return None: a call without a response has no row."""
        return None

    def find_emitted(self, work: Work, type: str, payload: Any, options: Mapping[str, Any]) -> Event | None:
        """Return the emitted event with the number, id and time of the recorded event at this point."""
        index = len(work.emitted)
        if index >= len(self.recorded.events):
            return None
        own = {"time": options.get("time")}
        recorded_event, replayed_event = (
            self.recorded.events[index],
            make_event(work.run, work, type, payload, None, own),
        )
        if recorded_event.seq < replayed_event.seq and _is_taken(work, recorded_event.seq):
            return replayed_event._replace(time=recorded_event.time)  # the number belongs to another event here
        return replayed_event._replace(seq=recorded_event.seq, id=recorded_event.id, time=recorded_event.time)

    def next_event(self, work: Work) -> Event | None:
        """Return the next recorded event."""
        events = self.recorded.events
        return events[len(work.emitted)] if len(work.emitted) < len(events) else None

    def time(self, work: Work) -> datetime | None:
        """Return the next recorded clock time."""
        times = self.recorded.times
        return times[len(work.times)] if len(work.times) < len(times) else None

    def last_event(self) -> int:
        """Return 0: the step's events take their recorded numbers."""
        return 0

    def forget_step(self, run: Run, activation: int) -> None:
        """Do nothing: each step has a separate StepRecording."""

    def leave(self, run: Run) -> None:
        """Do nothing, as in `forget_step`."""

    def missing(self) -> list[Divergence]:
        """Return the recorded calls that the step did not make."""
        at = (self.recorded.step, self.node)
        rows = [rows[0] for number, rows in self.recorded.calls.items() if number not in self._replayed_calls]
        return [
            Divergence(*at, "call", row.name, f"{row.kind} {row.name!r}", ABSENT,
                       f"it called {row.kind} {row.name!r}, and the replay does not")
            for row in rows
        ]  # fmt: skip


def _is_taken(work: Work, seq: int) -> bool:
    """Return True if an event up to the run's position has this number; later events belong to the record."""
    events = (event for history, end in work.run.parts() for event in history.events if event.at <= end)
    return any(event.seq == seq for event in (*events, *work.emitted))


__all__ = ["RecordedClock", "StepRecording", "UnrecordedCall"]
