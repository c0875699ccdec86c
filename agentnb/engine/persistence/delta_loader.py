"""Delta loader: rebuilds the tables and histories of a run from its deltas. Nothing is imported, no code runs."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from itertools import accumulate
from typing import Any, Final

from agentnb.board.codec import TAG, decode
from agentnb.board.values import ATOMS, FrozenDict, FrozenList, make_frozen_list, make_frozen_pairs, thaw
from agentnb.bounds import DEPTH_LIMIT
from agentnb.clock import from_microseconds
from agentnb.engine.core.history import (
    CARRIED,
    UNKNOWN_EDGE,
    ActivationRow,
    Call,
    Event,
    Failure,
    FrameRow,
    History,
    Intervention,
    Note,
    Tables,
)
from agentnb.engine.core.reducers import Part
from agentnb.engine.effects.crash_recovery import InterruptedSteps
from agentnb.engine.persistence.deltas import VERSION, Key
from agentnb.engine.persistence.state_projection import StateProjection
from agentnb.engine.persistence.value_deltas import decode_difference, decode_value
from agentnb.errors import AgentNbError, ExecutionError, Problem, StoreError, with_article
from agentnb.recipe.model import NOTHING
from agentnb.text import get_class_name, safe_str

UNRECORDED: Final = -2  # in `push_edges` while loading: the record does not say which edge it is
_new_event = tuple.__new__  # the constructor of a named tuple costs twice as much
_DAMAGED = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, StopIteration, RecursionError)


class DeltaLoader:
    """The tables and histories rebuilt from the deltas added so far.

    `recorded_calls` holds the attempts of calls, `out` the sent calls by number (attempt, kind, name, arguments, time),
    and `recorded_events` the events of uncommitted steps, by activation.

    Args:
        nodes: maps node numbers of the record to current ones, if they differ.
        edges: maps edge numbers of the record to current ones, if they differ.
    """

    def __init__(self, nodes: Mapping[int, int] | None = None, edges: Sequence[int] | None = None) -> None:
        self.tables = Tables()
        self.histories: list[History] = []
        self.recorded_calls: dict[int, dict[Key, Call]] = {}
        self.sent_calls: dict[int, dict[int, list[Any]]] = {}
        self.recorded_events: dict[int, list[Event]] = {}
        self.recorded_times: dict[int, list[datetime]] = {}
        self._in_flight: tuple[dict[int, Any], ...] = (
            self.recorded_calls,
            self.sent_calls,
            self.recorded_events,
            self.recorded_times,
        )
        self._columns: list[list[list[int]]] = []  # per history, the seven columns of its steps, as differences
        self._values: list[list[Any]] = []  # per history, the recorded values of its writes
        self._nodes, self._edges = nodes, edges

    def add(self, slices: Iterable[Mapping[str, Any]]) -> None:
        """Add further deltas, in order.

        L402: this is not a run or trace of agentnb, or it is damaged.

        Raises:
            StoreError: L402, these are not deltas of agentnb, or they are damaged.
        """
        try:
            for each in slices:
                if "t" in each:
                    self._load_tables(each["t"])
                if "p" in each:
                    for part in each["p"]:
                        self._load_part(*part)
                if "told" in each:
                    for fact in each["told"]:
                        self._apply_fact(*fact)
        except _DAMAGED as error:
            raise make_damage_error(error) from error

    def renumber(self, nodes: Mapping[int, int], edges: Sequence[int]) -> None:
        """Treat the following deltas as those of a plan with different numbers of nodes and edges."""
        self._nodes, self._edges = nodes, edges

    def list_in_flight(self) -> set[int]:
        """Return the activations of the steps that are in flight."""
        return {*self.recorded_calls, *self.sent_calls, *self.recorded_events}

    def collect_interrupted(self) -> InterruptedSteps:
        """Return what the steps in flight had done, so that they need not repeat it."""
        calls = {activation: rows.values() for activation, rows in self.recorded_calls.items()}
        return InterruptedSteps(calls, self.sent_calls, self.recorded_events, self.recorded_times)

    def finish(
        self, edges: Iterable[tuple[str, str]] = (), index: Mapping[str, int] = NOTHING
    ) -> tuple[Tables, list[History]]:
        """Compute the checkpoints and the previous value of each write; return the tables and the histories.

        Args:
            edges: source and target of each edge, by number, for records without the edges that were taken.
            index: the numbers of the nodes by id.

        Raises:
            StoreError: L402, this is not a run of agentnb, or it is damaged.
        """
        try:
            check_nesting(self.tables)
            for history, columns in zip(self.histories, self._columns, strict=True):
                _fill_steps(history, columns)
            if any(UNRECORDED in history.push_edges for history in self.histories):
                self._infer_edges([(index[source], index[target]) for source, target in edges])
            for history, values in zip(self.histories, self._values, strict=True):
                StateProjection.of(history).fill(history, values, _EventValues(history).decode)
                StateProjection.of(history).add_checkpoints(history)
                if history.parent is not None:
                    history.parent.sealed_step = max(history.parent.sealed_step, history.base)
        except _DAMAGED as error:
            raise make_damage_error(error) from error
        return self.tables, self.histories

    def _infer_edges(self, edges: Sequence[tuple[int, int]]) -> None:
        """Set the edges that are not recorded: if only one leads from a step's node to its target, it is that one."""
        nodes = [row.node for row in self.tables.activations]
        counts = Counter(edges)
        only = {pair: number for number, pair in enumerate(edges) if counts[pair] == 1}
        for history in self.histories:
            for push, edge in enumerate(history.push_edges):
                if edge == UNRECORDED:
                    row, target = bisect_right(history.push_ends, push), nodes[history.push_activations[push]]
                    follows = 0 < row < len(history.step_activations) and history.push_values[push] is not CARRIED
                    pair = (nodes[history.step_activations[row]] if follows else -1, target)
                    history.push_edges[push] = only.get(pair, UNKNOWN_EDGE)

    # -- parts of a delta ----------------------------------------------------------------------------------------

    def _load_tables(self, rows: Mapping[str, Any]) -> None:
        tables = self.tables
        new = (lambda node: node) if self._nodes is None else self._nodes.__getitem__
        if "frames" in rows:
            for row in _select_new_rows(rows["frames"], len(tables.frames)):
                frame = FrameRow(*row)
                tables.frames.append(frame._replace(owner=new(frame.owner), inputs=decode_value(frame.inputs)))
        if "acts" in rows:
            for node, *rest in _select_new_rows(rows["acts"], len(tables.activations)):
                tables.add_activation(ActivationRow(new(node), *rest))
        if "codes" in rows:
            for scope, path in _select_new_rows(rows["codes"], len(tables.codes)):
                tables.add_path(scope, tuple(map(decode, path)))
        if "shapes" in rows:
            for names in _select_new_rows(rows["shapes"], len(tables.shapes)):
                if not all(type(name) is str for name in names):
                    raise TypeError("the names of a shape are strings")
                tables.add_shape(tuple(names))

    def _load_part(self, number: int, steps: list[Any], writes: list[Any], pushes: list[int], rare: Any) -> None:
        if "new" in rare:
            parent, base, name = rare["new"]
            if number != len(self.histories):
                raise ValueError(f"history {number} precedes its ancestors")
            above = None if parent is None else self.histories[parent]
            self.histories.append(History(self.tables, base=base, parent=above, name=name))
            self._columns.append([[], [], [], [], [], [], []])
            self._values.append([])
        history, columns = self.histories[number], self._columns[number]
        if "amend" in rare:  # an intervention changed the last step
            for column, more in zip(columns[4:], rare["amend"], strict=True):
                column[-1] += more
        committed = _add_steps(columns, steps) if steps else ()
        codes, values = writes
        history.write_codes.extend(codes)
        self._values[number] += values
        history.push_activations.extend(pushes)
        history.push_edges.extend(self._get_edges(len(pushes), **rare))
        for name, rows in rare.items():
            _APPLIERS[name](self, history, rows)
        self._drop(committed)

    def _get_edges(
        self, count: int, edges: Sequence[int] | None = None, carried: Sequence[int] = (), **_: Any
    ) -> Sequence[int]:
        """Return the edges of the pushes of a part."""
        if edges is None:
            return [UNKNOWN_EDGE if len(carried) == count else UNRECORDED] * count
        known = self._edges
        return edges if known is None else [known[edge] if edge >= 0 else max(edge, UNRECORDED) for edge in edges]

    def _apply_fact(self, what: str, activation: int, *rest: Any) -> None:
        """Apply what a step in flight has done."""
        if what == "emit":
            event, *times = rest
            self.recorded_events.setdefault(activation, []).append(self._decode_whole_event(event))
            for read in times:
                self.recorded_times.setdefault(activation, []).extend(map(from_microseconds, read))
        elif what == "out":
            number, attempt, kind, name, arguments, started_at, *wait = rest
            sent = self.sent_calls.setdefault(activation, {})
            value = sent[number][3] if arguments is None else decode_value(arguments)  # None: unchanged
            sent[number] = [attempt, kind, name, value, started_at, *wait]
        elif what == "back":
            attempt_row, known = rest
            row = Call(*map(decode_value, attempt_row))
            if known:
                row = row._replace(arguments=self.sent_calls[activation][row.call][3])
            self.recorded_calls.setdefault(activation, {})[row.activation, row.call, row.attempt] = row
        elif what == "stays":
            (number,) = rest
            self.sent_calls.get(activation, {}).pop(number, None)
        elif what == "times":
            (read,) = rest
            self.recorded_times.setdefault(activation, []).extend(map(from_microseconds, read))
        else:
            self._drop([activation])

    def drop_all(self) -> None:
        """Forget what the steps in flight have done."""
        for table in self._in_flight:
            table.clear()

    def _drop(self, activations: Iterable[int]) -> None:
        """Forget what some steps in flight have done."""
        for table in self._in_flight:
            if table:  # rarely, and this runs for all steps
                for activation in activations:
                    table.pop(activation, None)

    def _load_conditions(self, history: History, rows: list[Any]) -> None:
        """Set the condition values of followed edges."""
        history.push_values.extend([None] * (len(history.push_activations) - len(history.push_values)))
        for row, value in rows:
            history.push_values[row] = decode_value(value)

    def _load_carried(self, history: History, rows: list[int]) -> None:
        history.push_values.extend([None] * (len(history.push_activations) - len(history.push_values)))
        for row in rows:
            history.push_values[row] = CARRIED

    def _load_insertions(self, history: History, rows: list[list[int]]) -> None:
        for start, end, waiting in rows:
            history.insertions[start], history.insertion_returns[end - 1] = end, waiting

    def _load_replaced(self, history: History, rows: list[list[int]]) -> None:
        for row, step, start, end in rows:
            history.replace(row, step, start, end)

    def _reads(self, history: History, rows: list[list[int]]) -> None:
        history.read_steps.extend(rows[0])
        history.read_codes.extend(rows[1])

    def _load_rare_steps(self, history: History, steps: list[int]) -> None:
        for step in steps:
            history.mark_rare(step)

    def _load_calls(self, history: History, rows: list[list[Any]]) -> None:
        history.calls.extend([self._call(row) for row in rows])

    def _load_events(self, history: History, rows: list[list[Any]]) -> None:
        history.events.extend([self._decode_event(row) for row in rows])

    def _call(self, row: list[Any]) -> Call:
        step, activation, call, attempt, *others = row
        if not others:
            return self.recorded_calls[activation][activation, call, attempt]._replace(step=step)
        whole = Call(*map(decode_value, row))
        if not isinstance(whole.cost_usd, int | float | Decimal | None):
            raise TypeError(f"a cost is a number, not {with_article(get_class_name(whole.cost_usd))}")
        return whole

    def _decode_event(self, row: list[Any]) -> Event:
        step, seq, *others = row
        if others:
            return self._decode_whole_event(row)
        for events in self.recorded_events.values():
            for event in events:
                if event.seq == seq:
                    return event._replace(step=step, at=event.at if step is None else step)
        raise ValueError(f"event {seq} was not recorded before")

    def _decode_whole_event(self, row: list[Any]) -> Event:
        seq, step, id_, type_, actor, cause, time, payload, at, mark = row
        if not type(id_) is type(type_) is type(actor) is str:
            id_, type_, actor = decode_value(id_), decode_value(type_), decode_value(actor)
        when = from_microseconds(time) if type(time) is int else decode_value(time)
        cause = cause if type(cause) is str or cause is None else decode_value(cause)
        mark = None if mark is None else decode_value(mark)
        payload = payload if type(payload) in ATOMS else self._decode_shape(payload)
        return _new_event(Event, (seq, step, id_, type_, actor, cause, when, payload, at, mark))

    def _decode_shape(self, document: Any) -> Any:
        """Return a part of a payload that is not an atom, frozen.

        Callers handle atoms, which are the most common parts.
        """
        cls = type(document)
        if cls is dict and type(document.get(TAG)) is int:
            names, values = self.tables.shapes[document[TAG]], document["v"]
            shape: FrozenDict | FrozenList = make_frozen_pairs(names, values, self._decode_shape)
        elif cls is list:
            shape = make_frozen_list([item if type(item) in ATOMS else self._decode_shape(item) for item in document])
        else:
            return decode_value(document)
        if shape.extent[0] > DEPTH_LIMIT:
            raise ValueError(f"a payload is nested more than {DEPTH_LIMIT} levels deep")
        return shape

    def _load_times(self, history: History, rows: list[list[int]]) -> None:
        """Set the clock times of steps. The first times of a step may have been recorded before."""
        for step, activation, count, *rest in rows:
            history.times[step] = (*self.recorded_times[activation][-count:], *map(from_microseconds, rest))


