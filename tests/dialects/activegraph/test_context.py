from __future__ import annotations

import pytest

from agentnb.dialects.activegraph import Frame, Policy, Runtime
from agentnb.dialects.activegraph.parts.delivery import READS
from tests.dialects.activegraph.runtimes import on, runtime


def call_in_behavior(look, *, before=None, **options):
    """Return what `look(event, graph, ctx)` says, called as a behavior in a graph that `before` has filled."""
    answers = []

    @on("go", **options.pop("words", {}))
    def looks(event, graph, ctx):
        answers.append(look(event, graph, ctx))

    team = runtime(looks, **options)
    if before is not None:
        before(team.graph)
    team.session.emit("go", {"id": "book#1"})
    team.run_until_idle()
    assert team.errors == []
    return answers[0]


def books(graph):
    one, two, three = (graph.add_object("book", {"n": number}) for number in range(3))
    desk = graph.add_object("desk", {})
    graph.add_relation(one.id, two.id, "next")
    graph.add_relation(two.id, three.id, "next")
    graph.add_relation(desk.id, three.id, "holds")


@pytest.mark.parametrize(
    ("view", "objects", "relations"),
    [
        (None, ["book#1", "book#2", "book#3", "desk#4"], 3),
        ({"include_types": ["desk"]}, ["desk#4"], 3),
        ({"around": "event.payload.id"}, ["book#1", "book#2"], 1),
        ({"around": "event.payload.id", "depth": 2}, ["book#1", "book#2", "book#3"], 2),
        ({"around": "desk#4"}, ["book#3", "desk#4"], 1),
        ({"around": "event.payload.none"}, [], 0),
    ],
)
def test_a_view_has_the_declared_content(view, objects, relations):
    shown = call_in_behavior(lambda event, graph, ctx: (ctx.view.objects(), ctx.view.relations()), before=books,
                             words={"view_spec": view})  # fmt: skip
    assert ([each.id for each in shown[0]], len(shown[1])) == (objects, relations)


def test_a_view_is_queried_by_type_and_by_conditions():
    def look(event, graph, ctx):
        view = ctx.view
        return (
            [each.id for each in view.objects("book", where={"data.n": [1, 2]})],
            [each.type for each in view.relations("holds")],
            [each.type for each in view.events("go")],
            (view.get_object("desk#4").type, view.get_object("desk#9")),
        )

    assert call_in_behavior(look, before=books) == (["book#2", "book#3"], ["holds"], ["go"], ("desk", None))


@pytest.mark.parametrize(("recent", "shown"), [(0, 0), (2, 2), (100, 8)])
def test_a_view_shows_the_last_events(recent, shown):
    assert call_in_behavior(lambda event, graph, ctx: len(ctx.view.events()), before=books,
                            words={"view_spec": {"recent_events": recent}}) == shown  # fmt: skip


def test_a_behavior_can_read_its_frame_its_policy_and_the_time():
    frame, policy = Frame("a memo", id="frame_007"), Policy()
    values = call_in_behavior(
        lambda event, graph, ctx: (ctx.frame.id, ctx.policy, ctx.settings, ctx.clock.now()), frame=frame, policy=policy
    )
    assert values[:3] == ("frame_007", policy, None)
    assert values[3].startswith("2026-01-01T00:00:0")


def test_random_numbers_depend_on_the_seed_of_the_run():
    def draw(event, graph, ctx):
        return ctx.random.random()

    assert call_in_behavior(draw, seed=3) == call_in_behavior(draw, seed=3) != call_in_behavior(draw, seed=4)


def test_an_impossible_action_is_a_failure():
    @on("go")
    def vectors(event, graph, ctx):
        ctx.embed(["a"])

    team = runtime(vectors)
    team.session.emit("go", {})
    team.run_until_idle()
    assert "X509" in team.errors[0].message


