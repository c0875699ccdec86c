from __future__ import annotations

import asyncio
from dataclasses import dataclass

import networkx as nx
import pytest

import agentnb as nb
from agentnb.clock import FrozenClock, TickingClock
from agentnb.errors import ExecutionError
from agentnb.load import load
from agentnb.samples import ANSWERS, EVENTS, samples
from agentnb.session import Session
from tests.samples.installed import NAMES
from tests.session.small_sessions import asking, broken, calling, counting, fan, graph, looping, session


def begun(name, **options):
    """Return a session of a sample, told of the events that it waits for."""
    run = Session(samples(name), answers=ANSWERS.get(name), **options)
    for type_, payload in EVENTS.get(name, ()):
        run.emit(type_, payload)
    return run


def again(name, run):
    """Return the sample once more; behaviors tell the id of the run that they were made for, so theirs is the same."""
    return run.recipe if name in EVENTS else samples(name)


class Guard:
    """What is called while a session runs, and may not be called while it is replayed."""

    def __init__(self):
        self.closed, self.calls = False, 0

    def __call__(self, function):
        def guarded(*given, **named):
            assert not self.closed, "an effect was run in a replay"
            self.calls += 1
            return function(*given, **named)

        return guarded


def finds_nothing(run, guard=None):
    """Replay a session from every step on, and from the first on every level; nothing changes, and nothing goes out."""
    if guard is not None:
        guard.closed = True
    state_before = (run.position, run.status, dict(run.board), run.trace.to_json())
    for start in range(run.position + 1):
        for strict in ("reads",) if start else ("path", "values", "reads"):
            report = run.replay(start, strict=strict)
            assert (report.ok, report.divergences, report.unsure) == (True, (), ())
    assert state_before == (run.position, run.status, dict(run.board), run.trace.to_json())
    if guard is not None:
        guard.closed = False


# --------------------------------------------------------------------------------------------------- every kind of run


@pytest.mark.parametrize("name", NAMES)
def test_every_sample_replays_without_divergence(name):
    end = "idle" if name in EVENTS else "finished"
    for move in (Session.run, lambda run: [run.step() for _ in range(40) if run.status != end]):
        run = begun(name)
        move(run)
        assert run.status == end
        finds_nothing(run)
        assert run.replay(recipe=again(name, run), strict="reads").ok


def flaky(guard, fails, error):
    def look(word):
        if guard.calls <= fails:
            raise error
        return {"found": word}

    return look


@pytest.mark.parametrize("fails", [0, 2, 3])
def test_retried_tools_replay(fails):
    guard = Guard()
    built_graph = calling(guard(flaky(guard, fails, KeyError("gone"))), attempts=3)
    built_graph.add_node("rescue", function=lambda board: {"rescued": True})
    built_graph.add_edge("look", "rescue", kind="error")
    run = session(built_graph, {"word": "rain"})
    run.run()
    assert (run.status, run.board.get("rescued")) == ("finished", True if fails == 3 else None)
    finds_nothing(run, guard)


def test_a_timeout_takes_its_edge_in_a_replay():
    guard = Guard()

    async def slow(word):
        await asyncio.sleep(60)

    built_graph = calling(slow, timeout=0.01)
    built_graph.add_node("late", function=guard(lambda board: {"late": True}))
    built_graph.add_edge("look", "late", kind="timeout")
    run = session(built_graph, {"word": "rain"})
    run.run()
    assert run.board["late"]
    finds_nothing(run)


def test_a_failed_run_replays():
    run = session(broken())
    run.run()
    run.retry()
    assert (run.status, run.position) == ("failed", 3)
    finds_nothing(run)
    run.edit({"fixed": True})
    run.run()
    assert run.status == "finished"
    finds_nothing(run)


def test_tools_that_change_arguments_or_read_the_board_replay():
    guard = Guard()

    def append(log):
        log.append("x")

    built_graph = nx.MultiDiGraph(name="in place")
    built_graph.add_node("one", kind="tool", function=guard(append), inputs={"log": "log"})
    built_graph.add_node("two", kind="tool", function=guard(lambda board: board["log"].append(board["n"])))
    built_graph.add_node("three", function=lambda board: board["log"].append("y"))
    built_graph.add_node("count", function=lambda board: {"size": len(board["log"])})
    nx.add_path(built_graph, ["one", "two", "three", "count"])
    run = session(built_graph, {"log": [], "n": 5})
    run.run()
    assert (run.board["log"], run.board["size"]) == (["x", 5, "y"], 3)
    finds_nothing(run, guard)


