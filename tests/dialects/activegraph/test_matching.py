from __future__ import annotations

import pytest

from agentnb.dialects.activegraph.parts.matching import Matcher
from tests.dialects.activegraph.runtimes import on, on_relation, runtime, tell


def nothing(*_given):
    """Do nothing."""


def hears(*types, **words):
    behavior = on(*types, **{name: word for name, word in words.items() if name != "name"})(nothing)
    behavior.name = words["name"]
    return behavior


def events_of(team, *types):
    for number, type_ in enumerate(types):
        tell(team, type_, n=number)
    return team.session._parts.run.events()


@pytest.fixture
def plain():
    return hears("go", name="plain")


@pytest.fixture
def patterned():
    return hears("go", name="patterned", where={"n": 1}, pattern="(a:task)")


def test_matches_are_known_at_once_if_they_do_not_depend_on_the_graph(plain, patterned):
    team = runtime()
    first, second, other = events_of(team, "go", "go", "other")
    matcher, run = Matcher([plain, patterned], 0), team.session._parts.run
    assert matcher.list_triggered(run, first) == ["plain"]  # what the payload says of it already holds for no pattern
    assert matcher.list_triggered(run, second) is None
    assert matcher.list_triggered(run, other) == []


def test_relations_are_matched_when_the_event_is_delivered(plain):
    follows = on_relation("next", "go")(nothing)
    team = runtime()
    (event,) = events_of(team, "go")
    matcher = Matcher([plain, follows], 0)
    assert matcher.list_triggered(team.session._parts.run, event) is None
    team.graph.add_relation("task#1", "task#2", "next")
    (_, *_, about) = events_of(team, "other")
    assert [name for name, _ in matcher.list_deliveries(team.session._parts.run, about)] == []


def test_behaviors_run_by_priority_and_then_by_registration():
    team = runtime()
    (event,) = events_of(team, "go")
    behaviors = [hears("go", name="a"), hears("go", name="b", priority=2), hears("go", name="c")]
    assert Matcher(behaviors, 0).list_triggered(team.session._parts.run, event) == ["b", "a", "c"]


def test_events_of_the_run_itself_are_delivered_only_to_explicit_listeners(plain):
    team = runtime(hears("go", name="first"))
    tell(team, "go")
    team.run_until_idle()
    events = {event.type: event for event in team.session._parts.run.events()}
    any_, named = hears("*", name="any"), hears("behavior.completed", name="named")
    assert not Matcher([any_], 0).has_listeners(events["behavior.completed"])
    assert Matcher([any_, named], 0).has_listeners(events["behavior.completed"])
    assert Matcher([any_], 0).has_listeners(events["go"])
    assert not Matcher([any_], -1).has_listeners(events["go"]), "nobody listens yet"
    assert not Matcher([any_], events["go"].seq).has_listeners(events["go"]), "it was told before"


def test_a_long_queue_is_not_rewritten_for_events_that_no_pattern_names(plain, patterned):
    @on("begin")
    def share(event, graph, ctx):
        for number in range(event.payload["times"]):
            graph.emit("go", {"n": -number})

    rows = []
    for times in (50, 100):
        team = runtime(plain, patterned, share)
        tell(team, "begin", times=times)
        team.run_until_idle()
        rows.append(len(team.session._parts.run.history.push_activations))
    assert rows[1] <= 2.1 * rows[0]