def test_the_actions_of_a_behavior_are_counted():
    @on("go")
    def works(event, graph, ctx):
        one = graph.add_object("book", {})
        relation = graph.add_relation(one.id, one.id, "near")
        graph.patch_object(one.id, {"n": 1})
        graph.propose_patch(one.id, "update", {"n": 2})
        graph.emit("done")
        assert graph.get_relation(relation.id).type == "near"
        assert (graph.get_object("book#9"), graph.get_relation("rel_009")) == (None, None)

    team = runtime(works)
    team.session.emit("go", {})
    team.run_until_idle()
    (completed,) = (event.payload for event in team.graph.events if event.type == "behavior.completed")
    assert {name: completed[name] for name in completed if name.endswith(("ed", "created"))} == {
        "objects_created": 1,
        "relations_created": 1,
        "patches_applied": 1,
        "patches_proposed": 1,
        "events_emitted": 1,
    }


# -- recorded reads ----------------------------------------------------------------------------------------------------


def kinds_of(team):
    return [event.type for event in team.graph.events]


def reading(fails=False):
    @on("goal.created")
    def reader(event, graph, ctx):
        ctx.view.objects("doc")
        ctx.view.relations()
        graph.get_object("doc#1")
        graph.get_object("nothing#9")
        if fails:
            raise ValueError("no")

    @on("goal.created")
    def writer(event, graph, ctx):
        graph.add_object("note", {})

    return reader, writer


@pytest.mark.parametrize("fails", [False, True])
def test_reads_of_a_delivery_are_recorded_once_if_enabled(fails):
    team = runtime(*reading(fails), trace_context_reads=True)
    for number in range(2):
        team.graph.add_object("doc", {"n": number})
    team.run_goal("go")
    kinds = kinds_of(team)
    (read,) = (event for event in team.graph.events if event.type == "context.read")
    started = next(event for event in team.graph.events if event.type == "behavior.started")
    assert read.payload == {"behavior": "reader", "event_id": started.payload["event_id"], "count": 2,
                            "execution_event_id": started.id, "object_ids": ["doc#1", "doc#2"]}  # fmt: skip
    assert kinds[kinds.index("context.read") - 1] == ("behavior.failed" if fails else "behavior.completed")
    assert (read.actor, read.caused_by) == ("runtime", started.payload["event_id"])


def test_nothing_is_recorded_of_reads_by_default():
    team = runtime(*reading())
    team.graph.add_object("doc", {})
    team.run_goal("go")
    assert "context.read" not in kinds_of(team)


@pytest.mark.parametrize("more", [-1, 0, 1, 5])
def test_the_first_of_many_reads_are_named(more):
    team = runtime(*reading(), trace_context_reads=True)
    for number in range(READS + more):
        team.graph.add_object("doc", {"n": number})
    team.run_goal("go")
    read = next(event.payload for event in team.graph.events if event.type == "context.read")
    named = [f"doc#{number}" for number in range(1, min(READS, READS + more) + 1)]
    assert (read["object_ids"], read["count"], read.get("truncated")) == (named, READS + more, more > 0 or None)


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("now", [True, False])
def test_a_replay_records_reads_as_the_run_did(tmp_path, recorded, now):
    behaviors = reading()
    team = runtime(*behaviors, trace_context_reads=recorded, persist_to=tmp_path / "run.db")
    team.graph.add_object("doc", {})
    team.run_goal("go")
    team.session.close()
    loaded = Runtime.load(tmp_path / "run.db", behaviors=behaviors, replay_strict=True, trace_context_reads=now)
    assert ("context.read" in kinds_of(loaded)) is recorded


def test_a_fork_records_reads_as_its_parent_does():
    team = runtime(*reading(), trace_context_reads=True)
    team.run_goal("go")
    assert team.fork(team.graph.events[0].id).trace_context_reads


def test_the_last_events_include_those_of_the_current_step():
    seen = []

    @on("go")
    def emits(event, graph, ctx):
        for number in range(3):
            graph.emit("note", {"n": number})
        ledger = team.graph.ledger
        known = [each.id for each in ledger.events()]
        seen.extend(([each.id for each in ledger.last_events(count)], known[-count:]) for count in range(1, len(known)))

    team = runtime(emits)
    for _ in range(2):
        team.session.emit("go", {})
    team.run_until_idle()
    assert seen
    assert all(actual == expected for actual, expected in seen)
