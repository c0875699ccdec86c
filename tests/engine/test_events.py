from __future__ import annotations

from agentnb.clock import TickingClock
from agentnb.engine.core.event_queue import emit_from_outside
from agentnb.engine.core.events import get_visible_events, make_event, restore_event, stamp_events
from agentnb.engine.core.time_travel import goto, open_tip
from tests.engine.graph_shapes import begun, path, step
from tests.engine.small_runs import one, run_of
from tests.engine.test_scheduler import nothing
from tests.session.small_sessions import graph, session


def emits(kind):
    def node(work):
        work.emit(kind, {"of": work.node.id})

    return node


def test_events_are_numbered_in_one_sequence():
    run = run_of(emits("a"), nothing, emits("b"))
    emit_from_outside(run, "start", 1)
    for _ in range(3):
        one(run)
    events = [(event.seq, event.id, event.type, event.step, event.at, event.actor) for event in get_visible_events(run)]
    assert events == [
        (1, "evt_001", "start", None, 0, "user"),
        (2, "evt_002", "a", 1, 1, "n0"),
        (3, "evt_003", "b", 3, 3, "n2"),
    ]


def test_later_events_are_invisible_from_the_past_and_keep_their_numbers():
    run = run_of(emits("a"), emits("b"))
    one(run)
    one(run)
    goto(run, 1)
    assert [event.type for event in get_visible_events(run)] == ["a"]
    open_tip(run)
    one(run)
    assert [(event.id, event.type) for event in get_visible_events(run)] == [("evt_001", "a"), ("evt_002", "b")]


def test_a_fork_has_the_events_before_and_its_own():
    run = session(graph("a", "b"))
    run.step()
    run.emit("ours")
    new = run.fork()
    run.emit("mine")
    new.emit("yours")
    assert [event.type for event in get_visible_events(run._parts.run)] == ["ours", "mine"]
    assert [event.type for event in get_visible_events(new._parts.run)] == ["ours", "yours"]


def test_the_visible_time_ticks_once_an_event():
    run = run_of(emits("a"))
    run.clock = TickingClock()
    one(run)
    emit_from_outside(run, "b", None)
    assert [event.time.second for event in get_visible_events(run)] == [0, 1]


def test_the_payload_is_stored_as_it_was():
    payload = {"list": [1]}
    run = run_of(nothing)
    event = emit_from_outside(run, "x", payload)
    payload["list"].append(2)
    assert event.payload == {"list": [1]}


def test_deliveries_are_queued_after_the_waiting_ones():
    run = begun("reactive")
    step(run)
    emit_from_outside(run, "hello", "eve")
    while run.frontier():
        step(run)
    assert path(run)[:4] == ["greet error", "count", "greet error", "count"]
    assert sum(name == "greet error" for name in path(run)) == 3


def test_the_cause_is_the_event_that_triggered_the_node():
    run = begun("reactive")
    while run.frontier():
        step(run)
    causes = {event.id: event.cause for event in get_visible_events(run)}
    assert causes == {"evt_001": None, "evt_002": None, "evt_003": "evt_001", "evt_004": "evt_002"}


def test_branches_that_emit_before_one_of_them_is_committed_have_numbers_of_their_own():
    from agentnb.recipe.model import Node, Region
    from tests.engine.graph_shapes import Meeting, Shape, go_on, leaf

    meeting = Meeting()

    def meets(word, other):
        async def node(work):
            await work.loop()
            work.emit(word)
            meeting.begun.add(word)
            await meeting.wait_for(other)
            work.emit(f"{word} again")

        return node

    nodes = [Node("both", "nest", bodies=("one", "two"), params={"policy": "child"}),
             leaf("a", meets("a", "b"), scope="one"), leaf("b", meets("b", "a"), scope="two")]  # fmt: skip
    regions = [Region("one", ("a",), owner="both"), Region("two", ("b",), owner="both")]
    run = Shape(nodes, [], ("both",), [], {}, regions).run()
    go_on(run)
    assert sorted(event.seq for event in get_visible_events(run)) == [1, 2, 3, 4]
    assert emit_from_outside(run, "later", 1).seq == 5


def test_default_ids_and_times_follow_from_the_number():
    run = run_of(lambda work: work.emit("first") and None, lambda work: None)
    event = make_event(run, None, "x", {"a": [1]}, None, {})
    assert (event.seq, event.id, event.actor, event.cause, event.at, event.step) == (
        1,
        "evt_001",
        "user",
        None,
        0,
        None,
    )
    one(run)
    assert make_event(run, None, "x", None, "ann", {}).id == "evt_002"


def test_given_ids_and_times_are_used():
    run = run_of(lambda work: None)
    time = run.clock.now()
    event = make_event(run, None, "x", None, "ann", {"id": "mine", "cause": "evt_9", "time": time, "mark": "m"})
    assert (event.seq, event.id, event.actor, event.cause, event.time, event.mark) == (
        1,
        "mine",
        "ann",
        "evt_9",
        time,
        "m",
    )


def test_numbers_continue_after_the_last_event_of_the_node():
    seen = []

    def emits(work):
        seen.extend(work.emit(type_) for type_ in ("a", "b", "c"))

    run = run_of(emits, emits)
    one(run)
    one(run)
    assert [event.seq for event in seen] == [1, 2, 3, 4, 5, 6]
    assert {event.actor for event in seen} == {event.actor for event in run.events()}
    assert [(event.seq, event.step, event.at) for event in run.events()] == [
        (seq, step, step) for seq, step in zip(range(1, 7), (1, 1, 1, 2, 2, 2), strict=True)
    ]


def test_a_committed_event_differs_in_its_step_alone():
    run = run_of(lambda work: None)
    event = make_event(run, None, "x", {"a": 1}, "ann", {"mark": "m"})
    (stamped,) = stamp_events([event], 7)
    assert stamped == event._replace(step=7, at=7)
    assert type(stamped) is type(event)


def test_an_event_emitted_again_keeps_its_number_id_and_time():
    event = make_event(run_of(lambda work: None), None, "x", None, "ann", {})
    assert restore_event(event, None, {}) is event
    restored = restore_event(event, "bob", {"cause": "evt_9", "id": "other", "time": None, "mark": "m"})
    assert restored == event._replace(actor="bob", cause="evt_9", mark="m")
