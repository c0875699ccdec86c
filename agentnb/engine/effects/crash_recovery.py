"""Crash recovery: what pending steps had done when their process ended, so that they need not repeat it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentnb.board.codec import decode, encode
from agentnb.board.values import ABSENT, freeze
from agentnb.engine.core.history import OUTSIDE
from agentnb.engine.core.interfaces import CallChange
from agentnb.engine.core.time_travel import repair
from agentnb.engine.effects.recorded_calls import (
    ASKED,
    end_calls,
    freeze_arguments,
    make_interrupted_row,
    must_log_start,
)

if TYPE_CHECKING:
    from datetime import datetime

    from agentnb.engine.core.history import Call, Event
    from agentnb.engine.core.pending_step import Hold
    from agentnb.engine.core.run import Run
    from agentnb.engine.core.work import Work
    from agentnb.world.effect import Effect


_step_of: Final = attrgetter("step")
NOTHING: Final[Mapping[int, Any]] = {}  # read-only


class UnansweredCall(NamedTuple):
    """A call without a recorded response: its activation, its index within the step, and the request."""

    activation: int
    number: int
    attempt: int
    kind: str
    name: str
    arguments: Any
    started_at: int
    wait: float = 0.0  # seconds waited before this attempt


class InterruptedSteps:
    """Calls, events and changed calls of the pending steps, by activation (see `interfaces.RecordedSteps`).

    A step that makes a different call than before is a different step: its records no longer apply. Paid-for calls stay
    in the log nevertheless, as calls that belong to no step. A call that a person has changed is the same call.
    """

    def __init__(
        self,
        attempts: Mapping[int, Iterable[Call]] = NOTHING,
        out: Mapping[int, Mapping[int, list[Any]]] = NOTHING,
        events: Mapping[int, Iterable[Event]] = NOTHING,
        times: Mapping[int, Iterable[datetime]] = NOTHING,
    ) -> None:
        self._attempts = {activation: list(rows) for activation, rows in attempts.items()}
        self._sent_calls = {activation: dict(calls) for activation, calls in out.items()}
        self._events = {activation: list(recorded) for activation, recorded in events.items()}
        self._times = {activation: list(read) for activation, read in times.items()}
        self._superseded_attempts: dict[int, list[Call]] = {}  # of steps that make a different call now
        self._changes: dict[int, dict[int, CallChange]] = {}  # by activation and call

    def __bool__(self) -> bool:
        """Return True if anything is left."""
        return bool(self._attempts or self._sent_calls or self._events or self._superseded_attempts or self._changes)

    def rows(self) -> tuple[Call, ...]:
        """Return the attempts that belong to no committed step."""
        return tuple(
            row for table in (self._attempts, self._superseded_attempts) for rows in table.values() for row in rows
        )

    def attempts(self, work: Work, number: int, effect: Effect) -> Sequence[Call]:
        """Return the recorded attempts of a call, in order."""
        activation = work.activation.id
        rows = [row for row in self._attempts.get(activation, ()) if row.call == number]
        if rows and not _is_same_call(rows[0], effect):
            change = self.find_change(work, number, effect)
            if change is None or not _is_same_call(rows[0], change.apply(effect)):
                self._forget(activation, number)
                return ()
        return rows

    def find_change(self, work: Work, number: int, effect: Effect) -> CallChange | None:
        """Return what a person has changed of a call; `effect` is the node's call, or has the changed arguments."""
        change = self.get_change(work.activation.id, number)
        return change if change is not None and _is_change_of(change, effect) else None

    def get_change(self, activation: int, number: int) -> CallChange | None:
        """Return what a person has changed of the call of this number of an activation; None if nothing."""
        return self._changes.get(activation, {}).get(number)

    def add_change(self, work: Work, hold: Hold, request: Effect) -> None:
        """Add what a person has changed of a paused call, which had `request` as its effect before."""
        known = self.find_change(work, hold.call, request)
        sent, answer = freeze_arguments(hold.effect), freeze(hold.answer) if hold.has_answer else ABSENT
        own = freeze_arguments(request) if known is None else known.request
        if sent == own:
            sent = ABSENT
        change = CallChange(request.kind, request.name, own, sent, answer, work.run.position)
        self._changes.setdefault(work.activation.id, {})[hold.call] = change

    def encode_changes(self) -> list[Any]:
        """Return what people have changed as JSON, for `load_changes`."""
        return [
            [
                activation,
                number,
                change.kind,
                change.name,
                *(encode(value, lenient=True) for value in (change.request, change.arguments, change.answer)),
                change.position,
            ]
            for activation, changes in self._changes.items()
            for number, change in changes.items()
        ]

    def load_changes(self, run: Run, rows: Iterable[Sequence[Any]]) -> None:
        """Add encoded changes, without those of steps that have been committed since."""
        waiting = set(run.frontier())
        for activation, number, kind, name, *values, position in rows:
            if activation not in waiting or _has_run_since(run, activation, position):
                continue
            request, arguments, answer = (freeze(decode(value)) for value in values)
            change = CallChange(kind, name, request, arguments, answer, position)
            self._changes.setdefault(activation, {})[number] = change

    def get_next_kind(self, work: Work) -> str | None:
        """Return the kind of the next call if it was made before, even if it failed or is unanswered; else None."""
        activation, number = work.activation.id, work.call_count
        rows = [row for row in self._attempts.get(activation, ()) if row.call == number]
        if rows:
            return rows[-1].kind
        return next(
            (call.kind for call in self.iter_unanswered() if (call.activation, call.number) == (activation, number)),
            None,
        )

    def get_sent_time(self, work: Work, number: int) -> int | None:
        """Return when a call without a recorded response was sent; None for any other call."""
        return next(
            (
                call.started_at
                for call in self.iter_unanswered()
                if (call.activation, call.number) == (work.activation.id, number)
            ),
            None,
        )

    def find_emitted(self, work: Work, type: str, payload: Any, options: Mapping[str, Any]) -> Event | None:
        """Return the event that the step emitted at this point before."""
        events = self._events.get(work.activation.id, ())
        index = len(work.emitted)
        if index >= len(events):
            return None
        event = events[index]
        if event.type != type or encode(event.payload, lenient=True) != encode(freeze(payload), lenient=True):
            self._forget(work.activation.id, work.call_count)
            return None
        if not options.get("time"):
            work.now()  # read as it was then, so that later times agree
        return event

    def next_event(self, work: Work) -> Event | None:
        """Return the next event that the step emitted before."""
        events = self._events.get(work.activation.id, ())
        return events[len(work.emitted)] if len(work.emitted) < len(events) else None

    def time(self, work: Work) -> datetime | None:
        """Return the clock time that the step read at this point before."""
        times = self._times.get(work.activation.id, ())
        return times[len(work.times)] if len(work.times) < len(times) else None

    def last_event(self) -> int:
        """Return the highest number of an event of these steps."""
        return max((event.seq for events in self._events.values() for event in events), default=0)

    def iter_unanswered(self) -> Iterator[UnansweredCall]:
        """Yield the calls without a recorded response."""
        for activation, calls in self._sent_calls.items():
            back = {(row.call, row.attempt) for row in self._attempts.get(activation, ())}
            for number, (attempt, *request) in calls.items():
                if (number, attempt) not in back:
                    yield UnansweredCall(activation, number, attempt, *request)

    def iter_facts(self) -> Iterator[tuple[str, int, Any]]:
        """Yield the recorded facts: the type ("times", "out", "back" or "emit"), the activation and the fact itself."""
        yield from (("times", activation, times) for activation, times in self._times.items())
        yield from (("out", call.activation, call) for call in self.iter_unanswered())
        yield from (("back", activation, row) for activation, rows in self._attempts.items() for row in rows)
        yield from (("emit", activation, event) for activation, events in self._events.items() for event in events)

    def merge(self, other: InterruptedSteps) -> None:
        """Merge the records of another instance."""
        self._attempts.update(other._attempts)
        self._superseded_attempts.update(other._superseded_attempts)
        self._sent_calls.update({activation: {**calls} for activation, calls in other._sent_calls.items()})
        self._events.update(other._events)
        self._times.update(other._times)
        self._changes.update(other._changes)

    def add(self, work: Work) -> None:
        """Add what a step of this process has done so far."""
        activation, emitted = work.activation.id, work.emitted
        out = {
            number: [attempt, effect.kind, effect.name, sent, sent_at, wait]
            for number, (attempt, effect, sent, sent_at, wait) in work.calls_in_flight.items()
            if must_log_start(effect)
        }
        rows = {(row.call, row.attempt): row for row in (*self._attempts.get(activation, ()), *work.calls)}
        events = [*emitted, *self._events.get(activation, [])[len(emitted) :]]
        if out:
            self._sent_calls.setdefault(activation, {}).update(out)
        if rows:
            self._attempts[activation] = list(rows.values())
        if events:
            self._events[activation] = events
        if work.times:
            self._times[activation] = [*work.times, *self._times.get(activation, [])[len(work.times) :]]

    def list_activations(self) -> list[int]:
        """Return the activations of the steps that have records."""
        return list({**self._attempts, **self._sent_calls, **self._events})

    def end_calls(self, run: Run) -> None:
        """Record the calls without a response as interrupted, as `recorded_calls.end_calls` does."""
        for call in list(self.iter_unanswered()):
            if call.kind in ASKED:
                if run.recorder is not None:
                    run.recorder.record_withdrawal(call.activation, call.number)
                continue
            which = (call.activation, call.number, call.kind, call.name, call.attempt, call.wait)
            row = make_interrupted_row(run, which, call.arguments, call.started_at)
            self._attempts.setdefault(call.activation, []).append(row)
            if run.recorder is not None:
                run.recorder.record_response(row)
        self._sent_calls.clear()
        self._update_loose(run)

    def forget_step(self, run: Run, activation: int) -> None:
        """Forget a committed step; attempts that it did not make again stay in the log, outside the step."""
        known, lost = self._attempts.pop(activation, []), self._superseded_attempts.pop(activation, [])
        self._sent_calls.pop(activation, None)
        for table in (self._events, self._times, self._changes):
            table.pop(activation, None)
        if known or lost:
            calls = run.history.calls
            committed = {(row.call, row.attempt) for row in calls[bisect_left(calls, run.position, key=_step_of) :]
                    if row.activation == activation}  # fmt: skip
            self._log(run, [*lost, *(row for row in known if (row.call, row.attempt) not in committed)])
        self._update_loose(run)

    def find_committed(self, run: Run) -> int | None:
        """Return the activation of the last step if it is still recorded here because of an interrupt."""
        return next(
            (
                activation
                for activation in self.list_activations()
                if _is_committed(run, activation, self._attempts.get(activation, ()), self._events.get(activation, ()))
            ),
            None,
        )

    def leave(self, run: Run) -> None:
        """Forget every step: the run leaves its history for a separate branch."""
        self._log(run, self.rows())
        for activation in self.list_activations():
            if run.recorder is not None:
                run.recorder.drop(activation)
        tables = (self._attempts, self._sent_calls, self._events, self._times, self._superseded_attempts, self._changes)
        for table in tables:
            table.clear()
        self._update_loose(run)

    def _log(self, run: Run, rows: Sequence[Call]) -> None:
        """Append attempts to a run's calls that belong to no step."""
        history = run.history
        history.calls.extend(row._replace(step=history.tip, call=OUTSIDE) for row in rows)

    def _update_loose(self, run: Run) -> None:
        """Update the list of uncommitted attempts in the run's history."""
        run.history.uncommitted_calls = self.rows()
        if not self and run.recorded is self:
            run.recorded = None

    def _forget(self, activation: int, number: int) -> None:
        """Discard the records of a step from one of its calls on, because it is a different step now."""
        rows = self._attempts.get(activation, [])
        self._superseded_attempts.setdefault(activation, []).extend(row for row in rows if row.call >= number)
        self._attempts[activation] = [row for row in rows if row.call < number]
        for table in (self._sent_calls, self._events, self._times):
            table.pop(activation, None)
        changes = {each: change for each, change in self._changes.pop(activation, {}).items() if each < number}
        if changes:
            self._changes[activation] = changes


