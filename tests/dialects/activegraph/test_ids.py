"""An id names one thing of one run: after a fork, after going back, in a replay, where a run is loaded."""

from __future__ import annotations

import warnings

import pytest

import agentnb as nb
from agentnb.dialects.activegraph import Frame, Graph, Runtime
from agentnb.samples.reactive import incident
from tests.dialects.activegraph.runtimes import on, runtime


@on("go")
def make(event, graph, ctx):
    graph.add_object("x", {})


def ids_of(team):
    return [event.id for event in team.graph.events]


def alarmed():
    board = incident()
    for text in ("low memory", "no memory"):
        board.session.emit("alert.raised", {"service": "shop", "text": text})
    board.run_until_idle()
    return board


def test_no_id_is_assigned_twice_after_a_fork():
    board = alarmed()
    board.fork(board.graph.events[-1].id)
    board.approve("approval_001", "ann")
    assert len(set(ids_of(board))) == len(ids_of(board))


def test_no_id_is_assigned_twice_after_actions_in_the_past():
    team = runtime(make)
    for _ in range(2):
        team.session.emit("go", {})
    team.session.step()
    team.session.step()
    team.session.back()
    team.graph.add_object("y", {})
    team.session.run()
    assert len(set(ids_of(team))) == len(ids_of(team))
    assert len({item.id for item in team.graph.all_objects()}) == 3
    assert team.replay().ok


def test_objects_of_a_session_name_the_run_of_that_session():
    session = nb.Session(nb.samples("team"))
    session.emit("goal.created", {"goal": "x"})
    session.run()
    assert session.board["task#1"]["provenance"]["run_id"] == session.run_id


def test_a_stored_run_replays_with_behaviors_recreated(tmp_path):
    session = nb.Session(nb.samples("team"), store=tmp_path / "run.db")
    session.emit("goal.created", {"goal": "x"})
    session.run()
    session.close()
    report = nb.open(tmp_path / "run.db", recipe=nb.samples("team")).replay()
    assert report.ok, report


def test_a_fork_replays_here_and_where_it_is_loaded(tmp_path):
    board = incident()
    board.session.emit("alert.raised", {"service": "s", "text": "t"})
    board.run_until_idle()
    fork = board.fork("evt_003")
    fork.run_until_idle()
    assert fork.replay().ok
    fork.save_state(tmp_path / "run.db")
    fork.session.close()
    report = Runtime.load(tmp_path / "run.db", behaviors=incident().behaviors, policy=board.config.policy).replay()
    assert report.ok, report


def test_a_frame_without_an_id_is_the_runs_own_when_it_is_loaded(tmp_path):
    team = Runtime(Graph(), behaviors=[make], frame=Frame("x"), persist_to=tmp_path / "run.db")
    team.session.emit("go", {})
    team.run_until_idle()
    team.session.close()
    loaded = Runtime.load(tmp_path / "run.db", behaviors=[make], frame=Frame("x"), replay_strict=True)
    assert loaded.config.frame.id == team.config.frame.id


def test_a_run_has_the_name_of_its_runtime_after_loading_too(tmp_path):
    board = incident()
    board.session.emit("alert.raised", {"service": "s", "text": "t"})
    board.run_until_idle()
    board.save_state(tmp_path / "run.db")
    board.session.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = Runtime.load(tmp_path / "run.db", behaviors=board.behaviors, policy=board.config.policy)
    assert (board.session.name, loaded.session.name, loaded.name) == ("incident", "incident", "incident")


def test_the_graph_of_a_fork_and_of_a_loaded_run_is_its_board(tmp_path):
    team = runtime(make, persist_to=tmp_path / "run.db")
    team.session.emit("go", {})
    team.run_until_idle()
    with pytest.raises(nb.AgentNbError, match="X516"):
        team.fork("evt_001", graph_store=object())
    with pytest.raises(nb.AgentNbError, match="X516"):
        Runtime.load(tmp_path / "run.db", behaviors=[make], graph_store=object())


def test_an_abandoned_delivery_releases_its_ids():
    @on("goal.created")
    def makes(event, graph, ctx):
        graph.add_object("task", {"n": ctx.random.random()})
        graph.add_object("task", {"at": ctx.clock.now()})

    uninterrupted = runtime(makes)
    uninterrupted.run_goal("go")
    for stops in range(1, 5):
        team = runtime(makes)
        team.session.emit("goal.created", {"goal": "go"}, actor="user")
        for _ in range(stops):
            team.session.step_into()
        team.session.goto(0)
        team.run_until_idle()
        assert [event.to_dict() for event in team.graph.events] == [
            event.to_dict() for event in uninterrupted.graph.events
        ]


@pytest.mark.parametrize("limits", [{}, {"max_behavior_calls": 2}])
@pytest.mark.parametrize("at", range(4))
def test_an_interrupted_delivery_leaves_nothing_and_runs_again_as_if_for_the_first_time(at, limits):
    places = []

    @on("goal.created", "made")
    def makes(event, graph, ctx):
        for number in range(3):
            if places == [number]:
                raise KeyboardInterrupt
            graph.add_object("task", {"n": ctx.random.random(), "at": ctx.clock.now()})
        if places == [3]:
            raise KeyboardInterrupt
        graph.emit("made", {})

    def begin():
        team = runtime(makes, budget=limits or {"max_behavior_calls": 3})
        team.session.emit("goal.created", {"goal": "go"}, actor="user")
        return team

    uninterrupted, team = begin(), begin()
    uninterrupted.run_until_idle()
    places.append(at)
    before = team.status(), team.graph.events
    with pytest.raises(KeyboardInterrupt):
        team.run_until_idle()
    assert (team.status(), team.graph.events, team.graph.all_objects()) == (*before, [])
    places.clear()
    team.run_until_idle()
    assert [event.to_dict() for event in team.graph.events] == [event.to_dict() for event in uninterrupted.graph.events]
    assert team.status() == uninterrupted.status()
