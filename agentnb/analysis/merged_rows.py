"""The rows of many runs of one recipe as one history, so that one pass over its columns builds a table of all runs.

Each run keeps its rows in order. It begins with the row of its start, which is a step of the merged history but not of
the run. Its frames and scopes are separate, so that no run sees values of another.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from agentnb.board.scopes import ROOT_SCOPE
from agentnb.engine.core.history import OUTSIDE, ActivationRow, Checkpoint, FrameRow, History, Tables
from agentnb.trace.columns import Columns, to_array
from agentnb.trace.row_index import StepIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from agentnb.trace.row_index import Part


class _Columns:
    """The columns whose numbers change while rows are added: numpy parts, joined at the end."""

    def __init__(self) -> None:
        self.parts: dict[str, list[NDArray[Any]]] = {name: [] for name in _NAMES}

    def add(self, **columns: NDArray[Any]) -> None:
        for name, column in columns.items():
            self.parts[name].append(column)

    def into(self, history: History) -> None:
        for name in _NAMES:
            column = array("I")
            column.frombytes(np.concatenate(self.parts[name]).astype(np.dtype("I")).tobytes())
            setattr(history, name, column)


_NAMES = ("step_activations", "write_ends", "push_ends", "write_codes", "push_activations", "read_codes", "read_steps")


class _Numbers:
    """The numbers in the merged tables of one run's frames, activations and paths."""

    def __init__(self, reading: StepIndex, tables: Tables, seq: int) -> None:
        self.frames = self._map_frames(reading, tables)
        self.activations = np.array(
            [self._map_activation(row, tables, seq) for row in reading.tables.activations] or [0], dtype=np.int64
        )
        self.codes = np.array([self._map_path(scope, path, tables) for scope, path in reading.tables.codes] or [0])
        self.root = self.frames[0]
        self.start = tables.add_activation(ActivationRow(-1, self.root))

    @staticmethod
    def _map_frames(reading: StepIndex, tables: Tables) -> dict[int, int]:
        root = len(tables.frames)
        tables.frames.append(FrameRow(root, 0, -1, ROOT_SCOPE, "isolated", -1, root, 0))
        frame_numbers = {0: root}
        for history, last in reading.parts():
            for step in sorted(history.opened_frames):
                for number in history.opened_frames[step] if step <= history.base + last else ():
                    row, own = reading.tables.frames[number], len(tables.frames)
                    frame_numbers[number] = own
                    scope = own if row.scope == row.id else frame_numbers[row.scope]
                    tables.frames.append(row._replace(id=own, parent=frame_numbers[row.parent], scope=scope))
        return frame_numbers

    def _map_activation(self, row: ActivationRow, tables: Tables, seq: int) -> int:
        frame = self.frames.get(row.frame)
        if frame is None:  # a frame of another branch
            return 0
        return tables.add_activation(row._replace(frame=frame, event=row.event if row.event < 0 else row.event + seq))

    def _map_path(self, scope: int, path: Any, tables: Tables) -> int:
        own = self.frames.get(scope)
        return 0 if own is None else tables.add_path(own, path)


