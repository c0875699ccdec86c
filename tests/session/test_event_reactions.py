from __future__ import annotations

from agentnb.samples import reactive
from tests.session.test_reactive import listening


def team():
    runtime = reactive.team()
    runtime.run_goal("Write about swifts")
    return runtime.session


def seen(session):
    return session._parts.pictures.view().reactions


def test_it_counts_emitted_events_their_emitters_and_what_they_triggered():
    actual = seen(team())
    assert (actual.counts["goal.created"], actual.counts["task.done"], actual.counts["draft.returned"]) == (1, 3, 1)
    assert actual.deliveries == {
        ("goal.created", "plan"): 1, ("object.created", "search"): 3, ("task.done", "unblock"): 3,
        ("task.ready", "write"): 1, ("draft.returned", "write"): 1, ("object.created", "review"): 2,
        ("draft.accepted", "publish"): 1,
    }  # fmt: skip
    assert (actual.emissions["search", "task.done"], actual.emissions["plan", "object.created"]) == (3, 4)
    assert not [pair for pair in actual.emissions if pair[1] == "goal.created"]  # that came from outside
    assert actual.last_delivery == ("draft.accepted", "publish")
    assert {"object.created", "patch.applied"} <= actual.last_emitted


def test_counts_follow_the_run_forwards_and_back():
    full_run = team()
    length = len(full_run.trace)
    fresh = [seen(full_run.fork(at=k)) for k in range(length + 1)]
    for k in [*reversed(range(length + 1)), 4, 0, 7, length]:
        current_counts = seen(full_run.goto(k))
        assert (current_counts.counts, current_counts.deliveries, current_counts.emissions) == (
            fresh[k].counts,
            fresh[k].deliveries,
            fresh[k].emissions,
        )
    assert (seen(full_run.goto(0)).deliveries, seen(full_run.goto(0)).last_delivery) == ({}, None)


def test_a_fork_counts_shared_and_own_events():
    session = team()
    session.goto(2)
    seen(session)
    session.emit("goal.created", {"goal": "Another"})
    session.step(3)
    actual = seen(session)
    assert (actual.counts["goal.created"], actual.deliveries["object.created", "search"]) == (2, 3)


def test_events_of_a_step_in_flight_count_too():
    runtime = reactive.team()
    session = runtime.session
    session.emit("goal.created", {"goal": "Write about swifts"})
    while seen(session).counts.get("object.created", 0) < 2:
        session.step_into()
    assert (session.status, session.position) == ("in_flight", 0)
    assert seen(session).emissions["plan", "object.created"] == 2


def test_edges_are_taken_when_the_event_is_delivered_and_not_before():
    session = team()
    edges = session.recipe.edges

    def taken():
        return {(edges[place].source, edges[place].target) for place in session._parts.pictures.view().taken}

    session.goto(1)
    assert taken() == set()
    session.goto(2)
    assert taken() == {("plan", "search")}
    session.goto(9)
    assert ("write", "review") in taken()


def test_listening_nodes_of_other_recipes_have_reactions_too():
    run = listening()
    assert (seen(run).counts, seen(run).last_delivery) == ({}, None)
    run.emit("hello").run()
    assert seen(run).deliveries == {("hello", "greet"): 1, ("hello", "log"): 1}


def test_without_listeners_there_are_no_reactions():
    from tests.session.small_sessions import counting, session

    assert seen(session(counting(), {"n": 0})) is None
