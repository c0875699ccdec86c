"""The state of one run. Everything a run can change is here: data by scope, counters, frontier, position, histories."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby
from threading import RLock
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid4

from agentnb.board.masking import register_secrets
from agentnb.board.paths import APPEND, DELETE, SET, Path, apply_change
from agentnb.board.scopes import Scope, make_closed_scope_error, put
from agentnb.board.values import ABSENT, ATOMS, FrozenList, freeze
from agentnb.clock import Clock
from agentnb.engine.core.events import get_visible_events
from agentnb.engine.core.frames import Activation, Frame
from agentnb.engine.core.history import ActivationRow, Checkpoint, Event, FrameRow, History, Note, Tables, find_event
from agentnb.engine.core.reducers import Part, ReducedWrite, find_added_items, replaces_value
from agentnb.engine.core.rng import SeededRandom
from agentnb.engine.core.work import Append, Perform, Work, split_op
from agentnb.errors import BoardError, Problem
from agentnb.event_loops import NeedLoop, is_in_loop
from agentnb.ids import IDGen
from agentnb.secrets import is_secret
from agentnb.text import safe_repr
from agentnb.world.effect import Effect

if TYPE_CHECKING:
    from agentnb.engine.core.interfaces import AnswerSource, Dispatcher, Limiter, RecordedSteps, Recorder
    from agentnb.engine.core.pending_step import PendingStep
    from agentnb.engine.core.plan import Plan
    from agentnb.engine.core.queue_index import QueueIndex
    from agentnb.world.fault_injection import Chaos

# Why a step or a run stopped. GO is falsy: the run continues.
GO, DONE, FAILED, SUSPENDED, PAUSED, EXHAUSTED, BREAK, LANES = range(8)
# Whether branches are running concurrently now, or only those in flight are finishing.
NONE, GOING, ENDING = range(3)
CHECKPOINT_ROWS: Final = 512
NEVER: Final = 1 << 60
ALWAYS: Final = -1
MAX_FRAMES: Final = 64
PLAIN: Final = ATOMS - {type(ABSENT)}
NOTHING: Final = freeze({})
_NO_SALT: Final = UUID(int=0)
_ROOT_ALONE: Final[tuple[tuple[int, int], ...]] = ((0, 1),)  # the root frame, in its first and only iteration
_NOTHING_DRAWN: Final[tuple[History | None, int, dict[str, Any]]] = (None, -1, {})  # matches no position
_new_row: Final = tuple.__new__  # the constructor of a named tuple costs twice as much


def _go_on(_activation: Activation, code: int) -> int:
    return code


class Halt:
    """A request to start no further step; each run call checks the one that was current when it started."""

    __slots__ = ("is_requested",)

    def __init__(self) -> None:
        self.is_requested = False


def make_key_error(key: object, where: str) -> BoardError:
    """Return the error for a board key that is not a string: B105."""
    return BoardError(
        Problem("B105", f"{safe_repr(key)} cannot be a key of the board", where,
                f"board keys are strings, and this is of type {type(key).__name__}", f"use {safe_repr(key)!r}")
    )  # fmt: skip


class Run:
    """One run of a plan: its position, and everything that it needs to continue.

    `chain` holds the histories from the oldest to this run's own (`history`); `current_history` is the one that
    contains the position. `position` is the number of the last step, `queue_start` where its frontier begins in the
    push rows of that history. `counted_steps` is the number of steps that count towards `limit`. `next_due` is the
    next step after which a checkpoint or limit is due. `is_rewound` is True if committed steps may lie after the
    position, `dirty` while the run moves there. `armed` is True if there are listeners, watches or breakpoints.
    `uses_threads` sends blocking calls to threads; while `keeps_loop_free` is not 0, also the first step of each node
    (it counts the callers that keep the event loop free for other cells). `blocked` has the number of the activation
    that last blocked an event loop which it shares, and for how many ns. `halt` asks the run call active in a loop to
    start no further step. `abandoned_branches` are the branches that this run has left. `inputs` are its inputs,
    frozen. `dispatcher` performs its effects, `chaos` injects faults into them, `limiter` admits or refuses each
    attempt. `random_state` holds the position before the last step and what had been drawn by then. `recorded` has the
    calls and events that its next steps have made before; `hidden_events` are the numbers of recorded events that come
    later than the step being replayed. `answer_source` answers calls from the record of another run. `recorder` is
    notified of what a step does before it is committed. `on_token` receives a model's output as it is streamed, if
    there is a listener: the fields of a `listeners.Token`. `holds_call` returns True if a call is to be paused.
    `on_emit` receives each event that a node emits, and may stop its step there. `wrap_perform` receives each
    activation's function and returns the one to call instead. `on_retry` is notified of each retry of a call: its
    number, and the error of the previous attempt. `run_id` returns the run's id, `origin_id` the id of the run from
    which it was forked, directly or not, or its own if it is not a fork. `salt` makes the ids that its nodes draw
    differ from those of other runs; forks and replays share it. `lanes` tells whether branches are running concurrently
    now; `before_activation` is then called before each activation of a branch and returns whether the run stops.
    `joinless_since` is the position since which no join has been queued (NEVER: unknown; ALWAYS: the plan has none).
    """

    # Attributes that few runs use stay unset until needed, because so many attributes would make a large dictionary.
    __slots__ = (
        "__weakref__",
        "abandoned_branches",
        "after_step",
        "answer_source",
        "armed",
        "before_activation",
        "blocked",
        "chain",
        "chaos",
        "clock",
        "counted_steps",
        "current_history",
        "dirty",
        "dispatcher",
        "frames",
        "halt",
        "has_masked_values",
        "hidden_events",
        "history",
        "holds_call",
        "ids",
        "inputs",
        "is_rewound",
        "joinless_since",
        "keeps_loop_free",
        "lanes",
        "limit",
        "limiter",
        "live_activations",
        "max_frames",
        "max_subgraph_depth",
        "next_checkpoint",
        "next_due",
        "ns",
        "numbering",
        "on_emit",
        "on_retry",
        "on_token",
        "origin_id",
        "pending_steps",
        "plan",
        "position",
        "queue_index",
        "queue_start",
        "random_state",
        "recorded",
        "recorder",
        "rng",
        "root",
        "run_id",
        "salt",
        "seed",
        "stop_at",
        "tables",
        "uses_threads",
        "without_loop",
        "world",
        "wrap_perform",
    )  # fmt: skip

    def __init__(
        self,
        plan: Plan,
        dispatcher: Dispatcher,
        *,
        clock: Clock | None = None,
        seed: int = 0,
        history: History | None = None,
    ) -> None:
        self.plan, self.world, self.dispatcher = plan, plan.world, dispatcher
        self.on_emit: Callable[[Work, Event], None] | None = None
        self.on_retry: Callable[[Work, Effect, int, Exception], None] | None = None
        # Called before an activation of a concurrent branch.
        self.before_activation: Callable[[Activation], bool] | None = None
        self.rng: SeededRandom | None = None  # see `random`
        self.chaos: Chaos | None = None
        self.holds_call: Callable[[Work, Any, str], bool] | None = None
        self.keeps_loop_free, self.uses_threads = 0, False
        self.blocked = (-1, 0)
        self.max_subgraph_depth: int | None = None
        self.numbering = RLock()  # nodes in threads may emit at the same time; an interrupt may leave the lock acquired
        self.queue_index: QueueIndex | None = None  # while many branches are open
        self.run_id: Callable[[], str] = str
        self.origin_id: Callable[[], str] = str
        self.on_token: Callable[[str, str, int, int, str], None] | None = None
        self.hidden_events: frozenset[int] = frozenset()
        self.clock = clock or Clock()
        self.ns: Callable[[], int] = self.clock.ns
        self.seed, self.salt, self.max_frames = seed, _NO_SALT, MAX_FRAMES
        self.ids = IDGen()
        self.history = self.current_history = history or History(Tables(), plan=plan)
        self.tables = self.history.tables
        self.chain: list[History] = [self.history]
        self.abandoned_branches: tuple[tuple[tuple[History, ...], int], ...] = ()
        self.position = self.queue_start = self.counted_steps = 0
        self.limit = self.stop_at = NEVER
        self.joinless_since = NEVER if plan.joins else ALWAYS
        self.next_checkpoint, self.next_due = CHECKPOINT_ROWS, CHECKPOINT_ROWS
        self.armed = self.dirty = self.is_rewound = False
        # True while driven without an event loop, even if one is running around it (a kernel's)
        self.without_loop = False
        self.lanes, self.halt = NONE, Halt()
        self.after_step: Callable[[Activation, int], int] = _go_on
        self.random_state = _NOTHING_DRAWN
        self.live_activations: dict[int, Activation] = {}
        self.pending_steps: dict[int, PendingStep] = {}
        self.inputs = NOTHING
        self.limiter: Limiter | None = None
        self.recorded: RecordedSteps | None = None
        self.answer_source: AnswerSource | None = None
        self.has_masked_values = False  # True if values may be missing because they were masked when the run was saved
        self.recorder: Recorder | None = None
        self.wrap_perform: Callable[[Activation, Perform], Perform] | None = None
        self.root = Frame(self.tables.frames[0], None, Scope(0, "root"))
        self.frames: dict[int, Frame] = {0: self.root}

    @property
    def random(self) -> SeededRandom:
        """The run's random number generator, created from its seed."""
        if self.rng is None:
            self.rng = SeededRandom(self.seed)
        return self.rng

    def begin(self, inputs: Mapping[str, Any]) -> None:
        """Write row 0: the recipe's initial values and the inputs, and the entry nodes as the frontier."""
        self.inputs, begin = freeze(dict(inputs)), self.plan.recipe.begin
        if self.plan.recipe.random_ids:
            self.salt = uuid4()
        board = {**self.plan.recipe.init, **inputs} if begin is None else begin(inputs)
        for key, value in board.items():
            self.write(self.root.scope, (key,), value)
        register_secrets(self.root.scope.data, owner=self.tables.secrets)
        entries = [self.get_activation(node, self.root).id for node in self.plan.entries["root"]]
        self.history.set_first_row(entries, self.ns())
        self.checkpoint()

    # -- activations and frames ------------------------------------------------------------------------------

    def get_activation(self, node: int, frame: Frame, what: int = 0, event: int = -1, about: int = -1) -> Activation:
        """Return the activation of a node in a frame, the same object each time."""
        row = _new_row(ActivationRow, (node, frame.id, what, event, about))
        number = self.tables.add_activation(row)
        activation = self.live_activations.get(number)
        if activation is None:
            activation = Activation(number, row, self.plan.nodes[node], frame, self)
            activation.work = Work(self, activation)
            frame.activations[number] = self.live_activations[number] = activation
        return activation

    def find_activation(self, number: int) -> Activation:
        """Return the activation with this number, in this run's own frames."""
        activation = self.live_activations.get(number)
        if activation is None:
            row = self.tables.activations[number]
            activation = self.get_activation(row.node, self.frames[row.frame], row.purpose, row.event, row.about)
        return activation

    def refresh_activation(self, activation: Activation) -> Activation:
        """Return the current object of an activation, with the work it started: a repair may have rebuilt its frame."""
        now = self.live_activations.get(activation.id)
        if now is not activation:
            now = self.find_activation(activation.id)
            work = now.work = activation.work
            work.activation, work.scope = now, now.scope
        return now

    def make_work(self, activation: Activation) -> Work:
        """Return the Work object passed to an activation's node."""
        return Work(self, activation)

    def open_frame(self, row: FrameRow) -> Frame:
        """Open the frame that a row describes; its parent must be open."""
        parent = self.frames[row.parent]
        if row.policy == "shared":
            scope = parent.scope
        else:
            name = f"{row.region}@{row.opened_at}" if row.branch < 0 else f"{row.region}@{row.opened_at}.{row.branch}"
            scope = Scope(row.scope, name, parent.scope if row.policy == "child" else None)
            if row.policy == "child":
                parent.scope.open += 1
        frame = self.frames[row.id] = Frame(row, parent, scope)
        return frame

    def close_frame(self, number: int) -> None:
        """Remove a frame from this run; the history keeps its steps."""
        frame = self.frames.pop(number)
        if frame.row.policy == "child" and frame.scope.parent is not None:
            frame.scope.parent.open -= 1
        for activation in frame.activations:
            self.live_activations.pop(activation, None)

    def list_inner_frames(self, activation: Activation) -> list[Frame]:
        """Return the open frames that this activation's node opened, in branch order.

        These are all frames directly inside its own: the queue continues inside a composite node before anything that
        waits beside it, so a frame has no second composite node that is open.
        """
        return [frame for frame in self.frames.values() if frame.parent is activation.frame]

    def frontier(self) -> list[int]:
        """Return the numbers of the next activations, front first."""
        at = self.current_history
        return at.queue(self.queue_start, at.push_ends[self.position - at.base], self.position)

    def note_joins(self, *, queued: bool) -> None:
        """Note whether a join will be in the queue after the step that is being committed."""
        if self.plan.joins:
            self.joinless_since = NEVER if queued else min(self.joinless_since, self.position + 1)

    # -- writes: the only place where keys of a scope change ---------------------------------------------------------

    def get_key_code(self, scope: Scope, key: str) -> int:
        """Return the code of a key in a scope. Keys are strings.

        Raises:
            BoardError: B105, the key is not a string.
        """
        code = scope.codes.get(key)
        if code is None:
            if type(key) is not str:
                if not isinstance(key, str):
                    raise make_key_error(key, "what a node returned")
                key = str.__str__(key)
            code = self.tables.add_path(scope.id, (key,))
            if not is_secret(key):  # a secret's code is not cached, so that `write` sees each of its values
                scope.codes[key] = code
        return code

    def _get_path_code(self, scope: Scope, path: Path) -> int:
        """Return the code of a path in a scope."""
        return self.get_key_code(scope, path[0]) if len(path) == 1 else self.tables.add_path(scope.id, path)  # type: ignore[arg-type]  # `get_key_code` refuses what is not a text

    def write(self, scope: Scope, path: Path, value: Any, *, in_place: bool = False) -> None:
        """Write one value: its row first, then the board, so that `repair` can undo it at any moment.

        Raises:
            BoardError: the value cannot be stored, or the path does not exist.
            BoardError: B106, a child scope of this one is open.
        """
        if scope.open:
            raise make_closed_scope_error(scope, path)
        history = self.history
        key: str = path[0]  # type: ignore[assignment]  # `get_key_code` refuses any other
        known = scope.codes.get(key) if len(path) == 1 else None
        code = known if known is not None else self._get_path_code(scope, path)
        seen, inside = scope.get(key), path[1:]
        parts: tuple[Part, ...] | None = None
        if type(value) is ReducedWrite:
            parts, value = self._combine(scope, value, seen, key)
            appends = self.plan.supersteps and not replaces_value(parts or ())
            if appends and self._write_appended(scope, path, find_added_items(seen, value)):
                return
        if type(value) is Append:
            op, new = APPEND, freeze(value.item)
            grows = not inside and type(seen) is FrozenList
            top = seen.with_item(new) if grows else apply_change(seen, inside, APPEND, new, path)
        elif value is ABSENT:
            op, new = DELETE, ABSENT
            top = apply_change(seen, inside, DELETE, ABSENT, path)
            if top is seen:
                return
        else:
            op, new = SET, freeze(value, scope.get_at(path) if inside else seen)
            top = apply_change(seen, inside, SET, new, path) if inside else new
        if known is None and (inside or key not in scope.codes):  # keys of secrets are never cached
            for name in filter(is_secret, path):
                register_secrets(new, name, self.tables.secrets)
        if top is ABSENT:
            self._record_key_order(scope, key, len(history.new_values))
        if in_place:
            history.in_place.add(len(history.new_values))
        if parts:
            history.reduced_parts[len(history.new_values)] = parts
        history.write_codes.append(code + op)
        history.new_values.append(new)
        history.old_values.append(scope.data.get(key, ABSENT))
        put(scope, key, top)

    def _combine(self, scope: Scope, write: ReducedWrite, old: Any, key: str) -> tuple[tuple[Part, ...] | None, Any]:
        """Return the value of a write that reducers combine, and its parts if they are needed later.

        They are needed by the section that merges a branch and, in a superstep, by the siblings of a node that replaces
        the value.
        """
        value = write.apply_to(old, key, self.plan)
        needed = scope.parent is not None or (self.plan.supersteps and replaces_value(write.parts))
        return (write.parts if needed else None), value

    def _write_appended(self, scope: Scope, path: Path, items: Sequence[Any]) -> bool:
        """Write the items that a reducer has appended to a list, one by one; return True if there are any."""
        for item in items:
            self.write(scope, path, Append(item))
        return len(items) > 0

    def _record_key_order(self, scope: Scope, key: str, row: int) -> None:
        """Record how many keys come after a deleted one, so that undoing the deletion restores its place."""
        behind = 0
        for other in reversed(scope.data):
            if other == key:
                break
            behind += 1
        if behind and scope.parent is None:
            self.history.order[row] = behind

    def make_preview(self, work: Work) -> Scope:
        """Return a scope that shows a node's writes before its step is committed."""
        seen = work.scope.make_view("preview")
        for path, value in work.own_writes:
            op, new = split_op(value)
            key = str(path[0])
            put(seen, key, apply_change(seen.get(key), path[1:], op, freeze(new), path))
        return seen

    # -- checkpoints and limits ------------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Save a checkpoint of the state, and schedule the next one: after 512 rows plus one per key."""
        history, position = self.history, self.position
        if len(self.frames) == 1:
            data, frames = {0: dict(self.root.scope.data)}, _ROOT_ALONE
        else:
            scopes = {frame.scope.id: frame.scope for frame in self.frames.values()}
            data = {number: dict(scope.data) for number, scope in scopes.items()}
            frames = tuple((frame.id, frame.iteration) for frame in self.frames.values())
        if not history.checkpoints or history.checkpoints[-1].step < position:
            writes = history.write_ends[position - history.base]
            history.checkpoints.append(Checkpoint(position, writes, self.counted_steps, data, frames))
        self.next_checkpoint = position + CHECKPOINT_ROWS + sum(map(len, data.values())) + len(frames) - 1
        self.set_next_due()

    def set_next_due(self) -> None:
        """Set `next_due`, the next step after which a checkpoint or limit is due."""
        self.next_due = min(self.next_checkpoint, self.stop_at, self.position + self.limit - self.counted_steps)

    def handle_due(self) -> int:
        """Handle what is due: a checkpoint, the end of this call, or the end of the budget."""
        if self.position >= self.next_checkpoint:
            self.checkpoint()
        code = GO
        if self.position >= self.stop_at:
            code = PAUSED
        if self.halt.is_requested:
            code = PAUSED
        if self.is_exhausted():
            code = EXHAUSTED
        self.set_next_due()
        return code

    def is_exhausted(self) -> bool:
        """Return True if the step limit is reached: the next activation counts, and no step remains."""
        if (
            self.counted_steps < self.limit
            or self.queue_start >= self.current_history.push_ends[self.position - self.current_history.base]
        ):
            return False
        number = self.current_history.push_activations[self.queue_start]
        return self.tables.activations[number].node < 0 or self.find_activation(number).cost > 0

    # -- events and effects, called by Work ------------------------------------------------------------------

    def get_event(self, seq: int) -> Event | None:
        """Return the event with this number."""
        return None if seq < 0 else find_event(self.chain, seq)

    def events(self) -> list[Event]:
        """Return the events up to the run's position, in order."""
        return get_visible_events(self)

    def last_event(self) -> int:
        """Return the highest event number of this run; 0 before the first event.

        Includes events of steps in flight and of interrupted steps that have not started again.
        """
        history = next(history for history in reversed(self.chain) if history.base <= self.position)
        highest = max(history.last_event(self.position), history.last_inherited_event)
        if self.recorded is not None:
            highest = max(highest, self.recorded.last_event())
        if not self.pending_steps:
            return highest
        # Copied, because other threads may call this
        flying = [pending_step.activation.work.emitted for pending_step in tuple(self.pending_steps.values())]
        return max([highest, *(emitted[-1].seq for emitted in flying if emitted)])

    def count_calls(self, kind: str, node: str | None = None) -> int:
        """Count the effects of a kind (of one node) called by the steps up to here, without retries."""
        number = None if node is None else self.plan.index.get(node, -1)
        return sum(history.count_calls(kind, number, end) for history, end in self.parts())

    def derive_seed(self, activation: Activation) -> str:
        """Return the random seed for a step that starts, independent of what runs concurrently."""
        number, lane = activation.node.index, self._lane(activation.frame.id)
        earlier = 0
        with self.numbering:  # nodes in threads may call this at once
            for history, end in self.parts():
                steps = history.list_steps(number, end)
                if lane:
                    frames = (
                        self.tables.activations[history.step_activations[step - history.base]].frame for step in steps
                    )
                    earlier += sum(self._lane(frame) == lane for frame in frames)
                else:
                    earlier += len(steps)
        return f"{self.seed}:{activation.node.id}:{lane}:{earlier}"

    def _lane(self, frame: int) -> tuple[tuple[str, int], ...]:
        """Return the parallel branches around a frame: for each, the node that opened it and the branch number."""
        lane = []
        while frame:
            row = self.tables.frames[frame]
            if row.branch >= 0:
                lane.append((self.plan.nodes[row.owner].id, row.branch))
            frame = row.parent
        return tuple(lane)

    def last_note(self, node: str, kinds: Sequence[str]) -> Note | None:
        """Return the note of a node's last step so far that made effects of some kinds.

        Failed steps are skipped. None if there is no such step, or it has no note.
        """
        number = self.plan.index.get(node, -1)
        for history, end in reversed(self.parts()):
            # This also updates `effect_steps`
            ends = [(kind, history.count_calls(kind, number, end)) for kind in kinds]
            steps = [
                map(history.effect_steps[kind, number].__getitem__, range(count - 1, -1, -1))
                for kind, count in ends
                if count
            ]
            for step, _ in groupby(merge(*steps, reverse=True)):
                if step not in history.errors:
                    return history.notes.get(step)
        return None

    def parts(self) -> list[tuple[History, int]]:
        """Return the histories on the way to the run's position, each with its last step on that path."""
        ends = [*(history.base for history in self.chain[1:]), self.position]
        pairs = zip(self.chain, ends, strict=True)
        return [(history, min(end, self.position)) for history, end in pairs if history.base <= self.position]

    def find_history_of_step(self, step: int) -> History:
        """Return the history of the chain that contains a step, the one that is being committed included."""
        return next(history for history in reversed(self.chain) if history.base < step)

    def get_step_activation(self, step: int) -> ActivationRow:
        """Return the activation that ran in a step."""
        history = self.find_history_of_step(step)
        return self.tables.activations[history.step_activations[step - history.base]]

    def get_opening_activation(self, frame: Frame) -> ActivationRow:
        """Return the activation of a composite node in which it opened a frame."""
        return self.get_step_activation(frame.row.opened_at)

    def iter_activations_back(self, start: int = 0) -> Iterator[tuple[int, ActivationRow]]:
        """Yield the steps after step `start` up to the position, last first, with their activations."""
        parts = [(self.history, self.position)] if start >= self.history.base else self.parts()
        for history, end in reversed(parts):
            for step in range(end, max(history.base, start), -1):
                yield step, self.tables.activations[history.step_activations[step - history.base]]

    def iter_write_rows(self, step: int) -> Iterator[tuple[History, int, bool]]:
        """Yield the write rows of a step: history, number, and whether a person wrote it after the step, by an edit.

        A branch that begins after the step has edits after it, too.
        """
        ends = [*(history.base for history in self.chain[1:]), NEVER]
        for history, last in zip(self.chain, ends, strict=True):
            if history.base <= step <= last:
                row = step - history.base
                start = history.write_ends[row - 1] if row else 0
                end = history.write_ends[row] if row < len(history.write_ends) else len(history.write_codes)
                edits = sum(each.step == step and each.has_write_row for each in history.interventions)
                yield from ((history, at, at >= end - edits) for at in range(start, end))

    def iter_writes(self, scope: Scope, step: int) -> Iterator[tuple[str, Any, Any]]:
        """Yield the writes of a step, and after it, to the keys of a scope: (key, previous value, new value)."""
        for history, at, _ in self.iter_write_rows(step):
            owner, path = self.tables.codes[history.write_codes[at] >> 2]
            if owner == scope.id:
                yield str(path[0]), history.old_values[at], history.new_values[at]

    def get_last_activation(self) -> ActivationRow | None:
        """Return the activation of the step at the run's position; None before the first."""
        return self.get_step_activation(self.position) if self.position else None

    def get_node_id(self, activation: int) -> str:
        """Return the id of an activation's node."""
        return self.plan.nodes[self.tables.activations[activation].node].id

    def release(self) -> None:
        """Break the reference cycles of a run that is no longer used: its memory is freed without the collector."""
        for activation in self.live_activations.values():
            del activation.work.board, activation.work
        for frame in self.frames.values():
            frame.activations.clear()
        self.live_activations.clear()

    async def require_loop(self) -> None:
        """Continue inside an event loop."""
        if self.without_loop or not is_in_loop():
            await NeedLoop()
