"""An interrupt may come at any moment: after it, a session stands where some act had ended, and can go on."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
from collections.abc import Callable

import pytest

from agentnb.errors import BoardError, ExecutionError
from agentnb.session import Session
from tests.engine.interrupts import EDIT, describe_session, done_afresh, recipe

INTERRUPTS = int(os.environ.get("INTERRUPTS", "10"))  # of each seed; `.ci/run --full` has many more
LONGEST = 0.003  # seconds: about as long as what is interrupted takes
TOO_LONG = 600

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs an interval timer")


@pytest.fixture(autouse=True)
def _no_garbage_of_others():
    """Finalize what earlier tests have left: an interrupt inside another object's finalizer is theirs, not ours."""
    gc.collect()


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
def test_after_an_interrupt_a_session_is_consistent_and_continues(seed):
    chance, session, interrupts = random.Random(seed), Session(recipe()), 0
    session.step()
    while interrupts < INTERRUPTS:
        if not interrupted(lambda made=session: move(made, chance), chance.random() * LONGEST):
            continue
        interrupts += 1
        state_before = describe_session(session)
        assert describe_session(done_afresh(session)) == state_before
        assert state_before[0] <= len(session.trace)
        session.goto(0).goto(state_before[0])
        assert describe_session(session) == state_before
        assert session.step() is not None
        assert describe_session(done_afresh(session)) == describe_session(session)
        if len(session.trace) > TOO_LONG:
            session = Session(recipe())


@pytest.mark.parametrize("seed", range(2))
def test_an_interrupted_step_takes_effect_once_when_repeated(seed):
    chance, interrupts = random.Random(seed), 0
    while interrupts < INTERRUPTS:
        session = Session(recipe())
        moments = chance.random() * LONGEST
        interrupts += interrupted(lambda made=session: made.run(max_steps=200), moments)
        session.run(until=200)
        uninterrupted = Session(recipe())
        uninterrupted.run(max_steps=200)
        assert describe_session(session) == describe_session(uninterrupted)
