"""A person who has only so long to answer: the step fails when the time is up, by itself where a loop runs."""

from __future__ import annotations

import asyncio

import networkx as nx
import pytest

from agentnb.clock import FrozenClock
from agentnb.errors import ExecutionError
from agentnb.recipe.model import Edge, Node, Recipe
from agentnb.session import Session
from tests.session.gates import live, until
from tests.session.making import counter, path, session

LONG = 1_000.0


class Watch(FrozenClock):
    """Stands still until a test lets time go by."""

    def go_on(self, seconds):
        self._ns += int(seconds * 1e9)


def asking(timeout):
    made = nx.MultiDiGraph(name="asking")
    made.add_node("ask", kind="human", prompt="Go on?", timeout=timeout, output="answer")
    made.add_node("late", function=counter("late"))
    made.add_node("done", function=counter("done"))
    made.add_edge("ask", "done")
    made.add_edge("ask", "late", kind="timeout")
    return made


def waiting(timeout=LONG):
    watch = Watch()
    run = session(asking(timeout), clock=watch)
    run.run()
    assert run.status == "waiting"
    return run, watch


def test_an_answer_in_time_is_taken():
    run, watch = waiting()
    watch.go_on(LONG - 1)
    run.answer("yes")
    assert (run.board["answer"], run.position) == ("yes", 1)


def test_who_is_asked_can_read_how_long_there_is():
    run, _ = waiting()
    assert run.pending[0].arguments["timeout"] == LONG


def test_when_the_time_is_up_the_next_run_goes_on_with_a_failed_step():
    run, watch = waiting()
    watch.go_on(LONG)
    assert run.status != "waiting"
    assert run.pending == ()
    run.run()
    assert path(run) == ["ask error", "late"]
    step = run.trace.steps[0]
    assert (step.status, step.error) == ("error", "TimeoutError: nobody has answered 'ask' within 1000 s")
    assert run.trace.frames.calls["error"][0] == "TimeoutError: nobody has answered 'ask' within 1000 s"


@pytest.mark.parametrize("timeouts", ["own", "error"])
def test_a_recipe_says_whether_a_time_out_takes_the_error_edges_too(timeouts):
    nodes = {"ask": Node("ask", "human", params={"timeout": LONG}), "mend": Node("mend", "noop")}
    recipe = Recipe("t", "test", nodes, (Edge("ask", "mend", "error"),), ("ask",), timeouts=timeouts)
    watch = Watch()
    run = Session(recipe, clock=watch)
    run.run()
    watch.go_on(LONG)
    run.run()
    if timeouts == "error":
        assert (run.status, path(run)) == ("finished", ["ask error", "mend"])
    else:
        assert (run.status, path(run)) == ("failed", ["ask error"])


def test_an_answer_that_comes_too_late_is_refused_and_says_why():
    run, watch = waiting()
    watch.go_on(LONG)
    with pytest.raises(ExecutionError, match="the time to answer 'ask' is up"):
        run.answer("yes")


def test_going_back_and_on_asks_again_and_gives_the_whole_time():
    run, watch = waiting()
    watch.go_on(LONG - 1)
    run.goto(0)
    run.step()
    watch.go_on(LONG - 1)
    run.answer("yes")
    assert run.board["answer"] == "yes"


def test_a_live_run_goes_on_by_itself_when_the_time_is_up():
    async def main():
        run = session(asking(0.02))
        run.start()
        await until(lambda: run.status == "finished")
        assert path(run) == ["ask error", "late"]

    live(main)


def test_a_step_by_hand_ends_by_itself_and_the_run_stands_behind_it():
    async def main():
        run = session(asking(0.02))
        await run.astep()
        assert run.status == "waiting"
        await until(lambda: run.position == 1)
        await asyncio.sleep(0)
        assert (path(run), run.current, run.status) == (["ask error"], "late", "paused")

    live(main)


def test_an_answered_question_rings_no_more():
    async def main():
        run = session(asking(0.05))
        await run.astep()
        run.answer("yes")
        await asyncio.sleep(0.1)
        assert (path(run), run.status) == (["ask"], "paused")

    live(main)
