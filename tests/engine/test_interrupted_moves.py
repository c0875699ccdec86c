"""An interrupt at each moment of a move: after it, a session stands where some act had ended, and can go on."""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agentnb import ABSENT
from agentnb.engine.core import scheduler
from agentnb.engine.core.work import Append
from agentnb.recipe.model import Edge, Node, Recipe, Region
from agentnb.session import Session
from tests.engine.interrupts import EDIT, Interrupt, acts_of, describe_session, done_afresh, recipe, steps
from tests.property.test_abandoned_steps import session_of as drawing_session
from tests.property.test_abandoned_steps import to_its_end

# Of the moments of a move, which one is tried, from one of the first on; `.ci/run --full` tries each.
EVERY = 1 if int(os.environ.get("INTERRUPTS", "10")) > 100 else 3


@pytest.fixture(autouse=True)
def _no_garbage_of_others():
    """Finalize what earlier tests have left, and let no hook of the garbage collector swallow an interrupt."""
    gc.collect()
    watchers = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = watchers


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
def test_an_interrupt_at_any_moment_of_a_move_leaves_a_session_consistent(name):
    make, work = MOVES[name]
    known: dict[str, object] = {}

    def expected(session: Session) -> object:
        interventions = [
            (intervention.step, intervention.action, intervention.target, repr(intervention.new))
            for intervention in acts_of(session)
        ]
        past = repr((session.position, interventions))
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


def asking(asked: list[int]) -> Session:
    """Return a session that asks a tool in a loop; each answer is the number of calls so far."""

    def ask() -> int:
        asked.append(len(asked) + 1)
        return len(asked)

    def note(board: Mapping[str, Any]) -> dict[str, Any]:
        return {"found": [*board.get("found", ()), board["ask"]]}

    nodes = {
        "ask": Node("ask", "tool", params={"function": ask}),
        "note": Node("note", "function", params={"function": note}),
    }
    return Session(Recipe("asking", "test", nodes, (Edge("ask", "note"), Edge("note", "ask")), ("ask",)))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a coroutine that was just closed
def test_an_interrupt_at_any_moment_of_a_step_repeats_no_answered_call_and_reuses_no_answer_twice():
    moments = Interrupt().during(lambda: asking([]).step(3)).moments
    assert moments > 30
    for at in range(random.randint(1, EVERY), moments + 1, EVERY):
        requests: list[int] = []
        session = asking(requests)
        interrupt = Interrupt(at).during(lambda made=session: made.step(3))
        session.run(until=5)
        calls = session.trace.frames.calls
        answers = calls[calls.error.isna()]
        assert answers.step.tolist() == [1, 3, 5], interrupt.where
        assert answers.result.tolist() == sorted({*answers.result}), interrupt.where
        assert session.board["found"] == answers.result.tolist()[:2], interrupt.where
        assert len(requests) <= len(answers) + 1, interrupt.where  # the one that was cut


def branching() -> Session:
    """Return a session in the middle of more branches than a queue is rewritten for."""
    names = [f"branch{number}" for number in range(scheduler.SHORT + 2)]
    nodes = {"all": Node("all", "parallel", bodies=tuple(names))}
    nodes |= {f"{name}_{n}": Node(f"{name}_{n}", "noop", scope=name) for name in names for n in range(3)}
    edges = [Edge(f"{name}_{n}", f"{name}_{n + 1}") for name in names for n in range(2)]
    regions = [Region("root", ("all",)), *(Region(name, (f"{name}_0",), owner="all") for name in names)]
    session = Session(Recipe("branching", "test", nodes, tuple(edges), ("all",),
                             regions={region.id: region for region in regions}))  # fmt: skip
    steps(session, 4)
    return session


def test_an_interrupt_at_any_moment_of_one_of_many_branches_leaves_the_queue_consistent():
    uninterrupted, expected = branching(), dict[int, object]()
    for _ in range(10):
        expected[uninterrupted.position] = describe_session(uninterrupted)
        uninterrupted.step()
    session = branching()
    moments = Interrupt().during(lambda: session.step(2)).moments
    assert moments > 30
    for at in range(random.randint(1, EVERY), moments + 1, EVERY):
        session = branching()
        interrupt = Interrupt(at).during(lambda made=session: made.step(2))
        for _ in range(3):
            assert describe_session(session) == expected[session.position], interrupt.where
            session.step()
        session.goto(4)
        assert describe_session(session) == expected[4], interrupt.where
        session.step(8)
        assert describe_session(session) == expected[12], interrupt.where


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a coroutine that was just closed
def test_an_interrupt_at_any_moment_of_a_step_does_not_change_its_random_numbers():
    def drawing() -> Session:
        session = drawing_session("cycle", ["chance", "tool", "gauss", "id"])
        session.step()
        return session

    expected = to_its_end(drawing()).board["drawn"]
    session = drawing()
    moments = Interrupt().during(session.step).moments
    assert moments > 30
    for at in range(random.randint(1, EVERY), moments + 1, EVERY):
        session = drawing()
        interrupt = Interrupt(at).during(session.step)
        assert to_its_end(session).board["drawn"] == expected, interrupt.where


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a coroutine that was just closed
def test_an_interrupt_at_any_moment_of_a_failing_step_leaves_nothing_of_the_failure():
    def make() -> Session:
        fails[0] = True
        nodes = {"fail": Node("fail", "function", params={"function": fail})}
        return Session(Recipe("failing", "test", nodes, (), ("fail",)))

    def fail() -> dict[str, int]:
        if fails[0]:
            raise ValueError("no")
        return {"n": 1}

    fails = [True]
    session = make()
    moments = Interrupt().during(session.step).moments
    assert (session.position, moments > 30) == (1, True)
    for at in range(random.randint(1, EVERY), moments + 1, EVERY):
        session = make()
        interrupt = Interrupt(at).during(session.step)
        if session.position == 0:
            fails[0] = False
            session.step()
            [step] = session.trace.steps
            assert (step.status, step.error, session.status) == ("ok", None, "finished"), interrupt.where
