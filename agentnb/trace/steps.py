"""Steps of a run as objects, and the sequence of all steps; both are created on access."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, overload

from agentnb.board.values import ATOMS, thaw
from agentnb.engine.core.history import PHASES, STATUSES
from agentnb.expressions.paths import format_path
from agentnb.ids import make_step_id
from agentnb.secrets import masks_by
from agentnb.text import call, safe_repr
from agentnb.trace.row_index import OPS, Read, StepIndex, Write

if TYPE_CHECKING:
    from uuid import UUID

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class StepType(StrEnum):
    """The type of a step."""

    INTERACTION = "interaction"
    SYSTEM_EVENT = "system_event"
    TOOL_EXECUTION = "tool_execution"
    REASONING = "reasoning"
    ERROR = "error"


FIELDS = (
    *("step", "step_id", "node_id", "kind", "phase", "frame", "type", "status", "timestamp", "seconds", "depth"),
    *("branch", "inputs", "outputs", "thought", "action", "observation", "reads", "writes", "error", "snapshot"),
)


@masks_by(lambda step: step._reading.tables.secrets)  # noqa: SLF001  (its own)
class SimulationStep:
    """One step of a run: its node, inputs, results and time. Values are unmasked copies.

    `frame` names the frame it ran in (`root` at the top), `depth` is its depth, `branch` is the number of the parallel
    branch or None. `seconds` is its duration without the time spent waiting for a person. `reads` and `writes` are
    tuples of Read and Write.
    """

    __slots__ = ("_reading", "_run_id", "step")

    def __init__(self, reading: StepIndex, step: int, run_id: str = "") -> None:
        self._reading, self._run_id, self.step = reading, run_id, step

    @property
    def step_id(self) -> UUID:
        """The id of this step, the same in every process; a step rerun after going back gets a new id."""
        return make_step_id(self._run_id, self.step, self._reading.owner(self.step)[0].name)

    @property
    def node_id(self) -> str:
        """The node that ran."""
        return self._reading.nodes[self._reading.activation(self.step).node].id

    @property
    def kind(self) -> str:
        """The kind of the node."""
        return self._reading.nodes[self._reading.activation(self.step).node].kind

    @property
    def phase(self) -> str:
        """`run` for a leaf; `enter`, `again` or `leave` for a composite node."""
        return PHASES[self._get_flag() & 3]

    @property
    def frame(self) -> str:
        """The frame that it ran in: `root`, or a region and the step that opened it."""
        return self._reading.frame_name(self._reading.activation(self.step).frame)

    @property
    def type(self) -> StepType:
        """The StepType: that of the node's kind, ERROR for a failed step."""
        if self.status == "error":
            return StepType.ERROR
        return StepType[self._reading.nodes[self._reading.activation(self.step).node].type]

    @property
    def status(self) -> str:
        """`ok`, `error`, `cancelled` or `skipped`."""
        return STATUSES[self._get_flag() >> 2 & 3]

    @property
    def timestamp(self) -> datetime:
        """The start time, in UTC."""
        history, row = self._reading.owner(self.step)
        return _EPOCH + timedelta(microseconds=history.start_times[row] // 1000)

    @property
    def seconds(self) -> float:
        """Its duration in seconds, without the time spent waiting for a person or paused for inspection."""
        history, row = self._reading.owner(self.step)
        return history.working_time(row) / 1e9

    @property
    def depth(self) -> int:
        """The number of frames around its own."""
        return self._reading.depth(self._reading.activation(self.step).frame)

    @property
    def branch(self) -> int | None:
        """The number of the parallel branch that it ran in; None outside of any."""
        return self._reading.branch(self._reading.activation(self.step).frame)

    @property
    def inputs(self) -> dict[str, Any]:
        """The node's inputs: its arguments, else the keys that it read with their values."""
        return {
            key: value if type(value) in ATOMS else thaw(value)
            for key, value in self._reading.inputs(self.step).items()
        }

    @property
    def outputs(self) -> dict[str, Any]:
        """What the node wrote, by path; the item for an append; deletions are omitted."""
        return {
            key: value if type(value) in ATOMS else thaw(value)
            for key, value in self._reading.outputs(self.step).items()
        }

    @property
    def thought(self) -> str | None:
        """Why it acted, if its node states it."""
        note = self._reading.note(self.step)
        return None if note is None else note.thought

    @property
    def action(self) -> Any:
        """What it requested, if its node states it."""
        note = self._reading.note(self.step)
        return None if note is None else thaw(note.action)

    @property
    def observation(self) -> Any:
        """What it received, if its node states it."""
        note = self._reading.note(self.step)
        return None if note is None else thaw(note.observation)

    @property
    def reads(self) -> tuple[Read, ...]:
        """The keys that it read."""
        name = self._reading.frame_name
        return tuple(Read(name(scope), key) for scope, key in self._reading.reads(self.step))

    @property
    def writes(self) -> tuple[Write, ...]:
        """Its writes, including later edits by people."""
        return tuple(
            Write(self._reading.frame_name(scope), format_path(path), OPS[op], thaw(old), thaw(new), in_place)
            for scope, path, op, old, new, in_place in self._reading.writes(self.step)
        )

    @property
    def error(self) -> str | None:
        """Its error: type, message and the line of the user's code, masked."""
        failure = self._reading.failure(self.step)
        return None if failure is None else str(failure)

    @property
    def snapshot(self) -> dict[str, Any]:
        """The blackboard after it: the root's scope, including edits by people."""
        return {key: thaw(value) for key, value in self._reading.replica(self.step).data[0].items()}

    def to_dict(self) -> dict[str, Any]:
        """Return every field by its name."""
        return {name: getattr(self, name) for name in FIELDS}

    def _get_flag(self) -> int:
        history, row = self._reading.owner(self.step)
        return history.step_flags[row]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SimulationStep):
            return NotImplemented
        if self._reading is other._reading or self._reading.owner(self.step) == other._reading.owner(other.step):
            return self.step == other.step
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.step)

    def __repr__(self) -> str:
        """Return one line: number, node, status, writes, duration."""
        written = safe_repr(self._reading.outputs(self.step)) if self.error is None else self.error
        phase = "" if self.phase == "run" else f" {self.phase}"
        return (
            f"<step {self.step} {safe_repr(self.node_id, 200)}{phase} {self.status}: {written}, {self.seconds:.3g} s>"
        )


