"""What both packages are asked to do, each a function of a package (see `judge`) that fills its graph."""

from __future__ import annotations

from typing import Any


def nothing_to_do(p: Any) -> None:
    runtime = p.Runtime(p.graph)
    runtime.run_until_idle()
    runtime.run_until_idle()


def plan_research_memo(p: Any) -> None:
    """A chain of behaviors: a goal, tasks, claims, and a memo when all tasks are done."""

    @p.behavior(name="planner", on=["goal.created"])
    def planner(event, graph, ctx):
        tasks = [graph.add_object("task", {"title": title, "state": "open"}) for title in ("read", "ask", "sum up")]
        graph.add_relation(tasks[0].id, tasks[2].id, "blocks")
        graph.add_relation(tasks[1].id, tasks[2].id, "blocks")

    @p.behavior(
        name="researcher", on=["object.created"], where={"object.type": "task", "object.data.title": {"!=": "sum up"}}
    )
    def researcher(event, graph, ctx):
        task = event.payload["object"]
        claim = graph.add_object("claim", {"text": f"about {task['data']['title']}", "confidence": 0.8})
        graph.add_relation(claim.id, task["id"], "about", {"weight": 1})
        graph.patch_object(task["id"], {"state": "done"})
        graph.emit("task.completed", {"task": task["id"], "by": {"claims": [claim.id]}})

    @p.relation_behavior("blocks", on=["task.completed"], name="unblock")
    def unblock(relation, event, graph, ctx):
        if relation.source == event.payload["task"]:
            graph.emit("task.unblocked", {"task": relation.target, "view": [len(ctx.view.objects("task"))]})

    @p.behavior(name="writer", on=["task.unblocked"])
    def writer(event, graph, ctx):
        done = [task.id for task in ctx.view.objects("task", where={"data.state": "done"})]
        graph.add_object("memo", {"of": done, "at": ctx.clock.now()})

    p.Runtime(p.graph, frame=p.Frame("find out", constraints=["be brief"])).run_goal("find out")


def patches_of_all_sorts(p: Any) -> None:
    graph = p.graph
    p.Runtime(graph, behaviors=[])
    one, two = graph.add_object("task", {"a": 1, "b": [1]}), graph.add_object("task", {})
    graph.patch_object(one.id, {"a": 1, "c": None})
    first = graph.propose_patch(
        f"object:{one.id}", "update", {"a": 2}, proposed_by="me", rationale="why", evidence=["x"]
    )
    second = graph.propose_patch(one.id, "replace", {"z": 1, "a": 1}, proposed_by="you")
    graph.apply_patch(first.id, approved_by="boss")
    graph.apply_patch(second.id)
    third = graph.propose_patch(one.id, "replace", {"z": 1, "a": 2}, proposed_by="you")
    graph.apply_patch(third.id)
    graph.reject_patch(graph.propose_patch(two.id, "update", {"q": 1}, proposed_by="you").id, "not now", actor="boss")
    late = graph.propose_patch(two.id, "update", {"q": 1}, proposed_by="you")
    graph.remove_object(two.id)
    graph.apply_patch(late.id)


def patches_in_behaviors(p: Any) -> None:
    @p.behavior(name="maker", on=["goal.created"])
    def maker(event, graph, ctx):
        item = graph.add_object("task", {"n": 0})
        graph.propose_patch(item.id, "update", {"n": 1})
        graph.propose_patch(item.id, "replace", {"m": 1})

    @p.behavior(name="watcher", on=["patch.proposed", "patch.applied", "patch.rejected"])
    def watcher(event, graph, ctx):
        graph.emit("seen", {"type": event.type, "now": graph.get_object("task#1").data})

    runtime = p.Runtime(p.graph)
    runtime.run_goal("patch")
    p.graph.apply_patch("patch_001")
    p.graph.apply_patch("patch_002")
    runtime.run_until_idle()


def failures(p: Any) -> None:
    @p.behavior(name="half", on=["goal.created"])
    def half(event, graph, ctx):
        graph.add_object("kept", {"by": "half"})
        raise ValueError("after the object")

    @p.behavior(name="unknown", on=["goal.created"])
    def unknown(event, graph, ctx):
        graph.patch_object("nobody#9", {"a": 1})

    @p.behavior(name="goes_on", on=["object.created"])
    def goes_on(event, graph, ctx):
        graph.emit("went.on", {"id": event.payload["id"]})

    p.Runtime(p.graph).run_goal("fail")


