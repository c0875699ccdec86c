"""Sessions that are kept, put away and opened again."""

from __future__ import annotations

import asyncio
import warnings
from datetime import UTC, datetime
from inspect import iscoroutine

import networkx as nx
import pytest

import agentnb as nb
from agentnb.clock import TickingClock
from agentnb.engine.persistence.journal import Batch
from agentnb.secrets import MASK
from agentnb.session.reopen import reopen_run
from agentnb.store import MemoryLog, open_log
from agentnb.ui.prompts import agive, give
from tests.engine.graph_shapes import SHAPES
from tests.property.interrupted_runs import facts, finished
from tests.property.modelled_sessions import describe_session
from tests.session.shape_sessions import session_of
from tests.session.small_sessions import asking


def looping(limit=8):
    graph = nx.DiGraph(name="loop", entry="add")
    graph.add_node("add", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    graph.add_edge("add", "add", when=f"n < {limit}")
    return nb.load(graph)


def tooled():
    graph = nx.DiGraph(name="tooled")
    graph.add_node("one", kind="tool", function="first", inputs={"x": "x"})
    graph.add_node("two", kind="tool", function="second", inputs={"x": "y"})
    graph.add_edge("one", "two")
    return nb.load(graph)


@pytest.fixture(params=["memory", "sqlite"])
def where(request, tmp_path):
    return MemoryLog() if request.param == "memory" else tmp_path / "runs.db"


def test_a_run_continues_where_it_stopped(where):
    recipe = looping()
    session = nb.Session(recipe, {"n": 1}, store=where, run_id="r1", name="first")
    session.step(3)
    session.close()
    reopened = nb.open(where, "r1", recipe=recipe)
    assert (reopened.run_id, reopened.name, reopened.position, reopened.board["n"]) == ("r1", "first", 3, 4)
    reopened.run()
    fresh = nb.Session(recipe, {"n": 1})
    fresh.run()
    assert dict(reopened.board) == dict(fresh.board)
    assert [step.node_id for step in reopened.trace.steps] == [step.node_id for step in fresh.trace.steps]


def test_without_the_recipe_a_run_is_read_only(where):
    session = nb.Session(looping(), {"n": 1}, store=where, run_id="r1")
    session.run()
    known = session.trace.to_frame()
    read = nb.open(where)
    assert read.trace.to_frame().equals(known)
    assert read.back(2).board["n"] == session.trace.state_at(session.position - 2)["n"]
    assert read.goto(1).position == 1
    assert read.goto(0).board["n"] == 1
    assert "add" in read.draw().dot
    for verb in (read.step, read.run, read.fork, lambda: read.edit({"n": 0}), lambda: read.set_next("add"), read.skip):
        with pytest.raises(nb.ExecutionError, match="L450"):
            verb()
    assert nb.runs(where)["run_id"].tolist() == ["r1"]


def test_the_runs_of_a_store_are_a_table(where):
    assert_empty = MemoryLog()
    assert nb.runs(assert_empty).empty
    assert {"run_id", "status", "steps", "parent", "created"} <= set(nb.runs(assert_empty).columns)
    session = nb.Session(looping(), {"n": 1}, store=where, run_id="r1")
    session.step(2)
    fork = session.fork(1, name="what if")
    fork.run()
    frame = nb.runs(where).set_index("run_id")
    assert frame.loc["r1", ["status", "steps"]].tolist() == ["paused", 2]
    assert frame.loc[fork.run_id, ["status", "parent", "forked", "name"]].tolist() == ["finished", "r1", 1, "what if"]
    assert frame["created"].dtype == "datetime64[ns, UTC]"
    assert frame["created"].max() <= datetime.now(UTC)


def test_a_stored_fork_shares_its_beginning_and_continues_independently(where):
    recipe = looping()
    session = nb.Session(recipe, {"n": 1}, store=where, run_id="r1")
    session.step(3)
    fork = session.fork(2, name="f", edit={"n": 6})
    fork.step()
    of_fork = fork.fork(name="g")
    of_fork.run()
    session.run()
    boards = [dict(each.board) for each in (session, fork, of_fork)]
    traces = [each.trace.to_frame() for each in (session, fork, of_fork)]
    entry_counts = [len(list(session._parts.state.log.entries(each.run_id))) for each in (fork, of_fork)]
    ids = [each.run_id for each in (session, fork, of_fork)]
    for each in (session, fork, of_fork):
        each.close()
    for run_id, board, trace in zip(ids, boards, traces, strict=True):
        reopened = nb.open(where, run_id, recipe=recipe)
        assert dict(reopened.board) == board
        assert reopened.trace.to_frame().equals(trace)
    assert entry_counts[0] < 6
    assert entry_counts[1] < 5


def test_going_back_is_stored_too(where):
    recipe = looping()
    session = nb.Session(recipe, {"n": 1}, store=where, run_id="r1")
    session.step(4)
    session.back(2)
    session.close()
    reopened = nb.open(where, "r1", recipe=recipe)
    assert (reopened.position, len(reopened.trace)) == (2, 4)
    reopened.step()
    assert reopened.position == 3
    assert len(reopened.forks) == 1


def test_random_numbers_ids_clock_budget_breakpoints_and_watches_are_restored(where):
    recipe = looping()
    clock = TickingClock(step_seconds=5)
    session = nb.Session(recipe, {"n": 1}, store=where, run_id="r1", clock=clock, seed=3, budget={"max_steps": 5})
    session.step(2)
    session._parts.run.random.random()
    session._parts.run.ids("call")
    clock.now()
    session.breakpoints.add("add", when="n > 4", on_hit=2)
    session.watch("n * 2")
    session.close()
    reopened = nb.open(where, "r1", recipe=recipe)
    assert reopened._parts.run.random.random() == session._parts.run.random.random()
    assert reopened._parts.run.ids("call") == session._parts.run.ids("call")
    assert reopened._parts.run.clock.now() == clock.now()
    (row,) = reopened.breakpoints
    assert (row.node, row.text, row.on_hit) == ("add", "n > 4", 2)
    assert list(reopened.watches) == ["n * 2"]
    reopened.breakpoints.clear()
    reopened.run()
    assert (reopened.status, reopened.position) == ("exhausted", 5)


def test_a_question_that_was_asked_still_waits(where, monkeypatch):
    recipe = nb.load(asking())
    session = nb.Session(recipe, {}, store=where, run_id="r1")
    session.run()
    assert session.status == "waiting"
    (question,) = session.pending
    session._parts.state.journal.release()
    reopened = nb.open(where, "r1", recipe=recipe)
    assert reopened.status == "waiting"
    assert (reopened.pending[0].node, reopened.pending[0].arguments) == (question.node, question.arguments)
    reopened.answer("yes")
    reopened.run()
    assert reopened.status == "finished"


def test_an_answered_tool_is_not_called_again(where):
    calls = []
    recipe = tooled()

    def cut(x):
        calls.append(x)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return {"y": x + 1}

    session = nb.Session(recipe, {"x": 1}, store=where, run_id="r1", tools={"first": cut, "second": cut})
    with pytest.raises(KeyboardInterrupt):
        session.run()
    assert (session.position, len(calls)) == (1, 2)
    session.close()
    reopened = nb.open(where, "r1", recipe=recipe, tools={"first": cut, "second": lambda x: {"z": x}})
    reopened.run()
    assert (reopened.status, reopened.board["z"], len(calls)) == ("finished", 2, 2)


def test_masked_values_are_requested(where):
    graph = nx.DiGraph(name="secret")
    graph.add_node("use", function=lambda api_key: {"size": len(api_key)}, inputs={"api_key": "api_key"})
    recipe = nb.load(graph)
    session = nb.Session(recipe, {"api_key": "sk-1234567890"}, store=where, run_id="r1")
    session.close()
    bodies = (
        "".join(entry.body for entry in session._parts.state.log.entries("r1"))
        + session._parts.state.log.run("r1").head
    )
    assert "sk-1234567890" not in bodies
    reopened = nb.open(where, "r1", recipe=recipe)
    assert reopened.board["api_key"] is MASK
    assert reopened.status == "waiting"
    assert reopened.error.code == "X142"
    assert reopened.step() is None
    assert [one.node for one in reopened.pending] == ["api_key"]
    reopened.answer("sk-1234567890", "api_key")
    assert reopened.status == "ready"
    reopened.run()
    assert reopened.board["size"] == 13
    reopened.close()
    recording = nb.open(where, "r1", recipe=recipe, secrets={"api_key": "sk-1234567890"})
    assert recording.goto(0).board["api_key"] == "sk-1234567890"
    with pytest.raises(nb.ExecutionError, match="X141"):
        recording._parts.persistence.fill({"nothing": 1})


def refunding(node="ask"):
    graph = nx.DiGraph(name="refunds")
    graph.add_node(node, kind="human", prompt="Refund?", options=["approve", "deny"], output="verdict")
    graph.add_node("pay", function=lambda api_key, verdict: {"paid": f"{verdict} {len(api_key)}"},
                   inputs={"api_key": "api_key", "verdict": "verdict"})  # fmt: skip
    graph.add_edge(node, "pay")
    return nb.load(graph)


def give_to_cockpit(session, value, target=None):
    give(session, value, target)


async def agive_to_cockpit(session, value, target=None):
    await agive(session, value, target)


@pytest.mark.parametrize("by", [nb.Session.answer, give_to_cockpit, agive_to_cockpit])
@pytest.mark.parametrize("asked", [True, False])
def test_an_answer_goes_to_the_first_question_and_a_masked_value_needs_its_path(by, asked, where):
    def answer(*args):
        done = by(reopened, *args)
        return asyncio.run(done) if iscoroutine(done) else done

    session = nb.Session(refunding(), {"api_key": "k3y-zzzz-4711"}, store=where, run_id="r1")
    session.run()
    if not asked:
        session.answer("deny")
    session.close()
    reopened = nb.open(where, "r1", recipe=refunding())
    assert [one.node for one in reopened.pending] == ["ask"] * asked + ["api_key"]
    if asked:
        answer("approve")
    assert (reopened.board["verdict"], reopened.board["api_key"]) == ("approve" if asked else "deny", MASK)
    with pytest.raises(nb.ExecutionError, match=r"X142[\s\S]*answer\(VALUE, 'api_key'\)"):
        answer("approve")
    assert (reopened.board["api_key"], reopened.status) == (MASK, "waiting")
    answer("k3y-zzzz-4711", "api_key")
    reopened.run()
    assert reopened.board["paid"] == ("approve 13" if asked else "deny 13")


def test_a_question_precedes_the_masked_value_of_the_same_name(where):
    session = nb.Session(refunding("api_key"), {"api_key": "k3y-zzzz-4711"}, store=where, run_id="r1")
    session.run()
    session.close()
    reopened = nb.open(where, "r1", recipe=refunding("api_key"))
    _, masked = reopened.pending
    reopened.answer("approve", "api_key")
    assert (reopened.board["verdict"], reopened.board["api_key"]) == ("approve", MASK)
    reopened.answer("k3y-zzzz-4711", masked.id)
    reopened.run()
    assert reopened.board["paid"] == "approve 13"


def test_an_edited_recipe_is_reported_and_continues_if_compatible(where):
    session = nb.Session(looping(), {"n": 1}, store=where, run_id="r1")
    session.step(3)
    session.close()
    with pytest.warns(UserWarning, match=r"edge 'add' -> 'add' \(conditional when n < 8\) is gone"):
        reopened = nb.open(where, "r1", recipe=looping(6))
    assert any("n < 6" in change for change in reopened._parts.persistence.changes)
    reopened.run()
    assert reopened.board["n"] == 6
    reopened.close()
    graph = nx.DiGraph(name="other", entry="sub")
    graph.add_node("sub", function=lambda n: {"n": n - 1}, inputs={"n": "n"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(nb.AgentNbError, match=r"L404[\s\S]*'add'"):
            nb.open(where, "r1", recipe=nb.load(graph))


def test_a_copy_is_a_separate_file(tmp_path):
    recipe = looping()
    session = nb.Session(recipe, {"n": 1})
    session.step(2)
    with pytest.raises(nb.AgentNbError, match="L451"):
        session.save()
    url = session.save(tmp_path / "copy.db")
    assert "copy.db" in url
    session.step(1)
    assert nb.open(tmp_path / "copy.db").position == 2
    session.save(tmp_path / "copy.db")
    reopened = nb.open(tmp_path / "copy.db", recipe=recipe)
    assert reopened.position == 3
    reopened.run()
    assert reopened.status == "finished"


def test_batches_are_stored_when_the_run_stops(where):
    session = nb.Session(looping(), {"n": 1}, store=where, run_id="r1", durability=Batch(3, 60_000))
    session.run()
    assert nb.open(where, "r1").position == session.position
    with pytest.raises(nb.ExecutionError, match="X140"):
        nb.Session(looping(), {"n": 1}, store=where, durability="often")


def test_a_reset_creates_a_separate_run(where):
    session = nb.Session(looping(), {"n": 1}, store=where, run_id="r1")
    session.step(2)
    session.reset()
    session.step(1)
    (before,) = session.forks
    assert before.run_id == "r1"
    assert sorted(nb.runs(where)["run_id"]) == ["r1", session.run_id]
    before.step()
    assert nb.runs(where).set_index("run_id")["steps"].to_dict() == {"r1": 3, session.run_id: 1}


def test_the_tree_shows_stored_and_open_runs(where):
    recipe = looping()
    session = nb.Session(recipe, {"n": 1}, store=where, run_id="r1", name="first")
    session.step(3)
    fork = session.fork(2, name="second")
    third = fork.fork(name="third")
    ids = [fork.run_id, third.run_id]
    tree = session.tree()
    assert [line.split(":")[0].strip() for line in tree.splitlines()] == [
        "first", "second from step 2", "third from step 2"]  # fmt: skip
    for each in (session, fork, third):
        each.close()
    reopened = nb.open(where, ids[0], recipe=recipe)
    lines = reopened.tree().splitlines()
    assert [line.split(":")[0] for line in lines] == ["first", "  second from step 2", "    third from step 2"]
    assert [line.endswith("<- here") for line in lines] == [False, True, False]


# -- every shape -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_saved_and_opened_at_each_step(name, tmp_path):
    session = session_of(name)
    session._parts.state._run_id = "r"
    finished(session)
    expected, tip = facts(session), session.position
    for k in range(tip + 1):
        session.goto(k)
        session.save(tmp_path / "runs.db")
        log = open_log(tmp_path / "runs.db")
        reopened = reopen_run(log, log.run("r"), session._parts.run.plan)
        assert describe_session(reopened) == describe_session(session)
        reopened.goto(tip)
        assert facts(reopened) == {**expected, "status": reopened.status}
        reopened.close()


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_can_be_read_without_its_recipe(name, tmp_path):
    session = session_of(name)
    finished(session)
    session.save(tmp_path / "runs.db")
    read = nb.open(tmp_path / "runs.db")
    assert facts(read) == facts(session)
    for k in [*range(session.position, -1, -1), session.position]:
        read.goto(k)
        session.goto(k)
        assert describe_session(read) == describe_session(session)
    assert all(node in read.draw().dot for node in session.recipe.nodes)
    with pytest.raises(nb.ExecutionError, match="L450"):
        read.step()


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_continues_after_reopening_in_the_middle(name, tmp_path):
    session = session_of(name)
    session._parts.state._run_id = "r"
    expected = facts(finished(session_of(name)))
    for k in range(session_length(name)):
        session.goto(min(k, session.position))
        if session.position < k:
            session.step()
        path = tmp_path / f"{k}.db"
        session.save(path)
        log = open_log(path)
        assert facts(finished(reopen_run(log, log.run("r"), session._parts.run.plan))) == expected


def session_length(name):
    return finished(session_of(name)).position