class Steps(Sequence[SimulationStep]):
    """The steps of a trace; the full sequence grows with the run, a slice does not."""

    __slots__ = ("_numbers", "_reading", "_run_id")

    def __init__(self, reading: Callable[[], StepIndex], run_id: str, numbers: range | None = None) -> None:
        self._reading, self._run_id, self._numbers = reading, run_id, numbers

    def _get_range(self) -> range:
        return range(1, self._reading().tip + 1) if self._numbers is None else self._numbers

    def __len__(self) -> int:
        return len(self._get_range())

    @overload
    def __getitem__(self, index: int) -> SimulationStep: ...
    @overload
    def __getitem__(self, index: slice) -> Steps: ...
    def __getitem__(self, index: int | slice) -> SimulationStep | Steps:
        if type(index) is slice:
            reading = self._reading()
            return Steps(lambda: reading, self._run_id, self._get_range()[index])
        if type(index) is not int and type(index := call(operator.index, index)) is not int:
            raise TypeError("a step is selected by an integer index or by a slice")
        return SimulationStep(self._reading(), self._get_range()[index], self._run_id)

    def __iter__(self) -> Iterator[SimulationStep]:
        reading, run_id = self._reading(), self._run_id
        return (SimulationStep(reading, step, run_id) for step in self._get_range())

    def __contains__(self, step: object) -> bool:
        return issubclass(type(step), SimulationStep) and any(own == step for own in self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Steps | list | tuple):
            return NotImplemented
        return len(self) == len(other) and all(map(SimulationStep.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __repr__(self) -> str:
        """Return the first steps, one per line."""
        lines = [repr(step) for step in self[:10]]
        more = [f"... {len(self) - 10} more"] if len(self) > 10 else []
        return "[" + ",\n ".join(lines + more) + "]"


__all__ = ["FIELDS", "SimulationStep", "StepType", "Steps"]
