"""Calls of a step that a closed or killed process has left, in the session that continues the run."""

from __future__ import annotations

import os
import signal
import warnings

import networkx as nx
import pytest

import agentnb as nb
from agentnb.clock import FrozenClock
from agentnb.recipe.model import Edge
from agentnb.secrets import hide
from agentnb.session.reopen import open_stored, reopen_run
from agentnb.store import MemoryLog
from agentnb.world.effect import Effect
from tests.engine.graph_shapes import Shape, leaf
from tests.session.shape_sessions import session_of


def using(**attributes):
    """Return a graph of one node that calls the tool `use`."""
    graph = nx.DiGraph(name="ask")
    graph.add_node("n", kind="tool", function="use", inputs={"y": "y"}, **attributes)
    return graph


def killed(log):
    """Return what a log has now, as a kill of its process leaves it."""
    left = MemoryLog()
    left.create(log.run("run")._replace(status="running"), list(log.entries("run")))
    return left


class Kept:
    """A session on a log, whose tool `use` multiplies by ten and notes what a kill would leave while it runs."""

    def __init__(self, recipe, log=None, side="before", **inputs):
        self.log, self.called, self.left, self.recipe = log or MemoryLog(), [], [], recipe
        if log is None:
            inputs = {"y": 1, **inputs}
            self.session = nb.Session(recipe, inputs, tools={"use": self.use}, store=self.log, run_id="run")
            self.session.breakpoints.add(call="use", side=side)
        else:
            self.session = open_stored(log, "run", recipe=recipe, tools={"use": self.use})

    def use(self, y, key=""):
        self.left.append(killed(self.log))
        self.called.append((y, key) if key else y)
        return {"a": y * 10}

    def change(self, **change):
        self.session.change(self.session.pending[0].id, **change)
        return self

    def reopen(self, log=None):
        """Return the session that goes on after a kill of this one."""
        return Kept(self.recipe, log or killed(self.log))


def held(side="before", **inputs):
    kept_run = Kept(nb.load(using()), side=side, **inputs)
    kept_run.session.step()
    assert kept_run.session.status == "in_flight"
    return kept_run


def test_a_breakpoint_after_a_call_stops_at_a_recorded_answer(tmp_path):
    recipe, called = nb.load(using()), []
    tools = {"use": lambda y: called.append(y) or {"a": 1}}
    session = nb.Session(recipe, {"y": 1}, tools=tools, store=tmp_path / "runs.db", run_id="r")
    session.breakpoints.add(call="use", side="after")
    session.step()
    session.close()
    reopened = nb.open(tmp_path / "runs.db", "r", recipe=recipe, tools=tools)
    reopened.breakpoints.add(call="use", side="after")
    reopened.step()
    (pending,) = reopened.pending
    assert (reopened.status, pending.answer) == ("in_flight", {"a": 1})
    reopened.change(pending.id, answer={"a": 5})
    reopened.step()
    assert (reopened.board["a"], called) == (5, [1])
    reopened.close()


def test_edited_arguments_are_sent_after_a_kill():
    reopened = held().change(arguments={"y": 7}).reopen()
    reopened.session.step()
    assert dict(reopened.session.pending[0].arguments) == {"y": 7}
    reopened.session.step()
    assert (reopened.called, reopened.session.board["a"]) == ([7], 70)
    assert reopened.session.trace.frames.calls["arguments"].tolist() == [{"y": 7}]
    assert reopened.session.replay().ok


def test_edited_arguments_are_sent_without_the_breakpoint_too():
    reopened = held().change(arguments={"y": 7}).reopen()
    reopened.session.breakpoints.clear()
    reopened.session.run()
    assert (reopened.called, reopened.session.board["a"]) == ([7], 70)


def test_the_last_of_several_edits_counts():
    reopenable = held().change(arguments={"y": 7}).change(arguments={"y": 8})
    reopened = reopenable.reopen().reopen()
    reopened.session.step()
    reopened.change(arguments={"y": 1}).session.step()  # what the node itself has passed
    assert reopened.called == [1]
    other = reopenable.reopen()
    other.session.run()
    other.session.run()
    assert other.called == [8]