class _EventValues:
    """The values of a history's writes, some of which are parts of its events."""

    def __init__(self, history: History) -> None:
        self._history = history

    @cached_property
    def _events(self) -> dict[int, Event]:
        return {event.seq: event for event in self._history.events}

    def decode(self, document: Any, old: Any) -> Any:
        """Return the value of one write, given the previous one."""
        if type(document) is dict and document.get(TAG) == "event":
            number, name = document["v"]
            return self._events[number].payload[name]
        return decode_difference(document, old)


def _decode_failure(
    kind: str, message: str, timeout: bool, problem: list[str] | None, result: list[Any] | None, line: str = ""
) -> Failure:
    """Return a recorded failure; it has an exception only if more than its text was recorded.

    Version 2 and goldens have no `line`.
    """
    error: Any = None
    if problem is not None:
        code, what, where, why, do = problem
        error = ExecutionError(Problem(code, what, where, why, do))
    if result is not None:
        error = error or Exception(message)
        error.result = thaw(decode_value(result[0]))
    return Failure(kind, message, error, timeout, line)


def _get_part(row: list[Any]) -> Part:
    node, op, path, value = row
    return Part(node, op, tuple(map(decode, path)), decode_value(value))


# How to apply each sparse part of a delta.
_APPLIERS: Final[dict[str, Callable[[DeltaLoader, History, Any], None]]] = {
    "new": lambda _joined, _history, _rows: None,
    "amend": lambda _joined, _history, _rows: None,
    "edges": lambda _joined, _history, _rows: None,
    "values": DeltaLoader._load_conditions,  # noqa: SLF001  (parts of it)
    "carried": DeltaLoader._load_carried,  # noqa: SLF001
    "asides": DeltaLoader._load_insertions,  # noqa: SLF001
    "replaced": DeltaLoader._load_replaced,  # noqa: SLF001
    "reads": DeltaLoader._reads,  # noqa: SLF001
    "rare": DeltaLoader._load_rare_steps,  # noqa: SLF001
    "calls": DeltaLoader._load_calls,  # noqa: SLF001
    "events": DeltaLoader._load_events,  # noqa: SLF001
    "opened": lambda _, history, rows: history.opened_frames.update((step, tuple(frames)) for step, frames in rows),
    "closed": lambda _, history, rows: history.closed_frames.update((step, tuple(frames)) for step, frames in rows),
    "timed": DeltaLoader._load_times,  # noqa: SLF001
    "errors": lambda _, history, rows: history.errors.update((row[0], _decode_failure(*row[1:])) for row in rows),
    "times": lambda _, history, rows: history.times.update(
        (step, tuple(map(from_microseconds, read))) for step, *read in rows
    ),
    "notes": lambda _, history, rows: history.notes.update((step, Note(*map(decode_value, row))) for step, row in rows),
    "waited": lambda _, history, rows: history.waiting_ns.update(rows),
    "in_place": lambda _, history, rows: history.in_place.update(rows),
    "order": lambda _, history, rows: history.order.update(rows),
    "reduced": lambda _, history, rows: history.reduced_parts.update(
        (row, tuple(map(_get_part, made))) for row, made in rows
    ),
    "people": lambda _, history, rows: history.interventions.extend(
        [Intervention(*map(decode_value, row)) for row in rows]
    ),
}


