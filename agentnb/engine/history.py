"""history: what happened, as columns. A row a step, a row a write, a row a push; nothing is ever changed but the tip.

Layout, 33 bytes a step: the activation (4), begin and end in ns (8 + 8), flags (1), where the frontier begins (4), and
where this step's writes (4) and pushes (4) end. The frontier after step k is the slice `p_act[s_pos[k] : s_pend[k]]`.
Pushes that come before those that wait are an aside: a queue that begins in one goes on from its end with those that
waited, and one that comes to it passes it over. So nothing that waits is written again (see `queue`).
A write row is 20 bytes: code (interned scope and path, and the op), the new value, and what stood under the path's
first key before. An edge taken IS a push row with its condition's value. Rare things are sparse dicts by step.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentnb.board.places import Path

if TYPE_CHECKING:
    from agentnb.engine.plan import Plan

NOBODY: Final = 0xFFFFFFFF
RUN, ENTER, AGAIN, LEAVE = range(4)
PHASES: Final = ("run", "enter", "again", "leave")
OK, ERROR, CANCELLED, SKIPPED = (status << 2 for status in range(4))
STATUS: Final = 12  # the bits of a flag that hold one of these
STATUSES: Final = ("ok", "error", "cancelled", "skipped")
COUNTED: Final = 64  # the step counts towards max_steps
UNCAUGHT: Final = 32  # an error that nothing handles: the run stands there
LATE: Final = -2  # of an activation, as `about`: its event came before, and what it was put off for has come. So with
# every number below: a turn that is about another event, late, is LATE less the number of that.
RESUME, FAIL = 1, 2  # what an activation is for: 0 a node's turn, its inside has ended, its inside has failed


class Carried:
    """The type of the marks in `p_val` of push rows that are no edge taken: moved there, or a composite's return."""

    __slots__ = ()


CARRIED: Final = Carried()


class FrameRow(NamedTuple):
    """A frame as it was opened: by which node, of which region, with which scope, in which step.

    `given` are the inputs that its inside was given, frozen; None where it goes by those of the frame around.
    """

    id: int
    parent: int
    owner: int
    region: str
    policy: str
    branch: int
    scope: int
    opened: int
    given: Any = None


class ActRow(NamedTuple):
    """An activation: a node of a frame whose turn it is (what 0), or whose inside ended (RESUME) or failed (FAIL).

    `about` tells turns of a node for one event apart: the number of another event that this one is about, or LATE.
    """

    node: int
    frame: int
    what: int = 0
    event: int = -1
    about: int = -1


class Failure(NamedTuple):
    """What a failed step failed with."""

    type: str
    message: str
    error: BaseException | None = None
    timeout: bool = False

    @property
    def result(self) -> Any:
        """What the failed step came to: the answer that was the failure, else the exception in words."""
        return getattr(self.error, "result", {"exception": self.message})


class Note(NamedTuple):
    """What a step said of itself besides its writes. `score` is how good the run's work is, where it was judged."""

    thought: str | None = None
    action: Any = None
    observation: Any = None
    inputs: Any = None
    score: float | None = None


class Act(NamedTuple):
    """Something that a person did where the run stood after `step`."""

    step: int
    act: str
    target: str
    old: Any
    new: Any
    actor: str
    time: datetime


