from __future__ import annotations

import asyncio
import threading

import pytest

from agentnb.errors import ExecutionError
from agentnb.recipe.model import Edge
from tests.engine.graph_shapes import Shape, leaf
from tests.session.gated_nodes import Barrier, Gate, live, until
from tests.session.shape_sessions import session_of
from tests.session.small_sessions import calling, counting, graph, looping, path, session


def test_a_run_that_is_awaited_elsewhere_can_be_paused():
    async def main():
        gate = Gate()
        run = session(graph("a", "gate", "c", gate=gate))
        task = asyncio.create_task(run.arun())
        await gate.begun.wait()
        assert run.status == "running"
        with pytest.raises(ExecutionError, match="X112"):
            run.step()
        with pytest.raises(ExecutionError, match="X112"):
            await run.astep()
        run.pause()
        assert run.status == "pausing"
        gate.go.set()
        await task
        assert (run.status, path(run)) == ("paused", ["a", "gate"])

    live(main)


@pytest.mark.parametrize("verb", ["arun", "astep"])
def test_back_ends_an_awaited_run(verb):
    async def main():
        gate = Gate()
        run = session(graph("a", "gate", "c", gate=gate))
        run.step()
        task = asyncio.create_task(getattr(run, verb)())
        await gate.begun.wait()
        run.back()
        await task
        assert (run.status, run.position, run.current) == ("ready", 0, "a")
        gate.go.set()
        await run.arun()
        assert (run.status, path(run)) == ("finished", ["a", "gate", "c"])

    live(main)


def test_back_ends_an_awaited_run_of_fast_nodes():
    async def main():
        run = session(counting(limit=10**9), {"n": 0})
        task = asyncio.create_task(run.arun())
        await until(lambda: run.position > 100)
        run.goto(3)
        await task
        assert (run.status, run.position, run.board["n"]) == ("paused", 3, 2)
        await run.arun(max_steps=2)
        assert path(run) == ["add", "check", "add", "check", "add"]

    live(main)


def test_a_cancelled_task_leaves_the_run_at_its_last_step():
    async def main():
        gate = Gate()
        run = session(graph("a", "gate", gate=gate))
        task = asyncio.create_task(run.arun())
        await gate.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (run.status, path(run), run.trace.frames.interventions["action"].tolist()) == (
            "paused",
            ["a"],
            ["interrupted"],
        )
        gate.go.set()
        await run.arun()
        assert run.status == "finished"

    live(main)


def nested():
    """Return a session whose loop goes twice round `look`, and whose tool waits for a gate the second time."""
    gate, calls = Gate(), []

    async def look(word):
        calls.append(word)
        if len(calls) == 2:
            await gate(word and {})
        return word

    run = session(looping(calling(look), times=2), {"word": "rain"}, tools={"look": look})
    return run, gate


def test_async_over_and_out_yield_to_the_event_loop_and_stop_at_the_same_steps():
    async def main():
        for verb, steps in (("step_over", 0), ("step_out", 1)):
            plain, gate = nested()
            gate.go.set()
            run, gate = nested()
            for one in (plain, run):
                one.step(steps) if steps else None
            task = asyncio.create_task(getattr(run, f"a{verb}")())
            await gate.begun.wait()
            assert (run.status, task.done()) == ("running", False)
            with pytest.raises(ExecutionError, match="X112"):
                await run.astep_over()
            gate.go.set()
            step = await task
            await asyncio.to_thread(getattr(plain, verb))
            assert (run.status, path(run), step.step) == (plain.status, path(plain), run.position)
            assert run.current == "done"

    live(main)


def test_pause_ends_over_before_its_next_step():
    async def main():
        run, gate = nested()
        task = asyncio.create_task(run.astep_over())
        await gate.begun.wait()
        run.pause()
        assert run.status == "pausing"
        gate.go.set()
        await task
        position = run.position
        assert (run.status, path(run)[-1]) == ("paused", "look")
        await run.astep_over()
        assert run.position == position + 1

    live(main)


def test_step_over_of_an_endless_loop_can_be_paused():
    async def main():
        run = session(looping(graph("look", "after"), times=10**6), {"word": ""}, budget={"max_steps": 10**9})
        task = asyncio.create_task(run.astep_over())
        await until(lambda: run.position > 100)
        run.pause()
        await task
        assert (run.status, run.current != "done") == ("paused", True)

    live(main)


