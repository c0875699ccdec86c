"""A store that fails while a run moves: it is told, nothing is lost, and the session goes on later."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import networkx as nx
import pytest

import agentnb as nb
from agentnb.board import codec
from agentnb.errors import StoreError
from agentnb.store import MemoryLog, SqlLog
from tests.kills import recipe as told_in_parts
from tests.session.failing_stores import BATCH, ROUNDS, Full, Gone, Locked, ReadOnly, Tools, is_kept, looping
from tests.session.gated_nodes import live
from tests.session.small_sessions import asking, graph
from tests.store.stores import Elsewhere

NOBODY = 65534
WAYS = pytest.mark.parametrize("durability", ["step", BATCH], ids=["step", "batch"])


@pytest.fixture
def folder():
    """A folder of somebody without rights, and who that is: root could write any file."""
    path = Path(tempfile.mkdtemp(prefix="agentnb-trouble-"))
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield path
    finally:
        if os.getuid() == 0:
            os.seteuid(0)
        path.chmod(0o700)
        shutil.rmtree(path)


RIGHTS = pytest.mark.skipif(sys.platform == "win32", reason="rights are of another kind there")


@pytest.fixture(
    params=[
        "full",
        "locked",
        pytest.param("read-only", marks=RIGHTS),
        pytest.param("gone", marks=pytest.mark.needs_postgres),
    ]
)
def store(request):
    """A store that can be broken, in each way that stores break."""
    if request.param == "gone":
        broken_store = Gone(request.getfixturevalue("postgres_server"))
    else:
        kinds = {"full": Full, "locked": Locked, "read-only": ReadOnly}
        broken_store = kinds[request.param](request.getfixturevalue("folder") / "runs.db")
    yield broken_store
    broken_store.log.close()


def begun(store, tools, durability="step", **attributes):
    return nb.Session(looping(tools, **attributes), {"n": 0}, store=store.log, run_id="run", durability=durability)


def refused(store, act):
    """Check that an act is refused with what the store's problem is."""
    with pytest.raises(StoreError) as caught:
        act()
    (problem,) = caught.value.problems
    assert problem.code == store.code
    assert all((problem.what, problem.where, problem.why, problem.do))


def ends_well(session, tools):
    """Run to the end; check that all of it is there, and that each call was made once."""
    session.run()
    assert (session.status, session.board["n"]) == ("finished", ROUNDS)
    assert tools.made == {f"ask {n}": 1 for n in range(ROUNDS)} | {f"tell {n + 1}": 1 for n in range(ROUNDS)}
    is_kept(session)


# ----------------------------------------------------------------------------------------------- in the middle of a run


@WAYS
def test_a_session_stays_consistent_and_continues_after_the_cause_is_fixed(store, durability):
    tools = Tools()
    session = begun(store, tools, durability)
    session.step(4)
    with store.broken():
        refused(store, lambda: [session.step() for _ in range(9)])
        position, calls = session.position, tools.made.total()
        assert 4 <= position <= 5
        assert (len(session.trace), session.trace.state_at(position)) == (position, dict(session.board))
        refused(store, session.step)
        refused(store, session.run)
        assert (session.position, tools.made.total(), session.status) == (position, calls, "paused")
        assert session.back(2).position == position - 2
        assert session.board["n"] == session.trace.state_at(position - 2)["n"]
        assert session.goto(position).position == position
    ends_well(session, tools)


@WAYS
def test_a_run_stops_when_it_cannot_be_stored(store, durability):
    tools = Tools()
    session = begun(store, tools, durability)
    broken = store.broken()
    tools.during["ask 1"] = broken.__enter__
    refused(store, session.run)
    position = session.position
    assert position < 4 + (1 if durability == "step" else BATCH["steps"])
    assert session.status == "paused"
    broken.__exit__(None, None, None)
    ends_well(session, tools)


@WAYS
def test_a_call_in_flight_is_answered_and_not_repeated(store, durability):
    tools = Tools()
    session = begun(store, tools, durability)
    session.step()
    broken = store.broken()
    tools.during["tell 1"] = broken.__enter__
    session.step()
    refused(store, session.step)
    assert (session.position, session.board["tell"][:6], session.pending) == (3, "tell 1", ())
    broken.__exit__(None, None, None)
    ends_well(session, tools)


def test_a_call_that_cannot_be_stored_is_not_sent(store):
    tools = Tools()
    session = begun(store, tools)
    session.step(3)
    with store.broken():
        for _ in range(3):
            refused(store, session.step)
    assert tools.made["ask 1"] == 0
    ends_well(session, tools)


