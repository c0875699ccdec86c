"""Deltas: what changed in a run since the last record, as JSON; `delta_loader` rebuilds the run from them.

A delta is a mapping of what is new:

    "t"  rows of the tables: {"frames" | "acts" | "codes" | "shapes": [number of the first, rows]}
    "p"  parts of histories: [number of the history, steps, writes, pushes, rare]
         steps   seven lists: activation, start (ns after the previous one), duration in ns, flag, and the increase of
                 the starts of the frontier, the ends of the writes and the ends of the pushes since the previous step;
                 for a single step, the seven numbers
         writes  two lists: code, value as its difference from the previous one
         pushes  one list: activation
         rare    sparse data: "new" [parent, base, name], "amend" (the same three increases for the previous step,
                 changed by an intervention), "reads", "values" and "edges" of pushes, "carried" ...

In the payload of an event, a mapping is {"$": number of its shape, "v": its values}, and a write of a value that is a
part of such a payload is {"$": "event", "v": [number of the event, name of the part]}.

The previous value of each write and the checkpoints are not recorded; they are computed by applying the writes in
order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise, takewhile
from operator import attrgetter, sub
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.codec import TAG, are_plain_names, encode, encode_path, is_stored_unchanged
from agentnb.board.paths import APPEND, SET
from agentnb.board.values import ATOMS, FrozenDict, FrozenList
from agentnb.clock import to_microseconds
from agentnb.engine.core.history import CARRIED, Call, Event, Failure, History, Intervention, Tables
from agentnb.engine.persistence.state_projection import get_previous
from agentnb.engine.persistence.value_deltas import encode_difference
from agentnb.errors import AgentNbError, StoreError
from agentnb.expressions.paths import format_path
from agentnb.secrets import is_secret, mask_text
from agentnb.text import LONGEST_TEXT, safe_str

if TYPE_CHECKING:
    from agentnb.engine.core.run import Run

VERSION: Final = 3
MOST_NAMES: Final = 32  # maximum number of names in a shape
MOST_SHAPES: Final = 256  # limits the tables of a run whose mappings all have different names
_get_step, _get_place = attrgetter("step"), attrgetter("at")
Json = dict[str, Any]
Key = tuple[int, int, int]  # identifies an attempt: activation, call, attempt


@dataclass(slots=True)
class Watermark:
    """How much of a history is recorded: the number of rows per table, and where its last recorded step ended."""

    rows: int = 0
    last: tuple[int, int, int] = (0, 0, 0)
    reads: int = 0
    interventions: int = 0
    events: int = 0
    calls: int = 0

    def move_to(self, history: History, rows: int) -> Watermark:
        """Return the mark after so many rows of a history, of which this mark is an earlier one."""
        row, tip = rows - 1, history.base + rows - 1
        return Watermark(
            rows,
            (history.queue_starts[row], history.write_ends[row], history.push_ends[row]),
            bisect_right(history.read_steps, tip, self.reads),
            bisect_right(history.interventions, tip, self.interventions, key=_get_step),
            bisect_right(history.events, tip, self.events, key=_get_place),
            bisect_right(history.calls, tip, self.calls, key=_get_step),
        )


class DeltaEncoder:
    """Creates the deltas of one run in sequence. Histories are numbered in the order in which they are encountered.

    `recorded_calls`, `recorded_events` and `recorded_times` (microseconds, by activation) were recorded before their
    step was committed; a delta only refers to them. With `lenient`, values that no codec accepts are written as short
    text, marked as opaque.
    """

    def __init__(self, tables: Tables, *, lenient: bool = False) -> None:
        self.tables, self.lenient = tables, lenient
        self.histories: list[History] = []
        self.watermarks: list[Watermark] = []
        self.sizes = [1, 0, 0, 0]  # frames (the root always exists), activations, codes, shapes
        self.recorded_calls: dict[Key, Call] = {}
        self.recorded_events: set[int] = set()
        self.recorded_times: dict[int, list[int]] = {}
        self.run: Run | None = None  # for the branches that the run has left and the names of its nodes
        # The step that could not be recorded because no codec accepts one of its values.
        self.unsavable: int | None = None
        self._numbers: dict[int, int] = {}
        self._secret: list[str | None] = []
        self._event_parts: dict[int, tuple[int, str]] = {}  # of the events of a delta, by id: event and name

    @classmethod
    def for_histories(cls, tables: Tables, histories: Sequence[History]) -> DeltaEncoder:
        """Return an encoder for which all of these histories are already recorded, numbered in this order."""
        encoder = cls(tables)
        for history in histories:
            number = encoder.number_history(history)
            encoder.watermarks[number] = Watermark().move_to(history, len(history.push_ends))
        encoder.sizes = _compute_ends(tables)
        return encoder

    def fork(self, tables: Tables) -> DeltaEncoder:
        """Return an independent encoder that continues from here; what is recorded so far is recorded for it, too."""
        other = DeltaEncoder(tables, lenient=self.lenient)
        other.histories, other.sizes = [*self.histories], [*self.sizes]
        other._numbers = {**self._numbers}
        other.watermarks = [
            Watermark(*(getattr(mark, name) for name in Watermark.__slots__)) for mark in self.watermarks
        ]
        return other

    def number_history(self, history: History) -> int:
        """Return the number of a history; a new one is numbered after its ancestors."""
        number = self._numbers.get(id(history))
        if number is None:
            if history.parent is not None:
                self.number_history(history.parent)
            number = self._numbers[id(history)] = len(self.histories)
            self.histories.append(history)
            self.watermarks.append(Watermark())
        return number

    def get_mark(self) -> tuple[list[Watermark], list[int]]:
        """Return what is recorded so far, for `forget`."""
        return [*self.watermarks], self.sizes

    def forget(self, known: tuple[list[Watermark], list[int]]) -> None:
        """Roll back to a state returned by `get_mark`: deltas created since then do not count as recorded."""
        marks, self.sizes = known
        self.histories, self.watermarks = self.histories[: len(marks)], [*marks]
        self._numbers = {key: number for key, number in self._numbers.items() if number < len(marks)}

    def encode_delta(self, histories: Sequence[tuple[History, int]], *, rows: bool = False) -> Json:
        """Return the delta of some histories, each up to a number of rows.

        Empty if nothing is new. It counts as recorded. The tables are shared with forks: if nothing else is new, their
        rows are included only if `rows` is True.

        Raises:
            StoreError: L401, no codec accepts a value; in this case nothing counts as recorded.
        """
        sizes = sorted([(self.number_history(history), size) for history, size in histories])
        taken = [(number, *self._encode_part(number, size)) for number, size in sizes]
        parts = [part for _, part, _ in taken if part]
        tables, new_sizes = self._encode_tables() if parts or rows else ({}, self.sizes)
        for number, _, mark in taken:
            self.watermarks[number] = mark
        self.sizes, self.unsavable = new_sizes, None
        return {name: part for name, part in (("t", tables), ("p", parts)) if part}

    def _encode_tables(self) -> tuple[Json, list[int]]:
        tables, ends = self.tables, _compute_ends(self.tables)
        frames, acts, codes, shapes = map(slice, self.sizes, ends)
        rows = {
            "frames": [[*row[:-1], encode(row.inputs, lenient=self.lenient)] for row in tables.frames[frames]],
            "acts": [list(row) for row in tables.activations[acts]],
            "codes": [[scope, encode_path(path)] for scope, path in tables.codes[codes]],
            "shapes": [list(names) for names in tables.shapes[shapes]],
        }
        firsts = dict(zip(rows, self.sizes, strict=True))
        return {name: [firsts[name], new] for name, new in rows.items() if new}, ends

    # -- one history ---------------------------------------------------------------------------------------------

    def _encode_part(self, number: int, size: int) -> tuple[list[Any], Watermark]:
        """Return what is new in a history up to a row, and the mark after it."""
        history, mark = self.histories[number], self.watermarks[number]
        first, last = mark.rows, mark.last
        if size < first:
            return [], mark
        new = mark.move_to(history, size)
        if new == mark:
            return [], mark
        rare: Json = {}
        if not first:
            rare["new"] = [
                None if history.parent is None else self.number_history(history.parent),
                history.base,
                history.name,
            ]
        else:
            last = (history.queue_starts[first - 1], history.write_ends[first - 1], history.push_ends[first - 1])
            if last != mark.last:
                rare["amend"] = [now - then for now, then in zip(last, mark.last, strict=True)]
        writes, pushes = (mark.last[1], new.last[1]), (mark.last[2], new.last[2])
        rows = range(first, size)
        steps = _encode_steps(history, rows, last) if rows else []
        self._encode_rare(history, rows, rare)
        self._add_writes(history, writes, rare)
        self._add_pushes(history, pushes, rare)
        self._add_lists(history, mark, new, rare)
        self._event_parts = self._find_parts(history.events[mark.events : new.events])
        return [
            number,
            steps,
            self._writes(history, *writes),
            history.push_activations[slice(*pushes)].tolist(),
            rare,
        ], new

    def _encode_rare(self, history: History, rows: range, rare: Json) -> None:
        """Add the sparse data by step, also of the step before the rows if it was amended."""
        steps = range(history.base + rows.start - ("amend" in rare), history.base + rows.stop)
        if history.peek("rare") and steps:
            rare_rows = history.rare[bisect_left(history.rare, steps[0]) : bisect_right(history.rare, steps[-1])]
            if rare_rows:
                rare["rare"] = rare_rows
        for name, table in (("opened", history.peek("opened_frames")), ("closed", history.peek("closed_frames"))):
            if table and (values := [[step, list(table[step])] for step in steps if step in table]):
                rare[name] = values
        if history.peek("times") and (read := [step for step in steps if step in history.times]):
            self._add_times(history, read, rare)
        if history.peek("errors") and (failed := [step for step in steps if step in history.errors]):
            rare["errors"] = [_encode_failure(step, history.errors[step]) for step in failed]
        if history.peek("notes") and (noted := [step for step in steps if step in history.notes]):
            rare["notes"] = [
                [step, self._encode(history, step, "its note", partial(_encode_row, history.notes[step]))]
                for step in noted
            ]
        if (waits := history.peek("waiting_ns")) and (
            waited := [[step, waits[step]] for step in steps if step in waits]
        ):
            rare["waited"] = waited
        if history.replacements and steps:
            latest = takewhile(lambda item: item[1][0] >= steps[0], reversed(history.replacements.items()))
            if moved := [[row, *places] for row, places in latest if places[0] <= steps[-1]]:
                rare["replaced"] = moved[::-1]

    def _add_times(self, history: History, steps: Sequence[int], rare: Json) -> None:
        """Add the clock times that steps have read; for those recorded before, only their number."""
        for step in steps:
            activation = history.step_activations[step - history.base]
            times, known = [*map(to_microseconds, history.times[step])], self.recorded_times.get(activation)
            if known and times[: len(known)] == known:
                rare.setdefault("timed", []).append([step, activation, len(known), *times[len(known) :]])
            else:
                rare.setdefault("times", []).append([step, *times])

    def _add_writes(self, history: History, writes: tuple[int, int], rare: Json) -> None:
        """Add the sparse data by write."""
        if history.peek("in_place") and (placed := [row for row in range(*writes) if row in history.in_place]):
            rare["in_place"] = placed
        if (ends := history.peek("order")) and (ordered := [[row, ends[row]] for row in range(*writes) if row in ends]):
            rare["order"] = ordered
        if history.peek("reduced_parts") and (
            reduced := [row for row in range(*writes) if row in history.reduced_parts]
        ):
            rare["reduced"] = [self._encode_reduced(history, row) for row in reduced]

    def _encode_reduced(self, history: History, row: int) -> list[Any]:
        """Return the parts of one write as JSON; those of a secret's key are masked like the write."""
        _, path = self.tables.codes[history.write_codes[row] >> 2]
        step, name = history.base + bisect_right(history.write_ends, row), str(path[0])

        def encode_parts(*, lenient: bool) -> list[Any]:
            return [[part.node, part.op, encode_path(part.path), encode(part.value, name, lenient=lenient)]
                    for part in history.reduced_parts[row]]  # fmt: skip

        return [row, self._encode(history, step, f"key {format_path(path)!r}", encode_parts)]

    def _add_pushes(self, history: History, rows: tuple[int, int], rare: Json) -> None:
        """Add the sparse data of the pushes."""
        start, end = rows
        if history.peek("insertions") and (
            aside := [[at, history.insertions[at], history.insertion_returns[history.insertions[at] - 1]]
                      for at in range(start, end) if at in history.insertions]
        ):  # fmt: skip
            rare["asides"] = aside
        values = {at: value for at, value in enumerate(history.push_values[start:end], start) if value is not None}
        if carried := [at for at, value in values.items() if value is CARRIED]:
            rare["carried"] = carried
        if len(carried) < end - start:
            rare["edges"] = history.push_edges[start:end].tolist()
        if pushed := [at for at, value in values.items() if value is not CARRIED]:
            rare["values"] = [
                [
                    at,
                    self._encode(
                        history,
                        history.base + bisect_right(history.push_ends, at),
                        "a condition",
                        partial(encode, history.push_values[at]),
                    ),
                ]
                for at in pushed
            ]

    def _add_lists(self, history: History, mark: Watermark, new: Watermark, rare: Json) -> None:
        """Add what was appended to the lists: reads, interventions, events, calls."""
        if read := history.read_steps[mark.reads : new.reads].tolist():
            rare["reads"] = [read, history.read_codes[mark.reads : new.reads].tolist()]
        if people := history.interventions[mark.interventions : new.interventions]:
            rare["people"] = [_encode_intervention(intervention) for intervention in people]
        if events := history.events[mark.events : new.events]:
            rare["events"] = [self._encode(history, event.at, f"event {event.type!r}", partial(self.event, event))
                              for event in events]  # fmt: skip
        if calls := history.calls[mark.calls : new.calls]:
            rare["calls"] = [self._encode(history, call.step, f"{call.kind} {call.name!r}", partial(self.call, call))
                             for call in calls]  # fmt: skip

    def _writes(self, history: History, start: int, end: int) -> list[Any]:
        codes, secret = self.tables.codes, self._secret
        secret.extend(next((str(name) for name in path if is_secret(name)), None) for _, path in codes[len(secret) :])
        written = history.write_codes[start:end].tolist()
        rows = zip(written, history.new_values[start:end], history.old_values[start:end], strict=True)
        try:
            return [
                written,
                [
                    new if type(new) is not str and is_stored_unchanged(new) and not secret[code >> 2]
                    else self._write(code, new, old, lenient=self.lenient)
                    for code, new, old in rows
                ],
            ]  # fmt: skip
        except StoreError:
            return [written, [self._encode_write(history, row) for row in range(start, end)]]

    def _write(self, code: int, new: Any, old: Any, *, lenient: bool) -> Any:
        name = self._secret[code >> 2]
        if self._event_parts and not name and code & 3 == SET and id(new) in self._event_parts:
            return {TAG: "event", "v": [*self._event_parts[id(new)]]}
        if type(new) in ATOMS or name or code & 3:
            return encode(new, name, lenient=lenient)
        return encode_difference(new, get_previous(old, self.tables.codes[code >> 2][1]), lenient=lenient)

    def _encode_write(self, history: History, row: int) -> Any:
        """Return one write as JSON, leniently if a later write of its own step or of an edit replaces the whole key."""
        code, step = history.write_codes[row], history.base + bisect_right(history.write_ends, row)
        scope, path = self.tables.codes[code >> 2]
        anew = {(scope, path[:1])}
        later = history.write_codes[row + 1 : history.write_ends[step - history.base]] if step <= history.tip else ()
        lost = any(other & 3 != APPEND and self.tables.codes[other >> 2] in anew for other in later)
        write = partial(self._write, code, history.new_values[row], history.old_values[row])
        return write(lenient=True) if lost else self._encode(history, step, f"key {format_path(path)!r}", write)

    def _encode(self, history: History, step: int, what: str, code: Callable[..., Any]) -> Any:
        """Return the result of `code`, leniently for an abandoned step or one that a person has edited.

        Raises:
            StoreError: L401, no codec accepts a value; names the step, the node and the path.
        """
        try:
            return code(lenient=self.lenient)
        except StoreError as error:
            if self.run is None:
                raise
            if self._is_over(self.run, history, step, what):
                return code(lenient=True)
            self.unsavable = step
            problem, row = error.problems[0], step - history.base
            origin = "the inputs" if not step else f"step {step}"
            node = (
                f", {self.run.get_node_id(history.step_activations[row])!r}"
                if 0 < row < len(history.step_activations)
                else ""
            )
            do = f"{problem.do}: session.edit(...), then continue; or session.retry()"
            raise StoreError(replace(problem, where=f"{origin}{node}, {what}", do=do)) from None

    def _is_over(self, run: Run, history: History, step: int, what: str) -> bool:
        ends = dict(zip(map(id, run.chain), (*(after.base for after in run.chain[1:]), run.history.tip), strict=True))
        if step > ends.get(id(history), -1):
            return True
        return not what.startswith("key ") and any(
            intervention.action == "edit" and intervention.step == step for intervention in history.interventions
        )

    # -- rows ----------------------------------------------------------------------------------------------------

    def call(self, call: Call, *, lenient: bool = False) -> list[Any]:
        """Return a call's row: a reference if it is already recorded, else the whole row."""
        known = self.recorded_calls.get((call.activation, call.call, call.attempt))
        if known is not None and known.result is call.result and known.error == call.error:
            return [call.step, call.activation, call.call, call.attempt]
        return encode_call(call, lenient=lenient)

    def event(self, event: Event, *, lenient: bool = False) -> list[Any]:
        """Return an event's row: its step and number if it is already recorded, else the whole row."""
        if event.seq in self.recorded_events:
            return [event.step, event.seq]
        seq, step, id_, type_, actor, cause, time, payload, at, mark = event
        is_utc = type(time) is datetime and time.tzinfo is UTC and not time.fold
        when = to_microseconds(time) if is_utc else encode(time)
        texts = [text if is_stored_unchanged(text) else encode(text) for text in (id_, type_, actor, cause, mark)]
        return [seq, step, *texts[:4], when, self._encode_shape(payload, lenient), at, texts[4]]

    def _encode_shape(self, value: Any, lenient: bool) -> Any:
        """Return a part of a payload as JSON; the names of a mapping are written once per run."""
        if is_stored_unchanged(value):
            return value
        cls = type(value)
        if cls is FrozenDict and value.template is None:
            number = self._find_shape(value)
            if number is not None:
                return {TAG: number, "v": [self._encode_shape(item, lenient) for item in value.values()]}
        elif cls is FrozenList and value.template is None:
            return [self._encode_shape(item, lenient) for item in value]
        return encode(value, lenient=lenient)

    def _find_shape(self, value: FrozenDict) -> int | None:
        """Return the number of a mapping's shape.

        None if it has none, because its names must be masked or are too many.
        """
        tables, names = self.tables, tuple(value)
        number = tables.shape_ids.get(names)
        if number is None:
            if len(tables.shapes) >= MOST_SHAPES or len(names) > MOST_NAMES or not are_plain_names(names):
                return None
            number = tables.add_shape(names)
        return number

    def _find_parts(self, events: Sequence[Event]) -> dict[int, tuple[int, str]]:
        """Return the mappings that are parts of the payloads of events, by id: the event and the name of the part."""
        return {
            id(part): (event.seq, name)
            for event in events
            if type(event.payload) is FrozenDict and self._find_shape(event.payload) is not None
            for name, part in event.payload.items()
            if type(part) is FrozenDict and part.template is None
        }