def test_a_slow_sync_node_does_not_block_other_tasks():
    async def main():
        barrier = Barrier()
        run = session(graph("gate", "b", gate=barrier))
        run._parts.run.plan.slow = frozenset({run._parts.run.plan.number("gate")})
        task = asyncio.create_task(run.astep())
        await until(barrier.begun.is_set)
        assert run.status == "running"
        barrier.go.set()
        await task
        assert path(run) == ["gate"]

    live(main)


async def held(run):
    """Step into the next node to its end; return where it was held."""
    results = []
    while await run.astep_into() is None:
        results.append(run.held_at.partition(" of ")[0])
    return results


def waiting(gate):
    """Return a session whose node emits, waits for a gate in its own loop, and emits again."""

    async def node(work):
        work.emit("before")
        await work.loop()
        gate.loop = asyncio.get_running_loop()
        gate.begun.set()
        while not gate.go.is_set():  # noqa: ASYNC110  (set in another thread)
            await asyncio.sleep(0.001)
        work.emit("after")
        return {"out": 1}

    nodes = [leaf("node", node), leaf("next", lambda work: {"next": True})]
    return session_of("line", Shape(nodes, [Edge("node", "next")], ("node",), [], {}))


def test_async_step_into_yields_to_the_event_loop_and_can_be_continued_without_one():
    async def main():
        gate = Barrier()
        run = waiting(gate)
        assert await run.astep_into() is None
        assert "'before'" in run.held_at
        task = asyncio.create_task(run.astep_into())
        await until(gate.begun.is_set)
        assert (run.status, gate.loop is asyncio.get_running_loop()) == ("running", False)
        gate.go.set()
        assert await task is None
        assert "'after'" in run.held_at
        run.step()
        assert (path(run), run.board["out"]) == (["node"], 1)
        run.back()
        assert len(await held(run)) == 2
        assert run.board["out"] == 1

    live(main)


def test_slow_code_does_not_block_the_event_loop_during_step_into():
    def slow(work):
        work.emit("before")
        started.set()
        assert go.wait(timeout=10)
        return {"out": 1}

    async def main():
        run = session_of("line", Shape([leaf("slow", slow)], [], ("slow",), [], {}))
        assert await run.astep_into() is None
        task = asyncio.create_task(run.astep_into())
        await until(started.is_set)
        assert run.status == "running"
        go.set()
        await task
        assert run.board["out"] == 1

    started, go = threading.Event(), threading.Event()
    live(main)


@pytest.mark.parametrize("verb", ["astep_into", "astep", "arun", "start"])
def test_back_ends_a_run_in_another_event_loop(verb):
    async def main():
        gate = Barrier()
        run = waiting(gate)
        await run.astep_into()
        result = getattr(run, verb)()
        task = asyncio.create_task(run.wait() if verb == "start" else result)
        await until(gate.begun.is_set)
        assert run.status == "running"
        run.back()
        await task
        assert (run.position, run.current, run.status) == (0, "node", "ready")
        gate.go.set()
        await run.arun()
        assert path(run) == ["node", "next"]

    live(main)


def test_a_cancelled_step_into_leaves_the_session_at_the_previous_step():
    async def main():
        gate = Barrier()
        run = waiting(gate)
        await run.astep_into()
        task = asyncio.create_task(run.astep_into())
        await until(gate.begun.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (run.position, run.current) == (0, "node")
        gate.go.set()
        assert (await run.astep()).node_id == "node"

    live(main)


def test_async_run_back_yields_to_the_event_loop_and_can_be_paused():
    async def main():
        run = session(counting(limit=10**9), {"n": 0})
        await run.arun(max_steps=20_000)
        task = asyncio.create_task(run.arun_back("n == 2"))
        await until(lambda: run.position < 20_000)
        with pytest.raises(ExecutionError, match="X112"):
            run.step()
        run.pause()
        await task
        assert 3 < run.position < 20_000
        await run.arun_back("n == 2")
        assert run.board["n"] == 2
        await run.arun_back()
        assert (run.position, run.status) == (0, "ready")

    live(main)


def test_run_back_pauses_a_background_run():
    async def main():
        run = session(counting(limit=10**9), {"n": 0})
        run.start()
        await until(lambda: run.position > 100)
        await run.arun_back(3)
        assert (run.position, run.status) == (3, "paused")
        await run.wait()
        assert run.position == 3

    live(main)


def test_a_pause_before_the_held_node_ends_is_respected():
    async def main():
        gate = Barrier()
        run = waiting(gate)
        await run.astep_into()
        run.start()
        await until(gate.begun.is_set)
        run.pause()
        assert run.status == "pausing"
        gate.go.set()
        await run.wait()
        assert (run.status, path(run)) == ("paused", ["node"])

    live(main)