def test_a_repeatable_call_is_sent_anyway(store):
    tools = Tools()
    session = begun(store, tools, repeatable=True)
    session.step(3)
    with store.broken():
        refused(store, session.step)
        assert (session.position, tools.made["ask 1"]) == (4, 1)
    ends_well(session, tools)


def test_a_background_run_stops_and_wait_raises_the_reason(store):
    tools = Tools()
    session = begun(store, tools)

    async def main():
        broken = store.broken()
        tools.during["tell 2"] = broken.__enter__
        session.start()
        with pytest.raises(StoreError, match=store.code):
            await session.wait()
        assert session.status == "paused"
        with pytest.raises(StoreError, match=store.code):
            await session.astep()
        broken.__exit__(None, None, None)
        session.start()
        await session.wait()

    live(main)
    ends_well(session, tools)


def test_a_cockpit_is_notified_though_the_step_cannot_be_stored(store):
    session = begun(store, Tools())
    messages = []
    session.subscribe(lambda each: messages.append(each.position), "change")
    session.step()
    with store.broken():
        refused(store, session.step)
        session.back()
    assert messages[-2:] == [2, 1]


# ----------------------------------------------------------------------------------- calls of one step, and of branches


class Parts(told_in_parts.Tools):
    """The quiet tools of a recipe with steps of several calls; `during` is done in a call."""

    def __init__(self):
        super().__init__()
        self.made, self.during, self.lock = [], {}, threading.Lock()

    def _tool(self, name):
        quiet = super()._tool(name)

        def tool(who, n, chance=0.0):
            with self.lock:
                self.made.append(f"{name} {n} {chance}")
            self.during.get(f"{name} {n}", lambda: None)()
            return quiet(who, n, chance)

        tool.answered = quiet.answered
        return tool


def to_the_end(session):
    while session.status != "finished":
        session.step()


@pytest.fixture(scope="module")
def whole():
    """A run of that recipe in a store that never failed."""
    tools = Parts()
    session = told_in_parts.begin(tools, MemoryLog(), rounds=2)
    to_the_end(session)
    return tools.made, told_in_parts.here(session), told_in_parts.events(session)


@pytest.mark.parametrize("call", ["weigh 0", "count 1", "price 0", "shaky 1", "look 0"])
def test_the_answered_calls_of_a_step_that_could_not_continue_are_not_repeated(store, whole, call):
    tools = Parts()
    session = told_in_parts.begin(tools, store.log, rounds=2)
    broken = store.broken()
    tools.during[call] = lambda: (tools.during.clear(), broken.__enter__())
    with pytest.raises(StoreError, match=store.code):
        to_the_end(session)
    with pytest.raises(StoreError, match=store.code):
        session.step()
    broken.__exit__(None, None, None)
    to_the_end(session)
    assert (tools.made, told_in_parts.here(session), told_in_parts.events(session)) == whole
    is_kept(session)


def test_branches_in_flight_end_and_are_stored_later(store):
    both, broken = threading.Barrier(2, timeout=30), store.broken()
    tools = Parts()

    def out():
        if both.wait() == 0:  # one of the two, when both calls are out
            broken.__enter__()
            tools.during.clear()
        both.wait()

    tools.during = {"price 1": out, "shaky 1": out}
    session = told_in_parts.begin(tools, store.log, rounds=2)
    with pytest.raises(StoreError, match=store.code):
        session.run()
    assert session.status == "paused"
    assert {"price", "shaky"} <= {row.name for row in session._parts.run.history.calls if row.arguments["n"] == 1}
    broken.__exit__(None, None, None)
    session.run()
    assert session.status == "finished"
    assert sorted(tools.made) == sorted(set(tools.made))
    is_kept(session)


def test_a_question_keeps_waiting_while_the_store_fails(store):
    session = nb.Session(nb.load(asking()), {}, store=store.log, run_id="run")
    session.run()
    assert session.status == "waiting"
    fill = {"notes": "x" * 50_000}
    with store.broken():
        refused(store, lambda: session.edit(fill))
        for action in (session.step, session.run, lambda: session.answer("yes")):
            refused(store, action)
    session.run()
    session.answer("yes")
    session.run()
    assert (session.status, session.board["answer"]) == ("finished", "yes")
    is_kept(session)