def save_interrupted_step(run: Run, work: Work) -> None:
    """Record what an interrupted step has done, for its next execution."""
    if work.calls or work.calls_in_flight or work.emitted:
        _remember(run)
    if isinstance(run.recorded, InterruptedSteps):
        run.recorded.add(work)
        run.history.uncommitted_calls = run.recorded.rows()


def save_change(work: Work, hold: Hold, request: Effect) -> None:
    """Record what a person has changed of a paused call, in case its step is interrupted and runs again.

    Args:
        hold: has the changed effect and answer.
        request: the effect before the change.
    """
    _remember(work.run)
    if isinstance(work.run.recorded, InterruptedSteps):
        work.run.recorded.add_change(work, hold, request)


def _has_run_since(run: Run, activation: int, position: int) -> bool:
    """Return True if a step of this activation was committed after a position."""
    return any(
        activation in history.step_activations[max(position - history.base, 0) + 1 : end - history.base + 1]
        for history, end in run.parts()
    )


def _remember(run: Run) -> None:
    if run.recorded is None:
        run.recorded, run.armed = InterruptedSteps(), True


def roll_back_interrupted_step(run: Run) -> bool:
    """Roll back what an interrupt left of a step, even in the middle of its commit.

    Return True if a step was cut short. The step remembers what it has done when it runs again. Steps in flight are not
    affected.
    """
    known, was_cut = run.recorded, False
    repair(run)
    if isinstance(known, InterruptedSteps) and (done := known.find_committed(run)) is not None:
        known.forget_step(run, done)
    for activation in list(run.live_activations.values()):
        if activation.id not in run.pending_steps:
            work = activation.work
            if not _is_committed(run, activation.id, work.calls, work.emitted):
                was_cut = was_cut or bool(work.calls or work.calls_in_flight or work.emitted)
                end_calls(work)
                save_interrupted_step(run, work)
            work.reset()
    return was_cut


