from __future__ import annotations

import asyncio

import pytest

from agentnb.errors import ExecutionError
from tests.session.gates import Gate, live, until
from tests.session.making import counting, graph, path, session


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
def test_back_ends_what_is_awaited_elsewhere(verb):
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


def test_back_ends_an_awaited_run_of_quick_nodes():
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


def test_a_task_that_is_cancelled_leaves_the_run_after_its_last_step():
    async def main():
        gate = Gate()
        run = session(graph("a", "gate", gate=gate))
        task = asyncio.create_task(run.arun())
        await gate.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (run.status, path(run), run.trace.frames.acts["act"].tolist()) == ("paused", ["a"], ["interrupted"])
        gate.go.set()
        await run.arun()
        assert run.status == "finished"

    live(main)