def test_a_fork_that_cannot_be_stored_is_not_created(store):
    tools = Tools()
    session = begun(store, tools)
    session.step(3)
    with store.broken():
        refused(store, lambda: session.edit({"text": "x" * 50_000}))
        refused(store, session.fork)
    assert session.forks == ()
    fork = session.fork(1, edit={"n": 4})
    fork.run()
    session.run()
    is_kept(session)
    is_kept(fork)


# ---------------------------------------------------------------------------------------------------------- two writers


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs_postgres)])
def place(request, tmp_path):
    return request.getfixturevalue("postgres_url") if request.param == "postgres" else str(tmp_path / "runs.db")


HOLDS = """
import agentnb as nb
from tests.session.failing_stores import Tools, looping
session = nb.Session(looping(Tools()), {"n": 0}, store=sys.argv[1], run_id="run")
session.step(2)
say("holds")
wait()
session.step()
session.close()
say("closed")
wait()
"""


@pytest.mark.starts_programs
def test_the_second_of_two_programs_is_told_the_writer_of_a_run(place):
    tools = Tools()
    recipe = looping(tools)
    with Elsewhere(place, HOLDS) as they:
        assert they.hears() == "holds"
        second = nb.open(place, "run", recipe=recipe)
        with pytest.raises(StoreError, match="L411") as caught:
            second.step()
        assert f"process {they.process.pid}" in caught.value.problems[0].why
        assert (tools.made.total(), second.position) == (0, 2)
        they.told()
        assert they.hears() == "closed"
        third = nb.open(place, "run", recipe=recipe)
        assert third.position == 3
        third.run()
        assert (third.status, third.board["n"]) == ("finished", ROUNDS)
        is_kept(third)
        third.close()


INSIDE = """
import agentnb as nb
from tests.session.failing_stores import Tools, is_kept, looping
tools = Tools()
def wait_inside():
    say("inside")
    wait()
tools.during["tell 1"] = wait_inside
session = nb.Session(looping(tools), {"n": 0}, store=sys.argv[1], run_id="run")
try:
    session.run()
    is_kept(session)
    session.close()
    say(f"{session.status} {tools.made['tell 1']}")
except nb.StoreError as error:
    say(error.problems[0].code)
wait()
"""