def patterns(p: Any) -> None:
    @p.behavior(name="seed", on=["goal.created"])
    def seed(event, graph, ctx):
        one = graph.add_object("task", {"state": "open", "n": 1})
        two = graph.add_object("task", {"state": "done", "n": 2})
        graph.add_relation(one.id, two.id, "needs", {"w": 2})
        graph.add_object("person", {"name": "Ann"})
        graph.add_relation("person#3", one.id, "does")

    @p.behavior(name="chain", on=["relation.created"], pattern="(a:task {state: 'open'})-[r:needs]->(b:task)")
    def chain(event, graph, ctx):
        graph.emit("found", {"bindings": [match.bindings for match in ctx.matches]})
        graph.patch_object(ctx.matches[0].bindings["a"], {"state": "taken"})

    @p.behavior(name="after_it", on=["relation.created"], pattern="(a:task {state: 'open'})")
    def after_it(event, graph, ctx):
        graph.emit("still", {"bindings": [match.bindings for match in ctx.matches]})

    @p.behavior(
        name="back", pattern="(b:task)<-[:needs]-(a:task)<-[:does]-(who) WHERE who.name = 'Ann' AND NOT a.n > 5"
    )
    def back(event, graph, ctx):
        if event.type == "relation.created":
            graph.emit("back", {"bindings": [match.bindings for match in ctx.matches]})

    @p.behavior(name="lonely", on=["found"], pattern="(a:task) WHERE NOT EXISTS { (a)-[:needs]->(b) } AND a.n >= 2")
    def lonely(event, graph, ctx):
        graph.emit("lonely", {"bindings": [match.bindings for match in ctx.matches]})

    p.Runtime(p.graph).run_goal("look")


def timers(p: Any) -> None:
    @p.behavior(name="seed", on=["goal.created"])
    def seed(event, graph, ctx):
        for number in range(4):
            graph.add_object("task", {"n": number})

    @p.behavior(name="soon", on=["object.created"], where={"object.data.n": 0}, activate_after=1)
    def soon(event, graph, ctx):
        graph.emit("soon", {"event": event.id})

    @p.behavior(name="later", on=["object.created"], where={"object.data.n": 0}, activate_after="2 events")
    def later(event, graph, ctx):
        graph.emit("later", {})

    @p.behavior(name="same_time", on=["object.created"], where={"object.data.n": 1}, activate_after=1)
    def same_time(event, graph, ctx):
        graph.patch_object("task#1", {"n": 9})

    @p.behavior(name="stale", on=["object.created"], activate_after=1, pattern="(a:task {n: 0})",
                where={"object.data.n": {"in": [0, 2]}})  # fmt: skip
    def stale(event, graph, ctx):
        graph.emit("not.stale", {"bindings": [match.bindings for match in ctx.matches]})

    @p.behavior(name="other", on=["object.created"])
    def other(event, graph, ctx):
        pass

    p.Runtime(p.graph).run_goal("wait")


def budget_of_calls(p: Any) -> None:
    _chain(p, {"max_behavior_calls": 4})


def budget_of_events(p: Any) -> None:
    _chain(p, {"max_events": 3})


def budget_of_nothing(p: Any) -> None:
    _chain(p, {"max_llm_calls": 0})


def _chain(p: Any, budget: dict[str, Any]) -> None:
    @p.behavior(name="hop", on=["goal.created", "hop"])
    def hop(event, graph, ctx):
        graph.emit("hop", {"n": event.payload.get("n", 0) + 1})
        graph.emit("nobody.listens", {})

    @p.behavior(name="count", on=["hop"])
    def count(event, graph, ctx):
        graph.add_object("count", {"n": event.payload["n"]})

    runtime = p.Runtime(p.graph, budget=budget)
    runtime.run_goal("go")
    runtime.run_until_idle()


def views(p: Any) -> None:
    graph = p.graph
    for number in range(3):
        graph.add_object("task", {"n": number})
    graph.add_relation("task#1", "task#2", "next")
    graph.add_object("claim", {})
    specs = (None, {"include_types": ["claim"]}, {"recent_events": 2}, {"around": "event.payload.id"},
             {"around": "event.payload.nothing"}, {"include_types": ["task"], "recent_events": 0})  # fmt: skip
    for number, spec in enumerate(specs):

        @p.behavior(name=f"looks{number}", on=["look"], view=spec)
        def looks(event, graph, ctx):
            shown = sorted(each.id for each in ctx.view.objects())
            low = [each.id for each in ctx.view.objects(type="task", where={"data.n": {"<": 2}})]
            ends = [each.id for each in ctx.view.relations()]
            graph.emit("saw", {"objects": shown, "low": sorted(low), "relations": ends,
                               "events": [each.id for each in ctx.view.events()]})  # fmt: skip

    runtime = p.Runtime(graph)
    graph.emit(p.Event(graph.ids.event(), "look", {"id": "task#1"}, actor="me", timestamp="2026-02-01T00:00:00Z"))
    runtime.run_until_idle()


def wheres(p: Any) -> None:
    payload = {"n": 3, "words": ["a", "b"], "deep": {"er": {"x": None, "y": True}}, "s": "text"}
    clauses = (
        {"n": 3}, {"n": {">": 2, "<=": 3}}, {"n": {">": 3}}, {"n": {"in": [1, 3]}}, {"n": {"not in": [3]}},
        {"words": ["a", "b"]}, {"words": "a"}, {"deep.er.y": True}, {"deep.er.x": None}, {"nothing": None},
        {"nothing": {"!=": 1}}, {"nothing": {"<": 1}}, {"s": {">": "a"}}, {"words.0": "a"}, {"n": {}},
        {"n": {"==": 3.0}},
    )  # fmt: skip
    for number, clause in enumerate(clauses):

        @p.behavior(name=f"where{number}", on=["asked"], where=clause)
        def held(event, graph, ctx, number=number):
            graph.emit("held", {"clause": number})

    runtime = p.Runtime(p.graph)
    p.graph.emit(p.Event("evt_900", "asked", payload))
    runtime.run_until_idle()


