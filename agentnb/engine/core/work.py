"""Work: what a node receives for a step, and what it may return. Kinds access neither the cursor nor the history."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from uuid import UUID

from agentnb.board.copies import make_reader_copy, seems_unchanged
from agentnb.board.key_checks import UnknownKey
from agentnb.board.paths import APPEND, DELETE, SET, Path, get_at
from agentnb.board.scopes import Policy
from agentnb.board.values import ABSENT, ATOMS, FrozenRecord, is_unchanged, thaw
from agentnb.engine.core.events import get_events_before, make_event, restore_event
from agentnb.engine.core.frames import get_frame_inputs, get_last_observation
from agentnb.engine.core.reducers import ReducedWrite, replaces_value
from agentnb.errors import ExecutionError, Problem
from agentnb.expressions.paths import resolve_path
from agentnb.recipe.model import Node, RouteTarget
from agentnb.text import safe_repr
from agentnb.world.effect import Effect

if TYPE_CHECKING:
    from datetime import datetime

    from agentnb.engine.core.frames import Activation, Frame
    from agentnb.engine.core.history import Call, Event
    from agentnb.engine.core.run import Run

StepType = Literal["TOOL_EXECUTION", "INTERACTION", "REASONING", "SYSTEM_EVENT"]
Phase = Literal["start", "resume"]
Keep = Literal["now", "next", "step"]
# A call in flight: its attempt, the effect, the arguments sent, when (ns), and the delay before it (seconds).
SentCall = tuple[int, Effect, Any, int, float]


class Append:
    """A write that appends one item to the list at its path, created if missing: `return {"log": Append(line)}`."""

    __slots__ = ("item",)

    def __init__(self, item: Any) -> None:
        self.item = item

    def __repr__(self) -> str:
        return f"Append({safe_repr(self.item, 200)})"


class SendTarget(NamedTuple):
    """A target with its own input: the payload of event number `event` (see `Work.send`).

    Without a node, it ends the frame: the composite node resumes on that event, and everything else scheduled is
    dropped.
    """

    node: str
    event: int


Target = str | RouteTarget | SendTarget  # of a route; an id alone does not say which edge was chosen


@dataclass(slots=True)
class Outcome:
    """The result of a node beyond a dict of writes (a plain dict is short for `Outcome(dict)`).

    `writes` maps keys to values; `nested_writes` are writes below a key: (path, value). `route` holds the targets that
    the node chose itself, with `value` as the reason; None means that the edges decide (in supersteps, edges are
    followed as well). The rest is for the trace; `score` is the quality of the run's work, if the node judged it.
    `result` is the node's result for the conditions of its edges and for an enclosing loop; it is not on the board.
    `error` is a failure after the node had done its work: if an error edge handles it, the writes stay and the route is
    taken as well.
    """

    writes: Mapping[str, Any] = field(default_factory=dict)
    nested_writes: Sequence[tuple[Path, Any]] = ()
    route: Sequence[Target] | None = None
    value: Any = None
    thought: str | None = None
    action: Any = None
    observation: Any = None
    inputs: Any = None
    score: float | None = None
    result: Any = None
    error: Exception | None = None


@dataclass(slots=True, frozen=True)
class Body:
    """A region to open: its scope policy, its initial values, and its number if it is a parallel branch.

    `inputs` holds the inputs of the inside, merged over those of the enclosing frame; None means the same inputs.
    """

    region: str
    policy: Policy = "shared"
    values: Mapping[str, Any] = field(default_factory=dict)
    branch: int = -1
    inputs: Mapping[str, Any] | None = None


@dataclass(slots=True)
class Enter:
    """Returned by a composite node when it starts: open these bodies; when they have ended, the node resumes."""

    bodies: Sequence[Body]


@dataclass(slots=True)
class Repeat:
    """Returned by a composite node when its body has ended: run the body once more, in the same frame."""


Result = dict[str, Any] | Outcome | Enter | Repeat | None
Perform = Callable[["Work"], "Result | Awaitable[Result]"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A row in the table of kinds.

    `bind(node, world)` returns the function that runs the node; if `ignores_world(node)` is True, it is the same in
    every world. `keeps_writes` means that its writes and events are kept when it fails, `keeps_events` that only its
    events are. `is_join` marks a join, which runs when everything that leads to it has finished. `returns_reduced`
    means that its functions return `ReducedWrite`s for the keys that reducers combine. `choose_after_skip` returns the
    targets of a skipped node that its function would choose. A kind that is not `is_public` does not occur in recipes;
    dialects create it.
    """

    name: str
    bind: Callable[[Node, Any], Perform]
    step_type: StepType = "TOOL_EXECUTION"
    keeps_writes: bool = False
    keeps_events: bool = False
    is_join: bool = False
    returns_reduced: bool = False
    is_public: bool = True
    ignores_world: Callable[[Node], bool] | None = None
    choose_after_skip: Callable[[Work], Sequence[Target]] | None = None


