"""Interrupts at any moment: what is interrupted, and an interrupt at a place in the code rather than in time."""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import agentnb
from agentnb import ABSENT
from agentnb.board.values import thaw
from agentnb.engine.core.history import Intervention
from agentnb.engine.core.work import Append
from agentnb.recipe.model import Edge, Node, Recipe, Region
from agentnb.session import Session

EDIT = {"a.b": 7, "log": Append("edit"), "gone": ABSENT}


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
        intervention
        for history, end in zip(chain, ends, strict=True)
        for intervention in history.interventions
        if intervention.step <= min(end, position)
    ]


def done_afresh(session: Session) -> Session:
    """Return a new run that has done the same acts at the same steps."""
    fresh = Session(recipe())
    for intervention in acts_of(session):
        steps(fresh, intervention.step)
        if intervention.action == "set_next":
            fresh.set_next(intervention.target)
        else:
            fresh.edit({intervention.target: thaw(intervention.new)})
    steps(fresh, session.position)
    return fresh


def steps(session: Session, to: int) -> None:
    """Step up to a number, one at a time: `run` and `step(n)` would stop where a node has failed."""
    while session.position < to:
        session.step()


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