def removing(p: Any) -> None:
    @p.behavior(name="hears", on=["object.removed", "relation.removed", "relation.created"])
    def hears(event, graph, ctx):
        graph.emit("heard", {"id": event.payload["id"], "left": len(ctx.view.objects())})

    runtime, graph = p.Runtime(p.graph), p.graph
    one, two = graph.add_object("task", {}, actor="me"), graph.add_object("task", {})
    relation = graph.add_relation(one.id, two.id, "next", {"w": 1}, actor="me", caused_by="evt_001")
    graph.add_relation(one.id, "nobody", "next")
    graph.remove_relation("rel_002")
    runtime.run_until_idle()
    graph.remove_relation(relation.id)
    graph.remove_object(two.id)
    graph.remove_object("nobody")
    runtime.run_until_idle()


def plain_values(p: Any) -> None:
    from datetime import UTC, date, datetime
    from decimal import Decimal

    p.Runtime(p.graph, behaviors=[])
    moments = {"day": date(2026, 1, 2), "when": datetime(2026, 1, 2, 3, tzinfo=UTC)}
    unusual = {"tuple": (1, (2,)), "set": {3, 1, 2}, "decimal": Decimal("1.10"), 5: "key", "no": None, **moments}
    p.graph.add_object("odd", unusual)
    p.graph.emit(p.Event(p.graph.ids.event(), "odd", {"a": (1,)}, actor=None, frame_id="f", caused_by="nobody"))


def relations_of_events(p: Any) -> None:
    @p.relation_behavior("link", on=["said", "relation.created"], name="link")
    def link(relation, event, graph, ctx):
        graph.emit("linked", {"relation": relation.id, "source": relation.source, "data": relation.data})

    @p.relation_behavior("link", on=["said"], name="strict", where={"deep": {"!=": None}})
    def strict(relation, event, graph, ctx):
        graph.add_relation(relation.target, relation.source, "back")

    graph, runtime = p.graph, p.Runtime(p.graph)
    for _ in range(3):
        graph.add_object("node", {})
    graph.add_relation("node#1", "node#2", "link", {"n": 1})
    graph.add_relation("node#2", "node#3", "link", {"n": 2})
    graph.add_relation("node#3", "node#1", "other")
    runtime.run_until_idle()
    for payload in ({"deep": [{"x": "node#2"}]}, {"text": "about node#2"}, {"a": "node#1", "b": "node#3"}):
        graph.emit(p.Event(graph.ids.event(), "said", payload))
    runtime.run_until_idle()


def registered_late(p: Any) -> None:
    runtime = p.Runtime(p.graph)
    runtime.run_goal("nobody listens")

    @p.behavior(on=["goal.created"])
    def listens(event, graph, ctx):
        graph.emit("listened", {"draw": [ctx.random.random(), ctx.random.randint(1, 6)]})

    runtime.run_goal("somebody listens")


def by_hand(p: Any) -> None:
    def says(event, graph, ctx):
        graph.emit("said", {"types": [each.type for each in ctx.view.events()]})

    p.register(p.Behavior("registered", says, on=["goal.created"]))
    behaviors = [
        p.Behavior("given", says, on=["goal.created"], view_spec={"recent_events": 3}),
        p.Behavior("silent", says),
    ]
    p.Runtime(p.graph, behaviors=behaviors, seed=7, budget={"max_behavior_calls": 9}).run_goal("by hand")


def approvals(p: Any) -> None:
    @p.behavior(name="asks", on=["goal.created"])
    def asks(event, graph, ctx):
        proposals = [ctx.propose_object("memo", {"n": n}, reason=reason) for n, reason in enumerate(("why not", ""))]
        graph.emit("asked", {"approvals": proposals})

    @p.behavior(name="hears", on=["object.created"])
    def hears(event, graph, ctx):
        graph.emit("heard", {"id": event.payload["id"]})

    runtime = p.Runtime(p.graph)
    runtime.run_goal("ask")
    assert [each.object_type for each in runtime.pending_approvals()] == ["memo", "memo"]
    for approval, person in (("approval_002", "ann"), ("approval_001", None)):
        runtime.approve(approval, approved_by=person)
        runtime.run_until_idle()
    assert runtime.pending_approvals() == []


# In the package approvals, and what they lead to, have no cause; here they have, so causes are not compared.
WITHOUT_CAUSES = [approvals]
PROGRAMS = [
    nothing_to_do,
    plan_research_memo,
    patches_of_all_sorts,
    patches_in_behaviors,
    failures,
    patterns,
    timers,
    budget_of_calls,
    budget_of_events,
    budget_of_nothing,
    views,
    wheres,
    removing,
    plain_values,
    relations_of_events,
    registered_late,
    by_hand,
]
