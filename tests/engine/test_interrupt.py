"""An interrupt may come at any moment: after it, a session stands where some act had ended, and can go on."""

from __future__ import annotations

import contextlib
import dis
import gc
import inspect
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import agentnb
from agentnb import ABSENT
from agentnb.board.values import thaw
from agentnb.engine.core.history import Intervention
from agentnb.engine.core.work import Append
from agentnb.errors import BoardError, ExecutionError
from agentnb.recipe.model import Edge, Node, Recipe, Region
from agentnb.session import Session

INTERRUPTS = int(os.environ.get("INTERRUPTS", "10"))  # of each seed; `.ci/run --full` has many more
EVERY = 1 if INTERRUPTS > 100 else 3  # of the moments of a move, which one is tried; the first is drawn
LONGEST = 0.003  # seconds: about as long as what is interrupted takes
TOO_LONG = 600
EDIT = {"a.b": 7, "log": Append("edit"), "gone": ABSENT}

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs an interval timer")


@pytest.fixture(autouse=True)
def _no_garbage_of_others():
    """Finalize what earlier tests have left: an interrupt inside another object's finalizer is theirs, not ours."""
    gc.collect()


def grow(n=0, log=()):
    n += 1
    return {"n": n, "log": Append(n), "gone": {"at": n}, "first": [n] * 3}


def shrink(board):
    board["first"].append("in place")
    return {"gone": ABSENT, "a": {"b": board["n"]}}


def recipe() -> Recipe:
    """A graph without an end: a loop, a subgraph of its own inside it, deletes, appends, changes in place."""
    nodes = [
        Node("grow", "function", inputs={"n": ("n",), "log": ("log",)}, params={"function": grow}),
        Node("loop", "loop", params={"times": 2}, bodies=("body",)),
        Node("shrink", "function", scope="body", params={"function": shrink}),
        Node("inner", "subgraph", scope="body", bodies=("own",),
             params={"policy": "child", "inputs": {"n": ("n",)}, "outputs": {"seen": ("n",)}}),
        Node("deep", "function", scope="own", inputs={"n": ("n",)}, params={"function": grow}),
    ]  # fmt: skip
    edges = (Edge("grow", "loop"), Edge("loop", "grow"), Edge("shrink", "inner"))
    regions = [
        Region("root", ("grow",)),
        Region("body", ("shrink",), owner="loop"),
        Region("own", ("deep",), owner="inner"),
    ]
    return Recipe("endless", "test", {node.id: node for node in nodes}, edges, ("grow",),
                  regions={region.id: region for region in regions})  # fmt: skip


def describe_session(session: Session) -> tuple[object, ...]:
    frames = [(frame.node, frame.region, frame.iteration, frame.scope) for frame in session.cursor.frames]
    frontier = [(entry.node, entry.phase, entry.depth) for entry in session.frontier]
    return session.position, repr(dict(session.board)), frontier, frames, session._parts.run.counted_steps


def acts_of(session: Session) -> list[Intervention]:
    """Return what people did on the way to where a session stands, as its history has kept it."""
    chain, position = session._parts.run.chain, session.position
    ends = [*(history.base for history in chain[1:]), position]
    return [
        act
        for history, end in zip(chain, ends, strict=True)
        for act in history.interventions
        if act.step <= min(end, position)
    ]


def done_afresh(session: Session) -> Session:
    """Return a new run that has done the same acts at the same steps."""
    fresh = Session(recipe())
    for act in acts_of(session):
        steps(fresh, act.step)
        if act.action == "set_next":
            fresh.set_next(act.target)
        else:
            fresh.edit({act.target: thaw(act.new)})
    steps(fresh, session.position)
    return fresh


def steps(session: Session, to: int) -> None:
    """Step up to a number, one at a time: `run` and `step(n)` would stop where a node has failed."""
    while session.position < to:
        session.step()


def move(session: Session, chance: random.Random) -> None:
    """Do something long enough to be interrupted."""
    tip = len(session.trace)
    match chance.choice(["run", "run", "step", "back", "goto", "goto", "edit", "set_next"]):
        case "run":
            session.run(max_steps=chance.randint(1, 150))
        case "step":
            session.step(chance.randint(1, 60))
        case "back":
            for _ in range(chance.randint(1, 200)):
                session.back()
        case "goto":
            for _ in range(chance.randint(1, 9)):
                session.goto(chance.randint(0, tip))
        case "edit":
            for number in range(chance.randint(1, 9)):
                with contextlib.suppress(BoardError):  # a child scope is open and reads through this one
                    session.edit(EDIT | {"edited": number, "late": {"x": [number]}})
        case "set_next":
            for _ in range(chance.randint(1, 9)):
                with contextlib.suppress(ExecutionError):  # it stands in a region that is not open
                    session.set_next(chance.choice(["grow", "loop", "shrink"]))


def interrupted(work: Callable[[], None], after: float) -> bool:
    """Do something, with Ctrl-C after so many seconds; say whether it came in time."""
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        try:
            work()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return True
    return False


