"""Into, answers and approvals leave the kernel's loop free for other cells, however long a node takes."""

from __future__ import annotations

import asyncio
import time
from typing import TypedDict

import networkx as nx
import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

import agentnb as nb
from agentnb.recipe.model import Node, Recipe
from agentnb.session import Session
from agentnb.ui.command_queue import Request
from agentnb.ui.status_line import format_status_line
from agentnb.world.effect import Effect
from tests.engine.graph_shapes import Shape, leaf
from tests.session.gated_nodes import Barrier, live, until
from tests.session.shape_sessions import session_of
from tests.session.small_sessions import graph, session
from tests.ui import ticket_recipe
from tests.ui.test_command_queue import make_queue, settled


def test_into_a_slow_node_does_not_block_the_event_loop():
    async def main():
        slow = Barrier()
        run = session(graph("a", "gate", gate=slow))
        run.step()
        desk, _ = make_queue(run)
        desk.ask(Request("into"))
        await until(slow.begun.is_set)  # with the loop held, nothing here would run before the node has ended
        assert not slow.go.is_set()
        slow.go.set()
        await settled(desk)
        assert run.status == "finished"

    live(main)


def test_a_slow_node_after_an_answer_does_not_block_the_event_loop():
    async def main():
        slow = Barrier()

        def refund(board):
            return {**slow(board), "reply": "refunded"}

        recipe = ticket_recipe.recipe()
        nodes = {**recipe.nodes, "refund": Node("refund", "function", params={"function": refund})}
        run = Session(
            Recipe("triage", "test", nodes, recipe.edges, recipe.entry), {"ticket": "money back"}, validate_inputs=False
        )
        desk, _ = make_queue(run)
        desk.ask(Request("run"))
        await until(lambda: run.status == "waiting")
        desk.ask(Request("answer", "yes", "ask"))
        await until(slow.begun.is_set)
        assert run.status == "running"
        slow.go.set()
        await run.wait()
        await settled(desk)
        assert run.status == "finished"

    live(main)


def test_a_node_after_an_approval_does_not_block_the_event_loop():
    async def main():
        slow = Barrier()

        async def pay(work):
            answer = await work.call(Effect("approval", "pay", {"amount": 5}))
            await work.call(Effect("tool", "pay", {}, target=lambda **_: slow({}), blocking=True))
            return {"paid": answer["approved"]}

        run = session_of("pays", Shape([leaf("pay", pay)], [], ("pay",), [], {}))
        run.step()
        desk, _ = make_queue(run)
        desk.ask(Request("approve"))
        await until(slow.begun.is_set)
        slow.go.set()
        await settled(desk)
        assert run.board["paid"] is True

    live(main)


def _asking_graph(function):
    built_graph = nx.DiGraph(name="asking", entry="decide")
    built_graph.add_node("decide", function=function, asks=True)
    return built_graph


def _asking_program(function):
    class State(TypedDict, total=False):
        decided: str

    def decide(state):
        return {"decided": function({})["decided"]}

    builder = StateGraph(State)
    builder.add_node("decide", decide)
    builder.add_edge(START, "decide")
    return builder.compile()


ASKING = {
    "a function": lambda slow: _asking_graph(lambda board: {"decided": nb.ask("Go?"), **slow(board)}),
    "langgraph": lambda slow: _asking_program(lambda board: {"decided": interrupt("Go?"), **slow(board)}),
}


def _slow_graph(slow):
    built_graph = nx.DiGraph(name="slow", entry="work")
    built_graph.add_node("work", function=slow.__call__)
    return built_graph


def _slow_program(slow):
    builder = StateGraph(TypedDict("State", {"a": str, "gate": str}, total=False))
    builder.add_node("work", lambda state: slow({}))
    builder.add_edge(START, "work")
    return builder.compile()


@pytest.mark.parametrize("verb", ["step", "over", "run"])
@pytest.mark.parametrize("make", [_slow_graph, _slow_program])
def test_a_slow_function_does_not_block_the_event_loop_even_the_first_time(make, verb):
    async def main():
        slow = Barrier()
        run = Session(nb.load(make(slow)), {})
        desk, _ = make_queue(run)
        desk.ask(Request(verb))
        await until(slow.begun.is_set)
        assert not slow.go.is_set()
        slow.go.set()
        await settled(desk)
        await until(lambda: run.status == "finished")

    live(main)


@pytest.mark.parametrize("way", ["step", "run"])
@pytest.mark.parametrize("kind", ASKING)
def test_a_function_after_an_answer_does_not_block_the_event_loop(kind, way):
    async def main():
        slow = Barrier()
        run = Session(nb.load(ASKING[kind](slow)), {})
        desk, _ = make_queue(run)
        desk.ask(Request(way))
        await until(lambda: run.status == "waiting")
        await settled(desk)
        desk.ask(Request("answer", "yes", "decide"))
        await until(slow.begun.is_set)
        slow.go.set()
        await settled(desk)
        await until(lambda: run.status == "finished")
        assert run.board["decided"] == "yes"

    live(main)


def test_a_function_that_is_stopped_after_the_answer_writes_nothing_and_runs_again_with_the_answer():
    async def main():
        slow = Barrier()
        run = Session(nb.load(ASKING["a function"](slow)), {})
        desk, _ = make_queue(run)
        desk.ask(Request("step"))
        await until(lambda: run.status == "waiting")
        await settled(desk)
        desk.ask(Request("answer", "yes", "decide"))
        await until(slow.begun.is_set)
        desk.ask(Request("stop"))
        await settled(desk)
        slow.go.set()
        assert (len(run.trace), "decided" in run.board) == (0, False)
        await run.astep()
        assert (run.status, run.board["decided"]) == ("finished", "yes")

    live(main)


def _blocking_graph(name, function):
    built_graph = nx.DiGraph(name=name, entry="work")
    built_graph.add_node("work", function=function)
    return nb.Session(nb.load(built_graph), {})


async def _blocks(board):
    time.sleep(0.15)  # noqa: ASYNC251  (what a beginner writes in place of `await asyncio.sleep`)
    return {"done": True}


async def _awaits(board):
    await asyncio.sleep(0.15)
    return {"done": True}


@pytest.mark.parametrize("verb", ["step", "run"])
def test_async_code_that_blocks_the_kernel_is_named(verb):
    async def main():
        run = _blocking_graph("blocks", _blocks)
        desk, _ = make_queue(run)
        desk.ask(Request(verb))
        await until(lambda: run.status == "finished")
        await settled(desk)
        assert "It blocked the kernel for 0.1 s without awaiting" in format_status_line(run).replace("0.2 s", "0.1 s")
        run.back()
        assert "blocked" not in format_status_line(run)

    live(main)


def test_async_code_that_awaits_or_is_stepped_into_blocks_nothing():
    async def main():
        for function, verb in ((_awaits, "step"), (_blocks, "into")):
            run = _blocking_graph("free", function)
            desk, _ = make_queue(run)
            beats = 0
            desk.ask(Request(verb))
            while run.status != "finished":
                await asyncio.sleep(0.01)
                beats += 1
            await settled(desk)
            assert beats > 3
            assert "blocked" not in format_status_line(run)

    live(main)
