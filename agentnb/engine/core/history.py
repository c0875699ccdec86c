"""The history of a run as columns: a row per step, per write and per push. Only the tip changes.

Layout, 33 bytes per step: the activation (4), begin and end in ns (8 + 8), flags (1), where the frontier begins (4),
and where this step's writes (4) and pushes (4) end. The frontier after step k is the slice
`push_activations[queue_starts[k] : push_ends[k]]`. Pushes inserted before the waiting ones form an insertion. A queue
that begins in an insertion continues with the waiting pushes after its end; a queue that reaches an insertion skips
it. Waiting pushes are therefore never rewritten (see `queue_after`). A write row is 20 bytes: code (interned scope and
path, and the op), the new value, and the previous value of the path's first key. A followed edge is a push row with its
number in the plan and its condition's value. Rare data is stored in sparse dicts by step.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from agentnb.board.paths import Path, apply_change, changes, get_at
from agentnb.board.values import ABSENT
from agentnb.engine.core.lazy_attributes import LazyAttributes
from agentnb.secrets import RunSecrets
from agentnb.text import LONGEST_TEXT, safe_str

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentnb.engine.core.plan import Plan
    from agentnb.engine.core.reducers import Part

NO_ACTIVATION: Final = 0xFFFFFFFF
RUN, ENTER, AGAIN, LEAVE = range(4)
PHASES: Final = ("run", "enter", "again", "leave")
OK, ERROR, CANCELLED, SKIPPED = (status << 2 for status in range(4))
STATUS: Final = 12  # mask of the flag bits that hold the status
STATUSES: Final = ("ok", "error", "cancelled", "skipped")
OUTSIDE: Final = -1  # in `Call.call`: no committed step made the call
COUNTED: Final = 64  # the step counts towards max_steps
UNCAUGHT: Final = 32  # an error without a handler: the run stops there
# in `ActivationRow.about`: the event was delivered before, and the thing it was postponed for has arrived.
LATE: Final = -2
# Lower numbers mean the same for another event: LATE minus the number of that event. In `ActivationRow.purpose` (0: an
# ordinary activation): the inside of a composite node has ended or failed; or, in supersteps, the node waits for the
# other sources of a join or for everything that is not deferred.
RESUME, FAIL, PARKED = 1, 2, 3
UNKNOWN_EDGE: Final = -1  # in `push_edges`: the push follows no edge of the recipe, or it is not known which


class Carried:
    """The type of the mark in `push_values` of pushes that are not followed edges: moved, or back to a composite."""

    __slots__ = ()


CARRIED: Final = Carried()


class FrameRow(NamedTuple):
    """A frame as it was opened: the owner node, the region, the scope and the step.

    `inputs` holds the frozen inputs of its inside; None if they are those of the enclosing frame.
    """

    id: int
    parent: int
    owner: int
    region: str
    policy: str
    branch: int
    scope: int
    opened_at: int
    inputs: Any = None


class ActivationRow(NamedTuple):
    """An activation: a node of a frame that is scheduled (`purpose` 0), or whose inside has ended (RESUME or FAIL).

    `about` distinguishes several activations of a node for one event: the number of a related event, or LATE.
    """

    node: int
    frame: int
    purpose: int = 0
    event: int = -1
    about: int = -1


def crosses_region(source: ActivationRow, target: ActivationRow, frames: Sequence[FrameRow]) -> bool:
    """Return True if a push by a step of `source` leads into the inside of its composite node, or out of it."""
    if source.node < 0 or target.node < 0:
        return False
    entered, left = frames[target.frame], frames[source.frame]
    if target.purpose == RESUME:
        return (target.node, target.frame) == (left.owner, left.parent)
    return target.purpose == 0 and (entered.owner, entered.parent) == (source.node, source.frame)


class Failure(NamedTuple):
    """The error of a failed step.

    `line` is the line of the user's code that it comes from, as `file:line`; empty if there is none. No comparison of
    runs considers it: code may move.
    """

    type: str
    message: str
    error: BaseException | None = None
    timeout: bool = False
    line: str = ""

    def __str__(self) -> str:
        """Return the type, the message and the line, masked."""
        return f"{self.text} ({safe_str(self.line, LONGEST_TEXT)})" if self.line else self.text

    @property
    def text(self) -> str:
        """The type and the message, masked."""
        return f"{self.type}: {safe_str(self.message, LONGEST_TEXT)}"

    def add_line(self, where: str) -> str:
        """Return the text of a place, followed by the line of the user's code if the text does not have it."""
        return ", ".join(filter(None, (where, "" if self.line in where else self.line)))

    @property
    def result(self) -> Any:
        """The result of the failed step: the answer that caused the failure, else the exception's message."""
        return getattr(self.error, "result", {"exception": self.message})


