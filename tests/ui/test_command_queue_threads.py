"""What a desk does while the loop goes on: long commands, those that wait for them, and those that end them."""

from __future__ import annotations

import asyncio

import networkx as nx
import pytest

import agentnb as nb
from agentnb.ui.command_queue import Request
from tests.ui import ticket_recipe
from tests.ui.test_command_queue import codes, in_loop, make_queue, settled


def gated(times=3):
    """Return a session whose loop waits at each round for a gate, and the gate: over it takes many steps."""
    gate = asyncio.Event()

    async def wait(n):
        await gate.wait()
        return {"n": n + 1}

    body = nx.DiGraph(name="body")
    body.add_node("wait", function=wait, inputs={"n": "n"})
    graph = nx.DiGraph(name="rounds")
    graph.add_node("again", kind="loop", graph=body, times=times)
    graph.add_node("done", function=lambda n: {"last": n}, inputs={"n": "n"})
    graph.add_edge("again", "done")
    return ticket_recipe.Session(nb.load(graph), {"n": 0}), gate


async def until(holds):
    while not holds():  # noqa: ASYNC110  (what a session has come to is not an event of a loop)
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("verb", ["over", "run"])
def test_other_code_runs_during_a_long_command_and_pause_ends_it(verb):
    async def check(*_):
        session, gate = gated()
        desk, painter = make_queue(session)
        desk.ask(Request(verb))
        await until(lambda: session.position == 1)
        for _ in range(10):
            await asyncio.sleep(0)
        assert session.status == "running"
        results = []
        look = Request("query", "key", target="n")
        look.done = lambda: results.append(look.result["field"]["text"])
        desk.ask(look)
        desk.ask(Request("pause"))
        await asyncio.sleep(0)
        assert (results, painter.places[-1]) == (["0"], (1, "pausing"))
        gate.set()
        await session.wait(10)
        await settled(desk)
        assert (session.position, session.status, desk.problems) == (2, "paused", ())

    in_loop(check)


@pytest.mark.parametrize(("verb", "position"), [("over", 7), ("out", 7), ("into", 1), ("run_to", 7)])
def test_each_command_completes_beside_other_code(verb, position):
    async def check(*_):
        session, gate = gated()
        desk, painter = make_queue(session)
        gate.set()
        if verb == "out":
            session.step()
        desk.ask(Request(verb, target="done"))
        await settled(desk)
        await session.wait(10)
        assert (session.position, desk.problems) == (position, ())
        desk.ask(Request("run_back"))
        await settled(desk)
        assert painter.places[-1] == (0, "ready")

    in_loop(check)


def test_a_second_step_is_executed_after_the_first_unless_paused():
    async def check(*_):
        session, gate = gated()
        desk, _ = make_queue(session)
        done = []
        for number in range(2):
            desk.ask(Request("step", done=lambda number=number: done.append(number)))
        await until(lambda: session.position == 1 and desk.at_work)
        gate.set()
        await settled(desk)
        assert (session.position, done) == (2, [0, 1])
        gate.clear()
        session.goto(1)
        for number in (2, 3):
            desk.ask(Request("step", done=lambda number=number: done.append(number)))
        await until(lambda: desk.at_work)
        desk.ask(Request("pause"))
        await asyncio.sleep(0)
        gate.set()
        await settled(desk)
        assert (session.position, sorted(done)) == (2, [0, 1, 2, 3])

    in_loop(check)


def test_moving_does_not_wait_for_queued_commands():
    async def check(*_):
        session, _ = gated()
        session.step()
        desk, _ = make_queue(session)
        for _ in range(3):
            desk.ask(Request("step"))
        await until(lambda: desk.at_work)
        desk.ask(Request("goto", 0))
        await asyncio.wait_for(settled(desk), 10)
        assert (session.position, desk.problems) == (0, ())

    in_loop(check)


def test_the_speed_changes_while_a_run_continues():
    async def check(*_):
        session, gate = gated(times=1000)
        gate.set()
        desk, _ = make_queue(session)
        desk.ask(Request("speed", 0.001))
        desk.ask(Request("run"))
        await until(lambda: session.position == 1)
        await asyncio.sleep(0.01)
        assert (session.position, session.speed) == (1, 0.001)
        desk.ask(Request("speed", None))
        await until(lambda: session.position > 10)
        desk.ask(Request("speed", "fast"))
        await until(lambda: desk.problems)
        assert codes(desk) == ["X128"]
        desk.ask(Request("stop"))
        await asyncio.wait_for(settled(desk), 10)

    in_loop(check)
