"""Programs (see `programs`) of what is refused, used up, missing, or compared."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import Any


def budget_and_timers(p: Any) -> None:
    """Who is put off uses nothing of a budget until the turn comes."""
    for name, after in (("now", None), ("later", 1)):
        p.register(p.Behavior(name, lambda event, graph, ctx: None, on=["go"], activate_after=after))

    @p.behavior(name="more", on=["go", "stop"])
    def more(event, graph, ctx):
        graph.emit("go" if event.payload["n"] < 1 else "stop", {"n": event.payload["n"] + 1})

    runtime = p.Runtime(p.graph, budget={"max_behavior_calls": 6})
    p.graph.emit(p.Event(p.graph.ids.event(), "go", {"n": 0}))
    runtime.run_until_idle()


def budget_of_events_that_nobody_hears(p: Any) -> None:
    @p.behavior(name="hop", on=["goal.created", "hop"])
    def hop(event, graph, ctx):
        for type_ in ("lost", "lost", "hop"):
            graph.emit(type_, {})

    runtime = p.Runtime(p.graph, budget={"max_events": 6})
    runtime.run_goal("go")
    status = runtime.status()
    used = {"events": status.budget.used["max_events"], "waiting": status.queue_depth}
    p.graph.emit(p.Event(p.graph.ids.event(), "used", used))


def a_limit_with_nothing_left_but_events_that_nobody_hears(p: Any) -> None:
    @p.behavior(name="says", on=["goal.created"])
    def says(event, graph, ctx):
        graph.emit("lost", {})
        graph.emit("lost", {})

    runtime = p.Runtime(p.graph, budget={"max_behavior_calls": 1})
    runtime.run_goal("go")
    status = runtime.status()
    events = {"state": status.state, "events": status.budget.used["max_events"], "waiting": status.queue_depth}
    p.graph.emit(p.Event(p.graph.ids.event(), "used", events))


def what_is_refused(p: Any) -> None:
    """Ids that were drawn for something that is refused name nothing; the next ones follow."""

    @p.behavior(name="tries", on=["goal.created"])
    def tries(event, graph, ctx):
        wrong = object()
        for attempt in (
            lambda: graph.emit("said", {"what": wrong}),
            lambda: graph.add_object("task", {"what": wrong}),
            lambda: graph.add_object("task", {"provenance": 1}),
            lambda: graph.add_relation("task#1", "task#2", "next", {"provenance": 1}),
            lambda: graph.add_relation("task#1", "task#2", "next", {"what": wrong}),
            lambda: graph.patch_object("task#9", {}),
        ):
            with suppress(TypeError, ValueError, KeyError):
                attempt()
        item = graph.add_object("task", {})
        graph.add_relation(item.id, item.id, "self")
        for attempt in (
            lambda: graph.patch_object(item.id, {"what": wrong}),
            lambda: graph.patch_object(item.id, {"provenance": 1}),
            lambda: graph.propose_patch(item.id, "update", {"what": wrong}),
        ):
            with suppress(TypeError, ValueError):
                attempt()
        graph.propose_patch(item.id, "update", {"n": 1})

    @p.behavior(name="fails", on=["object.created"])
    def fails(event, graph, ctx):
        graph.patch_object(event.payload["id"], {"n": 1})

    p.Runtime(p.graph).run_goal("try")


def a_view_around_what_is_missing(p: Any) -> None:
    @p.behavior(name="makes", on=["goal.created"])
    def makes(event, graph, ctx):
        for _ in range(2):
            graph.add_relation("gone#9", graph.add_object("task", {}).id, "to")
        graph.emit("look", {"id": "task#1"})

    @p.behavior(name="looks", on=["look"], view={"around": "event.payload.id", "depth": 2})
    def looks(event, graph, ctx):
        ids = sorted(each.id for each in [*ctx.view.objects(), *ctx.view.relations()])
        graph.emit("saw", {"ids": ids})

    p.Runtime(p.graph).run_goal("look")


def patterns_that_compare(p: Any) -> None:
    @p.behavior(name="makes", on=["goal.created"])
    def makes(event, graph, ctx):
        items = [graph.add_object("task", {"n": number % 3, "id": "own"}) for number in range(4)]
        for source, target in pairwise([*items, items[0]]):
            graph.add_relation(source.id, target.id, "to")
        graph.emit("look", {})

    for number, pattern in enumerate(
        (
            "(a:task)-[:to]->(b:task)-[:to]->(c:task) WHERE a.n < c.n",
            "(a:task)-[:to]->(b:task) WHERE NOT (a.n = b.n AND a.n = 0) AND a <> b",
            "(a:task) WHERE NOT NOT a.id = 'task#2'",
            "(a:task) WHERE a.type = 'task' AND (a.version = 1 AND a.data.n >= 1)",
        )
    ):
        behavior = p.behavior(name=f"asks{number}", on=["look"], pattern=pattern)
        behavior(lambda event, graph, ctx: graph.emit("saw", {"found": [dict(one.bindings) for one in ctx.matches]}))
    p.Runtime(p.graph).run_goal("look")


def a_pattern_and_several_relations(p: Any) -> None:
    @p.behavior(name="makes", on=["goal.created"])
    def makes(event, graph, ctx):
        items = [graph.add_object("task", {"n": number}) for number in range(3)]
        for source, target in pairwise(items):
            graph.add_relation(source.id, target.id, "to")
        for each in items[1:]:
            graph.emit("look", {"id": each.id})

    @p.relation_behavior("to", name="follows", on=["look"], pattern="(a:task {n: 1})")
    def follows(relation, event, graph, ctx):
        graph.emit("saw", {"relation": relation.id, "found": len(ctx.matches)})
        if relation.target == "task#3":
            raise ValueError("as it is wanted")

    p.relation_behavior("to", name="again", on=["look"], pattern="(a:task)")(follows.fn)
    p.Runtime(p.graph).run_goal("look")


PROGRAMS = [
    a_pattern_and_several_relations,
    budget_and_timers,
    budget_of_events_that_nobody_hears,
    a_limit_with_nothing_left_but_events_that_nobody_hears,
    what_is_refused,
    a_view_around_what_is_missing,
    patterns_that_compare,
]
