"""Step records: what a step did, read from the rows of its history, for recorded runs and replays alike."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from agentnb.board.paths import APPEND, Path
from agentnb.engine.core.history import (
    CANCELLED,
    CARRIED,
    OUTSIDE,
    PHASES,
    SKIPPED,
    STATUS,
    STATUSES,
    ActivationRow,
    Call,
    Event,
    Failure,
    FrameRow,
    History,
    Intervention,
    Tables,
)

if TYPE_CHECKING:
    from datetime import datetime

    from agentnb.engine.core.plan import Plan
    from agentnb.engine.core.run import Run


class WriteRecord(NamedTuple):
    """One write: scope, path, op (see `board.paths`), frozen value, and whether the node changed it in place.

    `at` is the index that an appended item has in its list; None for any other write.
    """

    scope: int
    path: Path
    op: int
    new: Any
    in_place: bool
    at: int | None


class StepRecord(NamedTuple):
    """What one step did. `targets` holds the activations that its edges led to, each with its condition's value."""

    step: int
    activation: ActivationRow
    flag: int
    started_at: int
    opened_frames: tuple[FrameRow, ...]
    writes: tuple[WriteRecord, ...]
    reads: frozenset[tuple[int, Path]]
    targets: tuple[tuple[ActivationRow, Any], ...]
    events: tuple[Event, ...]
    calls: dict[int, list[Call]]
    times: tuple[datetime, ...]
    failure: Failure | None

    @property
    def phase(self) -> str:
        """The phase of the step: run, enter, again or leave."""
        return PHASES[self.flag & 3]

    @property
    def status(self) -> str:
        """The status of the step: ok, error, cancelled or skipped."""
        return STATUSES[(self.flag & STATUS) >> 2]

    @property
    def is_cancelled(self) -> bool:
        """True if it was ended by the failure of another step."""
        return self.flag & STATUS == CANCELLED

    @property
    def is_skipped(self) -> bool:
        """True if a person skipped it."""
        return self.flag & STATUS == SKIPPED


class RecordedIntervention(NamedTuple):
    """An intervention after a step: its record, with what an edit wrote or the external event."""

    intervention: Intervention | None
    write: WriteRecord | None = None
    event: Event | None = None


class _Rows:
    """The sparse rows of one history, by step."""

    def __init__(self, history: History) -> None:
        self.interventions, self.outside = (
            defaultdict[int, list[Intervention]](list),
            defaultdict[int, list[Event]](list),
        )
        self.events, self.calls = defaultdict[int, list[Event]](list), defaultdict[int, list[Call]](list)
        for intervention in history.interventions:
            self.interventions[intervention.step].append(intervention)
        for event in history.events:
            (self.outside if event.step is None else self.events)[event.at].append(event)
        for call in history.calls:
            if call.call != OUTSIDE:
                self.calls[call.step].append(call)

    def edits(self, step: int) -> int:
        """Count the write rows of edits after a step."""
        return sum(intervention.has_write_row for intervention in self.interventions.get(step, ()))


