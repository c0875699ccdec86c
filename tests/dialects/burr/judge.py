"""The judge: an application runs in Burr and here, and the states after each action are compared."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from agentnb import Session, load
from agentnb.dialects.burr.api import load_application

if TYPE_CHECKING:
    from burr.core import Application

Course = tuple[list[tuple[str, dict[str, Any]]], str]


def _own(state: Any) -> dict[str, Any]:
    return {key: deepcopy(value) for key, value in state.get_all().items() if not key.startswith("__")}


async def in_burr(application: Application[Any], inputs: dict[str, Any], most: int) -> Course:
    """Run at most `most` actions in Burr; return each action with the state after it, and how the run ended."""
    course: list[tuple[str, dict[str, Any]]] = []
    while len(course) < most:
        try:
            following = application.get_next_action()
        except Exception:  # noqa: BLE001  (a condition fails: here that is a failure of the step before it)
            return course[:-1], "ExecutionError"
        if following is None:
            return course, "finished"
        try:
            if following.streaming and following.is_async():
                _, stream = await application.astream_result(halt_after=[following.name], inputs=inputs)
                state = (await stream.get())[1]
            elif following.streaming:
                state = application.stream_result(halt_after=[following.name], inputs=inputs)[1].get()[1]
            else:
                state = (await application.astep(inputs))[2]
        except Exception as error:  # noqa: BLE001  (the course of a run that fails ends there)
            return course, type(error).__name__
        course.append((following.name, _own(state)))
    return course, "goes on"


def in_agentnb(session: Session, most: int) -> Course:
    """Run at most `most` actions here."""
    course: list[tuple[str, dict[str, Any]]] = []
    while len(course) < most:
        step = session.step()
        if step is None:
            return course, "finished"
        if step.error is not None:
            return course, str(step.error).partition(":")[0]
        if step.node_id != "__resumed__":
            course.append((step.node_id, dict(session.board)))
    return course, "goes on"


def compare(make: Callable[[], Application[Any]], inputs: dict[str, Any] | None = None, most: int = 30) -> Session:
    """Assert that two runs are the same, and that going back and forth changes nothing; return the session."""
    known = asyncio.run(in_burr(make(), inputs or {}, most))
    session = Session(load(make()), inputs or {})
    ours = in_agentnb(session, most)
    assert ours[0] == known[0]
    assert ours[1] == known[1]
    before = dict(session.board)
    session.goto(session.position // 2)
    session.goto(len(session.trace.steps))
    assert dict(session.board) == before
    return session


Halts = tuple[list[tuple[int, dict[str, Any]]], str]


def halt_in_burr(application: Application[Any], before: list[str], after: list[str], most: int) -> Halts:
    """Run at most `most` actions in Burr; return the number of actions and the state at each halt, and the end."""
    halts: list[tuple[int, dict[str, Any]]] = []
    ran = 0
    while True:
        try:
            if not application.has_next_action():
                return halts, "finished"
            for _ in application.iterate(halt_before=before, halt_after=after):
                ran += 1
                if ran == most:
                    return halts, "goes on"
        except Exception:  # noqa: BLE001  (an action or a condition: the run ends there)
            return halts, "failed"
        halts.append((ran, _own(application.state)))


def halt_in_agentnb(session: Session, most: int) -> Halts:
    """Run at most `most` actions here. A session stops before its first action, too; that stop is left out."""
    halts: list[tuple[int, dict[str, Any]]] = []
    while True:
        session.run(max_steps=most - session.position)
        if session.status == "failed":
            return halts, "failed"
        if session.position == most:
            return halts, "goes on"
        if session.position:
            halts.append((session.position, dict(session.board)))
        if session.status == "finished":
            return halts, "finished"


def compare_halts(make: Callable[[], Application[Any]], before: list[str], after: list[str], most: int) -> None:
    """Assert that two runs halt at the same places."""
    session = Session(load_application(make(), halt_before=before, halt_after=after))
    assert halt_in_agentnb(session, most) == halt_in_burr(make(), before, after, most)
