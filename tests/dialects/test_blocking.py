"""Sync tools, systems, agents and models that block, awaited: the caller's event loop goes on meanwhile."""

import asyncio
import tempfile
import threading
from contextvars import ContextVar
from pathlib import Path

import networkx as nx
import pytest

import agentnb as nb
from agentnb.dialects import coreason, polaris, symphony
from agentnb.dialects.agentruntime import build_agent_from_path
from tests.dialects.agentruntime.agent_files import text, write
from tests.dialects.coreason.recipe_texts import agent, content

HANG = 20  # seconds: only a hang comes to it
WHO = ContextVar("who", default="nobody")


async def tool_of_symphony(blocking):
    config = symphony.AgentConfig(name="A", tools=["t"])
    answer = '{"tool_name": "t", "parameters": {}}'
    await symphony.AgentExecutor(config, llm=[answer], tools={"t": lambda _given: blocking()}).aexecute_task("go")


async def model_of_symphony(blocking):
    await symphony.AgentExecutor(symphony.AgentConfig(name="A"), llm=lambda _: blocking()).aexecute_task("go")


async def system_of_polaris(blocking):
    def system() -> str:
        return blocking()

    await polaris.GraphExecutor().execute(polaris.Graph().add_system(system))


async def agent_of_coreason(blocking):
    agents = {"a-agent": lambda **_: blocking()}
    await coreason.GraphExecutor(nb.load(content([agent("a")])), {}, agents=agents).run()


async def tool_of_agentruntime(blocking):
    with tempfile.TemporaryDirectory() as folder:
        file = write(Path(folder), text("nodes:\n  - {id: a, type: tool, uses: echo}"))
        tools = {"echo": lambda **_: {"text": blocking()}}
        await build_agent_from_path(file).arun({"x": 1}, tool_overrides=tools)


def tool_of_a_graph(blocking):
    graph = nx.DiGraph()
    graph.add_node("a", kind="tool", function=blocking)
    return nb.Session(nb.load(graph))


async def awaited_tool(blocking):
    await tool_of_a_graph(blocking).arun()


async def tool_of_a_step(blocking):
    await tool_of_a_graph(blocking).astep()


async def tool_of_a_live_run(blocking):
    await tool_of_a_graph(blocking).start().wait()


@pytest.mark.parametrize(
    "door",
    [
        tool_of_symphony,
        model_of_symphony,
        system_of_polaris,
        agent_of_coreason,
        tool_of_agentruntime,
        awaited_tool,
        tool_of_a_step,
        tool_of_a_live_run,
    ],
)
def test_the_event_loop_runs_while_a_sync_call_blocks(door):
    """Ten calls wait for one another, and then for the loop: one at a time, none would return."""
    all_are_there, loop_went_on, seen = threading.Event(), threading.Event(), []
    together = threading.Barrier(10, action=all_are_there.set)

    def blocking():
        together.wait(HANG)
        seen.append((loop_went_on.wait(HANG), WHO.get()))
        return "done"

    async def go_on():
        while not all_are_there.is_set() and not together.broken:  # noqa: ASYNC110  (set in another thread)
            await asyncio.sleep(0.001)
        loop_went_on.set()

    async def main():
        WHO.set("the caller")
        await asyncio.gather(go_on(), *(door(blocking) for _ in range(10)))

    asyncio.run(main())
    assert seen == [(True, "the caller")] * 10


def test_without_an_event_loop_a_call_stays_in_the_calling_thread():
    threads = []
    session = tool_of_a_graph(lambda: threads.append(threading.current_thread()))
    session.run()
    session.back()
    session.step()
    assert threads == [threading.current_thread()] * 2


def test_a_system_may_run_its_own_event_loop():
    async def answer():
        return "done"

    def system() -> str:
        return asyncio.run(answer())

    result = asyncio.run(polaris.GraphExecutor().execute(polaris.Graph().add_system(system)))
    assert result.output(str) == "done"