def _compute_ends(tables: Tables) -> list[int]:
    return [len(tables.frames), len(tables.activations), len(tables.codes), len(tables.shapes)]


def _encode_steps(history: History, rows: range, last: tuple[int, int, int]) -> list[Any]:
    first, new = rows.start, slice(rows.start, rows.stop)
    starts, ended = history.start_times[new].tolist(), history.end_times[new].tolist()
    before_it = history.start_times[first - 1] if first else 0
    ends = zip((history.queue_starts, history.write_ends, history.push_ends), last, strict=True)
    columns = [
        history.step_activations[new].tolist(),
        _compute_increases(starts, before_it),
        [*map(sub, ended, starts)],
        history.step_flags[new].tolist(),
        *(_compute_increases(column[new].tolist(), start) for column, start in ends),
    ]
    return columns if len(rows) > 1 else [number for (number,) in columns]


def _compute_increases(column: list[int], start: int) -> list[int]:
    return [*map(sub, column, [start, *column])]  # as many as the column has


def _encode_row(row: Any, *, lenient: bool) -> list[Any]:
    return [item if is_stored_unchanged(item) and not is_secret(name) else encode(item, name, lenient=lenient)
            for name, item in zip(row._fields, row, strict=True)]  # fmt: skip


def encode_call(call: Call, *, lenient: bool = False) -> list[Any]:
    """Return the whole row of a call as JSON."""
    return _encode_row(call, lenient=lenient)