class Note(NamedTuple):
    """Data that a step reports besides its writes. `score` is the quality of the run's work, if the step judged it."""

    thought: str | None = None
    action: Any = None
    observation: Any = None
    inputs: Any = None
    score: float | None = None


class Intervention(NamedTuple):
    """An intervention by a person at the run's position after `step`."""

    step: int
    action: str
    target: str
    old: Any
    new: Any
    actor: str
    time: datetime

    @property
    def has_write_row(self) -> bool:
        """True if it is an edit that wrote something: deleting a missing value does not."""
        return self.action == "edit" and not (self.old is ABSENT and self.new is ABSENT)


class Event(NamedTuple):
    """An event emitted by a node or a person: in step `step`, if any; `at` is the position it belongs to.

    `mark` is a label defined by the dialect.
    """

    seq: int
    step: int | None
    id: str
    type: str
    actor: str
    cause: str | None
    time: datetime
    payload: Any
    at: int
    mark: str | None = None


class Call(NamedTuple):
    """One attempt of one effect: attempt number `attempt` (from 1) of a step's effect number `call` (from 0).

    Attempt 0 was never sent, because nothing in the session can perform the effect; it does not count as a call. `call`
    is OUTSIDE if no committed step made the call: its step was interrupted and did not make this call when it ran
    again. For a model's answer, `provider`, `model` and `finish_reason` state who answered (`simulated`: no model) and
    why the answer ended.
    """

    step: int
    activation: int
    call: int
    kind: str
    name: str
    attempt: int
    wait: float
    arguments: Any
    result: Any
    error: str | None
    seconds: float
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: Any = None
    provider: str | None = None
    model: str | None = None
    finish_reason: str | None = None


class Checkpoint(NamedTuple):
    """The state after a step, so that goto does not have to start from the first step. Its data never changes."""

    step: int
    writes: int
    counted_steps: int
    data: dict[int, dict[str, Any]]
    frames: tuple[tuple[int, int], ...]