@dataclass
class Article:
    title: str
    content: str


def test_a_tool_that_returns_an_object_returns_it_in_a_replay():
    guard = Guard()
    run = session(calling(guard(lambda word: Article(word, "long"))), {"word": "rain"})
    run.run()
    assert run.board["look"] == Article("rain", "long")
    finds_nothing(run, guard)


def test_agents_models_and_people_replay():
    guard = Guard()
    built_graph = nx.MultiDiGraph(name="asking")
    built_graph.add_node("bound", kind="agent", inputs={"n": "n"})
    built_graph.add_node("asked", kind="agent", inputs={"n": "n"})
    built_graph.add_node("who", kind="human", prompt="Who?", output="who")
    built_graph.add_node("last", function=lambda board: {"last": [board["bound"], board["asked"], board["who"]]})
    nx.add_path(built_graph, ["bound", "asked", "who", "last"])
    run = session(built_graph, {"n": 1}, tools={"bound": guard(lambda n: n + 1)}, llm=guard(lambda request: "said"))
    run.run()
    assert run.status == "waiting"
    finds_nothing(run, guard)
    run.answer("me")
    run.run()
    assert run.board["last"] == [2, "said", "me"]
    finds_nothing(run, guard)


def test_answers_and_edits_during_a_question_replay():
    run = session(asking())
    run.run()
    run.edit({"before": 7})
    run.answer("yes")
    run.run()
    finds_nothing(run)


@pytest.mark.parametrize("side", ["before", "after"])
def test_an_edited_call_replays(side):
    guard = Guard()
    run = session(calling(guard(lambda word: {"found": word})), {"word": "rain"})
    run.breakpoints.add(call="tool", side=side)
    run.run()
    (pending,) = run.pending
    run.edit({"word": "sun"})
    run.change(pending.id, **({"arguments": {"word": "snow"}} if side == "before" else {"answer": {"found": "fog"}}))
    run.run()
    assert run.board["found"] == ("snow" if side == "before" else "fog")
    finds_nothing(run, guard)


def test_interventions_events_and_time_travel_replay():
    run = session(counting(5), {"n": 0})
    run.step(3)
    run.edit({"n": 2, "more": [1]})
    run.emit("hello", {"a": 1})
    run.set_next("check")
    run.skip({"skipped": True})
    run.run()
    finds_nothing(run)
    run.goto(4)
    finds_nothing(run)
    run.edit({"n": 4})
    run.run()
    finds_nothing(run)
    for fork in run.forks:
        finds_nothing(fork)


def test_both_runs_replay_after_a_reset():
    run = session(counting(), {"n": 0})
    run.run()
    run.reset()
    run.step(2)
    finds_nothing(run)
    (before,) = run.forks
    finds_nothing(before)


def test_a_fork_with_other_tools_and_another_model_replays():
    guard = Guard()
    built_graph = calling("look")
    built_graph.add_node("say", kind="agent", inputs={"word": "word"})
    built_graph.add_node("shout", function="louder", inputs={"say": "say"})
    nx.add_path(built_graph, ["after", "say", "shout"])
    tools = {"look": guard(lambda word: "one"), "louder": lambda say: {"loud": say.upper()}}
    run = session(built_graph, {"word": "rain"}, tools=tools)
    run.run()
    fork = run.fork(at=2, tools={"louder": lambda say: {"loud": say + "!"}}, llm=guard(lambda request: "hey"))
    fork.run()
    assert (run.board["loud"], fork.board["loud"]) == ("MOCKED OUTPUT FROM SAY", "hey!")
    finds_nothing(run, guard)
    finds_nothing(fork, guard)
    second_fork = fork.fork(at=4, tools={"louder": lambda say: {"loud": "?"}})
    second_fork.run()
    finds_nothing(second_fork, guard)


def test_concurrent_branches_replay():
    guard = Guard()
    built_graph = fan("a", "b", "c", b=lambda board: board.get("nowhere"))
    built_graph.nodes["a"].update(kind="tool", function=guard(lambda board: {"a": 5}))
    run = session(built_graph)
    run.run()
    finds_nothing(run, guard)


def test_loops_and_subgraphs_replay_step_by_step():
    run = session(looping(looping(counting(2), times=2), times=2), {"n": 0})
    while run.status != "finished":
        run.step()
    finds_nothing(run)


@pytest.mark.parametrize("clock", [FrozenClock(), TickingClock()])
def test_clocks_are_read_and_not_advanced(clock):
    run = session(counting(), {"n": 0}, clock=clock)
    run.step(2)
    run.emit("e")
    run.run()
    at = clock.at
    finds_nothing(run)
    assert clock.at == at


