"""A value that no codec takes, in a run that is kept: what is said of it, and how the run goes on."""

from __future__ import annotations

import pytest

import agentnb as nb
from agentnb.board import codec
from agentnb.errors import BoardError, StoreError
from tests.session.failing_stores import is_kept
from tests.session.small_sessions import graph


class Thing:
    def __init__(self, n):
        self.n = n


class Maker:
    """Makes a Thing, until it is told to make something plain."""

    def __init__(self):
        self.plain = False

    def __call__(self):
        return {"made": {"deep": [3 if self.plain else Thing(7)]}, "besides": 1}


WAYS = pytest.mark.parametrize("way", ["function", "tool"])
HOW_OFTEN = pytest.mark.parametrize("durability", ["step", {"steps": 2, "ms": 600_000}])
pytestmark = pytest.mark.filterwarnings("ignore:.*Thing:UserWarning")


def unfit(way, durability, where):
    """Return a session that stands behind a step that no store can keep, its maker, and what it was told."""
    maker, built_graph = Maker(), graph("first", "last", "end")
    built_graph.remove_edge("first", "last")
    built_graph.add_node("make", kind=way, function=maker)
    built_graph.add_edge("first", "make")
    built_graph.add_edge("make", "last")
    session = nb.Session(nb.load(built_graph), {}, store=where, run_id="run", durability=durability)
    with pytest.raises(StoreError) as caught:
        session.run()
    return session, maker, caught.value.problems[0]


def goes_on(session):
    session.run()
    assert session.status == "finished"
    session.close()
    is_kept(session)
    reopened = nb.open(session._parts.state.log, "run", recipe=session.recipe)
    assert (reopened.position, dict(reopened.board)) == (session.position, dict(session.board))


@WAYS
@HOW_OFTEN
def test_it_names_its_step_its_node_and_the_position(way, durability, tmp_path):
    session, _, problem = unfit(way, durability, tmp_path / "runs.db")
    assert problem.code == "L401"
    assert problem.where in ("step 2, 'make', key 'made'", "step 2, 'make', tool 'make'")
    assert (session.position, session.current, session.board["besides"]) == (2, "last", 1)


@WAYS
@HOW_OFTEN
def test_the_run_continues_after_an_edit_of_the_key(way, durability, tmp_path):
    session, _, _ = unfit(way, durability, tmp_path / "runs.db")
    with pytest.raises(StoreError, match="L401"):
        session.edit({"besides": 2})
    with pytest.raises(StoreError, match="L401"):
        session.step()
    session.edit({"made": 4})
    assert session.board["made"] == 4
    goes_on(session)


@WAYS
@HOW_OFTEN
@pytest.mark.parametrize("verb", ["retry", "back"])
def test_the_run_continues_if_the_step_then_writes_another_value(way, durability, verb, tmp_path):
    session, maker, _ = unfit(way, durability, tmp_path / "runs.db")
    with pytest.raises(StoreError, match="L401"):
        session.retry()
    maker.plain = True
    if verb == "back":
        session.back()
    assert (session.retry().node_id, session.position, session.board["made"]) == ("make", 2, {"deep": [3]})
    goes_on(session)


@WAYS
@HOW_OFTEN
def test_the_run_continues_once_there_is_a_codec(way, durability, monkeypatch, tmp_path):
    monkeypatch.setattr(codec, "_BY_TYPE", {**codec._BY_TYPE})
    monkeypatch.setattr(codec, "_BY_NAME", {**codec._BY_NAME})
    session, _, _ = unfit(way, durability, tmp_path / "runs.db")
    codec.register(Thing, lambda thing: thing.n, Thing)
    assert session.retry().node_id == "last"
    session.run()
    session.close()
    assert nb.open(session._parts.state.log, "run").board["made"]["deep"][0].n == 7


def test_an_edit_of_another_step_does_not_permit_a_call(tmp_path):
    built_graph = graph("first", "last")
    built_graph.remove_edge("first", "last")
    built_graph.add_node("make", kind="tool", function=Maker())
    built_graph.add_edge("first", "make")
    built_graph.add_edge("make", "last")
    session = nb.Session(nb.load(built_graph), {}, store=tmp_path / "runs.db", run_id="run")
    session.step()
    session.edit({"n": 5})
    with pytest.raises(StoreError, match="L401") as caught:
        session.step()
    assert caught.value.problems[0].where == "step 2, 'make', tool 'make'"
    session.edit({"made": 4})
    goes_on(session)


class RefusedError(Exception):
    def __init__(self, result):
        super().__init__("refused")
        self.result = result


def test_a_failed_step_is_stored_without_values_that_have_no_codec(tmp_path):
    def refuse():
        raise RefusedError({"refused": Thing(7)})

    built_graph = graph("first", "last")
    built_graph.remove_edge("first", "last")
    built_graph.add_node("refuse", function=refuse)
    built_graph.add_edge("first", "refuse")
    recipe = nb.load(built_graph)
    session = nb.Session(recipe, {}, store=tmp_path / "runs.db", run_id="run")
    session.run()
    assert session.status == "failed"
    session.close()
    reopened = nb.open(tmp_path / "runs.db", "run", recipe=recipe)
    assert (reopened.status, reopened.position, str(reopened.error)) == ("failed", session.position, str(session.error))


def test_edits_and_inputs_without_a_codec_are_named(tmp_path):
    recipe = nb.load(graph("a", "b"))
    with pytest.raises(StoreError) as caught:
        nb.Session(recipe, {"thing": Thing(1)}, store=tmp_path / "runs.db")
    assert caught.value.problems[0].where == "the inputs, key 'thing'"
    session = nb.Session(recipe, {}, store=tmp_path / "runs.db", run_id="run")
    session.step()
    with pytest.raises((StoreError, BoardError)) as caught:
        session.edit({"thing": Thing(1)})
    assert caught.value.problems[0].where == "step 1, 'a', key 'thing'"
    session.edit({"thing": 1})
    goes_on(session)


def test_an_overwritten_value_does_not_prevent_a_save(tmp_path):
    recipe = nb.load(graph("a", "b"))
    session = nb.Session(recipe, {"n": 1}, store=tmp_path / "runs.db", run_id="run")
    session._parts.state.log.release("run")
    other = nb.store.SqlLog(tmp_path / "runs.db")
    last = next(iter(other.entries("run", other.last("run") - 1)))
    other.append("run", [last._replace(seq=last.seq + 1)])
    with pytest.raises(StoreError) as caught:
        session.step()
    (problem,) = caught.value.problems
    assert (problem.code, "fork" in problem.do, "session.save(" in problem.do) == ("L411", False, True)
    session.save(tmp_path / "other.db")
    assert nb.open(tmp_path / "other.db", "run", recipe=recipe).position == session.position == 1
