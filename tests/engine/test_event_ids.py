from __future__ import annotations

from agentnb.engine.core.event_ids import committed, numbered, retold
from tests.engine.making import one, run_of


def test_what_nobody_says_follows_from_the_number():
    run = run_of(lambda work: work.emit("first") and None, lambda work: None)
    event = numbered(run, None, "x", {"a": [1]}, None, {})
    assert (event.seq, event.id, event.actor, event.cause, event.at, event.step) == (
        1,
        "evt_001",
        "user",
        None,
        0,
        None,
    )
    one(run)
    assert numbered(run, None, "x", None, "ann", {}).id == "evt_002"


def test_what_is_said_stands_in_its_place():
    run = run_of(lambda work: None)
    time = run.clock.now()
    event = numbered(run, None, "x", None, "ann", {"id": "mine", "cause": "evt_9", "time": time, "mark": "m"})
    assert (event.seq, event.id, event.actor, event.cause, event.time, event.mark) == (
        1,
        "mine",
        "ann",
        "evt_9",
        time,
        "m",
    )


def test_a_node_numbers_on_after_its_own_last_one():
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
    event = numbered(run, None, "x", {"a": 1}, "ann", {"mark": "m"})
    (kept,) = committed([event], 7)
    assert kept == event._replace(step=7, at=7)
    assert type(kept) is type(event)


def test_what_is_told_once_more_keeps_its_number_id_and_time():
    event = numbered(run_of(lambda work: None), None, "x", None, "ann", {})
    assert retold(event, None, {}) is event
    again = retold(event, "bob", {"cause": "evt_9", "id": "other", "time": None, "mark": "m"})
    assert again == event._replace(actor="bob", cause="evt_9", mark="m")