def test_a_replay_works_inside_an_event_loop_with_async_nodes():
    async def later(board):
        await asyncio.sleep(0)
        return {"later": board.get("x", 0)}

    async def main():
        run = session(graph("a", "b", b=later), {"x": 1})
        await run.arun()
        return run.replay(strict="reads")

    assert asyncio.run(main()).ok


def test_an_evaluator_loop_replays():
    run = Session(samples("document"), llm=lambda request: '{"score": 0.4, "critique": "more"}')
    run.run()
    finds_nothing(run)


# ----------------------------------------------------------------------------------------------- back from a store


@pytest.mark.parametrize("name", NAMES)
def test_a_reopened_sample_replays(name, tmp_path):
    run = begun(name, store=tmp_path / "runs.db")
    run.run()
    run.close()
    finds_nothing(nb.open(tmp_path / "runs.db", recipe=again(name, run)))


def secretive():
    """Return a graph in which a secret goes into a tool, and what is made of it decides the way."""
    built_graph = nx.MultiDiGraph(name="secretive")
    built_graph.add_node("size", function=lambda api_key: {"size": len(api_key)}, inputs={"api_key": "api_key"})
    built_graph.add_node(
        "look", kind="tool", function=lambda api_key, n: {"found": n}, inputs={"api_key": "api_key", "n": "n"}
    )
    built_graph.add_node("twice", function=lambda board: {"twice": board["size"] * 2})
    built_graph.add_node("end", function=lambda board: {"end": 1})
    built_graph.add_node("other", function=lambda board: {"end": 2})
    nx.add_path(built_graph, ["size", "look", "twice"])
    built_graph.add_edge("twice", "end", when="size > 8")
    built_graph.add_edge("twice", "other")
    return built_graph


def test_masked_values_are_reported_and_not_a_divergence(tmp_path):
    run = session(secretive(), {"api_key": "sk-123456789", "n": 1}, store=tmp_path / "runs.db")
    run.run()
    finds_nothing(run)
    run.close()
    reopened = nb.open(tmp_path / "runs.db", recipe=load(secretive()))
    reopened.goto(2)
    report = reopened.replay(strict="reads")
    assert (report.ok, [row.path for row in report.unsure]) == (True, ["size"])  # what the tool was sent is as masked
    reopened.goto(4)
    report = reopened.replay(strict="reads")
    assert [(row.step, row.what, row.path) for row in report.divergences] == [(3, "masked", "size")]
    assert "the next node depends on 'size'" in repr(report)
    reopened._parts.persistence.fill({"api_key": "sk-123456789"})
    finds_nothing(reopened)


def test_values_that_follow_from_a_masked_answer_are_not_compared(tmp_path):
    @dataclass
    class Said:
        words: str

    built_graph = calling(lambda word: {"token": f"t0ken of {word}", "said": Said(word)})
    built_graph.add_node("size", function=lambda board: {"size": len(board["token"])})
    built_graph.add_node("words", function=lambda board: {"words": board["said"].words})
    nx.add_path(built_graph, ["after", "size", "words"])
    run = session(built_graph, {"word": "rain"}, store=tmp_path / "runs.db")
    run.run()
    finds_nothing(run)
    run.close()
    report = nb.open(tmp_path / "runs.db", recipe=load(built_graph)).replay()
    assert [row.path for row in report.unsure] == ["size", "words"]
    assert [(row.step, row.what, row.path) for row in report.divergences] == [(5, "masked", "said")]


def test_failures_with_an_answer_take_the_same_route_after_reopening(tmp_path):
    built_graph = nx.MultiDiGraph(name="refused")
    built_graph.add_node("look", kind="tool", function=lambda n: 1 / 0, inputs={"n": "n"}, attempts=2)
    built_graph.add_node("rescue", function=lambda board: {"rescued": True})
    built_graph.add_edge("look", "rescue", kind="error")
    run = session(built_graph, {"n": 1}, store=tmp_path / "runs.db")
    run.run()
    run.close()
    reopened = nb.open(tmp_path / "runs.db", recipe=load(built_graph))
    assert reopened.board["rescued"]
    finds_nothing(reopened)


def test_a_run_without_its_recipe_cannot_be_replayed(tmp_path):
    run = session(counting(), {"n": 0}, store=tmp_path / "runs.db")
    run.run()
    run.close()
    with pytest.raises(ExecutionError, match="L450"):
        nb.open(tmp_path / "runs.db").replay()
