from __future__ import annotations

import json

import pytest

from agentnb.dialects.activegraph import Runtime
from agentnb.store import MemoryLog
from tests.dialects.activegraph.runtimes import graph, log, on, runtime, tell, types


def list_logged_types(log):
    """Return, entry by entry, the types of the events that a log has, those of steps in flight too."""
    results = []
    for entry in log.entries("RUN"):
        body = json.loads(entry.body)
        rows = [fact[2] for fact in body.get("told", ()) if fact[0] == "emit"]
        rows += [row for part in body.get("p", ()) for row in part[4].get("events", ())]
        results.append([row[3] for row in rows if len(row) > 2])
    return results


def test_events_are_stored_when_emitted_and_uninformative_ones_with_the_next():
    place, seen = MemoryLog(), []

    @on("go", "again")
    def says(event, graph, ctx):
        types_before = list_logged_types(place)
        graph.emit("one", {})
        seen.append((types_before[-1], list_logged_types(place)[len(types_before) :]))
        if event.type == "go":
            graph.emit("again", {})

    team = runtime(says, store=place)
    tell(team, "go")
    team.run_until_idle()
    first, second = seen
    # What came before is kept when the code of the behavior runs; that it has begun, with what it does first.
    assert first == (["go"], [["behavior.started", "one"]])
    assert second == (["behavior.completed"], [["behavior.started", "one"]])
    assert list_logged_types(place)[-2:] == [["behavior.completed"], ["runtime.idle"]]


def test_a_delivery_that_fails_is_stored_with_its_failure():
    place = MemoryLog()

    @on("go")
    def fails(event, graph, ctx):
        raise ValueError("at once")

    team = runtime(fails, store=place)
    tell(team, "go")
    team.run_until_idle()
    assert ["behavior.started", "behavior.failed"] in list_logged_types(place)
    team.session.close()
    loaded = Runtime.load(place, "RUN", behaviors=[fails])
    assert log(loaded) == log(team)


def test_random_draws_and_actions_through_aliases_belong_to_the_step():
    outer = graph()

    @on("go")
    def acts(event, graph, ctx):
        outer.add_object("task", {"luck": ctx.random.random()})

    team = Runtime(outer, behaviors=[acts])
    tell(team, "go")
    team.session.step()
    assert {event.step for event in team.session._parts.run.events()} == {None, 1}
    luck = outer.get_object("task#1").data
    team.session.back()
    assert outer.all_objects() == []
    team.session.step()
    assert outer.get_object("task#1").data == luck
    assert types(team) == ["go", "object.created"]


# -- what is next after events from outside --------------------------------------------------------------------------


def listening():
    @on("object.created", where={"object.type": "task"})
    def first(event, graph, ctx):
        graph.emit("answered", {})

    @on("object.created", pattern="(t:task {a: 2})")
    def second(event, graph, ctx):
        pass

    @on("object.created", "asked", activate_after=1)
    def late(event, graph, ctx):
        pass

    @on("answered")
    def third(event, graph, ctx):
        pass

    made = runtime(first, second, late, third)
    made.graph.add_object("note", {})
    made.run_until_idle()
    return made


OUTSIDE = {
    "task": lambda made: made.graph.add_object("task", {"a": 2}),
    "note": lambda made: made.graph.add_object("note", {"a": 1}),
    "asked": lambda made: tell(made, "asked"),
    "answered": lambda made: tell(made, "answered"),
    "unheard": lambda made: tell(made, "unheard"),
}


@pytest.mark.parametrize("again", OUTSIDE)
@pytest.mark.parametrize("event", OUTSIDE)
def test_after_events_from_outside_the_session_says_which_behavior_is_next(event, again):
    made = listening()
    session, start = made.session, made.session.position
    OUTSIDE[event](made)
    OUTSIDE[again](made)
    following = session.current
    assert following == next((entry.node for entry in session.frontier), None)
    assert f"next {following!r}" in repr(session) or following is None
    copy = session.fork()
    assert copy.current == following
    session.run()
    assert next((step.node_id for step in session.trace.steps[start:]), None) == following


@pytest.mark.parametrize("verb", ["skip", "set_next"])
def test_the_first_delivery_of_an_event_from_outside_can_be_skipped_and_replaced(verb):
    made = listening()
    session, start = made.session, made.session.position
    made.graph.add_object("task", {"a": 2})
    if verb == "skip":
        session.skip()
    else:
        session.set_next("second")
    session.run()
    made_steps = [(step.node_id, step.status) for step in session.trace.steps[start:]]
    order = {"skip": [("first", "skipped"), ("second", "ok")], "set_next": [("second", "ok"), ("first", "ok")]}[verb]
    assert made_steps[:2] == order
    assert session.replay().ok
