"""A runtime runs, steps, goes back, forks, is drawn, and says what it would do next and why not."""

from __future__ import annotations

import io
import json
import logging

import pytest

import agentnb as nb
from agentnb.dialects import activegraph as ag
from agentnb.dialects.activegraph import Behavior, Budget, Event, Graph, Runtime
from tests.dialects.activegraph.judge import assert_same_signatures
from tests.dialects.activegraph.runtimes import log, on, research, runtime, tell, types

__all__ = ["research"]


def test_an_emitted_event_is_in_the_frontier_as_its_deliveries_once_it_is_first():
    def do_nothing(event, graph, ctx):
        pass

    waiting = Behavior("waiting", do_nothing, on=["look"], pattern="(a:note)")
    session = runtime(on("look")(do_nothing), waiting).session
    for _ in range(2):
        session.emit("look", {})
    assert [(each.node, each.phase, each.why) for each in session.frontier] == [
        ("do_nothing", "start", "event evt_001 of type 'look'"),
        ("look", "event", "event 'look' is not matched yet"),
    ]


def test_a_step_is_one_delivery_of_one_event_to_one_behavior(research):
    team = runtime(*research)
    tell(team, goal="go")
    session = team.session
    assert [(each.node, each.why) for each in session.frontier] == [("plan", "event evt_001 of type 'goal.created'")]
    steps = []
    while session.step():
        steps.append(session.trace.steps[-1].node_id)
    assert steps[:4] == ["plan", "work", "work", "work"]
    assert session.status == "idle"
    started = [event for event in team.graph.events if event.type.endswith((".started", ".scheduled"))]
    assert len(started) == len(steps)


def test_stepping_and_running_write_the_same_log(research):
    stepped, ran = runtime(*research), runtime(*research)
    ran.run_goal("go")
    tell(stepped, goal="go")
    while stepped.session.step():
        pass
    stepped.run_until_idle()
    assert [event["type"] for event in log(stepped)] == [event["type"] for event in log(ran)]


def test_step_over_delivers_the_whole_event_and_step_into_stops_at_each_emit(research):
    team = runtime(*research)
    tell(team, goal="go")
    session = team.session
    session.step_into()
    assert session.held_at
    assert [event.type for event in session.events] == ["goal.created", "behavior.started"]
    session.step_into()
    assert session.events[-1].type == "object.created"
    session.step()
    session.step_over()
    assert session.trace.steps[-1].node_id == "work"


def test_the_graph_is_that_of_the_current_position(research):
    team = runtime(*research)
    tell(team, goal="go")
    session, seen = team.session, []
    while True:
        seen.append(([each.to_dict() for each in team.graph.all_objects()], len(team.graph.events)))
        if not session.step():
            break
    for step in reversed(range(len(seen) - 1)):
        session.back()
        assert ([each.to_dict() for each in team.graph.all_objects()], len(team.graph.events)) == seen[step]
    session.goto(len(seen) - 1)
    assert ([each.to_dict() for each in team.graph.all_objects()], len(team.graph.events)) == seen[-1]


def test_an_edit_is_a_recorded_intervention_and_replays(research):
    team = runtime(*research)
    tell(team, goal="go")
    team.session.step()
    team.graph.patch_object("task#1", {"n": 9}, actor="ann")
    team.session.edit({"task#2.data.n": 7})
    team.run_until_idle()
    assert (team.graph.get_object("task#1").data["n"], team.graph.get_object("task#2").data["n"]) == (9, 7)
    assert "emit" in [intervention.action for intervention in team.session._parts.run.history.interventions]
    assert team.session.replay(strict="reads").ok