class MergedRows(StepIndex):
    """Many runs with the same nodes and edges as one sequence of steps.

    `starts` are the steps of the merged history at which the runs start; the steps of a run follow its start. `events`
    are the offsets added to each run's event numbers.
    """

    def __init__(self, readings: Sequence[StepIndex]) -> None:
        history = History(Tables())  # its root frame encloses those of the runs
        for column in (history.start_times, history.end_times, history.step_flags, history.queue_starts):
            del column[:]  # the runs have their own row 0
        self.starts: list[int] = []
        self.event_offsets: list[int] = []
        self.loose_runs: list[int] = []
        self._columns = _Columns()
        self._loose: list[Any] = []
        self._steps = self._seq = self._pushes = 0
        for run, reading in enumerate(readings):
            self._add_run(history, run, reading)
        self._columns.into(history)
        history.uncommitted_calls = tuple(self._loose)
        super().__init__([history], readings[0].nodes, readings[0].edges)

    def _add_run(self, history: History, run: int, reading: StepIndex) -> None:
        numbers = _Numbers(reading, history.tables, self._seq)
        start, writes, events = self._steps, len(history.new_values), len(history.events)
        self.starts.append(start)
        self.event_offsets.append(self._seq)
        history.checkpoints.append(Checkpoint(start, writes, 0, {numbers.root: {}}, ((numbers.root, 1),)))
        for part in reading.parts():
            self._add_rows(history, part, numbers, start)
            self._add_sparse(history, part, numbers, start)
            self._add_events(history, part, start)
        for call in reading.chain[-1].uncommitted_calls:
            self._loose.append(call._replace(activation=int(numbers.activations[call.activation])))
            self.loose_runs.append(run)
        self._steps = start + reading.tip + 1
        self._seq = max((event.seq for event in history.events[events:]), default=self._seq) + 1

    def _add_rows(self, history: History, part: Part, numbers: _Numbers, start: int) -> None:
        rows, last = part
        first = 0 if rows.parent is None else 1  # row 0 of a fork belongs to the step at which it starts
        writes = len(history.new_values)
        write_ends = to_array(rows.write_ends, last + 1).astype(np.int64)
        push_ends = to_array(rows.push_ends, last + 1).astype(np.int64)
        begin, end = int(push_ends[0]), int(push_ends[-1])
        activations = to_array(rows.step_activations, last + 1)[1:]
        own = numbers.activations[activations]
        if first == 0:
            own = np.concatenate([[numbers.start], own])
        else:
            self._columns.parts["write_ends"][-1][-1] = writes + int(write_ends[0])
        pushed = self._pushes
        count = int(write_ends[-1])
        codes = to_array(rows.write_codes, count).astype(np.int64)
        reads = min(len(rows.read_steps), len(rows.read_codes))
        read_steps = to_array(rows.read_steps, reads).astype(np.int64)
        read_count = int(np.searchsorted(read_steps, rows.base + last, side="right"))
        self._columns.add(
            step_activations=own,
            write_ends=write_ends[first:] + writes,
            push_ends=np.maximum(push_ends[first:] - begin, 0) + pushed,
            write_codes=numbers.codes[codes >> 2] + (codes & 3),
            push_activations=numbers.activations[to_array(rows.push_activations, end)[begin:]],
            read_codes=numbers.codes[to_array(rows.read_codes, read_count).astype(np.int64) >> 2],
            read_steps=read_steps[:read_count] + start,
        )
        history.start_times += rows.start_times[first : last + 1]
        history.end_times += rows.end_times[first : last + 1]
        history.step_flags += rows.step_flags[first : last + 1]
        history.queue_starts += rows.queue_starts[first : last + 1]
        history.new_values += rows.new_values[:count]
        history.old_values += rows.old_values[:count]
        history.push_values += rows.push_values[begin:end]
        history.push_edges += rows.push_edges[begin:end]
        history.in_place |= {number + writes for number in rows.in_place if number < count}
        self._pushes = pushed + end - begin

    @staticmethod
    def _add_sparse(history: History, part: Part, numbers: _Numbers, start: int) -> None:
        rows, end = part.history, part.history.base + part.last
        if rows.rare:
            history.rare += [step + start for step in rows.rare if step <= end]
            for name in ("opened_frames", "closed_frames"):
                table = getattr(history, name)
                for step, frames in getattr(rows, name).items():
                    if step <= end:
                        own = (numbers.frames.get(number) for number in frames)
                        table[step + start] = tuple(number for number in own if number is not None)
        for name in ("errors", "notes", "waiting_ns"):
            if values := getattr(rows, name):
                getattr(history, name).update({step + start: value for step, value in values.items() if step <= end})
        history.interventions += [
            intervention._replace(step=intervention.step + start)
            for intervention in rows.interventions
            if intervention.step <= end
        ]
        history.calls += [
            call._replace(step=call.step + start, activation=int(numbers.activations[call.activation]))
            for call in rows.calls if call.step <= end or call.call == OUTSIDE
        ]  # fmt: skip

    def _add_events(self, history: History, part: Part, start: int) -> None:
        end = part.history.base + part.last
        history.events += [
            event._replace(seq=event.seq + self.event_offsets[-1], at=event.at + start,
                           step=None if event.step is None else event.step + start)
            for event in part.history.events if event.at <= end
        ]  # fmt: skip

    def frame_name(self, number: int) -> str:
        """Return the name of a frame within its own run."""
        return ROOT_SCOPE if self.tables.frames[number].owner < 0 else super().frame_name(number)

    def depth(self, number: int) -> int:
        """Return the number of frames around a frame in its own run."""
        return super().depth(number) - 1

    def runs_of(self, steps: NDArray[Any]) -> NDArray[np.int64]:
        """Return the index of the run of each of these steps."""
        run_numbers: NDArray[np.int64] = np.searchsorted(self._start_steps, steps, side="right") - 1
        return run_numbers

    @cached_property
    def _start_steps(self) -> NDArray[np.int64]:
        return np.array(self.starts, dtype=np.int64)

    def own_steps(self, steps: NDArray[Any]) -> NDArray[np.int64]:
        """Return these steps as numbered in their runs; 0 is the start of a run."""
        own_steps: NDArray[np.int64] = steps - self._start_steps[self.runs_of(steps)]
        return own_steps


class MergedColumns(Columns):
    """The columns of merged runs; the initial values of the runs do not count as written by a node."""

    def __init__(self, reading: MergedRows) -> None:
        super().__init__(reading)
        self._merged = reading

    @cached_property
    def written_by_node(self) -> NDArray[np.bool_]:
        """A mask of the writes made by nodes: not inputs, and not edits by people."""
        by_node: NDArray[np.bool_] = super().written_by_node & (self._merged.own_steps(self.write_steps) > 0)
        return by_node


__all__ = ["MergedColumns", "MergedRows"]
