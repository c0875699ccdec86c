"""A live run to a place, and how fast it goes."""

from __future__ import annotations

import asyncio

import pytest

from agentnb.errors import ExecutionError
from tests.session.gated_nodes import live, until
from tests.session.small_sessions import asking, counting, fan, graph, path, session


@pytest.mark.parametrize(("until", "position"), [("check", 1), (4, 4), ("n == 2", 3), (10**6, 7)])
def test_start_accepts_until_as_run_does(until, position):
    async def main():
        run, plain = session(counting(), {"n": 0}), session(counting(), {"n": 0})
        run.start(until)
        await run.wait()
        assert run.position == position
        await asyncio.to_thread(plain.run, until)
        assert (plain.position, plain.status) == (run.position, run.status)
        run.start()
        await run.wait()
        assert run.status == "finished"

    live(main)


def test_a_past_position_is_not_a_target():
    async def main():
        run = session(counting(), {"n": 0})
        run.step(3)
        run.start(2)
        assert (run.position, run.status) == (3, "paused")
        with pytest.raises(ExecutionError, match="X118"):
            run.start("chek")
        assert run.step().step == 4

    live(main)


def test_a_run_to_a_node_continues_after_an_answer():
    async def main():
        run = session(asking())
        run.start("after")
        await run.wait()
        assert run.status == "waiting"
        run.answer("yes")
        await run.wait()
        assert (run.current, path(run)) == ("after", ["before", "ask"])

    live(main)


def test_with_a_speed_it_waits_after_each_step_and_pause_ends_the_wait():
    async def main():
        run = session(counting(limit=10**9), {"n": 0})
        run.speed = 0.001
        run.start()
        await until(lambda: run.position == 1)
        for _ in range(20):
            await asyncio.sleep(0)
        assert (run.position, run.status) == (1, "running")
        run.pause()
        await run.wait()
        assert (run.position, run.status) == (1, "paused")

    live(main)


@pytest.mark.parametrize("verb", ["stop", "back", "reset"])
def test_moving_ends_the_wait_too(verb):
    async def main():
        run = session(counting(), {"n": 0})
        run.speed = 0.001
        run.start()
        await until(lambda: run.position == 1)
        getattr(run, verb)()
        await run.wait()
        run.speed = None
        run.start()
        await run.wait()
        assert (run.status, run.board["n"]) == ("finished", 3)

    live(main)


def test_the_speed_may_change_during_a_run():
    async def main():
        run = session(counting(limit=10**9), {"n": 0})
        run.start()
        await until(lambda: run.position > 100)
        run.speed = 0.001
        await asyncio.sleep(0.01)
        recipe = run.position
        await asyncio.sleep(0.01)
        assert (run.position, run.status) == (recipe, "running")
        run.speed = 1000
        await until(lambda: run.position > recipe + 2)
        run.speed = None
        await until(lambda: run.position > recipe + 2_000)
        run.pause()
        await run.wait()
        assert run.status == "paused"

    live(main)


def test_branches_alternate_if_a_speed_is_set():
    async def main():
        run = session(fan("a", "b"))
        run.speed = 1000
        run.start()
        await run.wait()
        assert run.status == "finished"
        plain = session(fan("a", "b"))
        await plain.arun()
        assert sorted(path(run)) == sorted(path(plain))

    live(main)


@pytest.mark.parametrize("speed", [0, -1, True, "fast", float("inf"), float("nan"), 1e-9])
def test_an_invalid_speed_is_rejected(speed):
    run = session(graph("a"))
    with pytest.raises(ExecutionError, match="X128"):
        run.speed = speed
    assert run.speed is None
