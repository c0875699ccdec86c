"""A step that a limit stops, or a crash, draws the same when it runs again, as if nothing had stopped it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentnb.clock import TickingClock
from agentnb.engine.control.budget import Budget
from agentnb.engine.core.event_queue import emit_from_outside
from agentnb.engine.core.run import Run
from agentnb.engine.effects.dispatch import EffectDispatcher
from agentnb.recipe.model import Edge, Node, Region
from agentnb.session import Session
from agentnb.session.limits import Limits
from agentnb.session.reopen import reopen_run
from agentnb.session.session import make_session as session_of_run
from agentnb.store import MemoryLog
from agentnb.world.effect import Effect
from tests.engine.graph_shapes import SHAPES, Shape, leaf, shape_of
from tests.property.interrupted_runs import cut, facts
from tests.session.shape_sessions import LEAF

ACTIONS = ["chance", "gauss", "id", "time", "emit", "dated", "tool", "llm"]
DOES = st.lists(st.sampled_from(ACTIONS), min_size=2, max_size=6)
WAYS = st.sampled_from(["in memory", "kept", "opened again"])


def drawing(name: str, does: list[str]) -> Shape:
    """Return a shape whose leaf draws by chance, of ids and of the clock, and calls, in this order."""
    shape, leaf = shape_of(name), LEAF[name]

    def inner(then: Any) -> Any:
        async def do(work: Any) -> Any:
            drawn: list[Any] = list(work.board.get("drawn", ()))
            run = work.run
            for operation in does:
                if operation in ("tool", "llm"):
                    target = (lambda prompt: f"about {prompt}") if operation == "tool" else None
                    answer = await work.call(Effect(operation, "ask", {"prompt": f"{len(drawn)}"}, target=target))
                    drawn.append(answer.content if operation == "llm" else answer)
                elif operation in ("emit", "dated"):
                    dated = {"time": datetime(2030, 1, 1, tzinfo=UTC)} if operation == "dated" else {}
                    drawn.append(str(work.emit("note", {"n": len(drawn)}, **dated).time))
                else:
                    drawn.append(
                        run.random.random()
                        if operation == "chance"
                        else run.random.gauss(0, 1)
                        if operation == "gauss"
                        else run.ids("thing")
                        if operation == "id"
                        else str(run.clock.now())
                    )
            return {**then(work), "drawn": drawn}

        return do

    nodes = [
        replace(node, params={**node.params, "do": inner(node.params["do"])}) if node.id == leaf else node
        for node in shape.nodes
    ]
    return replace(shape, nodes=nodes, llm=shape.llm or (lambda request: request.prompt.upper()))


def session_of(name: str, does: list[str], **limits: int) -> Session:
    shape = drawing(name, does)
    run = Run(shape.plan(), EffectDispatcher(), clock=TickingClock(), seed=7)
    run.begin(shape.inputs)
    for payload in shape.emits:
        emit_from_outside(run, "hello", payload)
    return session_of_run(run, Limits(Budget(**limits)), name, dict(shape.inputs), "r")


def describe_session(session: Session) -> Any:
    return {**facts(session), "times": [str(event.time) for event in session.events]}


def to_its_end(session: Session) -> Session:
    while session.status not in ("finished", "idle", "exhausted") and session.position < 40:
        session.step()
    return session


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=settings.default.max_examples // 2)  # there are several shapes
@given(does=DOES, way=WAYS, limit=st.sampled_from(["max_tool_calls", "max_llm_calls", "max_frames"]))
def test_a_step_repeats_its_random_numbers_after_a_limit(name, does, way, limit):
    expected = describe_session(to_its_end(session_of(name, does)))
    session = session_of(name, does, **{limit: 0})
    if way != "in memory":
        session._parts.persistence.record_new_run(MemoryLog(), "step")
    for max_calls in range(1, 40):
        if to_its_end(session).status != "exhausted":
            break
        if way == "opened again":
            log, plan = session._parts.state.log, session._parts.run.plan
            session.close()
            session = reopen_run(log, log.run("r"), plan)
        session.set_budget(**{limit: max_calls})
    assert describe_session(session) == expected


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=settings.default.max_examples // 2)  # there are several shapes
@given(does=DOES, share=st.integers(0, 99))
def test_a_step_repeats_its_random_numbers_after_a_crash(name, does, share):
    session, log = session_of(name, does), MemoryLog()
    session._parts.persistence.record_new_run(log, "step")
    expected, plan = describe_session(to_its_end(session)), session._parts.run.plan
    shorter = cut(log, "r", 1 + share * log.last("r") // 100)
    reopened = to_its_end(reopen_run(shorter, shorter.run("r"), plan))
    assert describe_session(reopened) == expected
    assert reopened.replay().ok


def test_ids_drawn_by_a_branch_are_kept_after_a_crash_in_another_branch():
    crashed, log, begun = MemoryLog(), MemoryLog(), asyncio.Event()

    async def draws(work):
        await work.loop()
        await begun.wait()
        return {"out": work.run.ids("thing")}

    async def crashes(work):
        await work.loop()
        begun.set()
        for _ in range(1000):
            await asyncio.sleep(0)
            if work.run.position == 2 and not crashed.runs():  # the other branch is committed
                crashed.create(log.run("r"), list(log.entries("r")))
        return {"out": "done"}

    shape = Shape(
        nodes=[
            Node("both", "nest", bodies=("one", "two"), params={"policy": "child"}),
            leaf("draws", draws, scope="one"),
            leaf("crashes", crashes, scope="two"),
            leaf("after", lambda work: {"after": work.run.ids("thing")}),
        ],
        edges=[Edge("both", "after")],
        entry=("both",),
        steps=[],
        end={},
        regions=[Region("one", ("draws",), owner="both"), Region("two", ("crashes",), owner="both")],
    )
    run = Run(shape.plan(), EffectDispatcher(), seed=7)
    run.begin({})
    session = session_of_run(run, Limits(Budget()), "branches", {}, "r")
    session._parts.persistence.record_new_run(log, "step")
    asyncio.run(session.arun())
    reopened = reopen_run(crashed, crashed.run("r"), run.plan)
    assert reopened.position == 2
    asyncio.run(reopened.arun())
    for each in (session, reopened):
        assert (each.board["both"][0], each.board["after"]) == ("thing_001", "thing_002")
