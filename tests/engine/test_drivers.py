from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

from agentnb.engine.core.drivers import LOOP, find_heads, run_in_loop, run_in_own_loop, run_plain, step_in_loop
from agentnb.engine.core.run import DONE, EXHAUSTED, FAILED, GO, PAUSED
from agentnb.recipe.model import Edge
from tests.engine.graph_shapes import Meeting, branches, go_on, leaf, path, shape_of, step
from tests.engine.small_runs import data, run_of


async def later(work):
    await work.loop()
    await asyncio.sleep(0)
    return {"a": 1}


def test_a_missing_event_loop_is_requested_and_the_run_continues_inside_one():
    run = run_of(lambda work: {}, later, lambda work: {"b": work.board["a"]})
    assert run_plain(run) == LOOP
    assert (run.position, len(run.pending_steps)) == (1, 1)
    assert run_in_own_loop(lambda: run_in_loop(run)) == DONE
    assert data(run) == {"a": 1, "b": 1}


def test_a_coroutine_without_suspension_needs_no_event_loop():
    async def quick(work):
        return {"a": 1}

    run = run_of(quick)
    assert (run_plain(run), data(run)) == (DONE, {"a": 1})


def test_one_step_runs_inside_an_event_loop():
    async def main():
        run = run_of(later, later)
        assert await step_in_loop(run) == GO
        assert run.position == 1
        assert await step_in_loop(run) == DONE

    asyncio.run(main())


def test_a_run_in_an_event_loop_yields_regularly():
    turns = []

    async def main():
        run = run_of(lambda work: {}, edges=[Edge("n0", "n0")])
        ticks = iter(range(0, 10**15, 10**6))
        run.ns = lambda: next(ticks)
        run.stop_at = 50
        run.set_next_due()
        other = asyncio.create_task(beside())
        assert await run_in_loop(run, lambda: turns.append("between")) == PAUSED
        other.cancel()

    async def beside():
        while True:
            turns.append("beside")
            await asyncio.sleep(0)

    asyncio.run(main())
    assert "between" in turns
    assert "beside" in turns


def test_halt_stops_before_the_next_step():
    async def main():
        run = run_of(lambda work: setattr(run.halt, "is_requested", True), edges=[Edge("n0", "n0")])
        assert await run_in_loop(run) == PAUSED
        assert run.position == 1

    asyncio.run(main())


def test_the_heads_are_the_first_of_each_lane():
    run = branches().run()
    assert [activation.node.id for activation in find_heads(run)] == ["both"]
    step(run)
    assert [activation.node.id for activation in find_heads(run)] == ["first", "second"]
    step(run)
    assert [activation.node.id for activation in find_heads(run)] == ["left", "second"]


def test_sync_branches_run_concurrently_in_threads():
    barrier = threading.Barrier(2, timeout=20)

    def meets(work):
        barrier.wait()
        return {"out": threading.current_thread() is threading.main_thread()}

    shape = branches()
    for node in shape.nodes:
        if node.id in ("first", "second"):
            node.params["do"] = meets
    shape.edges = []
    run = shape.run()
    assert go_on(run) == DONE
    assert data(run)["both"] == [False, False]


def test_results_of_branches_are_in_branch_order_whatever_the_timing():
    meeting = Meeting()

    def node(name, after):
        async def perform(work):
            await work.loop()
            if after:
                await meeting.wait_for(after)
            meeting.begun.add(name)
            return {"out": name}

        return perform

    shape = branches()
    for leaf_ in shape.nodes:
        if leaf_.id in ("first", "second"):
            leaf_.params["do"] = node(leaf_.id, "second" if leaf_.id == "first" else None)
    shape.edges = []
    run = shape.run()
    assert go_on(run) == DONE
    assert path(run) == ["both enter", "second", "first", "both leave"]
    assert data(run)["both"] == ["first", "second"]


@pytest.mark.parametrize("limit", range(1, 6))
def test_branches_take_exactly_as_many_steps_as_the_limit_allows(limit):
    shape = branches()
    for node in shape.nodes:
        if node.id in ("first", "left", "second", "right"):
            node.params["do"] = lambda work: {"out": 1}
    run = shape.run()
    run.limit = limit
    run.set_next_due()
    assert (go_on(run), run.counted_steps) == ((EXHAUSTED, limit) if limit < 5 else (DONE, 5))


@pytest.mark.parametrize("clean_up", ["waits", "raises"])
def test_a_cancelled_run_ends_when_all_branches_have_cleaned_up(clean_up):
    meeting, cleaned = Meeting(), []

    async def wait(work):
        other = {"left": "right", "right": "left"}[work.node.id]
        meeting.begun.add(work.node.id)
        await meeting.wait_for(other)
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range({"left": 1, "right": 9}[work.node.id]):
                await asyncio.sleep(0)
            cleaned.append(work.node.id)
            if clean_up == "raises":
                raise ValueError(work.node.id)

    shape = shape_of("branches")
    run = replace(
        shape,
        nodes=[leaf(node.id, wait, scope=node.scope) if node.id in {"left", "right"} else node for node in shape.nodes],
    ).run()

    async def main():
        task = asyncio.create_task(run_in_loop(run))
        await meeting.wait_for("right")
        await meeting.wait_for("left")
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return list(cleaned)

    assert asyncio.run(main()) == ["left", "right"]
    assert (sorted(path(run)), run.pending_steps) == (["both enter", "first", "second"], {})


def test_a_failing_branch_cancels_the_others():
    shape = branches(Meeting())
    shape.edges = shape.edges[:2]
    run = shape.run()
    assert go_on(run) == FAILED
    assert path(run)[0] == "both enter"
    assert sorted(path(run)[1:3]) == ["first", "second"]  # in the order in which their threads end
    assert path(run)[3:] == ["left error", "right cancelled"]
    assert run.pending_steps == {}