class Record:
    """The steps of a run up to its position, and the interventions between them."""

    def __init__(self, run: Run) -> None:
        self.run, self.tables = run, run.tables
        self.parts = run.parts()
        self._rows = [_Rows(history) for history, _ in self.parts]
        self.changes: dict[str, list[Intervention]] = {}  # of paused calls, by node
        for intervention in (
            intervention
            for history, _ in self.parts
            for intervention in history.interventions
            if intervention.action == "change"
        ):
            self.changes.setdefault(intervention.target, []).append(intervention)
        self.spans = {id(held): (held, step) for held, step in self._iter_spans()}

    def _iter_spans(self) -> Iterator[tuple[Intervention, int]]:
        """Yield each record of a step in flight during an intervention, with the number of that step."""
        held_calls: dict[int, list[Intervention]] = {}
        for intervention in (
            intervention
            for history, end in self.parts
            for intervention in history.interventions
            if intervention.step <= end
        ):
            if intervention.action == "held":
                held_calls.setdefault(intervention.new["turn"], []).append(intervention)
            elif intervention.action == "ended":  # earlier ones belong to abandoned activations
                yield from (
                    (one, intervention.step)
                    for one in held_calls.pop(intervention.new["turn"], [])[-intervention.new["held"] :]
                )

    def read_step(self, step: int) -> StepRecord:
        """Return what a step did, without the interventions after it."""
        parts = zip(reversed(self.parts), reversed(self._rows), strict=True)
        history, rows = next((history, rows) for (history, _), rows in parts if history.base < step)
        return read_step(self.tables, history, step, rows)

    def plan(self, step: int) -> Plan:
        """Return the plan that a step was made with."""
        history = next(history for history, _ in reversed(self.parts) if history.base < step or not step)
        return history.plan or self.run.plan

    def read_initial_writes(self) -> list[WriteRecord]:
        """Return the initial writes of the run."""
        history = self.parts[0][0]
        return list(_writes(self.tables, history, 0, history.write_ends[0] - self._rows[0].edits(0)))

    def interventions_between(self, step: int) -> Iterator[RecordedIntervention]:
        """Yield the interventions after a step, in order."""
        for (history, end), rows in zip(self.parts, self._rows, strict=True):
            if not history.base <= step <= end:
                continue
            size = history.write_ends[step - history.base]
            written = iter(list(_writes(self.tables, history, size - rows.edits(step), size)))
            events, interventions = list(rows.outside.get(step, ())), rows.interventions.get(step, [])
            while len(events) > sum(
                intervention.action == "emit" for intervention in interventions
            ):  # events without an act came first
                yield RecordedIntervention(None, event=events.pop(0))
            for intervention in interventions:
                yield RecordedIntervention(
                    intervention,
                    next(written) if intervention.has_write_row else None,
                    events.pop(0) if intervention.action == "emit" else None,
                )


def read_step(tables: Tables, history: History, step: int, rows: _Rows | None = None) -> StepRecord:
    """Return what a step of a history did; without `rows`, it must be the last step, with no interventions after it."""
    row = step - history.base
    activation, flag = tables.activations[history.step_activations[row]], history.step_flags[row]
    end = history.write_ends[row] - (0 if rows is None else rows.edits(step))
    reads = history.read_codes[bisect_left(history.read_steps, step) : bisect_right(history.read_steps, step)]
    pushes = range(history.push_ends[row - 1], history.push_ends[row])
    calls = _select_calls(history.calls, step) if rows is None else rows.calls.get(step, ())
    events = _select_events(history.events, step) if rows is None else rows.events.get(step, ())
    by_number: dict[int, list[Call]] = {}
    for call in calls:
        by_number.setdefault(call.call, []).append(call)
    return StepRecord(
        step,
        activation,
        flag,
        history.start_times[row],
        tuple(tables.frames[number] for number in history.opened_frames.get(step, ())),
        tuple(_writes(tables, history, history.write_ends[row - 1], end)),
        frozenset((scope, path) for scope, path in (tables.codes[code >> 2] for code in reads)),
        tuple(
            (tables.activations[history.push_activations[at]], history.push_values[at])
            for at in pushes
            if history.push_values[at] is not CARRIED
        ),
        tuple(events),
        by_number,
        history.times.get(step, ()),
        history.errors.get(step),
    )


def _writes(tables: Tables, history: History, start: int, end: int) -> Iterator[WriteRecord]:
    for row in range(start, end):
        code = history.write_codes[row]
        scope, path = tables.codes[code >> 2]
        at = find_appended_index(history, row, path) if code & 3 == APPEND else None
        yield WriteRecord(scope, path, code & 3, history.new_values[row], row in history.in_place, at)


def find_appended_index(history: History, row: int, path: Path) -> int:
    """Return the index in its list of the item appended by a write row of a history."""
    old_value = history.old_values[row]  # the previous value of the path's first key
    for part in path[1:]:
        old_value = old_value.get(part, ()) if isinstance(old_value, dict) else ()
    return len(old_value) if isinstance(old_value, list | tuple) else 0


def _select_calls(calls: list[Call], step: int) -> list[Call]:
    return [call for call in calls[bisect_left(calls, step, key=attrgetter("step")) :] if call.call != OUTSIDE]


def _select_events(events: list[Event], step: int) -> list[Event]:
    return [event for event in events[bisect_left(events, step, key=attrgetter("at")) :] if event.step == step]


__all__ = [
    "Record",
    "RecordedIntervention",
    "StepRecord",
    "WriteRecord",
    "find_appended_index",
    "read_step",
]
