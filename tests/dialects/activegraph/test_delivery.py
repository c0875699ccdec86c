from __future__ import annotations

import json

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
