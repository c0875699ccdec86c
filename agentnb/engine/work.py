"""work: what a node is given, and what it may return. A kind touches neither the cursor nor the history."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agentnb.board.places import APPEND, DELETE, SET, Path, look
from agentnb.board.scopes import Policy
from agentnb.board.values import ABSENT, ATOMS, FrozenRecord, same, thaw
from agentnb.engine.inside import given_at, last_inside
from agentnb.engine.numbering import numbered, retold
from agentnb.errors import ExecutionError, Problem
from agentnb.expressions.paths import resolve_path
from agentnb.recipe.model import Node

if TYPE_CHECKING:
    from agentnb.engine.frames import Activation, Frame
    from agentnb.engine.history import Call, Event
    from agentnb.engine.run import Run

StepType = Literal["TOOL_EXECUTION", "INTERACTION", "REASONING", "SYSTEM_EVENT"]
Phase = Literal["start", "resume"]
Keep = Literal["now", "next", "step"]


class Append:
    """A write that adds one item to the list at its path (a missing list is made): `return {"log": Append(line)}`."""

    __slots__ = ("item",)

    def __init__(self, item: Any) -> None:
        self.item = item

    def __repr__(self) -> str:
        return f"Append({self.item!r})"


@dataclass(slots=True)
class Outcome:
    """What a node did, beyond a dict of writes (a plain dict returned is short for `Outcome(dict)`).

    `writes` maps keys to values, `places` are writes below a key: (path, value). `route` are the targets that the node
    chose itself, with `value` as the reason; None leaves it to the edges. The rest is for the trace; a `score` says how
    good the run's work is, where the node has judged it. `result` is what the node came to, for the conditions of its
    edges and for a loop around it; it is not on the board.
    """

    writes: Mapping[str, Any] = field(default_factory=dict)
    places: Sequence[tuple[Path, Any]] = ()
    route: Sequence[str] | None = None
    value: Any = None
    thought: str | None = None
    action: Any = None
    observation: Any = None
    inputs: Any = None
    score: float | None = None
    result: Any = None


@dataclass(slots=True, frozen=True)
class Body:
    """A region to open: with which scope, with what written into it at first, and whether it is a parallel branch.

    `given` are the inputs of what is inside, over those of what is around; None: they are the same.
    """

    region: str
    policy: Policy = "shared"
    inputs: Mapping[str, Any] = field(default_factory=dict)
    branch: int = -1
    given: Mapping[str, Any] | None = None


@dataclass(slots=True)
class Enter:
    """A composite node's answer at the start: open these bodies; when they have ended, its turn comes again."""

    bodies: Sequence[Body]


@dataclass(slots=True)
class Again:
    """A composite node's answer when its body has ended: run it once more, in the same frame."""


@dataclass(slots=True)
class Effect:
    """Something that a node wants from the world; the engine's one door does it.

    `arguments` are what is sent. `timeout` in seconds, `attempts` in all, `backoff` seconds between two attempts.
    `blocking` says that the call may hold its thread; `repeatable` that it may go out again after a crash.
    `target` is the callable that does it, where the node brings its own (a tool, a bound agent). `check` looks at each
    attempt's answer, and raises where it is a failure. `made_up` says that nobody is asked, and that the same answer is
    made each time: a run that is cut makes it again, so it is kept with its step and not before.
    """

    kind: str
    name: str
    arguments: Mapping[str, Any]
    timeout: float | None = None
    attempts: int = 1
    backoff: float = 0.0
    blocking: bool = False
    repeatable: bool = False
    target: Callable[..., Any] | None = None
    check: Callable[[Any], None] | None = None
    made_up: bool = False


