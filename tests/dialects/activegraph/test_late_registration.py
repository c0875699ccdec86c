from __future__ import annotations

import pytest

from agentnb.dialects.activegraph import Runtime
from agentnb.dialects.activegraph.parts.late_registration import get_registration_event
from agentnb.errors import AgentNbError
from tests.dialects.activegraph.runtimes import graph, on, types


@on("go")
def first(event, graph, ctx):
    graph.emit("first", {})


@on("go", "first")
def second(event, graph, ctx):
    graph.emit("second", {})


def test_behaviors_hear_what_is_emitted_from_then_on():
    kept = graph()
    kept.add_object("book", {})
    kept.session.emit("go", {})
    team = Runtime(kept, behaviors=[first], name="team")
    team.run_until_idle()
    assert types(team) == ["object.created", "go"]
    assert (get_registration_event(kept.session._parts.run), kept.session.name) == (2, "team")  # after the second event
    kept.session.emit("go", {})
    team.run_until_idle()
    assert types(team)[-1] == "first"


def test_others_may_listen_later_and_the_steps_before_stay():
    kept = graph()
    Runtime(kept, behaviors=[first]).session.emit("go", {}).run()
    team = Runtime(kept, behaviors=[second])
    kept.session.emit("go", {})
    team.run_until_idle()
    assert [step.node_id for step in kept.session.trace.steps] == ["first", "second"]
    assert team.replay().ok


def test_what_cannot_listen_changes_nothing():
    kept = graph()
    with pytest.raises(AgentNbError, match="R329"):
        Runtime(kept, behaviors=[first, first])
    assert get_registration_event(kept.session._parts.run) == -1
    assert kept.session.recipe.nodes == {}