@pytest.fixture(autouse=True)
def ctrl_c():
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    watchers = gc.callbacks[:]
    gc.callbacks.clear()  # what Hypothesis leaves there would swallow an interrupt
    yield
    gc.callbacks[:] = watchers
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("seed", range(6))
def test_after_an_interrupt_a_session_stands_whole_and_continues(seed):
    chance, session, met = random.Random(seed), Session(recipe()), 0
    session.step()
    while met < INTERRUPTS:
        if not interrupted(lambda made=session: move(made, chance), chance.random() * LONGEST):
            continue
        met += 1
        stands = describe_session(session)
        assert describe_session(done_afresh(session)) == stands
        assert stands[0] <= len(session.trace)
        session.goto(0).goto(stands[0])
        assert describe_session(session) == stands
        assert session.step() is not None
        assert describe_session(done_afresh(session)) == describe_session(session)
        if len(session.trace) > TOO_LONG:
            session = Session(recipe())


@pytest.mark.parametrize("seed", range(2))
def test_a_step_that_is_cut_is_done_once_when_it_is_done_again(seed):
    chance, met = random.Random(seed), 0
    while met < INTERRUPTS:
        session = Session(recipe())
        moments = chance.random() * LONGEST
        met += interrupted(lambda made=session: made.run(max_steps=200), moments)
        session.run(until=200)
        whole = Session(recipe())
        whole.run(max_steps=200)
        assert describe_session(session) == describe_session(whole)


class Interrupt:
    """Raises KeyboardInterrupt once, at the n-th moment at which Python can deliver one inside the engine.

    Python looks for signals when a function begins, after a call, and when a loop goes back; each such place counts
    at its first visit. `moments` is the number of them so far, `where` the function and line that was interrupted.
    """

    ENGINE = tuple(str(Path(agentnb.__file__).parent / name) for name in ("engine", "board"))
    LOOKS = frozenset(
        code
        for name, code in dis.opmap.items()
        if name.startswith(("CALL", "JUMP_BACKWARD", "POP_JUMP_BACKWARD")) and "INTRINSIC" not in name
    )

    def __init__(self, at: int = 0) -> None:
        self.at, self.moments, self.where = at, 0, ""
        self._visited: set[tuple[Any, int]] = set()

    def during(self, work: Callable[[], object]) -> Interrupt:
        """Do something, interrupted at the moment; return this."""

        def apart() -> Iterator[object]:
            """Keep what a cut `except` block handled in this generator, or every later error has it as its context."""
            yield work()

        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            next(apart())
        except KeyboardInterrupt:
            assert self.where, "not ours"
        finally:
            sys.settrace(before)
        assert sys.exc_info() == (None, None, None)
        return self

    def _enter(self, frame: FrameType, _event: str, _arg: object) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(self.ENGINE):
            return None
        if not code.co_flags & inspect.CO_GENERATOR:  # Python ignores exceptions while it closes a generator
            self._moment(frame)
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        opcodes, before = code.co_code, 0

        def follow(frame: FrameType, event: str, _arg: object) -> Any:
            nonlocal before
            if event == "opcode":
                if before in self.LOOKS:
                    self._moment(frame)
                before = opcodes[frame.f_lasti]
            return follow

        return follow

    def _moment(self, frame: FrameType) -> None:
        place = (frame.f_code, frame.f_lasti)
        if place in self._visited:
            return
        self._visited.add(place)
        self.moments += 1
        if self.moments == self.at:
            self.where = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
            raise KeyboardInterrupt


def after(position: int, *places: int) -> Session:
    """Return a session that has made so many steps, and has gone to each of these places."""
    session = Session(recipe())
    steps(session, position)
    for place in places:
        session.goto(place)
    return session


# What is done, and the session that it is done to.
MOVES: dict[str, tuple[Callable[[], Session], Callable[[Session], object]]] = {
    "edit at the end": (lambda: after(6), lambda session: session.edit(EDIT | {"late": {"x": [1]}})),
    "edit in a scope of its own": (lambda: after(9), lambda session: session.edit({"n": 5, "log": Append("edit")})),
    "edit in the past": (lambda: after(6, 3), lambda session: session.edit({"log": Append("edit"), "n": ABSENT})),
    "set_next": (lambda: after(9), lambda session: session.set_next("grow")),
    "set_next in the past": (lambda: after(7, 6), lambda session: session.set_next("grow")),
    "step": (lambda: after(2), lambda session: session.step(4)),
    "step in the past": (lambda: after(5, 2), lambda session: session.step()),
    "back": (lambda: after(9), lambda session: session.back(5)),
    "goto": (lambda: after(60), lambda session: session.goto(40 if session.position > 50 else 60)),
    "fork": (lambda: after(60, 40), lambda session: session.fork(50).step()),
}
TRAVELS = ("goto", "fork")  # the session's own run stays as it is


@pytest.mark.parametrize("name", MOVES)
def test_an_interrupt_at_any_moment_of_a_move_leaves_a_session_whole(name):
    make, work = MOVES[name]
    known: dict[str, object] = {}

    def expected(session: Session) -> object:
        acts = [(act.step, act.action, act.target, repr(act.new)) for act in acts_of(session)]
        past = repr((session.position, acts))
        if past not in known:
            known[past] = describe_session(done_afresh(session))
        return known[past]

    session = make()
    moments = Interrupt().during(lambda: work(session)).moments
    assert moments > 30  # there is something to interrupt, on each Python
    for at in range(random.randint(1, EVERY), moments + 1, EVERY):
        session = session if name in TRAVELS else make()
        interrupt = Interrupt(at).during(lambda made=session: work(made))
        assert describe_session(session) == expected(session), interrupt.where
        if name not in TRAVELS:
            session.step()
            assert describe_session(session) == expected(session), interrupt.where
        elif name == "fork":
            fork = session.fork(50)
            assert describe_session(fork) == expected(fork), interrupt.where