def _is_committed(run: Run, activation: int, calls: Sequence[Call], events: Sequence[Event]) -> bool:
    """Return True if the last step of a run has made one of these calls or events.

    A failed step that runs again is the same activation, but its calls start after the failed step.
    """
    history, row = run.history, run.position - run.history.base
    if run.current_history is not history or row <= 0 or history.step_activations[row] != activation:
        return False
    if any(call.step <= run.position for call in calls):
        return True
    return bool(events) and history.find_event_index(events[0].seq) >= 0


def collect_interrupted_steps(run: Run) -> InterruptedSteps:
    """Return what the pending steps have done, including those of another process that have not started again."""
    interrupted = InterruptedSteps()
    if isinstance(run.recorded, InterruptedSteps):
        interrupted.merge(run.recorded)
    for pending_step in tuple(run.pending_steps.values()):
        interrupted.add(pending_step.activation.work)
    return interrupted


def find_unanswered(run: Run) -> list[UnansweredCall]:
    """Return the unanswered calls of another process whose steps have not started again."""
    known = run.recorded
    if not isinstance(known, InterruptedSteps):
        return []
    return [call for call in known.iter_unanswered() if call.activation not in run.pending_steps]


def find_change(run: Run, activation: int, number: int) -> CallChange | None:
    """Return what a person has changed of a call of an uncommitted step; None if nothing."""
    return run.recorded.get_change(activation, number) if isinstance(run.recorded, InterruptedSteps) else None


def encode_changes(run: Run) -> list[Any]:
    """Return what people have changed of the calls of uncommitted steps, as JSON."""
    return run.recorded.encode_changes() if isinstance(run.recorded, InterruptedSteps) else []


def _is_same_call(row: Call, effect: Effect) -> bool:
    """Return True if an effect makes the recorded call again; secrets are compared in their masked form."""
    same = (row.kind, row.name) == (effect.kind, effect.name)
    return same and encode(row.arguments, lenient=True) == encode(freeze_arguments(effect), lenient=True)


def _is_change_of(change: CallChange, effect: Effect) -> bool:
    """Return True if a person has changed this call; secrets are compared in their masked form."""
    if (change.kind, change.name) != (effect.kind, effect.name):
        return False
    sent = encode(freeze_arguments(effect), lenient=True)
    return any(sent == encode(known, lenient=True) for known in (change.request, change.arguments))


__all__ = [
    "InterruptedSteps",
    "UnansweredCall",
    "collect_interrupted_steps",
    "encode_changes",
    "find_change",
    "find_unanswered",
    "save_change",
    "save_interrupted_step",
]
