"""A person who has only so long to answer: the step fails when the time is up, by itself where a loop runs."""

from __future__ import annotations

import asyncio
import time

import networkx as nx
import pytest

import agentnb as nb
from agentnb.clock import FrozenClock
from agentnb.errors import ExecutionError
from agentnb.load import load
from agentnb.recipe.model import Edge, Node, Recipe, Rescue
from agentnb.session import Session
from tests.kinds.test_parallel import branching, function, human
from tests.session.gated_nodes import live, until
from tests.session.small_sessions import counter, path, session

LONG = 1_000.0


class Watch(FrozenClock):
    """Stands still until a test lets time go by."""

    def go_on(self, seconds):
        self._ns += int(seconds * 1e9)


def asking(timeout):
    graph = nx.MultiDiGraph(name="asking")
    graph.add_node("ask", kind="human", prompt="Go on?", timeout=timeout, output="answer")
    graph.add_node("late", function=counter("late"))
    graph.add_node("done", function=counter("done"))
    graph.add_edge("ask", "done")
    graph.add_edge("ask", "late", kind="timeout")
    return graph


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


def test_a_question_shows_the_remaining_time():
    run, _ = waiting()
    assert run.pending[0].arguments["timeout"] == LONG


def test_after_the_timeout_the_next_run_continues_with_a_failed_step():
    run, watch = waiting()
    watch.go_on(LONG)
    assert run.status != "waiting"
    assert run.pending == ()
    run.run()
    assert path(run) == ["ask error", "late"]
    step = run.trace.steps[0]
    assert (step.status, step.error) == ("error", "TimeoutError: 'ask' was not answered within 1000 s")
    assert run.trace.frames.calls["error"][0] == "TimeoutError: 'ask' was not answered within 1000 s"


@pytest.mark.parametrize("timeouts", ["own", "error"])
def test_a_recipe_decides_whether_a_timeout_takes_error_edges(timeouts):
    nodes = {"ask": Node("ask", "human", params={"timeout": LONG}), "fix": Node("fix", "noop")}
    recipe = Recipe("t", "test", nodes, (Edge("ask", "fix", "error"),), ("ask",), timeouts=timeouts)
    watch = Watch()
    run = Session(recipe, clock=watch)
    run.run()
    watch.go_on(LONG)
    run.run()
    if timeouts == "error":
        assert (run.status, path(run)) == ("finished", ["ask error", "fix"])
    else:
        assert (run.status, path(run)) == ("failed", ["ask error"])


def test_a_late_answer_is_rejected_with_the_reason():
    run, watch = waiting()
    watch.go_on(LONG)
    with pytest.raises(ExecutionError, match="the time to answer 'ask' is up"):
        run.answer("yes")


def test_a_reopened_question_has_the_remaining_time(tmp_path):
    run = session(asking(0.2), store=tmp_path / "runs.db")
    run.run()
    assert run.status == "waiting"
    run.close()
    time.sleep(0.2)
    reopened = nb.open(tmp_path / "runs.db", recipe=load(asking(0.2)))
    reopened.run()
    assert path(reopened) == ["ask error", "late"]


def test_going_back_and_forward_asks_again_with_the_full_time():
    run, watch = waiting()
    watch.go_on(LONG - 1)
    run.goto(0)
    run.step()
    watch.go_on(LONG - 1)
    run.answer("yes")
    assert run.board["answer"] == "yes"


def test_a_background_run_continues_by_itself_after_a_timeout():
    async def main():
        run = session(asking(0.02))
        run.start()
        await until(lambda: run.status == "finished")
        assert path(run) == ["ask error", "late"]

    live(main)


def test_a_stepped_node_ends_by_itself_at_the_timeout():
    async def main():
        run = session(asking(0.02))
        await run.astep()
        assert run.status == "waiting"
        await until(lambda: run.position == 1)
        await asyncio.sleep(0)
        assert (path(run), run.current, run.status) == (["ask error"], "late", "paused")

    live(main)


def test_an_answered_question_does_not_time_out():
    async def main():
        run = session(asking(0.05))
        await run.astep()
        run.answer("yes")
        await asyncio.sleep(0.1)
        assert (path(run), run.status) == (["ask"], "paused")

    live(main)


def two_asked():
    """Return a session of two branches: `one` has so long to answer and a way out, `two` has all the time."""
    one = Node("one", "human", params={"prompt": "?", "timeout": LONG, "output": "one"}, rescue=Rescue({"one": "none"}))
    watch = Watch()
    run = Session(branching([one], [human("two", "root")]), clock=watch)
    run.run()
    assert [question.node for question in run.pending] == ["one", "two"]
    return run, watch


def test_an_answer_commits_the_step_that_it_answers_though_another_question_is_late():
    run, watch = two_asked()
    watch.go_on(LONG)
    step = run.answer("yes", "two")
    assert (step.node_id, step.status) == ("two", "ok")
    run.run()
    assert path(run) == ["both enter", "two", "one error", "both leave", "done"]
    assert (run.board["one"], run.board["two"]) == ("none", "yes")


@pytest.mark.parametrize("by", ["run", "step"])
def test_a_late_question_ends_while_another_still_waits(by):
    run, watch = two_asked()
    watch.go_on(LONG)
    assert run.status == "waiting"
    getattr(run, by)()
    assert (path(run)[-1], [question.node for question in run.pending]) == ("one error", ["two"])


def test_a_background_run_ends_a_late_question_while_another_waits():
    one = Node("one", "human", params={"prompt": "?", "timeout": 0.02}, rescue=Rescue({"response": "none"}))

    async def main():
        run = Session(branching([one], [human("two", "root")]))
        run.start()
        await until(lambda: run.position == 2 and run.status == "waiting")
        assert (path(run), [question.node for question in run.pending]) == (["both enter", "one error"], ["two"])
        run.answer("yes")
        await until(lambda: run.status == "finished")

    live(main)


def test_a_late_question_does_not_wait_for_a_busy_branch():
    one = Node("one", "human", params={"prompt": "?", "timeout": 0.02}, rescue=Rescue({"response": "none"}))
    go = asyncio.Event()

    async def works():
        await go.wait()
        return {"two": 1}

    async def main():
        run = Session(branching([one], [function("two", works)]))
        run.start()
        await until(lambda: run.position == 2)
        assert (path(run), run.status) == (["both enter", "one error"], "running")
        go.set()
        await run.wait()
        assert run.status == "finished"

    live(main)


def test_a_question_repeated_after_a_timeout_has_no_failure():
    watch = Watch()
    graph = nx.MultiDiGraph(name="asking")
    graph.add_node("ask", kind="human", prompt="Go on?", timeout=LONG)
    run = session(graph, clock=watch)
    run.run()
    watch.go_on(LONG)
    run.run()
    assert (run.status, run.error.code) == ("failed", "X100")
    run.run()
    assert (run.status, run.error.code, run.cause) == ("waiting", "X110", None)
    assert "Go on" not in run.trace.outcome["error"]
    assert run.trace.outcome["error"].startswith("'ask' waits for a person")
    watch.go_on(LONG)
    run.run()
    assert (run.status, run.error.code, run.position) == ("failed", "X100", 2)
