from __future__ import annotations

import pytest

from agentnb.dialects.activegraph import Runtime, clear_registry, get_registry, register
from agentnb.dialects.activegraph.parts.late_registration import get_registration_event
from agentnb.errors import AgentNbError
from tests.dialects.activegraph.runtimes import graph, on, tell, types


@on("go")
def first(event, graph, ctx):
    graph.emit("first", {})


@on("go", "first")
def second(event, graph, ctx):
    graph.emit("second", {})


def test_late_behaviors_receive_the_events_emitted_from_then_on():
    built_graph = graph()
    built_graph.add_object("book", {})
    built_graph.session.emit("go", {})
    team = Runtime(built_graph, behaviors=[first], name="team")
    team.run_until_idle()
    assert types(team) == ["object.created", "go"]
    assert (get_registration_event(built_graph.session._parts.run), built_graph.session.name) == (
        2,
        "team",
    )  # after the second event
    built_graph.session.emit("go", {})
    team.run_until_idle()
    assert types(team)[-1] == "first"


def test_behaviors_can_be_added_later_and_earlier_steps_remain():
    built_graph = graph()
    Runtime(built_graph, behaviors=[first]).session.emit("go", {}).run()
    team = Runtime(built_graph, behaviors=[second])
    built_graph.session.emit("go", {})
    team.run_until_idle()
    assert [step.node_id for step in built_graph.session.trace.steps] == ["first", "second"]
    assert team.replay().ok


def test_an_event_that_waits_for_a_removed_behavior_is_not_delivered():
    built_graph = graph()
    Runtime(built_graph, behaviors=[first])
    built_graph.session.emit("go", {})
    team = Runtime(built_graph, behaviors=[second])
    assert team.session.frontier == ()
    built_graph.session.emit("go", {})
    team.run_until_idle()
    assert [step.node_id for step in built_graph.session.trace.steps] == ["second"]


@pytest.fixture
def _registry():
    clear_registry()
    yield
    clear_registry()


@pytest.mark.usefixtures("_registry")
def test_a_behavior_that_is_registered_by_a_behavior_is_active_after_the_run():
    @on("go")
    def registers(event, graph, ctx):
        if "second" not in [each.name for each in get_registry()]:
            register(second)
        assert team.session.status == "running"

    register(registers)
    team = Runtime(graph())
    tell(team, "go")
    team.run_until_idle()
    assert types(team) == ["go"]
    tell(team, "go")
    team.run_until_idle()
    assert types(team) == ["go", "go", "second"]


def test_an_invalid_behavior_changes_nothing():
    built_graph = graph()
    with pytest.raises(AgentNbError, match="R329"):
        Runtime(built_graph, behaviors=[first, first])
    assert get_registration_event(built_graph.session._parts.run) == -1
    assert built_graph.session.recipe.nodes == {}


def test_a_run_keeps_the_name_of_its_first_runtime():
    shared = graph()
    first = Runtime(shared, behaviors=[], name="alpha")
    assert first.session.name == "alpha"
    second = Runtime(shared, behaviors=[], name="beta")
    assert (second.session.name, first.session.name) == ("alpha", "alpha")