Result = dict[str, Any] | Outcome | Enter | Again | None
Perform = Callable[["Work"], "Result | Awaitable[Result]"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A row in the table of kinds.

    `bind(node, world)` returns the function that runs the node; `shape` is how it is drawn. `keeps` says that what it
    wrote and emitted stays when it fails. `waits` marks a join: it runs when all that leads to it has come.
    """

    name: str
    bind: Callable[[Node, Any], Perform]
    step_type: StepType = "TOOL_EXECUTION"
    shape: str = "box"
    keeps: bool = False
    waits: bool = False


class Work:
    """What a node is given for one step: its view of the board, and the only ways to act.

    `board` is a read-only Mapping that notes what is read. `phase` is `start`, or `resume` when the inside of a
    composite node has ended; then `frames` are the frames it opened. `iteration` counts the runs of a loop's body.
    """

    __slots__ = (
        "act",
        "asked",
        "board",
        "busy",
        "called",
        "calls",
        "copies",
        "dead",
        "emitted",
        "kept",
        "node",
        "out",
        "own",
        "reads",
        "result",
        "run",
        "scope",
    )

    def __init__(self, run: Run, act: Activation) -> None:
        self.run, self.act, self.node, self.scope = run, act, act.node.node, act.scope
        self.board = NodeBoard(self)
        self.reads: dict[str, None] = {}
        self.copies: dict[str, tuple[Any, Any]] = {}
        # What it wrote itself: `own` until it is on the board, `kept` after that.
        self.own: list[tuple[Path, Any]] = []
        self.kept: list[tuple[Path, Any]] = []
        self.result: Any = None
        self.emitted: list[Event] = []
        self.calls: list[Call] = []
        self.out: dict[int, tuple[int, Effect, Any, int]] = {}  # calls that are out
        self.called = 0  # how many calls this step has begun; a call has several rows where it was tried again
        self.asked: list[str] = []  # the kinds of the calls of a model or a person that this step has begun
        # `busy`: there is something to keep besides the writes that a node returns. `dead`: its step is over.
        self.busy = self.dead = False

    @property
    def phase(self) -> Phase:
        """`start`, or `resume` when the node's inside has ended."""
        return "resume" if self.act.what else "start"

    @property
    def frames(self) -> list[Frame]:
        """The frames that this composite node opened, in branch order."""
        return self.run.inside(self.act)

    @property
    def iteration(self) -> int:
        """How often the body ran, from 1; 0 before the first time."""
        frames = self.frames if self.act.what else []
        return frames[0].iteration if frames else 0

    @property
    def given(self) -> dict[str, Any]:
        """The inputs of the run, with those of each frame around this node over them; a copy of its own."""
        return given_at(self.run, self.act.frame.id)

    @property
    def last(self) -> Any:
        """What the last step directly inside this composite node came to: its observation; None where there is none."""
        return last_inside(self.run, self.frames)

    @property
    def event(self) -> Event | None:
        """The event that this node answers to; None outside a reactive run."""
        return self.run.event(self.act.event)

    @property
    def events(self) -> list[Event]:
        """Every event of the run so far, those that this node has just emitted included."""
        return [*self.run.events(), *self.emitted]

    def arg(self, path: Path) -> Any:
        """Return this step's own copy of what stands at a path; ABSENT where there is nothing. Not noted as a read."""
        key = path[0]
        value = self.scope.get(key)  # type: ignore[arg-type]  # a first key is text
        if len(path) == 1:
            return value if value.__class__ in ATOMS else self.copy(str(key), value)
        if key not in self.copies:
            found = look(value, path[1:])
            if found.__class__ in ATOMS:
                return found
        return _inside(self.copy(str(key), value), value, path[1:])

    def copy(self, key: str, frozen: Any) -> Any:
        """Return the copy of a key's value that belongs to this step; whatever is changed in it becomes a write."""
        held = self.copies.get(key)
        if held is None or held[1] is not frozen:
            held = self.copies[key] = (thaw(frozen), frozen)
        return held[0]

    def write(self, path: str | Path, value: Any) -> None:
        """Write a value at a key or a path; the node sees it at once, others when the step is committed."""
        self._alive(f"write {path!r}")
        self.busy = True
        self.own.append(((path,) if isinstance(path, str) else path, value))

    def emit(
        self, type: str, payload: Any = None, actor: str | None = None, *, keep: Keep = "now", **words: Any
    ) -> Event:
        """Emit an event and return it, numbered; this node sees it at once.

        Args:
            keep: when a run that is kept keeps it: `now`; with what this step tells `next`, where that a step begins
                is all that it says; or with the `step` itself, where nothing is done after it but the commit.
            words: see `numbering.numbered`.
        """
        self._alive(f"emit {type!r}")
        self.busy = True
        run = self.run
        known = None if run.recorded is None else run.recorded.emitted(self, type, payload)
        with run.numbering:
            event = numbered(run, self, type, payload, actor, words) if known is None else retold(known, actor, words)
            self.emitted.append(event)
        if run.keeping is not None and known is None and keep != "step" and self.act.node.kind.keeps:
            run.keeping.emitted(self, event, alone=keep == "now")
        if run.at_emit is not None:
            run.at_emit(self, event)
        return event

    def call(self, effect: Effect) -> Coroutine[Any, Any, Any]:
        """Do something in the world and await the answer. The only door to tools, models, people, time and chance."""
        if self.dead:
            self._alive(f"call {effect.name!r}")
        return self.run.door(self, effect)

    async def loop(self) -> None:
        """Come back inside an event loop: whatever is awaited after this needs one."""
        await self.run.need_loop()

    def in_place(self, writes: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Return the keys whose copies this node has changed, with the changed copies.

        A copy of what it wrote itself is dropped: its write says what it wanted, and nobody else shall see the copy.
        """
        for key in writes:
            self.copies.pop(key, None)
        for path, _ in self.kept:
            self.copies.pop(path[0], None)  # type: ignore[arg-type]  # a first key is text
        return [(key, mine) for key, (mine, frozen) in self.copies.items() if not same(mine, frozen)]

    def reset(self) -> None:
        """Forget what was read, copied and written: the step is over."""
        self.reads.clear()
        self.copies.clear()
        self.own.clear()
        self.kept.clear()
        self.emitted.clear()
        self.calls.clear()
        self.out.clear()
        self.asked.clear()
        self.called = 0
        self.busy = False

    def _alive(self, what: str) -> None:
        if self.dead:
            raise ExecutionError(
                Problem(
                    "X102",
                    f"a late attempt to {what} was refused",
                    f"node {self.node.id!r}",
                    "this step had already ended: it was cancelled or had timed out",
                    "let the function return before its time-out, or give it more time",
                )
            )


class NodeBoard(Mapping[str, Any]):
    """The board as one node sees it in one step: read-only, and it notes which keys are read."""

    __slots__ = ("_work",)

    def __init__(self, work: Work) -> None:
        self._work = work

    @property
    def work(self) -> Work:
        """What the node was given: a condition may ask for more than the board."""
        return self._work

    def __getitem__(self, key: str) -> Any:
        work = self._work
        work.reads[key] = None
        if not work.own:
            value = work.scope.data.get(key)
            if value is not None and value.__class__ in ATOMS:
                return value
        value = self._find(key)
        if value is ABSENT:
            raise KeyError(key)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key or path, or `default`."""
        self._work.reads[key] = None
        value = self._find(key)
        return default if value is ABSENT else value

    def _find(self, key: str) -> Any:
        work = self._work
        if work.own:
            return self._own(key)
        value = work.scope.get(key)
        if value.__class__ in ATOMS and value is not ABSENT:
            return value
        if value is not ABSENT:
            return work.copy(key, value)
        if "." not in key:
            return ABSENT
        return self._at(key, resolve_path(key, work.scope.seen()))

    def _own(self, key: str) -> Any:
        """Look where this node has written before: what it wrote comes first."""
        seen = self._work.run.preview(self._work)
        path = resolve_path(key, seen.seen())
        return thaw(seen.look(path)) if path[0] in seen.data else self._at(key, path)

    def _at(self, key: str, path: tuple[str, ...]) -> Any:
        """Look inside this step's copy, so that a change made below a key is seen as one."""
        work = self._work
        work.reads.pop(key, None)
        work.reads[path[0]] = None
        return work.arg(path)

    def _keys(self) -> dict[str, Any]:
        work = self._work
        return work.run.preview(work).seen() if work.own else work.scope.seen()

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys())

    def __len__(self) -> int:
        return len(self._keys())

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        self._work.reads[key] = None
        return self._find(key) is not ABSENT

    def __repr__(self) -> str:
        return f"<board of {self._work.node.id!r}: {', '.join(self)}>"


def _inside(copied: Any, frozen: Any, rest: Path) -> Any:
    """Return what stands at `rest` inside a node's copy; the fields of an object are its attributes."""
    for key in rest:
        fields = frozen.__class__ is FrozenRecord
        copied = getattr(copied, str(key), ABSENT) if fields else look(copied, (key,))
        frozen = look(frozen, (key,))
    return copied


def op_of(value: Any) -> tuple[int, Any]:
    """Return the op and the value that a written value stands for: ABSENT deletes, Append appends, all else sets."""
    if value is ABSENT:
        return DELETE, ABSENT
    if value.__class__ is Append:
        return APPEND, value.item
    return SET, value