@pytest.mark.parametrize(
    ("other", "sent"), [({}, ("use", 7)), ({"function": "other"}, ("other", 1)), ({"inputs": {"y": "z"}}, ("use", 5))]
)
def test_an_edit_applies_only_to_the_call_that_was_changed(other, sent):
    log, called = held(z=5).change(arguments={"y": 7}).log, []
    graph = using()
    graph.nodes["n"].update(other)
    name = graph.nodes["n"]["function"]
    tools = {name: lambda y: called.append((name, y)) or {"a": y}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what has changed in the recipe
        session = open_stored(killed(log), "run", recipe=nb.load(graph), tools=tools)
    session.breakpoints.clear()
    session.step()
    assert called == [sent]


def test_an_answer_that_replaces_a_call_survives_a_kill():
    reopened = held().change(answer={"a": 7}).reopen()
    reopened.session.run()
    assert (reopened.session.status, reopened.session.pending[0].kind) == ("in_flight", "call")
    reopened.session.run()
    assert (reopened.called, reopened.session.board["a"]) == ([], 7)
    other = held().change(answer={"a": 7}).reopen()
    other.session.breakpoints.clear()
    other.session.run()
    assert (other.called, other.session.board["a"]) == ([], 7)


@pytest.mark.parametrize("breaks", [True, False])
def test_an_unanswered_edited_call_is_pending_once_with_its_edited_arguments(breaks):
    reopenable = held().change(arguments={"y": 7})
    reopenable.session.step()
    reopened = reopenable.reopen(reopenable.left[-1])
    assert dict(reopened.session.pending[0].arguments) == {"y": 7}
    if not breaks:
        reopened.session.breakpoints.clear()
    reopened.session.step()
    assert (reopened.session.status, dict(reopened.session.pending[0].arguments)) == ("in_flight", {"y": 7})
    reopened.session.step()
    assert (reopened.called, reopened.session.board["a"]) == ([7], 70)


@pytest.mark.parametrize("breaks", [True, False])
def test_a_changed_answer_of_a_call_is_stored_after_a_kill(breaks):
    reopened = held("after").change(answer={"a": 7}).reopen()
    if not breaks:
        reopened.session.breakpoints.clear()
    reopened.session.step()
    if breaks:
        assert reopened.session.pending[0].answer == {"a": 7}
        reopened.session.step()
    assert (reopened.called, reopened.session.board["a"]) == ([], 7)
    assert reopened.session.trace.frames.calls["result"].tolist() == [{"a": 7}]


def two_calls(log=None):
    """Return a session whose node makes two calls, of which the first waits for a person; its calls; and its log."""
    called = []

    def use(y):
        called.append(y)
        return {"a": y * 10}

    async def two(work):
        first = await work.call(Effect("tool", "use", {"y": 1}, target=use))
        return {"a": (await work.call(Effect("tool", "use", {"y": first["a"]}, target=use)))["a"]}

    shape = Shape([leaf("two", two), leaf("last", lambda work: {})], [Edge("two", "last")], ("two",), [], {})
    session, log = logged(session_of("two", shape), log)
    return session, called, log


def logged(session, log):
    """Return a session of a log, or of the run in it, and the log."""
    if log is not None:
        return reopen_run(log, log.run("run"), session._parts.run.plan), log
    log = MemoryLog()
    session._parts.state._run_id = "run"
    session._parts.persistence.record_new_run(log, "step")
    session.breakpoints.add(call="use", side="before")
    return session, log


@pytest.mark.parametrize("saved", ["from the start", "while it waits"])
def test_a_step_in_flight_draws_the_same_numbers_after_a_kill(saved):
    drawn = []

    async def draw(work):
        drawn.append((work.random.random(), work.run.ids("thing")))
        return await work.call(Effect("tool", "use", {}, target=lambda: {"a": 1}))

    def make(log=None):
        shape = Shape([leaf("draw", draw), leaf("last", lambda work: {})], [Edge("draw", "last")], ("draw",), [], {})
        return session_of("draws", shape)

    session = make()
    if saved == "from the start":
        session, log = logged(session, None)
    session.breakpoints.add(call="use", side="before")
    session.step()
    if saved == "while it waits":
        session, log = logged(session, None)
    assert session.status == "in_flight"
    reopened, _ = logged(make(), killed(log))
    reopened.step()
    assert len(drawn) == 2
    assert drawn[0] == drawn[1]


def first_changed():
    """Return the same when the first call has been changed and waits."""
    session, called, log = two_calls()
    session.step()
    session.change(session.pending[0].id, arguments={"y": 7})
    return session, called, log


def test_a_changed_call_that_was_answered_is_not_repeated():
    session, called, log = first_changed()
    session.step()  # it is answered, and the second call waits
    reopened, called_again, _ = two_calls(killed(log))
    reopened.breakpoints.clear()
    reopened.step()
    assert (called, called_again, reopened.board["a"]) == ([7], [70], 700)


def test_an_answered_call_is_not_repeated_in_a_copy_of_a_reopened_run():
    session, _, log = two_calls()
    session.step()
    session.step()  # the first call is answered, and the second one waits
    reopened, _, _ = two_calls(killed(log))
    copied = MemoryLog()
    reopened.save(copied)
    in_copy, called, _ = two_calls(copied)
    in_copy.breakpoints.clear()
    in_copy.step()
    assert (called, in_copy.board["a"]) == ([10], 100)


def test_a_changed_call_is_not_repeated_after_an_interrupt_of_this_process():
    session, called, _ = first_changed()
    session.step()
    session.breakpoints.clear()
    session._parts.rollback.cancel_in_flight("interrupted")
    session.step()
    assert (called, session.board["a"]) == ([7, 70], 700)


def test_an_edit_applies_to_one_call_of_one_step():
    session, called, _ = first_changed()
    session.breakpoints.clear()
    session.step()
    assert called == [7, 70]  # not of the step's second call
    session.back()
    session.step()
    assert called == [7, 70, 1, 10]  # nor of the step that is made in place of this one


def test_a_change_does_not_outlive_its_step():
    def use(y):
        left.append(killed(log))
        raise ValueError("no")

    log, left, recipe = MemoryLog(), [], nb.load(using())
    session = nb.Session(recipe, {"y": 1}, tools={"use": use}, store=log, run_id="run")
    session.breakpoints.add(call="use", side="before")
    session.step()
    session.change(session.pending[0].id, arguments={"y": 7})
    session.breakpoints.clear()
    entries = len(list(log.entries("run")))
    session.step()
    assert session.status == "failed"
    called = []
    for end in range(entries + 1, len(list(log.entries("run"))) + 1):  # a kill at each moment after the call
        part = MemoryLog()
        part.create(log.run("run")._replace(status="running"), list(log.entries("run"))[:end])
        reopened = open_stored(part, "run", recipe=recipe, tools={"use": lambda y: called.append(y) or {"a": y}})
        if reopened.position == 1:
            reopened.retry()
    assert set(called) == {1}


def test_a_change_of_a_step_that_is_retried_survives_a_kill():
    def use(y):
        called.append(y)
        raise ValueError("no")

    log, recipe, called = MemoryLog(), nb.load(using()), []
    session = nb.Session(recipe, {"y": 1}, tools={"use": use}, store=log, run_id="run")
    session.step()
    assert session.status == "failed"
    session.breakpoints.add(call="use", side="before")
    session.retry()
    session.change(session.pending[0].id, arguments={"y": 7})
    reopened = open_stored(killed(log), "run", recipe=recipe, tools={"use": use})
    reopened.breakpoints.clear()
    reopened.step()
    assert called == [1, 7]


def emitting(type, payload, log=None):
    """Return a session whose node emits an event and makes two calls, of which each waits; its calls; and its log."""
    called = []

    async def emit(work):
        work.emit(type, payload)
        answers = [
            await work.call(Effect("tool", "use", {"y": y}, target=lambda y: called.append(y) or y)) for y in (1, 2)
        ]
        return {"a": answers}

    session, log = logged(session_of("emits", Shape([leaf("emit", emit, kind="keep")], [], ("emit",), [], {})), log)
    return session, called, log


@pytest.mark.parametrize(
    ("type", "payload", "repeated"), [("note", {"n": 1}, [2]), ("note", {"n": 2}, [1, 2]), ("other", {"n": 1}, [1, 2])]
)
def test_calls_after_an_event_are_repeated_if_the_step_emits_another_one(type, payload, repeated):
    session, called, log = emitting("note", {"n": 1})
    session.step()
    session.step()  # the first call is answered, the second one waits
    reopened, called_again, _ = emitting(type, payload, killed(log))
    reopened.breakpoints.clear()
    reopened.run()
    assert (called, called_again, reopened.board["a"]) == ([1], repeated, [1, 2])
    assert [(event.type, repr(event.payload), event.step) for event in reopened.events] == [(type, repr(payload), 1)]
    assert reopened.replay().ok


def approving(log=None):
    async def pay(work):
        verdict = await work.call(Effect("approval", "pay", {"amount": 5}))
        return {"paid": verdict.get("arguments", {}).get("amount", 5)}

    return logged(session_of("pays", Shape([leaf("pay", pay)], [], ("pay",), [], {})), log)


def test_changed_arguments_of_an_approval_are_approved_after_a_kill():
    session, log = approving()
    session.run()
    session.change(session.pending[0].id, arguments={"amount": 3})
    reopened, _ = approving(killed(log))
    assert dict(reopened.pending[0].arguments) == {"amount": 3}
    reopened.approve()
    assert (reopened.board["paid"], reopened.trace.frames.calls["arguments"].tolist()) == (3, [{"amount": 5}])


def test_an_edit_with_a_secret_waits_for_a_person():
    graph = using()
    graph.nodes["n"]["inputs"] = {"y": "y", "key": "api_key"}
    reopenable = Kept(nb.load(graph), api_key="sk-their-own")
    reopenable.session.step()
    hide("sk-anothers")
    reopenable.change(arguments={"y": 7, "key": "sk-anothers"})
    reopened = reopenable.reopen()
    reopened.session.breakpoints.clear()
    reopened.session.answer("sk-their-own", "api_key")
    reopened.session.step()
    assert (reopened.session.status, reopened.called) == ("in_flight", [])  # the changed key is not known any more
    reopened.change(arguments={"y": 7, "key": "sk-anothers"}).session.step()
    assert reopened.called == [(7, "sk-anothers")]


def test_a_change_survives_a_killed_process(tmp_path):
    recipe, path = nb.load(using()), tmp_path / "runs.db"
    child = os.fork()
    if not child:
        session = nb.Session(recipe, {"y": 1}, tools={"use": lambda y: {"a": y}}, store=path, run_id="run")
        session.breakpoints.add(call="use", side="before")
        session.step()
        session.change(session.pending[0].id, arguments={"y": 7})
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    called = []
    reopened = nb.open(path, "run", recipe=recipe, tools={"use": lambda y: called.append(y) or {"a": y}})
    reopened.step()
    assert dict(reopened.pending[0].arguments) == {"y": 7}
    reopened.step()
    assert (called, reopened.board["a"]) == ([7], 7)
    reopened.close()


@pytest.mark.parametrize("copies", [False, True])
def test_the_delay_before_an_attempt_that_a_kill_interrupted_is_recorded(copies):
    recipe, left = nb.load(using(attempts=2, backoff=0.5)), []

    def use(y):
        left.append(killed(log))
        raise OSError("no")

    log = MemoryLog()
    nb.Session(recipe, {"y": 1}, tools={"use": use}, store=log, run_id="run", clock=FrozenClock()).run()
    reopened = open_stored(left[1], "run", recipe=recipe, tools={"use": dict})
    if copies:
        copied = MemoryLog()
        reopened.save(copied)
        reopened = open_stored(copied, "run", recipe=recipe, tools={"use": dict})
    reopened.stop()
    rows = reopened.trace.frames.calls
    assert (rows["attempt"].tolist(), rows["backoff_seconds"].tolist()) == ([1, 2], [0, 0.5])
    assert "cut short" in rows["error"].iloc[1]