class Event(NamedTuple):
    """Something that a node or a person emitted: in step `step`, if in one; `at` is the position it belongs to.

    `mark` is a word of the dialect's own that goes with it.
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
    """One attempt of one effect."""

    step: int
    act: int
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


class Checkpoint(NamedTuple):
    """The state after a step, so that goto need not begin at the start."""

    step: int
    writes: int
    used: int
    data: dict[int, dict[str, Any]]
    frames: tuple[tuple[int, int], ...]


class Tables:
    """What the histories of one tree of runs share: frames, activations and paths by number. They only grow."""

    __slots__ = ("act_ids", "acts", "code_ids", "codes", "frames", "plain")

    def __init__(self) -> None:
        self.frames: list[FrameRow] = [FrameRow(0, -1, -1, "root", "isolated", -1, 0, 0)]
        self.acts: list[ActRow] = []
        self.act_ids: dict[ActRow, int] = {}
        self.codes: list[tuple[int, Path]] = []
        self.code_ids: dict[tuple[int, Path], int] = {}
        self.plain: dict[int, str] = {}  # the codes that set a whole key of the root scope, with that key

    def act(self, row: ActRow) -> int:
        """Return the number of an activation."""
        number = self.act_ids.get(row)
        if number is None:
            number = self.act_ids[row] = len(self.acts)
            self.acts.append(row)
        return number

    def code(self, scope: int, path: Path) -> int:
        """Return the code of a path in a scope; the op is added to it."""
        number = self.code_ids.get((scope, path))
        if number is None:
            number = self.code_ids[scope, path] = len(self.codes) * 4
            self.codes.append((scope, path))
            if scope == 0 and len(path) == 1:
                self.plain[number] = str(path[0])
        return number


_ints: Final = partial(array, "I")
_times: Final = partial(array, "q")


@dataclass(eq=False, repr=False)
class History:
    """The steps after `base` of one branch of a run; what came before is the parent's."""

    tables: Tables
    base: int = 0
    parent: History | None = None
    name: str | None = None
    s_act: array[int] = field(default_factory=_ints)
    s_t0: array[int] = field(default_factory=_times)
    s_t1: array[int] = field(default_factory=_times)
    s_flag: array[int] = field(default_factory=partial(array, "B"))
    s_pos: array[int] = field(default_factory=_ints)
    s_wend: array[int] = field(default_factory=_ints)
    s_pend: array[int] = field(default_factory=_ints)
    w_code: array[int] = field(default_factory=_ints)
    w_new: list[Any] = field(default_factory=list)
    w_old: list[Any] = field(default_factory=list)
    p_act: array[int] = field(default_factory=_ints)
    p_val: list[Any] = field(default_factory=list)
    asides: dict[int, int] = field(default_factory=dict)  # the first push of each -> behind its last one
    returns: dict[int, int] = field(default_factory=dict)  # its last push -> where those that waited begin
    r_code: array[int] = field(default_factory=_ints)
    r_step: array[int] = field(default_factory=_ints)
    in_place: set[int] = field(default_factory=set)
    order: dict[int, int] = field(default_factory=dict)
    rare: list[int] = field(default_factory=list)
    opened: dict[int, tuple[int, ...]] = field(default_factory=dict)
    closed: dict[int, tuple[int, ...]] = field(default_factory=dict)
    errors: dict[int, Failure] = field(default_factory=dict)
    notes: dict[int, Note] = field(default_factory=dict)
    people: list[Act] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)
    sealed: int = -1
    counted: dict[tuple[str, int | None], list[int]] = field(default_factory=dict)
    indexed: int = 0
    tops: list[int] = field(default_factory=list)
    before: int | None = None  # see `inherited`
    plan: Plan | None = None  # what its steps were made with; None where that is not known

    def __repr__(self) -> str:
        """Return one line: which steps it holds."""
        return f"<History {self.name or ''} of steps {self.base + 1} to {self.tip}>"

    @property
    def tip(self) -> int:
        """The number of the last step."""
        return self.base + len(self.s_act) - 1

    def first_row(self, frontier: list[int], now: int) -> None:
        """Append the row that stands for where this history starts."""
        self.p_act.extend(frontier)
        self.p_val.extend([CARRIED if self.parent else None] * len(frontier))
        self.s_act.append(NOBODY)
        self.s_t0.append(now)
        self.s_t1.append(now)
        self.s_flag.append(0)
        self.s_pos.append(0)
        self.s_wend.append(len(self.w_new))
        self.s_pend.append(len(self.p_act))

    def queue(self, row: int, end: int) -> list[int]:
        """Return the activations of a queue that begins at a push row, from where the pushes end at `end`."""
        if not self.asides:
            return self.p_act[row:end].tolist()
        found = []
        while row < end:
            found.append(self.p_act[row])
            row = self.after(row)
        return found

    def queue_after(self, step: int) -> list[int]:
        """Return what was next after a step of this history, front first."""
        return self.queue(self.s_pos[step - self.base], self.s_pend[step - self.base])

    def after(self, row: int) -> int:
        """Return where a queue goes on behind one of its push rows."""
        if row in self.returns:
            return self.returns[row]
        row += 1
        while row in self.asides:
            row = self.asides[row]
        return row

    def put_before(self, row: int, start: int) -> None:
        """Make an aside of the pushes from `start` on: they come before those that wait from `row` on."""
        end = len(self.p_act)
        if row < start < end:
            self.asides[start], self.returns[end - 1] = end, row

    def mark_rare(self, step: int) -> None:
        """Note that a step changed the frames, so that it is not undone by its writes alone."""
        if not self.rare or self.rare[-1] < step:
            self.rare.append(step)

    def calls_of(self, kind: str, node: int | None, step: int) -> int:
        """Count the effects of a kind (of one node) up to a step, each once however often it was tried."""
        for call in self.calls[self.indexed :]:
            if call.attempt == 1:
                for key in ((call.kind, None), (call.kind, self.tables.acts[call.act].node)):
                    self.counted.setdefault(key, []).append(call.step)
        self.indexed = len(self.calls)
        return bisect_right(self.counted.get((kind, node), ()), step)

    def last_event(self, step: int) -> int:
        """Return the highest number of an event up to a step; 0 where there is none.

        Of steps that were in flight together, the one that is committed last may have emitted first.
        """
        events, tops = self.events, self.tops
        for event in events[len(tops) :] if len(tops) < len(events) else ():
            tops.append(max(event.seq, tops[-1] if tops else 0))
        row = len(events) if not events or events[-1].at <= step else bisect_right(events, step, key=_at_of)
        return tops[row - 1] if row else 0

    @property
    def inherited(self) -> int:
        """The highest number of an event from before this history: nobody changes that any more."""
        if self.before is None:
            above = self.parent
            self.before = 0 if above is None else max(above.last_event(self.base), above.inherited)
        return self.before

    def place_of(self, seq: int) -> int:
        """Return the place of the event with this number; -1 where there is none, or where it is not found at once.

        Events stand in the order of their numbers, mostly without a gap; but those of steps that were in flight
        together stand in the order in which the steps were committed.
        """
        events = self.events
        place = seq - events[0].seq if events else -1
        if not 0 <= place < len(events) or events[place].seq != seq:
            place = bisect_left(events, seq, key=_seq_of)
        return place if place < len(events) and events[place].seq == seq else -1

    def checkpoint_before(self, step: int) -> Checkpoint | None:
        """Return the last checkpoint at or before a step; None when this history has none."""
        at = bisect_right(self.checkpoints, step, key=_step_of)
        return self.checkpoints[at - 1] if at else None

    def cut(self, step: int) -> bool:
        """Drop every row after `step`; return whether one of them had changed the frames."""
        row = step - self.base
        for column in (self.s_act, self.s_t0, self.s_t1, self.s_flag, self.s_pos, self.s_wend, self.s_pend):
            del column[row + 1 :]
        writes, pushes = self.s_wend[row], self.s_pend[row]
        del self.w_code[writes:], self.w_new[writes:], self.w_old[writes:]
        del self.p_act[pushes:], self.p_val[pushes:]
        for table in (self.asides, self.returns):
            while table and next(reversed(table)) >= pushes:
                table.popitem()
        reads = bisect_right(self.r_step, step)
        del self.r_step[reads:], self.r_code[reads:]
        if self.in_place and max(self.in_place) >= writes:
            self.in_place = {number for number in self.in_place if number < writes}
        while self.events and self.events[-1].at > step:
            self.events.pop()
        del self.tops[len(self.events) :]
        while self.calls and self.calls[-1].step > step:
            self.calls.pop()
            self.counted, self.indexed = {}, 0
        for sparse in (self.errors, self.notes):
            sparse.pop(step + 1, None)
        for number in [number for number in self.order if number >= writes]:
            del self.order[number]
        while self.checkpoints and self.checkpoints[-1].step > step:
            self.checkpoints.pop()
        moved = self.opened.pop(step + 1, None) is not None
        moved |= self.closed.pop(step + 1, None) is not None
        while self.rare and self.rare[-1] > step:
            self.rare.pop()
            moved = True
        return moved


_step_of: Final = attrgetter("step")
_at_of: Final = attrgetter("at")
_seq_of: Final = attrgetter("seq")
