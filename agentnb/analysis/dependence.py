"""The rows of a run, indexed for backward questions: who wrote a value, what the step had read, what led there."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from agentnb.analysis.control_dependence import CHOOSERS, ControlDependence
from agentnb.board.paths import APPEND, changes
from agentnb.engine.core.history import AGAIN, ENTER, LEAVE, RUN
from agentnb.errors import RecipeError
from agentnb.expressions.conditions import to_condition
from agentnb.trace.columns import Columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from agentnb.board.paths import Path
    from agentnb.engine.core.history import ActivationRow, Call, Event
    from agentnb.recipe.model import Recipe
    from agentnb.trace.trace import SimulationTrace


class ReadRow(NamedTuple):
    """A read: the scope and the path; `inferred` if the record does not state which part of the step read it."""

    scope: int
    path: Path
    inferred: bool = False


class Dependence:
    """The writes, reads, calls, events and choices of a run, each found by bisection.

    A write is identified by its row; rows are in the order of the steps. `bound` arguments are rows, too: only writes
    before that row count.
    """

    def __init__(self, trace: SimulationTrace, recipe: Recipe | None = None) -> None:
        self.reading = trace.reading()
        self.columns = Columns(self.reading)
        self.recipe = recipe
        self.control = ControlDependence(self.reading.nodes, self.reading.edges)
        self._asked = self._collect_condition_keys()

    # -- writes -------------------------------------------------------------------------------------------------------

    @cached_property
    def _rows(self) -> dict[tuple[int, str], list[int]]:
        """The rows that write each key of each scope."""
        columns = self.columns
        rows_by_key: dict[tuple[int, str], list[NDArray[Any]]] = {}
        for number, rows in _iter_rows_by_number(columns.write_paths):
            scope, path = columns.codes[number]
            rows_by_key.setdefault((scope, str(path[0])), []).append(rows)
        return {key: np.sort(np.concatenate(parts)).tolist() for key, parts in rows_by_key.items()}

    @cached_property
    def _keys_of_scope(self) -> dict[int, list[str]]:
        scope_keys: dict[int, list[str]] = {}
        for scope, key in self._rows:
            scope_keys.setdefault(scope, []).append(key)
        return scope_keys

    def keys(self, scope: int) -> list[str]:
        """Return the keys that were ever written in a scope itself."""
        return self._keys_of_scope.get(scope, [])

    def bound_before(self, step: int) -> int:
        """Return the bound of the writes that a step saw when it started."""
        return int(np.searchsorted(self.columns.write_steps, step, side="left"))

    def bound_after(self, step: int, *, interventions: bool = True) -> int:
        """Return the bound of the writes on the board after a step, with or without edits by people."""
        end = int(np.searchsorted(self.columns.write_steps, step, side="right"))
        if not interventions:
            while end and self.columns.write_steps[end - 1] == step and not self.columns.written_by_node[end - 1]:
                end -= 1
        return end

    def writers(self, scope: int, path: Path, bound: int) -> list[int]:
        """Return the rows that produced the value at a path as seen from a scope, last first.

        These are the last row that set the whole value, and the rows that wrote a part of it since. A row that set a
        container of the value counts if the value differs from before; one that set the value itself counts anyway,
        because it could have been another one.
        """
        writers: list[int] = []
        around: int | None = scope
        texts = tuple(map(str, path))
        while around is not None:
            rows = self._rows.get((around, texts[0]), [])
            for at in range(bisect_left(rows, bound) - 1, -1, -1):
                row = rows[at]
                written, op = self.path(row), self.columns.write_codes[row] & 3
                if len(written) < len(texts):
                    if changes(written, op, self.columns.old_values[row], self.columns.new_values[row], texts):
                        return [*writers, row]
                elif [*map(str, written[: len(texts)])] == [*texts]:
                    writers.append(row)
                    if len(written) == len(texts) and op != APPEND:
                        return writers
            around = self._find_outer(around)
        return writers

    def _find_outer(self, scope: int) -> int | None:
        """Return the scope to which reads of a scope fall through."""
        frames = self.reading.tables.frames
        row = frames[scope]
        return frames[row.parent].scope if row.policy == "child" else None

    def path(self, row: int) -> Path:
        """Return the path of a write."""
        path: Path = self.columns.codes[self.columns.write_paths[row]][1]
        return path

    def scope(self, row: int) -> int:
        """Return the scope of a write."""
        scope: int = self.columns.codes[self.columns.write_paths[row]][0]
        return scope

    def step_of(self, row: int) -> int:
        """Return the step of a write; 0 for the start."""
        return int(self.columns.write_steps[row])

    def is_by_node(self, row: int) -> bool:
        """Return False for inputs and for edits by people."""
        return bool(self.columns.written_by_node[row])

    # -- steps --------------------------------------------------------------------------------------------------------

    def get_activation(self, step: int) -> ActivationRow:
        """Return the activation of a step."""
        return self.reading.tables.activations[int(self.columns.activations[step - 1])]

    def node(self, step: int) -> str:
        """Return the id of the node of a step."""
        return self.reading.nodes[self.get_activation(step).node].id

    def phase(self, step: int) -> int:
        """Return the phase of a step: RUN, ENTER, AGAIN or LEAVE."""
        return int(self.columns.flag[step - 1]) & 3

    @cached_property
    def _steps(self) -> dict[tuple[int, int], list[int]]:
        """The steps of each node in each frame."""
        activations = self.reading.tables.activations
        steps_by_frame: dict[tuple[int, int], list[NDArray[Any]]] = {}
        for number, rows in _iter_rows_by_number(self.columns.activations):
            activation = activations[number]
            steps_by_frame.setdefault((activation.frame, activation.node), []).append(rows + 1)
        return {key: np.sort(np.concatenate(parts)).tolist() for key, parts in steps_by_frame.items()}

    def last_step(self, frame: int, node: int, before: int, phases: tuple[int, ...]) -> int | None:
        """Return the last step of a node in a frame before a step, in one of these phases."""
        steps = self._steps.get((frame, node), [])
        for at in range(bisect_left(steps, before) - 1, -1, -1):
            if self.phase(steps[at]) in phases:
                return steps[at]
        return None

    # -- reads --------------------------------------------------------------------------------------------------------

    def _collect_condition_keys(self) -> dict[int, frozenset[str] | None]:
        """Return the keys that the conditions of each node's edges read; None if one of them may read any key."""
        number = {row.id: at for at, row in enumerate(self.reading.nodes)}
        condition_keys: dict[int, frozenset[str] | None] = {}
        if self.recipe is None:
            return dict.fromkeys(self.control.conditions)
        for edge in self.recipe.outgoing_edges:
            if edge.when is None or edge.source not in number:
                continue
            source = number[edge.source]
            collected = condition_keys.get(source, frozenset())
            own = self._find_keys(edge.when)
            condition_keys[source] = None if own is None or collected is None else collected | own
        return condition_keys

    def _find_keys(self, when: Any) -> frozenset[str] | None:
        """Return the keys that a condition reads; None if they are unknown.

        For a condition from a stored run, only the text is available: it is parsed, and trusted if its keys are on the
        board.
        """
        if getattr(when, "reads_all", False) or not hasattr(when, "reads"):
            return None
        reads = when.reads
        if not reads and not hasattr(when, "reads_all"):
            try:
                reads = to_condition(when.text).reads
            except RecipeError:
                return None
            if not all(any(path[0] == key for _, path in self.columns.codes) for key, *_ in reads):
                return None
        return frozenset(str(path[0]) for path in reads)

    @cached_property
    def _recorded(self) -> tuple[list[int], list[int]]:
        steps: list[tuple[int, int]] = []
        for part, last in self.reading.parts():
            end = part.base + last
            steps += [
                (step, code >> 2) for step, code in zip(part.read_steps, part.read_codes, strict=False) if step <= end
            ]
        return [step for step, _ in steps], [code for _, code in steps]

    def recorded_reads(self, step: int) -> Iterator[tuple[int, Path]]:
        """Yield (scope, path) of the recorded reads of a step, including those of its conditions."""
        steps, codes = self._recorded
        for at in range(bisect_left(steps, step), len(steps)):
            if steps[at] != step:
                return
            yield self.reading.tables.codes[codes[at]]

    def reads(self, step: int) -> list[ReadRow]:
        """Return what the node of a step read before it wrote."""
        activation = self.get_activation(step)
        declared = self.reading.list_known_reads(int(self.columns.activations[step - 1]))
        rows = {(scope, path): ReadRow(scope, path) for scope, path in declared}
        keys = self._asked.get(activation.node, frozenset())
        for scope, path in self.recorded_reads(step):
            by_condition = keys is None or str(path[0]) in keys
            if by_condition and declared:
                continue
            rows.setdefault((scope, path), ReadRow(scope, path, inferred=by_condition))
        return list(rows.values())

    def condition_reads(self, step: int) -> list[ReadRow]:
        """Return what the conditions on the edges of a step's node read, on the board as the node left it."""
        activation = self.get_activation(step)
        keys = self._asked.get(activation.node, frozenset())
        declared = {str(path[0]) for _, path in self.reading.list_known_reads(int(self.columns.activations[step - 1]))}
        return [
            ReadRow(scope, path, inferred=keys is None and not declared)
            for scope, path in self.recorded_reads(step)
            if keys is None or str(path[0]) in keys
        ]

    # -- calls and events ---------------------------------------------------------------------------------------------

    @cached_property
    def _calls(self) -> dict[int, list[Call]]:
        calls: dict[int, list[Call]] = {}
        for part, last in self.reading.parts():
            for call in part.calls:
                if call.step <= part.base + last and call.call >= 0:
                    calls.setdefault(call.step, []).append(call)
        return calls

    def calls(self, step: int) -> list[Call]:
        """Return the attempts of the calls of a step."""
        return self._calls.get(step, [])

    @cached_property
    def _events(self) -> dict[int, Event]:
        return {event.seq: event for event in self.reading.events()}

    def event(self, seq: int) -> Event | None:
        """Return the event with this number."""
        return self._events.get(seq)

    # -- control ------------------------------------------------------------------------------------------------------

    def choice_before(self, step: int) -> int | None:
        """Return the step whose choice made this one run; None if it would have run in any case.

        A choice is an edge's condition, a route, a failure with a handler, or a composite node.
        """
        activation = self.get_activation(step)
        while True:
            steps = (
                self.last_step(activation.frame, node, step, (RUN, LEAVE))
                for node in self.control.choices_for(activation.node)
            )
            choice = max((each for each in steps if each is not None), default=None)
            if choice is not None or not activation.frame:
                return choice
            frame = self.reading.tables.frames[activation.frame]
            opened = self.last_step(frame.parent, frame.owner, step, (ENTER, AGAIN))
            if opened is None:
                return None
            if self.reading.nodes[frame.owner].kind in CHOOSERS:
                return opened
            activation = self.get_activation(opened)
            step = opened

    def opened_frames(self, step: int) -> list[int]:
        """Return the frames that a LEAVE step of a composite node closed."""
        activation = self.get_activation(step)
        entered = self.last_step(activation.frame, activation.node, step, (ENTER,))
        if entered is None:
            return []
        history, _ = self.reading.owner(entered)
        return list(history.opened_frames.get(entered, ()))


def _iter_rows_by_number(column: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield each number of a column with its rows, in order."""
    order = np.argsort(column, kind="stable")
    numbers, starts = np.unique(column[order], return_index=True)
    yield from zip(numbers.tolist(), np.split(order, starts)[1:], strict=True)


__all__ = ["Dependence", "ReadRow"]