@pytest.fixture
def container():
    """The command that runs a program with a host name and process ids of its own."""
    command = ["unshare", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if not shutil.which("unshare") or subprocess.run([*command, "true"], check=False, capture_output=True).returncode:
        pytest.skip("a process in another namespace needs unshare and its permission")
    return command


@pytest.mark.starts_programs
def test_a_run_that_is_inside_a_tool_in_another_container_is_not_continued(place, container):
    tools = Tools()
    recipe = looping(tools)
    with Elsewhere(place, INSIDE, within=container) as they:
        assert they.hears() == "inside"
        assert nb.runs(place)[["status", "steps"]].values.tolist() == [["running", 2]]
        assert "process 1 " in nb.runs(place)["writer"][0]
        recording = nb.open(place, "run")
        assert (recording.position, recording.board["n"]) == (2, 1)
        recording.close()
        second = nb.open(place, "run", recipe=recipe)
        for action in (second.step, second.run, lambda: second.change(second.pending[0].id, answer={})):
            with pytest.raises(StoreError, match="L411") as caught:
                action()
            assert "process 1 " in caught.value.problems[0].why
            assert "take_over=True" in caught.value.problems[0].do
        they.told()
        assert they.hears() == "finished 1"
        with pytest.raises(StoreError, match="L411"):
            second.step()
        assert tools.made.total() == 0
        third = nb.open(place, "run", recipe=recipe)
        third.back()
        third.close()
        assert nb.runs(place)[["status", "steps"]].values.tolist() == [["paused", 3 * ROUNDS - 1]]


@pytest.mark.starts_programs
def test_a_run_in_another_container_is_taken_over_on_request(place, container):
    tools = Tools()
    with Elsewhere(place, INSIDE, within=container) as they:
        assert they.hears() == "inside"
        second = nb.open(place, "run", recipe=looping(tools), take_over=True)
        second.change(second.pending[0].id, answer={"tell": "a person knows"})
        they.told()
        assert they.hears() == "L411"
    second.run()
    assert (second.status, tools.made["tell 1"]) == ("finished", 0)
    is_kept(second)
    second.close()


def test_nothing_runs_in_a_session_that_is_not_the_writer(tmp_path):
    begun = []
    recipe = nb.load(graph("first", "second", second=lambda board: begun.append(board["first"])))
    first = nb.Session(recipe, store=SqlLog(tmp_path / "runs.db"), run_id="run")
    first.step()
    second = nb.open(SqlLog(tmp_path / "runs.db"), "run", recipe=recipe)
    for action in (second.step, second.run, lambda: asyncio.run(second.arun())):
        with pytest.raises(StoreError, match="L411"):
            action()
    assert begun == []
    second.close()  # it has changed nothing
    assert "process" in nb.runs(tmp_path / "runs.db")["writer"][0]
    first.run()
    assert begun == [1]
    first.close()


def test_the_second_of_two_sessions_of_one_program_is_told_too(place):
    tools = Tools()
    recipe = looping(tools)
    first = nb.Session(recipe, {"n": 0}, store=place, run_id="run")
    first.step(2)
    second = nb.open(place, "run", recipe=recipe)
    for _ in range(2):
        with pytest.raises(StoreError, match="L453"):
            second.run()
    first.step()
    first.close()
    third = nb.open(place, "run", recipe=recipe)
    third.run()
    is_kept(third)
    assert (third.status, len(third.trace)) == ("finished", 3 * ROUNDS)
    third.close()


def test_the_second_of_two_sessions_is_told_when_it_answers(place):
    built_graph = nx.DiGraph()
    built_graph.add_node("ask", function=lambda board: {"x": nb.ask("?")}, asks=True)
    recipe = nb.load(built_graph)
    first = nb.Session(recipe, store=place, run_id="run")
    first.run()
    second = nb.open(place, "run", recipe=recipe)
    assert second.pending[0].node == "ask"
    with pytest.raises(StoreError, match="L453"):
        second.answer("yes")
    first.close()
    second.answer("yes")
    assert (second.status, second.board["x"]) == ("finished", "yes")
    is_kept(second)
    second.close()


# -------------------------------------------------------------------------------------------------- what no codec takes


class Thing:
    """What no codec knows."""

    def __init__(self, n):
        self.n = n


def things(way):
    """Return a line whose middle node makes a Thing: a function's, or a tool's answer."""
    built_graph = graph("first", "last")
    built_graph.remove_edge("first", "last")
    built_graph.add_node("make", kind=way, function=lambda: {"thing": Thing(7)})
    built_graph.add_edge("first", "make")
    built_graph.add_edge("make", "last")
    return nb.load(built_graph)


@WAYS
@pytest.mark.parametrize("way", ["function", "tool"])
@pytest.mark.filterwarnings("ignore:.*Thing:UserWarning")
def test_a_value_without_a_codec_is_reported_and_stored_once_there_is_one(way, durability, monkeypatch, tmp_path):
    monkeypatch.setattr(codec, "_BY_TYPE", {**codec._BY_TYPE})
    monkeypatch.setattr(codec, "_BY_NAME", {**codec._BY_NAME})
    session = nb.Session(things(way), {}, store=tmp_path / "runs.db", run_id="run", durability=durability)
    session.step()
    for _ in range(2):
        with pytest.raises(StoreError) as caught:
            session.step()
        (problem,) = caught.value.problems
        assert (problem.code, session.position, session.current) == ("L401", 2, "last")
        assert "agentnb.board.codec.register(Thing, to_data, from_data)" in problem.do
    codec.register(Thing, lambda thing: thing.n, Thing)
    assert session.step().node_id == "last"
    session.close()
    reopened = nb.open(tmp_path / "runs.db", "run", recipe=session.recipe)
    assert (reopened.position, reopened.status, reopened.board["thing"].n) == (3, "finished", 7)


def test_a_run_is_closed_if_only_its_status_is_not_stored(tmp_path):
    session = nb.Session(nb.load(graph("a", "b")), store=tmp_path / "runs.db")
    session.step()
    with contextlib.closing(sqlite3.connect(tmp_path / "runs.db")) as database, database:
        database.execute("DROP TABLE agentnb_standing")
    with pytest.warns(UserWarning, match="every step is stored, but not the status of the run"):
        session.close()
    with pytest.raises(nb.AgentNbError, match="open it again"):
        session.step()


def test_a_run_is_not_closed_if_steps_cannot_be_stored(tmp_path):
    session = nb.Session(nb.load(graph("a", "b")), store=tmp_path / "runs.db")
    session.step()
    with contextlib.closing(sqlite3.connect(tmp_path / "runs.db")) as database, database:
        database.execute("DROP TABLE agentnb_entries")
    for action in (session.step, session.close, session.close):
        with pytest.raises(StoreError, match="L422"):
            action()
    assert session.position == 2