class Work:
    """A node's interface to one step: its view of the board, and the only way to act.

    `board` is a read-only Mapping that records what is read. `phase` is `start`, or `resume` when the inside of a
    composite node has ended; `frames` are then the frames it opened. `iteration` counts the runs of a loop's body.
    """

    __slots__ = (
        "activation",
        "applied_writes",
        "asked_kinds",
        "board",
        "busy",
        "call_count",
        "calls",
        "calls_in_flight",
        "copies",
        "emitted",
        "has_ended",
        "needs_loop",
        "own_writes",
        "reads",
        "result",
        "rng",
        "run",
        "scope",
        "times",
    )

    def __init__(self, run: Run, activation: Activation) -> None:
        self.run = run
        self.activation = activation
        self.scope = activation.scope
        self.board = NodeBoard(self)
        self.reads: dict[str, None] = {}
        self.copies: dict[str, tuple[Any, Any]] = {}
        # The node's own writes: in `own_writes` until they are on the board, then in `applied_writes`.
        self.own_writes: list[tuple[Path, Any]] = []
        self.applied_writes: list[tuple[Path, Any]] = []
        self.emitted: list[Event] = []
        self.times: list[datetime] = []  # the times this step has read from a real clock
        self.calls: list[Call] = []
        self.calls_in_flight: dict[int, SentCall] = {}
        # the kinds of the model calls and questions to people that this step has started
        self.asked_kinds: list[str] = []
        self.call_count = 0  # how many calls this step has started; a retried call has several rows
        self.result: Any = None
        self.rng: Random | None = None
        self.has_ended = False  # whether the step has ended
        self.needs_loop = False  # True if its own code awaits an event loop
        self.busy = False  # True if there is more to record than the writes that a node returns

    @property
    def node(self) -> Node:
        """The node as written in the recipe."""
        return self.activation.node.node

    @property
    def phase(self) -> Phase:
        """`start`, or `resume` when the node's inside has ended."""
        return "resume" if self.activation.purpose else "start"

    @property
    def frames(self) -> list[Frame]:
        """The frames that this composite node opened, in branch order."""
        return self.run.list_inner_frames(self.activation)

    @property
    def iteration(self) -> int:
        """How often the body has run, starting at 1; 0 before the first time."""
        frames = self.frames if self.activation.purpose else []
        return frames[0].iteration if frames else 0

    @property
    def random(self) -> Random:
        """The step's random generator, seeded by the run's seed, the node, and how often the node ran before.

        A step that is replayed, run again after going back, or run concurrently with other branches thus draws the same
        numbers.
        """
        if self.rng is None:
            self.rng = Random(self.run.derive_seed(self.activation))  # noqa: S311  (for reproducibility, not for security)
            self.busy = True  # so that it is reset when the step ends
        return self.rng

    def make_uuid(self) -> UUID:
        """Return a random id, which a replay or a fork of this run draws again.

        In a recipe with `random_ids`, no other run draws it, even with the same seed.
        """
        return UUID(int=self.random.getrandbits(128) ^ self.run.salt.int, version=4)

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs of the run, overridden by those of each enclosing frame; a new copy."""
        return get_frame_inputs(self.run, self.activation.frame.id)

    @property
    def last_observation(self) -> Any:
        """The observation of the last step directly inside this composite node; None if there is none."""
        return get_last_observation(self.run, self.frames)

    @property
    def event(self) -> Event | None:
        """The event that triggered this node; None outside a reactive run."""
        return self.run.get_event(self.activation.event)

    @property
    def events(self) -> list[Event]:
        """The events of the run up to now, with those just emitted here and without those of concurrent branches."""
        return [*get_events_before(self.run, self.activation.frame), *self.emitted]

    def arg(self, path: Path) -> Any:
        """Return this step's own copy of the value at a path; ABSENT if there is none. Not recorded as a read."""
        key = path[0]
        value = self.scope.get(key)  # type: ignore[arg-type]  # a first key is text
        if len(path) == 1:
            return value if type(value) in ATOMS else self.copy(str(key), value)
        if key not in self.copies:
            part = get_at(value, path[1:])
            if type(part) in ATOMS:
                return part
        return _find_inside(self.copy(str(key), value), value, path[1:])

    def copy(self, key: str, frozen: Any) -> Any:
        """Return this step's own copy of a key's value; changes made in it become writes."""
        loan = self.copies.get(key)
        if loan is None or loan[1] is not frozen:
            loan = self.copies[key] = (make_reader_copy(frozen), frozen)
        return loan[0]

    def write(self, path: str | Path, value: Any) -> None:
        """Write a value at a key or a path; the node sees it at once, others when the step is committed."""
        if self.has_ended:
            self._refuse(f"write {path!r}")
        self.busy = True
        self.own_writes.append(((path,) if isinstance(path, str) else path, value))

    def emit(
        self, type: str, payload: Any = None, actor: str | None = None, *, keep: Keep = "now", **options: Any
    ) -> Event:
        """Emit an event and return it, numbered; this node sees it at once.

        Args:
            keep: when a stored run records it: `now`; with the `next` record of this step, for an event that only marks
                the start of a step; or with the `step` itself, if nothing but the commit follows.
            options: see `events.make_event`.
        """
        if self.has_ended:
            self._refuse(f"emit {type!r}")
        self.busy = True
        run = self.run
        known = None if run.recorded is None else run.recorded.find_emitted(self, type, payload, options)
        with run.numbering:
            event = (
                make_event(run, self, type, payload, actor, options)
                if known is None
                else restore_event(known, actor, options)
            )
            self.emitted.append(event)
        if run.recorder is not None and known is None and keep != "step" and self.activation.node.kind.keeps_writes:
            run.recorder.record_event(self, event, alone=keep == "now")
        if run.on_emit is not None:
            run.on_emit(self, event)
        return event

    def send(self, node: str, input: Any) -> SendTarget:
        """Return a target for `Outcome.route`: the node runs once for this input, in the next superstep."""
        return SendTarget(node, self.emit("send", {"node": node, "input": input}).seq)

    def end_frame(self, type: str, payload: Any) -> SendTarget:
        """Return a target for `Outcome.route` that ends this step's frame: the composite node resumes on an event."""
        return SendTarget("", self.emit(type, payload).seq)

    def call(self, effect: Effect) -> Coroutine[Any, Any, Any]:
        """Perform an effect and await the answer. The only access to tools, models, people, time and random numbers."""
        if self.has_ended:
            self._refuse(f"call {effect.name!r}")
        return self.run.dispatcher.call(self, effect)

    def asks_model(self, usual: bool) -> bool:
        """Return True if the next call is to a model: the recorded call was or, without a record, `usual` is True.

        A node that can be answered by a model, a callable or a simulation uses this to decide, so that a replay makes
        the recorded calls whatever has been registered in the session since.
        """
        recorded, source = self.run.recorded, self.run.answer_source
        kind = None if recorded is None else recorded.get_next_kind(self)
        if kind is None and source is not None:
            kind = source.get_kind(self)
        return kind == "llm" if kind in ("agent", "llm") else usual

    def now(self) -> datetime:
        """Return the current time as nodes see it.

        Replays and interrupted steps that run again read the recorded times.
        """
        run = self.run
        time = None if run.recorded is None else run.recorded.time(self)
        if time is None:
            time = run.clock.now()
            if not run.clock.is_recorded:
                return time
        self.times.append(time)
        self.busy = True
        return time

    async def loop(self) -> None:
        """Continue inside an event loop, which everything awaited after this needs."""
        self.needs_loop = True
        await self.run.require_loop()

    def find_changes_before_reducers(self, writes: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Return the keys whose copies this node has changed before reducers add what it wrote.

        Changes inside the objects of a long list are not included.
        """
        changes = []
        for key, value in writes.items():
            if type(value) is ReducedWrite and key in self.copies and not replaces_value(value.parts):
                own, frozen = self.copies[key]
                if not seems_unchanged(own, frozen):
                    changes.append((key, own))
        return changes

    def find_in_place_changes(self, writes: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Return the keys whose copies this node has changed, with the changed copies.

        A copy of a key that the node also wrote is dropped: the explicit write takes precedence.
        `find_changes_before_reducers` returns those that reducers add to.
        """
        for key in writes:
            self.copies.pop(key, None)
        for path, _ in self.applied_writes:
            self.copies.pop(path[0], None)  # type: ignore[arg-type]  # a first key is text
        return [(key, own) for key, (own, frozen) in self.copies.items() if not is_unchanged(own, frozen)]

    def reset(self) -> None:
        """Clear what was read, copied and written: the step has ended."""
        self.reads.clear()
        self.copies.clear()
        self.own_writes.clear()
        self.emitted.clear()
        self.times.clear()
        self.applied_writes = []  # a commit sets it
        for each in (self.calls, self.calls_in_flight, self.asked_kinds):
            each.clear()
        self.rng = None
        self.call_count = 0
        self.busy = self.needs_loop = False

    def _refuse(self, what: str) -> None:
        raise ExecutionError(
            Problem(
                "X102",
                f"a late attempt to {what} was rejected",
                f"node {self.node.id!r}",
                "this step had already ended: it was cancelled or had timed out",
                "return before the timeout, or raise the timeout",
            )
        )


class NodeBoard(Mapping[str, Any]):
    """The board as one node sees it in one step: read-only; it records which keys are read."""

    __slots__ = ("_work",)

    def __init__(self, work: Work) -> None:
        self._work = work

    @property
    def work(self) -> Work:
        """The node's Work: a condition may need more than the board."""
        return self._work

    def __getitem__(self, key: str) -> Any:
        work = self._work
        work.reads[key] = None
        if not work.own_writes:
            value = work.scope.data.get(key)
            if value is not None and type(value) in ATOMS:
                return value
        value = self._find(key)
        if value is ABSENT:
            raise KeyError(UnknownKey(key, work.scope.visible_items))
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key or path, or `default`."""
        work = self._work
        work.reads[key] = None
        if not work.own_writes:
            value = work.scope.data.get(key)
            if value is not None and type(value) in ATOMS:
                return value
        value = self._find(key)
        return default if value is ABSENT else value

    def _find(self, key: str) -> Any:
        work = self._work
        if work.own_writes:
            return self._find_own(key)
        value = work.scope.get(key)
        if type(value) in ATOMS and value is not ABSENT:
            return value
        if value is not ABSENT:
            return work.copy(key, value)
        if "." not in key and "[" not in key:
            return ABSENT
        return self._copy_at(key, resolve_path(key, work.scope.visible_items()))

    def _find_own(self, key: str) -> Any:
        """Return the value of a key after this node's own writes, which take precedence."""
        seen = self._work.run.make_preview(self._work)
        path = resolve_path(key, seen.visible_items())
        return thaw(seen.get_at(path)) if path[0] in seen.data else self._copy_at(key, path)

    def _copy_at(self, key: str, path: tuple[str, ...]) -> Any:
        """Return the value at a path in this step's copy, so that a change made below a key is detected."""
        work = self._work
        work.reads.pop(key, None)
        work.reads[path[0]] = None
        return work.arg(path)

    def _get_keys(self) -> dict[str, Any]:
        work = self._work
        return work.run.make_preview(work).visible_items() if work.own_writes else work.scope.visible_items()

    def __iter__(self) -> Iterator[str]:
        return iter(self._get_keys())

    def __len__(self) -> int:
        return len(self._get_keys())

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        self._work.reads[key] = None
        return self._find(key) is not ABSENT

    def __repr__(self) -> str:
        # A text of the board is for whom the node writes to: a model, a person, a log.
        return repr(dict(self))


def _find_inside(copied: Any, frozen: Any, rest: Path) -> Any:
    """Return the value at `rest` inside a node's copy; attributes count as the fields of an object."""
    for key in rest:
        fields = type(frozen) is FrozenRecord
        copied = getattr(copied, str(key), ABSENT) if fields else get_at(copied, (key,))
        frozen = get_at(frozen, (key,))
    return copied


def split_op(value: Any) -> tuple[int, Any]:
    """Return the op and the value of a write: ABSENT deletes, Append appends, everything else sets."""
    if value is ABSENT:
        return DELETE, ABSENT
    if type(value) is Append:
        return APPEND, value.item
    return SET, value