def test_why_not_names_the_clause_that_failed():
    claims = on("object.created", where={"object.type": "claim"})(lambda *_: None)
    fits = on("object.created", pattern="(a:claim)")(lambda *_: None)
    claims.name, fits.name = "claims", "fits"
    team = runtime(claims, fits)
    team.graph.add_object("task", {})
    team.run_until_idle()
    assert "object.type should be 'claim', and is 'task'" in team.session.why_not("claims").reason
    assert "matches nothing in the graph" in team.session.why_not("fits", at="evt_001").reason
    assert "listens to 'object.created'" in team.session.why_not("claims", at="evt_002").reason
    with pytest.raises(nb.ExecutionError, match="X101"):
        team.session.why_not("nobody")


def test_a_status_is_an_immutable_snapshot(research):
    team = runtime(*research, frame=ag.Frame("go"), budget={"max_cost_usd": "1.5"})
    before = team.status()
    team.run_goal("go")
    after = team.status(recent=3)
    assert (before.state, after.state, before.events_processed) == ("stopped", "idle", 0)
    assert (len(after.recent_events), after.recent_events[-1].type) == (3, "runtime.idle")
    assert [each.name for each in after.registered_behaviors] == ["plan", "work", "follow", "later", "look"]
    assert (after.budget.cost_limit_usd, after.frame.id, after.queue_depth) == ("1.5", "frame_001", 0)
    with pytest.raises(AttributeError):
        after.state = "running"


def test_a_budget_reports_what_is_left():
    budget = Budget({"max_cost_usd": "0.3", "max_events": None})
    assert (budget.cost_remaining("0.3"), budget.cost_remaining("0.31")) == (True, False)
    assert str(budget.cost_remaining_amount()) == "0.3"
    assert Budget().cost_remaining_amount() is None
    with pytest.raises(ValueError, match="X511"):
        runtime(budget={"max_zap": 1})


def test_a_quantum_runs_the_given_number_of_events(research):
    team, unpaused = runtime(*research), runtime(*research)
    unpaused.run_goal("go")
    tell(team, goal="go")
    done = team.run_quantum(max_queue_events=2, max_seconds=60)
    assert (done.queue_events_processed, done.idle) == (2, False)
    while not done.idle:
        done = team.run_quantum(max_queue_events=1, max_seconds=60)
    assert types(team) == types(unpaused)


def test_a_quantum_ends_after_the_delivery_that_exceeds_it():
    team = runtime(on("go")(lambda event, graph, ctx: None))
    for type_ in ("go", "noise", "noise", "noise", "go"):
        tell(team, type_)
    done = team.run_quantum(max_queue_events=2, max_seconds=60)
    assert (done.queue_depth, team.session.position, done.idle) == (1, 1, False)


def test_clearing_the_registry_returns_its_content():
    ag.clear_registry()
    behavior = Behavior("made", lambda *_: None, on=["goal.created"])
    ag.register(behavior)
    assert ag.get_registry() == [behavior]
    assert ag.clear_registry() == [behavior]
    assert ag.get_registry() == []


def test_a_listener_receives_each_event_with_the_graph_of_that_moment(research):
    team, received = runtime(*research), []
    team.graph.add_listener(lambda event: received.append((event.id, len(team.graph.all_objects()))))
    team.run_goal("go")
    assert [id_ for id_, _ in received] == [event.id for event in team.graph.events]
    assert (received[2], received[-1][1]) == (("evt_003", 1), len(team.graph.all_objects()))


def test_a_listener_receives_each_event_of_the_session_or_the_graph_once(research):
    team, received = runtime(*research), []
    team.graph.add_listener(lambda event: received.append((event.type, event.id, team.graph.events[-1].id)))
    team.session.emit("goal.created", {"goal": "go"})
    team.graph.add_object("task", {})
    team.session.step()
    team.session.emit("note", {"text": "by hand"})
    assert [id_ for _, id_, _ in received] == [event.id for event in team.graph.events]
    assert all(id_ == last for _, id_, last in received)  # it is in the log by then
    assert [type_ for type_, _, _ in received][:2] == ["goal.created", "object.created"]