def _select_new_rows(rows: Any, known: int) -> list[Any]:
    """Return the new rows of a table: two branches that start at the same place may both contain them."""
    first, values = rows
    if first > known:
        raise ValueError(f"rows {known} to {first} of a table are missing")
    return list(values[known - first :])


def check_nesting(tables: Tables) -> None:
    """Check that each frame lies inside an earlier one, so that every walk outwards ends.

    Raises:
        ValueError: a frame does not.
    """
    for number, frame in enumerate(tables.frames):
        if not -1 <= frame.parent < max(number, 1) or not 0 <= frame.scope <= number or (number and frame.parent < 0):
            raise ValueError(f"frame {number} does not lie in an earlier frame")


def _add_steps(columns: list[list[int]], steps: list[Any]) -> list[int]:
    """Append the rows of one step or of several to the columns; return their activations."""
    activation, starts, durations, flags, front, ends, pushed = columns  # unrolled, because this runs once per step
    if type(steps[0]) is not int:
        activation += steps[0]
        starts += steps[1]
        durations += steps[2]
        flags += steps[3]
        front += steps[4]
        ends += steps[5]
        pushed += steps[6]
        return list(steps[0])
    activation.append(steps[0])
    starts.append(steps[1])
    durations.append(steps[2])
    flags.append(steps[3])
    front.append(steps[4])
    ends.append(steps[5])
    pushed.append(steps[6])
    return [steps[0]]


