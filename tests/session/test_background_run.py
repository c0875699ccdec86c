from __future__ import annotations

import asyncio

import pytest

from agentnb.errors import ExecutionError
from agentnb.session.logging_listener import attach_listener
from tests.session.gated_nodes import Barrier, Gate, live, until
from tests.session.small_sessions import asking, broken, calling, counting, fan, graph, path, session


def test_start_runs_in_the_background_and_wait_waits():
    async def main():
        run = session(counting(), {"n": 0})
        assert run.start() is run
        assert run.status == "running"
        trace = await run.wait()
        assert trace is run.trace
        assert (run.status, run.position) == ("finished", 7)
        assert await run.wait() is trace

    live(main)


def test_without_an_event_loop_start_suggests_run():
    run = session(graph("a"))
    with pytest.raises(ExecutionError, match=r"session\.run\(\)") as caught:
        run.start()
    assert caught.value.problems[0].code == "X113"
    run.run()
    assert run.status == "finished"


def test_pause_starts_no_further_step():
    async def main():
        gate = Gate()
        run = session(graph("a", "gate", "c", gate=gate))
        run.start()
        await gate.begun.wait()
        run.pause()
        assert run.status == "pausing"
        gate.go.set()
        await run.wait()
        assert (run.status, path(run), run.board["gate"]) == ("paused", ["a", "gate"], 1)
        run.start()
        await run.wait()
        assert run.status == "finished"

    live(main)


def test_other_methods_are_rejected_while_it_runs():
    async def main():
        gate = Gate()
        run = session(graph("a", "gate", gate=gate))
        run.start()
        await gate.begun.wait()
        for verb in (run.step, run.run, run.start, run.skip, lambda: run.edit({"x": 1}), lambda: run.set_next("a"),
                     run.fork, lambda: run.emit("x"), lambda: run.answer(1)):  # fmt: skip
            with pytest.raises(ExecutionError, match=r"pause\(\) first") as caught:
                verb()
            assert caught.value.problems[0].code == "X112"
        for verb in (run.astep, run.arun):
            with pytest.raises(ExecutionError, match="X112"):
                await verb()
        assert (run.status, dict(run.board)) == ("running", {"a": 1})
        gate.go.set()
        await run.wait()
        run.edit({"x": 1})

    live(main)


@pytest.mark.parametrize(("move", "position"), [(lambda run: run.back(), 0), (lambda run: run.goto(1), 1)])
def test_back_and_goto_pause_it_first(move, position):
    async def main():
        gate = Gate()
        run = session(graph("a", "gate", "c", gate=gate))
        run.start()
        await gate.begun.wait()
        move(run)
        assert (run.status, run.position) == ("paused" if position else "ready", position)
        gate.go.set()
        await run.wait()
        await asyncio.sleep(0.01)
        assert (run.position, "gate" in run.board) == (position, False)
        assert "cancelled" in run.trace.frames.interventions["action"].tolist()
        await run.arun()
        assert (run.status, path(run)) == ("finished", ["a", "gate", "c"])

    live(main)


def test_stop_cancels_what_is_in_flight():
    async def main():
        gate = Gate()
        run = session(graph("a", "gate", gate=gate))
        run.start()
        await gate.begun.wait()
        assert run.stop() is run
        assert (run.status, path(run), run.current) == ("paused", ["a"], "gate")
        await run.wait()
        gate.go.set()
        run.start()
        await run.wait()
        assert (run.status, run.board["gate"]) == ("finished", 1)

    live(main)


def test_reset_works_while_it_runs():
    async def main():
        gate = Gate()
        run = session(graph("a", "gate", gate=gate))
        run.start()
        await gate.begun.wait()
        run.reset()
        assert (run.status, run.position, dict(run.board)) == ("ready", 0, {})
        gate.go.set()
        run.start()
        await run.wait()
        assert (run.status, run.board["a"]) == ("finished", 1)

    live(main)


def test_a_slow_sync_node_does_not_delay_a_pause():
    async def main():
        barrier = Barrier()
        built_graph = graph("a", "gate", "c", gate=barrier)
        run = session(built_graph)
        run._parts.run.plan.slow = frozenset({run._parts.run.plan.number("gate")})  # it took long
        run.start()
        await until(barrier.begun.is_set)
        run.pause()
        assert run.status == "pausing"
        barrier.go.set()
        await run.wait()
        assert (run.status, path(run)) == ("paused", ["a", "gate"])

    live(main)


def test_a_node_that_took_long_is_marked_as_slow():
    async def main():
        run = session(graph("a", "b"))
        ticks = iter(range(0, 10**12, 10**7))
        run._parts.run.ns = lambda: next(ticks)
        run.start()
        await run.wait()
        assert run._parts.run.plan.slow == {0, 1}

    live(main)


def test_a_blocking_tool_does_not_delay_a_pause():
    async def main():
        barrier = Barrier()
        run = session(calling(lambda word: barrier({}), blocking=True), {"word": "x"})
        run.start()
        await until(barrier.begun.is_set)
        run.pause()
        assert run.status == "pausing"
        barrier.go.set()
        await run.wait()
        assert run.status == "paused"

    live(main)


def test_an_endless_run_of_fast_nodes_can_be_paused():
    async def main():
        run = session(counting(limit=10**9), {"n": 0})
        run.start()
        await until(lambda: run.position > 100)
        run.pause()
        await run.wait()
        assert run.status == "paused"
        position = run.position
        await asyncio.sleep(0.01)
        assert run.position == position

    live(main)