def encode_event(event: Event) -> list[Any]:
    """Return the whole row of an event as JSON; opaque values are described."""
    seq, step, *texts, payload, at, mark = event
    return [seq, step, *map(encode, texts), encode(payload, lenient=True), at, encode(mark)]


def _encode_failure(step: int, failure: Failure) -> list[Any]:
    """Return a failure as JSON: type, message, whether it was a timeout, its Problem, the step's result, its line."""
    error, problem, result = failure.error, None, None
    if isinstance(error, AgentNbError) and error.problems:
        first = replace(error.problems[0])  # masked again, with all secrets known by now
        problem = [first.code, first.what, first.where, first.why, first.do]
    if hasattr(error, "result"):
        result = [encode(failure.result, lenient=True)]
    texts = [safe_str(text, LONGEST_TEXT) for text in (failure.message, failure.line)]
    return [step, failure.type, texts[0], failure.timeout, problem, result, texts[1]]


def _encode_intervention(intervention: Intervention) -> list[Any]:
    """Return an intervention as JSON, leniently, because no run is resumed from it."""
    key = next(filter(is_secret, intervention.target.split(".")), intervention.target)
    old, new = (encode(value, key, lenient=True) for value in (intervention.old, intervention.new))
    return [
        intervention.step,
        intervention.action,
        mask_text(intervention.target),
        old,
        new,
        intervention.actor,
        encode(intervention.time),
    ]


def encode_whole(chain: Sequence[History], *, lenient: bool = False) -> Json:
    """Return a chain of histories as one delta, each up to the start of the next.

    Raises:
        StoreError: L401, no codec accepts a value.
    """
    encoder = DeltaEncoder(chain[0].tables, lenient=lenient)
    ends = [*(after.base - history.base + 1 for history, after in pairwise(chain)), len(chain[-1].push_ends)]
    return encoder.encode_delta(list(zip(chain, ends, strict=True)))


def collect_family(chains: Iterable[Sequence[History]]) -> list[History]:
    """Return the histories of all chains once each, parents first."""
    return list({id(history): history for chain in chains for history in chain}.values())


__all__ = [
    "VERSION",
    "DeltaEncoder",
    "Json",
    "Watermark",
    "collect_family",
    "encode_call",
    "encode_event",
    "encode_whole",
]
