"""Row lookup in a chain of histories: the rows of each step, one step at a time, without copying columns."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from agentnb.board.paths import APPEND, OPS, get_at
from agentnb.board.scopes import ROOT_SCOPE
from agentnb.board.values import ABSENT, freeze
from agentnb.engine.core.history import ActivationRow, Event, Failure, History, Intervention, Note, Tables, find_event
from agentnb.engine.persistence.state_projection import StateProjection, get_previous
from agentnb.expressions.paths import Path, format_path

WINDOW: Final = 512  # steps
TYPES: Final = ("interaction", "system_event", "tool_execution", "reasoning", "error")  # of steps


class NodeRow(NamedTuple):
    """What a trace needs of a node: its id, its kind, the type of its steps, and the paths its arguments read.

    Those reads are static in the recipe, so the run does not record them.
    """

    id: str
    kind: str
    type: str = "TOOL_EXECUTION"
    inputs: tuple[tuple[str, Path], ...] = ()


class EdgeRow(NamedTuple):
    """What a trace needs of an edge."""

    source: str
    target: str
    kind: str
    condition: str = ""
    asks: bool = False


class Write(NamedTuple):
    """One write of a step: `old` and `new` are ABSENT for missing values; `new` of an append is the item."""

    scope: str
    key: str
    op: str
    old: Any
    new: Any
    in_place: bool = False


class Read(NamedTuple):
    """One key that a step read, as seen from a scope."""

    scope: str
    key: str


class Part(NamedTuple):
    """The part of a history that belongs to a chain: up to this row (later rows are another branch's)."""

    history: History
    last: int


class StepIndex:
    """A chain of histories as one sequence of steps, 1 to `tip`; new steps of the last history are seen at once."""

    def __init__(self, chain: Sequence[History], nodes: Sequence[NodeRow], edges: Sequence[EdgeRow] = ()) -> None:
        self.chain, self.nodes, self.edges = tuple(chain), tuple(nodes), tuple(edges)
        self.tables: Tables = self.chain[0].tables
        self._inputs, self._outputs = _ReadAhead(self, self.iter_inputs), _ReadAhead(self, self.iter_outputs)

    @property
    def tip(self) -> int:
        """The number of the last step."""
        last = self.chain[-1]
        return last.base + len(last.push_ends) - 1

    def parts(self) -> list[Part]:
        """Return the histories with the last row of each that belongs to the chain."""
        ends = [*(history.base for history in self.chain[1:]), self.tip]
        return [Part(history, end - history.base) for history, end in zip(self.chain, ends, strict=True)]

    def owner(self, step: int) -> tuple[History, int]:
        """Return the history in which a step was recorded, and its row there; step 0 is the first row of all."""
        history = next((history for history in reversed(self.chain) if history.base < step), self.chain[0])
        return history, step - history.base

    def at(self, step: int) -> list[tuple[History, int]]:
        """Return the rows of a step: its own, and those of histories that begin there (a fork's edits)."""
        history, row = self.owner(step)
        later = self.chain[self.chain.index(history) + 1 :]
        return [(history, row), *((other, 0) for other in later if other.base == step)]

    def activation(self, step: int) -> ActivationRow:
        """Return the activation that ran in a step."""
        history, row = self.owner(step)
        return self.tables.activations[history.step_activations[row]]

    def note(self, step: int) -> Note | None:
        """Return the note of a step: its thought, action and observation, if any."""
        return self.owner(step)[0].notes.get(step)

    def failure(self, step: int) -> Failure | None:
        """Return the failure of a step, if any."""
        return self.owner(step)[0].errors.get(step)

    # -- names -----------------------------------------------------------------------------------------------

    def frame_name(self, number: int) -> str:
        """Return the name of a frame: `root`, or its region and the step that opened it, and its branch."""
        row = self.tables.frames[number]
        if not number:
            return ROOT_SCOPE
        return f"{row.region}@{row.opened_at}" if row.branch < 0 else f"{row.region}@{row.opened_at}.{row.branch}"

    def depth(self, number: int) -> int:
        """Return the number of frames around a frame."""
        depth = 0
        while number:
            number, depth = self.tables.frames[number].parent, depth + 1
        return depth

    def branch(self, number: int) -> int | None:
        """Return the number of the innermost parallel branch around a frame; None outside of any."""
        while number:
            row = self.tables.frames[number]
            if row.branch >= 0:
                return row.branch
            number = row.parent
        return None

    def scope_of(self, name: str) -> int | None:
        """Return the number of the scope with this name; None if the run has none."""
        frames = self.tables.frames
        return next((row.id for row in frames if row.scope == row.id and self.frame_name(row.id) == name), None)

    # -- reads and writes --------------------------------------------------------------------------

    def rows(self, step: int) -> Iterator[tuple[History, int, bool]]:
        """Yield (history, write row, whether a person wrote it) for a step."""
        for history, row in self.at(step):
            start, end = history.write_ends[row - 1] if row else 0, history.write_ends[row]
            by_node = end - count_edits(history, step) if step and history.base < step else start
            for number in range(start, end):
                yield history, number, number >= by_node

    def writes(self, step: int) -> list[tuple[int, tuple[str | int, ...], int, Any, Any, bool]]:
        """Return (scope, path, op, old, new, in place) of a step's writes, the values frozen."""
        writes = []
        for history, row, _ in self.rows(step):
            scope, path = self.tables.codes[history.write_codes[row] >> 2]
            op, old = history.write_codes[row] & 3, get_previous(history.old_values[row], path)
            writes.append((scope, path, op, old, history.new_values[row], row in history.in_place))
        return writes

    def reads(self, step: int) -> list[tuple[int, str]]:
        """Return (scope, key) of a step's reads."""
        history, row = self.owner(step)
        start, end = bisect_left(history.read_steps, step), bisect_right(history.read_steps, step)
        known = self.list_known_reads(history.step_activations[row])
        pairs = [*known, *(self.tables.codes[code >> 2] for code in history.read_codes[start:end])]
        return list(dict.fromkeys((scope, format_path(path)) for scope, path in pairs))

    def list_known_reads(self, number: int) -> list[tuple[int, Path]]:
        """Return (scope, path) of the static reads of an activation: the paths its node's arguments name."""
        activation = self.tables.activations[number]
        if activation.purpose or activation.node < 0:
            return []
        scope = self.tables.frames[activation.frame].scope
        return [(scope, path) for _, path in self.nodes[activation.node].inputs]

    def inputs(self, step: int) -> Any:
        """Return the frozen inputs of a step: as recorded by its node, else what was sent to it and what it read."""
        inputs = self._inputs.get(step)
        return self._get_inputs(step) if inputs is None else inputs

    def _get_inputs(self, step: int) -> Any:
        note = self.note(step)
        if note is not None and note.inputs is not None:
            return note.inputs
        activation = self.activation(step)
        if not activation.purpose and self.nodes[activation.node].inputs:
            return self.arguments(activation, self.replica(step - 1))
        reads, sent = self.reads(step), self._find_sent_input(activation)
        if not reads:
            return sent
        replica = self.replica(step - 1)
        values = {key: replica.get(scope, key) for scope, key in reads}
        return {**{key: value for key, value in values.items() if value is not ABSENT}, **sent}

    def _find_sent_input(self, activation: ActivationRow) -> dict[str, Any]:
        """Return the frozen input that a `Send` gave to an activation; a value that is not a mapping is its `input`."""
        if activation.event < 0 or activation.purpose:
            return {}
        event = find_event(self.chain, activation.event)
        if event is None or event.type != "send":
            return {}
        value = event.payload.get("input")
        return dict(value) if isinstance(value, Mapping) else {"input": value}

    def arguments(self, activation: ActivationRow, replica: StateProjection) -> dict[str, Any]:
        """Return the arguments of an activation's node, by name; paths that do not exist are omitted."""
        scope = self.tables.frames[activation.frame].scope
        arguments = {}
        for name, path in self.nodes[activation.node].inputs:
            value = replica.get(scope, str(path[0]))
            value = value if len(path) == 1 or value is ABSENT else get_at(value, path[1:])
            if value is not ABSENT:
                arguments[name] = value
        return arguments

    def outputs(self, step: int) -> dict[str, Any]:
        """Return what a step wrote in its node's scope, frozen, by path, without deletions.

        Of an append it is the item, of several appends to one list all of them.
        """
        known = self._outputs.get(step)
        return self._get_outputs(step) if known is None else known

    def _get_outputs(self, step: int) -> dict[str, Any]:
        own_scope, outputs = self.tables.frames[self.activation(step).frame].scope, dict[str, Any]()
        appended: dict[str, list[Any]] = {}
        for history, row, by_person in self.rows(step):
            scope, path = self.tables.codes[history.write_codes[row] >> 2]
            if scope == own_scope and not by_person and history.new_values[row] is not ABSENT:
                add_output(outputs, appended, format_path(path), history.write_codes[row] & 3, history.new_values[row])
        return outputs

    def iter_inputs(self, first: int, last: int) -> Iterator[Any]:
        """Yield the frozen inputs of each step from `first` to `last`, in one pass over their rows."""
        codes, known_plans = self.tables.codes, dict[int, Any]()
        for history, start, end in self._iter_ranges(first, last):
            base, written, notes = history.base, history.write_ends[start - 1 - history.base], history.notes
            replica, at = self.replica(start - 1), bisect_left(history.read_steps, start)
            read, root = len(history.read_steps), replica.data.setdefault(0, {})
            for row in range(start - base, end - base + 1):
                note = notes.get(base + row) if notes else None
                number, values = history.step_activations[row], {}
                while at < read and history.read_steps[at] <= base + row:
                    scope, key = codes[history.read_codes[at] >> 2]
                    values[format_path(key)] = replica.get(scope, str(key[0]))
                    at += 1
                plan = known_plans.get(number)
                if plan is None:
                    plan = known_plans[number] = self._find_argument_keys(number)
                if note is not None and note.inputs is not None:
                    yield note.inputs
                elif type(plan) is list:
                    yield {name: root[key] for name, key in plan if key in root}
                elif type(plan) is dict:
                    yield {**{key: value for key, value in values.items() if value is not ABSENT}, **plan}
                else:
                    yield self.arguments(plan, replica)
                written = replica.apply(history, written, history.write_ends[row])

    def _find_argument_keys(self, number: int) -> Any:
        """Return (name, key) of the arguments of an activation that are whole keys of the root scope.

        If some are not, return the activation; if its node has no arguments, the input that was sent to it.
        """
        activation = self.tables.activations[number]
        if activation.purpose or activation.node < 0 or not self.nodes[activation.node].inputs:
            return self._find_sent_input(activation)
        inputs = self.nodes[activation.node].inputs
        if self.tables.frames[activation.frame].scope or any(len(path) > 1 for _, path in inputs):
            return activation
        return [(name, str(path[0])) for name, path in inputs]

    def iter_outputs(self, first: int, last: int) -> Iterator[dict[str, Any]]:
        """Yield what each step from `first` to `last` wrote in its node's scope, as `outputs` returns it."""
        tables = self.tables
        codes, names, scopes = tables.codes, dict[int, str](), dict[int, int]()
        for history, start, end in self._iter_ranges(first, last):
            base, people, written = history.base, history.interventions, history.write_ends[start - 1 - history.base]
            write_codes, new_values, write_ends, step_activations = (
                history.write_codes,
                history.new_values,
                history.write_ends,
                history.step_activations,
            )
            for row in range(start - base, end - base + 1):
                begin, written = written, write_ends[row]
                by_node = written - count_edits(history, base + row) if people else written
                outputs: dict[str, Any] = {}
                appended: dict[str, list[Any]] = {}
                activation = step_activations[row]
                here = scopes.get(activation)
                if here is None:
                    here = scopes[activation] = tables.frames[tables.activations[activation].frame].scope
                for number in range(begin, by_node):
                    code, value = write_codes[number], new_values[number]
                    scope, path = codes[code >> 2]
                    if value is not ABSENT and scope == here:
                        name = names.get(code)
                        if name is None:
                            name = names[code] = format_path(path)
                        if code & 3 == APPEND:
                            add_output(outputs, appended, name, APPEND, value)
                        else:
                            outputs[name] = value
                yield outputs

    def _iter_ranges(self, first: int, last: int) -> Iterator[tuple[History, int, int]]:
        """Yield the histories that hold these steps, each with its first and last one."""
        for history, end in self.parts():
            start, stop = max(first, history.base + 1), min(last, history.base + end)
            if start <= stop:
                yield history, start, stop

    def replica(self, step: int) -> StateProjection:
        """Return the contents of every scope after a step, including edits by people."""
        replica = StateProjection(self.tables)
        replica.move_to(next(history for history in reversed(self.chain) if history.base <= step), step)
        return replica

    # -- interventions and events --------------------------------------------------------------------------

    def interventions(self) -> list[Intervention]:
        """Return the interventions in order."""
        return [
            intervention
            for history, last in self.parts()
            for intervention in history.interventions
            if intervention.step <= history.base + last
        ]

    def events(self) -> list[Event]:
        """Return the events in order."""
        return [event for history, last in self.parts() for event in history.events if event.at <= history.base + last]


class _ReadAhead:
    """Read-ahead for a reader that goes from step to step: prepares the rows of many steps at a time.

    Asked for one step, a reading rebuilds the board from a checkpoint; for the next ones it only moves on.
    """

    def __init__(self, reading: StepIndex, between: Callable[[int, int], Iterator[Any]]) -> None:
        self._reading, self._between = reading, between
        self._first, self._rows = 0, list[Any]()
        self._asked = 0

    def get(self, step: int) -> Any:
        """Return the row of a step if it is known or if the steps are asked for in order, else None."""
        first, rows = self._first, self._rows
        if first <= step < first + len(rows):
            self._asked = step
            return rows[step - first]
        in_order, self._asked = step == self._asked + 1 and step > 1, step
        if not in_order or step >= (tip := self._reading.tip):  # a person may still change the last step
            return None
        rows = [*self._between(step, min(step + WINDOW - 1, tip - 1))]
        self._first, self._rows = step, rows
        return rows[0]


def add_output(outputs: dict[str, Any], appended: dict[str, list[Any]], key: str, op: int, value: Any) -> None:
    """Add one write to the outputs of a step; `appended` holds what its appends have added so far."""
    if op == APPEND:
        items = appended.setdefault(key, [])
        items.append(value)
        value = value if len(items) == 1 else freeze(items)
    outputs[key] = value


def count_edits(history: History, step: int) -> int:
    """Return how many of a step's last write rows are edits by people."""
    count = 0
    for intervention in reversed(history.interventions):
        if intervention.step < step:
            break
        if (
            intervention.step == step
            and intervention.action == "edit"
            and not (intervention.old is ABSENT and intervention.new is ABSENT)
        ):
            count += 1
    return count


__all__ = [
    "OPS",
    "EdgeRow",
    "NodeRow",
    "Part",
    "Read",
    "StepIndex",
    "Write",
    "add_output",
    "count_edits",
    "get_previous",
]