def test_wait_times_out_and_the_run_continues():
    async def main():
        gate = Gate()
        run = session(graph("gate", gate=gate))
        run.start()
        with pytest.raises(TimeoutError):
            await run.wait(timeout=0.01)
        assert run.status == "running"
        gate.go.set()
        await run.wait()
        assert run.status == "finished"

    live(main)


def test_a_failure_is_reported_as_always():
    async def main():
        run = session(broken())
        run.start()
        await run.wait()
        assert (run.status, run.current, run.error.code) == ("failed", "middle", "X100")
        run.edit({"fixed": True}).start()
        await run.wait()
        assert run.status == "finished"

    live(main)


def test_it_stops_at_a_person_and_continues_with_the_answer():
    async def main():
        run = session(asking())
        run.start()
        await run.wait()
        assert (run.status, run.pending[0].node) == ("waiting", "ask")
        run.answer("yes")
        run.start()
        await run.wait()
        assert (run.status, run.board["answer"]) == ("finished", "yes")

    live(main)


def test_it_stops_at_breakpoints_and_paused_calls():
    async def main():
        run = session(calling(), {"word": "rain"})
        run.breakpoints.add("look")
        run.breakpoints.add(call="tool")
        run.start()
        await run.wait()
        assert (run.status, run.current) == ("paused", "look")
        run.start()
        await run.wait()
        assert run.status == "in_flight"
        run.step()
        run.start()
        await run.wait()
        assert run.status == "finished"

    live(main)


def test_branches_run_concurrently():
    from tests.engine.graph_shapes import Meeting

    async def main():
        meeting = Meeting()

        def meets(name, other):
            async def node(board):
                meeting.begun.add(name)
                await meeting.wait_for(other)
                return {name: 1}

            return node

        run = session(fan("x", "y", x=meets("x", "x"), y=meets("y", "x")))
        run.start()
        await run.wait()
        assert (run.status, run.board["x"], run.board["y"]) == ("finished", 1, 1)

    live(main)


def test_listeners_are_notified_when_it_starts_and_when_it_ends():
    async def main():
        messages = []
        run = session(counting(), {"n": 0}, hooks={"change": lambda each: messages.append(each.status)})
        run.start()
        await run.wait()
        await asyncio.sleep(0)
        assert messages[0] == "running"
        assert messages[-1] == "finished"

    live(main)


def test_an_internal_error_is_raised_by_wait():
    async def main():
        run = session(graph("a", "b"))

        def breaks(act, code):
            raise RuntimeError("ours")

        run.subscribe(lambda step: None)
        # The log listens from now on, and not only from the start, which would arm the run anew
        attach_listener(run._parts.state)
        run._parts.run.after_step = breaks
        run.start()
        with pytest.raises(RuntimeError, match="ours"):
            await run.wait()
        assert run.status in ("paused", "ready")
        run._parts.callbacks.install()
        run.run()
        assert run.status == "finished"

    live(main)


def test_an_interrupt_in_a_node_pauses_the_run_and_keeps_the_event_loop():
    async def main():
        def stops(board):
            if not board.get("again"):
                raise KeyboardInterrupt
            return {"b": 1}

        run = session(graph("a", "b", b=stops))
        run.start()
        await run.wait()
        assert (run.status, run.position, run.current) == ("paused", 1, "b")
        run.edit({"again": True}).start()
        await run.wait()
        assert run.status == "finished"

    live(main)


def test_it_can_be_started_from_another_thread():
    async def main():
        run = session(counting(), {"n": 0})
        await asyncio.to_thread(run.start)
        await run.wait()
        assert run.status == "finished"
        assert run._parts.state.loop is asyncio.get_running_loop()

    live(main)


def test_an_answer_continues_a_background_run():
    async def main():
        run = session(asking())
        run.start()
        await run.wait()
        step = run.answer("yes")
        assert (step.node_id, run.status) == ("ask", "running")
        assert run.start() is run  # it goes on already
        await run.wait()
        assert (run.status, path(run)) == ("finished", ["before", "ask", "after"])

    live(main)


def test_an_answer_does_not_continue_a_stepped_run():
    async def main():
        run = session(asking())
        run.start()
        await run.wait()
        assert await run.astep() is None
        run.answer("yes")
        await asyncio.sleep(0.01)
        assert (run.status, path(run)) == ("paused", ["before", "ask"])
        by_hand = session(asking())
        await by_hand.arun()
        by_hand.answer("yes")
        await asyncio.sleep(0.01)
        assert by_hand.status == "paused"

    live(main)


def test_an_answer_at_a_breakpoint_stops_there():
    async def main():
        run = session(asking())
        run.breakpoints.add("after")
        run.start()
        await run.wait()
        run.answer("yes")
        await asyncio.sleep(0.01)
        assert (run.status, run.current) == ("paused", "after")

    live(main)


@pytest.mark.parametrize("threaded", [False, True])
def test_a_stop_iteration_in_a_node_ends_a_background_run(threaded):
    left = iter(["once"])
    built_graph = calling(lambda word: next(left), blocking=threaded)

    async def main():
        run = session(built_graph, {"word": "rain"})
        run.start()
        await run.wait()
        assert run.status == "finished"
        second = session(built_graph, {"word": "rain"})
        second.start()
        await second.wait()
        assert (second.status, "StopIteration" in second.error.what) == ("failed", True)

    live(main)