def _fill_steps(history: History, columns: list[list[int]]) -> None:
    """Fill the columns of the steps from the recorded differences."""
    activation, gaps, durations, flags, front, writes, pushes = columns
    starts = list(accumulate(gaps))
    history.step_activations, history.step_flags = array("I", activation), array("B", flags)
    history.start_times = array("q", starts)
    history.end_times = array("q", [start + length for start, length in zip(starts, durations, strict=True)])
    history.queue_starts, history.write_ends = array("I", accumulate(front)), array("I", accumulate(writes))
    history.push_ends = array("I", accumulate(pushes))
    history.push_values.extend([None] * (len(history.push_activations) - len(history.push_values)))


def load_document(document: Mapping[str, Any]) -> DeltaLoader:
    """Return the finished tables and histories of a document that holds a version, `nodes`, `edges` and `slices`.

    Raises:
        StoreError: L402, it is not a run of agentnb or damaged; L403, a newer agentnb wrote it.
    """
    check_version(document.get("version"))
    loader = DeltaLoader()
    try:
        slices = list(document["slices"])
        edges = [(source, target) for source, target, *_ in document["edges"]]
        index = {id: number for number, (id, *_) in enumerate(document["nodes"])}
    except _DAMAGED as error:
        raise make_damage_error(error) from error
    loader.add(slices)
    _, histories = loader.finish(edges, index)
    if histories:
        histories[-1].uncommitted_calls = tuple(row for rows in loader.recorded_calls.values() for row in rows.values())
    return loader


def check_version(version: Any, known: int = VERSION) -> None:
    """Raise an error for a document written by a newer agentnb; `known` is the newest version that this one reads.

    Raises:
        StoreError: L403, a newer agentnb wrote it.
    """
    if isinstance(version, int) and version > known:
        raise StoreError(
            Problem("L403", "this was written by a newer agentnb", "the document",
                    f"it has version {safe_str(version)}, this one reads "
                    f"up to {known}", "install a newer agentnb: pip install --upgrade agentnb-kit")
        )  # fmt: skip


@contextmanager
def reading_document() -> Iterator[None]:
    """Raise StoreError, L402, for any exception caused by reading a damaged document."""
    try:
        yield
    except AgentNbError:
        raise
    except _DAMAGED as error:
        raise make_damage_error(error) from error


def make_damage_error(error: Exception) -> StoreError:
    """Return the error for a document that cannot be read."""
    return StoreError(
        Problem("L402", "this is not a run of agentnb, or it is damaged", "the document",
                f"{type(error).__name__}: {error}", "open a file that trace.to_json or a store has written")
    )  # fmt: skip


__all__ = ["DeltaLoader", "check_version", "load_document", "make_damage_error", "reading_document"]