class Tables:
    """Tables shared by the histories of one tree of runs: frames, activations and paths by number. They only grow.

    `shapes` are the key names of mappings in event payloads: most events of a type have the same names. `secrets` are
    those that the fields of these runs hold.
    """

    __slots__ = (
        "activation_ids", "activations", "code_ids", "codes", "frames", "plain", "secrets", "shape_ids", "shapes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.secrets = RunSecrets()
        self.frames: list[FrameRow] = [FrameRow(0, -1, -1, "root", "isolated", -1, 0, 0)]
        self.activations: list[ActivationRow] = []
        self.activation_ids: dict[ActivationRow, int] = {}
        self.codes: list[tuple[int, Path]] = []
        self.code_ids: dict[tuple[int, Path], int] = {}
        self.plain: dict[int, str] = {}  # maps codes that set a whole key of the root scope to that key
        self.shapes: list[tuple[str, ...]] = []
        self.shape_ids: dict[tuple[str, ...], int] = {}

    def add_activation(self, row: ActivationRow) -> int:
        """Return the number of an activation, adding it if it is new."""
        number = self.activation_ids.get(row)
        if number is None:
            number = self.activation_ids[row] = len(self.activations)
            self.activations.append(row)
        return number

    def add_path(self, scope: int, path: Path) -> int:
        """Return the code of a path in a scope, adding it if it is new; the op is added to the code."""
        number = self.code_ids.get((scope, path))
        if number is None:
            number = self.code_ids[scope, path] = len(self.codes) * 4
            self.codes.append((scope, path))
            if scope == 0 and len(path) == 1:
                self.plain[number] = str(path[0])
        return number

    def add_shape(self, names: tuple[str, ...]) -> int:
        """Return the number of a shape, adding it if it is new."""
        number = self.shape_ids.get(names)
        if number is None:
            number = self.shape_ids[names] = len(self.shapes)
            self.shapes.append(names)
        return number


Push = tuple[int, Any, int]  # an activation, the value of the condition or CARRIED, and the number of the edge


def carry(activations: Sequence[int]) -> list[Push]:
    """Return pushes of activations that follow no edge."""
    return [(number, CARRIED, UNKNOWN_EDGE) for number in activations]


NOW: Final = 1 << 60  # later than any step
# The columns of a new history, which begins with row 0. Copying an array costs a third of constructing it.
_ints: Final = array("I").__copy__
_signed_ints: Final = array("i").__copy__
_first_activation: Final = array("I", [NO_ACTIVATION]).__copy__
_first_number: Final = array("I", [0]).__copy__
_first_time: Final = array("q", [0]).__copy__
_first_flags: Final = array("B", [0]).__copy__


class History(LazyAttributes):
    """The steps after `base` of one branch of a run; earlier steps belong to the parent.

    `plan` is the plan with which its steps ran; None if it is unknown.
    """

    __slots__ = (
        "__weakref__",
        "_last_inherited",
        "base",
        "calls",
        "checkpoints",
        "counted_calls",
        "end_times",
        "events",
        "interventions",
        "listed_rows",
        "name",
        "new_values",
        "old_values",
        "parent",
        "plan",
        "push_activations",
        "push_edges",
        "push_ends",
        "push_values",
        "queue_starts",
        "read_codes",
        "read_steps",
        "replacements",
        "restored_state",
        "sealed_step",
        "start_times",
        "step_activations",
        "step_flags",
        "tables",
        "uncommitted_calls",
        "write_codes",
        "write_ends",
    )  # fmt: skip

    # Rare data, by step unless stated otherwise.
    insertions: dict[int, int]  # the first push of each insertion -> its end
    insertion_returns: dict[int, int]  # the last push of each -> where the waiting ones begin
    replacement_ends: dict[int, int]  # the first push of each replacement -> the end of it
    replaced_rows: dict[int, int]  # the last push of each replacement -> the push it replaces
    in_place: set[int]  # numbers of writes
    order: dict[int, int]  # a write that deletes a key -> how many keys came after it
    reduced_parts: dict[int, tuple[Part, ...]]  # a write in a branch -> its parts
    rare: list[int]  # the steps that changed the frames
    opened_frames: dict[int, tuple[int, ...]]
    closed_frames: dict[int, tuple[int, ...]]
    errors: dict[int, Failure]
    notes: dict[int, Note]
    waiting_ns: dict[int, int]  # ns that a step waited for a person
    times: dict[int, tuple[datetime, ...]]  # the clock times that a step read
    effect_steps: dict[tuple[str, int | None], list[int]]
    node_steps: dict[int, list[int]]  # the steps of each node, for the first `listed_rows` rows
    highest_events: list[int]

    lazy: ClassVar = {
        "insertions": dict, "insertion_returns": dict, "replacement_ends": dict, "replaced_rows": dict,
        "in_place": set, "order": dict, "reduced_parts": dict, "rare": list, "opened_frames": dict,
        "closed_frames": dict, "errors": dict, "notes": dict, "waiting_ns": dict, "times": dict,
        "effect_steps": dict, "node_steps": dict, "highest_events": list,
    }  # fmt: skip

    def __init__(
        self,
        tables: Tables,
        base: int = 0,
        parent: History | None = None,
        name: str | None = None,
        plan: Plan | None = None,
    ) -> None:
        self.lazy_values = {}  # see `LazyAttributes`
        self.tables, self.base, self.parent, self.name, self.plan = tables, base, parent, name, plan
        self.step_activations, self.queue_starts, self.step_flags = _first_activation(), _first_number(), _first_flags()
        self.start_times, self.end_times, self.write_ends, self.push_ends = (
            _first_time(),
            _first_time(),
            _first_number(),
            _first_number(),
        )
        self.write_codes, self.read_codes, self.read_steps = _ints(), _ints(), _ints()
        self.new_values: list[Any] = []
        self.old_values: list[Any] = []
        self.push_activations = _ints()
        self.push_values: list[Any] = []
        self.push_edges = _signed_ints()
        self.events: list[Event] = []
        self.calls: list[Call] = []
        self.replacements: dict[int, tuple[int, int, int]] = {}  # see `replace`
        self.interventions: list[Intervention] = []
        self.uncommitted_calls: tuple[Call, ...] = ()  # calls of steps that were interrupted and have not run again yet
        self.checkpoints: list[Checkpoint] = []
        # The state that was restored last, if not at the tip; shared by runs.
        self.restored_state: Checkpoint | None = None
        self.sealed_step, self.counted_calls, self.listed_rows = -1, 0, 0
        self._last_inherited: int | None = None  # see `last_inherited_event`

    def __repr__(self) -> str:
        """Return one line with the range of steps."""
        return f"<History {self.name or ''} of steps {self.base + 1} to {self.tip}>"

    @property
    def tip(self) -> int:
        """The number of the last step."""
        return self.base + len(self.step_activations) - 1

    def working_time(self, row: int) -> int:
        """Return the working time of a step in nanoseconds, without the time in which it waited for a person."""
        took = self.end_times[row] - self.start_times[row]
        return took - self.waiting_ns.get(self.base + row, 0) if self.peek("waiting_ns") else took

    def set_first_row(self, frontier: list[int], now: int) -> None:
        """Set row 0, the state in which this history starts: its time, its frontier, and the writes made so far."""
        self.push_activations.fromlist(frontier)
        self.push_values += [CARRIED if self.parent else None] * len(frontier)
        self.push_edges.extend([UNKNOWN_EDGE] * len(frontier))
        self.start_times[0] = self.end_times[0] = now
        self.write_ends[0], self.push_ends[0] = len(self.new_values), len(self.push_activations)

    def push(self, pushes: Sequence[Push]) -> None:
        """Append pushes."""
        self.push_activations.extend([number for number, _, _ in pushes])
        self.push_values.extend([value for _, value, _ in pushes])
        self.push_edges.extend([edge for _, _, edge in pushes])

    def queue(self, row: int, end: int, step: int = NOW) -> list[int]:
        """Return the activations of the queue after `step` that begins at push row `row`; the pushes end at `end`."""
        if not self.peek("insertions") and not self.replacements:
            return self.push_activations[row:end].tolist()
        return [self.push_activations[place] for place in self.queue_rows(row, end, step)]

    def queue_rows(self, row: int, end: int, step: int) -> list[int]:
        """Return the push rows of the queue that `queue` describes."""
        places = []
        while row < end:
            waiting = [row]
            while waiting:
                place = waiting.pop()
                since, first, last = self.replacements.get(place, (NOW + 1, 0, 0))
                if since > step:
                    places.append(place)
                else:
                    waiting.extend(range(last - 1, first - 1, -1))
            row = self.row_after(row)
        return places

    def replace(self, row: int, step: int, start: int, end: int) -> None:
        """Replace push `row` in the queue by the pushes from `start` to `end`, if any, from `step` on.

        A branch that advances thus changes only its own place, whatever waits before and behind it.
        """
        if start < end:
            self.replacement_ends[start], self.replaced_rows[end - 1] = end, row
        self.replacements[row] = (step, start, end)

    def find_queue_start(self, row: int) -> int:
        """Return the first push row of the queue, which begins at `row` or at its replacement."""
        while row in self.replacements:
            _, start, end = self.replacements[row]
            row = start if start < end else self.row_after(row)
        return row

    def queue_after(self, step: int) -> list[int]:
        """Return the queue after a step of this history, front first."""
        return self.queue(self.queue_starts[step - self.base], self.push_ends[step - self.base], step)

    def row_after(self, row: int) -> int:
        """Return the push row that follows `row` in a queue."""
        while row in self.replaced_rows:
            row = self.replaced_rows[row]
        if row in self.insertion_returns:
            return self.insertion_returns[row]
        row += 1
        while row in self.insertions or row in self.replacement_ends:
            row = self.insertions.get(row) or self.replacement_ends[row]
        return row

    def insert_before(self, row: int, start: int) -> None:
        """Turn the pushes from `start` on into an insertion that comes before the pushes waiting from `row` on."""
        end = len(self.push_activations)
        if row < start < end:
            self.insertions[start], self.insertion_returns[end - 1] = end, row

    def mark_rare(self, step: int) -> None:
        """Record that a step changed the frames, so that undoing its writes is not enough to undo it."""
        if not self.rare or self.rare[-1] < step:
            self.rare.append(step)

    def count_calls(self, kind: str, node: int | None, step: int) -> int:
        """Count the effects of a kind (of one node) up to a step; retries are not counted."""
        for call in self.calls[self.counted_calls :]:
            if call.attempt == 1 and call.call != OUTSIDE:
                for key in ((call.kind, None), (call.kind, self.tables.activations[call.activation].node)):
                    self.effect_steps.setdefault(key, []).append(call.step)
        self.counted_calls = len(self.calls)
        return bisect_right(self.effect_steps.get((kind, node), ()), step)

    def list_steps(self, node: int, step: int) -> list[int]:
        """Return the steps of a node up to a step."""
        for row in range(self.listed_rows, len(self.step_activations)):
            if row:
                known = self.node_steps.setdefault(self.tables.activations[self.step_activations[row]].node, [])
                if not known or known[-1] < self.base + row:  # an interrupt may have come before `listed_rows` was set
                    known.append(self.base + row)
        self.listed_rows = len(self.step_activations)
        steps = self.node_steps.get(node, [])
        return steps[: bisect_right(steps, step)]

    def last_event(self, step: int) -> int:
        """Return the highest event number up to a step; 0 if there is none.

        With concurrent steps, the step committed last may have emitted first.
        """
        events, tops = self.events, self.highest_events
        for event in events[len(tops) :] if len(tops) < len(events) else ():
            tops.append(max(event.seq, tops[-1] if tops else 0))
        row = len(events) if not events or events[-1].at <= step else bisect_right(events, step, key=_at_of)
        return tops[row - 1] if row else 0

    @property
    def last_inherited_event(self) -> int:
        """The highest event number from before this history, which can no longer change."""
        if self._last_inherited is None:
            above = self.parent
            self._last_inherited = 0 if above is None else max(above.last_event(self.base), above.last_inherited_event)
        return self._last_inherited

    def find_event_index(self, seq: int) -> int:
        """Return the index of the event with this number; -1 if there is none, or if bisection does not find it.

        Events are ordered by number, mostly without gaps, but events of concurrent steps are in the order in which the
        steps were committed.
        """
        events = self.events
        index = seq - events[0].seq if events else -1
        if not 0 <= index < len(events) or events[index].seq != seq:
            index = bisect_left(events, seq, key=_seq_of)
        return index if index < len(events) and events[index].seq == seq else -1

    def changes(self, write: int, path: Path | None = None) -> bool:
        """Return True if a write changed the value at a path; at its own path by default. See `board.paths.changes`."""
        written, op = self.tables.codes[self.write_codes[write] >> 2][1], self.write_codes[write] & 3
        return changes(written, op, self.old_values[write], self.new_values[write], written if path is None else path)

    def list_values(self, write: int, below: Path) -> tuple[Any, Any]:
        """Return the frozen values before and after a write, at a path below its first key; ABSENT for no value."""
        path, op = self.tables.codes[self.write_codes[write] >> 2][1], self.write_codes[write] & 3
        old = self.old_values[write]
        new = apply_change(old, path[1:], op, self.new_values[write], path)
        return get_at(old, below), get_at(new, below)

    def checkpoint_before(self, step: int) -> Checkpoint | None:
        """Return the last checkpoint at or before a step; None if this history has none."""
        known = self.checkpoints
        if known and known[-1].step <= step:
            return known[-1]
        at = bisect_right(known, step, key=_step_of)
        return known[at - 1] if at else None

    def state_before(self, step: int) -> Checkpoint | None:
        """Return the last available state at or before a step: a checkpoint or a restored state."""
        checkpoint, known = self.checkpoint_before(step), self.restored_state
        if known is None or known.step > step or (checkpoint is not None and checkpoint.step >= known.step):
            return checkpoint
        return known

    def _truncate_writes(self, writes: int) -> None:
        """Drop all write rows from number `writes` on."""
        del self.write_codes[writes:], self.new_values[writes:], self.old_values[writes:]
        self.in_place -= {number for number in self.in_place if number >= writes}
        for number in [number for number in self.order if number >= writes]:
            del self.order[number]
        while self.reduced_parts and next(reversed(self.reduced_parts)) >= writes:
            self.reduced_parts.popitem()

    def truncate(self, step: int) -> bool:
        """Drop all rows after `step`; return True if one of them had changed the frames."""
        row = step - self.base
        for column in (
            self.step_activations,
            self.start_times,
            self.end_times,
            self.step_flags,
            self.queue_starts,
            self.write_ends,
            self.push_ends,
        ):
            del column[row + 1 :]
        writes, pushes = self.write_ends[row], self.push_ends[row]
        self._truncate_writes(writes)
        del self.push_activations[pushes:], self.push_values[pushes:], self.push_edges[pushes:]
        for table in (self.insertions, self.insertion_returns):
            while table and next(reversed(table)) >= pushes:
                table.popitem()
        while self.replacements and next(reversed(self.replacements.values()))[0] > step:
            _, (_, start, end) = self.replacements.popitem()
            if start < end:
                self.replacement_ends.pop(start, None)
                self.replaced_rows.pop(end - 1, None)
        reads = bisect_right(self.read_steps, step)
        del self.read_steps[reads:], self.read_codes[reads:]
        while self.events and self.events[-1].at > step:
            self.events.pop()
        del self.highest_events[len(self.events) :]
        while self.calls and self.calls[-1].step > step:
            self.calls.pop()
            self.effect_steps.clear()
            self.counted_calls = 0
        if self.listed_rows > row + 1:
            self.node_steps.clear()
            self.listed_rows = 0
        for sparse in (self.errors, self.notes, self.times):
            sparse.pop(step + 1, None)
        while self.checkpoints and self.checkpoints[-1].step > step:
            self.checkpoints.pop()
        moved = self.opened_frames.pop(step + 1, None) is not None
        moved |= self.closed_frames.pop(step + 1, None) is not None
        while self.rare and self.rare[-1] > step:
            self.rare.pop()
            moved = True
        return moved


_step_of: Final = attrgetter("step")
_at_of: Final = attrgetter("at")
_seq_of: Final = attrgetter("seq")


def find_event(chain: Sequence[History], seq: int) -> Event | None:
    """Return the event with this number in a chain of histories.

    What a history has after the place where the next one begins does not belong to the chain, and its numbers may have
    been used again.
    """
    ends = [sys.maxsize, *(history.base for history in reversed(chain[1:]))]
    parts = list(zip(reversed(chain), ends, strict=True))
    for history, end in parts:
        index = history.find_event_index(seq)
        if index >= 0 and history.events[index].at <= end:
            return history.events[index]
    # Events are not always in the order of their numbers: the step committed last may have emitted first.
    matches = (
        event for history, end in parts for event in reversed(history.events) if event.seq == seq and event.at <= end
    )
    return next(matches, None)