def test_an_event_is_saved_before_a_listener_receives_it(research, tmp_path):
    def refuses(event):
        raise ValueError("not this one")

    team = ag.Runtime(ag.Graph(), behaviors=research, persist_to=tmp_path / "log.db")
    team.graph.add_listener(refuses)
    with pytest.raises(ValueError, match="not this one"):
        team.session.emit("note", {})
    reopened = ag.Runtime.load(tmp_path / "log.db", run_id=team.run_id, behaviors=research)
    assert [event.type for event in reopened.graph.events] == ["note"]


def test_an_action_by_the_outer_graph_belongs_to_the_step():
    @on("goal.created")
    def acts(event, graph, ctx):
        team.graph.add_object("task", {})

    team = runtime(acts)
    team.run_goal("go")
    event = team.graph.events[2]
    assert (event.type, event.actor, event.caused_by) == ("object.created", "system", None)
    team.session.goto(0)
    assert team.graph.all_objects() == []


def test_a_runtime_is_a_recipe_that_can_be_drawn(research):
    team = runtime(*research)
    recipe = nb.load(team)
    assert (recipe.dialect, list(recipe.nodes), recipe.check()) == ("activegraph", [each.name for each in research], [])
    team.run_goal("go")
    text = team.draw(board=False).dot
    assert all(word in text for word in ("plan", "on goal.created", "followed", "done"))


def test_causes_are_reported_as_a_chain(research):
    team = runtime(*research)
    team.run_goal("go")
    chain = team.trace.causal_chain("task#1")
    assert chain.splitlines()[0] == "task#1 (task)"
    assert [event.type for event in team.trace.causes("evt_003")] == ["object.created", "goal.created"]
    assert [line.split(") ")[1] for line in chain.splitlines()[1:]] == [
        "object.created", "goal.created", "relation.created", "patch.applied",
    ]  # fmt: skip
    assert any(line.startswith("[goal.created]") for line in team.trace.lines())


def test_a_failure_is_logged_as_a_line_of_json_without_secrets():
    @on("goal.created")
    def fails(event, graph, ctx):
        raise ValueError("no")

    stream = io.StringIO()
    logger = ag.configure_logging("WARNING", stream=stream)
    try:
        runtime(fails).run_goal("go")
    finally:
        logger.handlers.clear()
        logger.propagate = True
    line = json.loads(stream.getvalue())
    assert (line["level"], line["behavior"], line["reason"]) == ("WARNING", "fails", "exception.ValueError")
    assert logging.getLogger("activegraph") is logger


def test_state_is_stored_where_it_was_first_stored(tmp_path, research):
    team = runtime(*research)
    team.run_goal("go")
    path = team.save_state(tmp_path / "one.db")
    assert team.save_state() == path
    with pytest.raises(ValueError, match="X514"):
        team.save_state(tmp_path / "two.db")
    team.run_goal("more")
    count = len(team.graph.events)
    team.session.close()
    assert len(Runtime.load(tmp_path / "one.db", behaviors=research).graph.events) == count


def test_an_event_that_cannot_be_emitted_is_not_stored():
    graph = Graph()
    graph.add_object("task", {})
    for call in (
        lambda: graph.add_object("task", {"x": object()}),
        lambda: graph.add_object("task", {"provenance": 1}),
        lambda: graph.emit(Event("mine", "object.created", {"x": 1})),
        lambda: graph.propose_patch("task#1", "zap", {}, proposed_by="me"),
    ):
        with pytest.raises(nb.AgentNbError):
            call()
    with pytest.raises(KeyError, match="unknown object: nobody"):
        graph.patch_object("nobody", {})
    assert [event.type for event in graph.events] == ["object.created"]


def test_signatures_are_those_of_the_package():
    assert_same_signatures(
        "Runtime", "Runtime.run_goal", "Runtime.run_until_idle", "Runtime.run_until", "Runtime.run_quantum"
    )
