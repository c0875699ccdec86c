"""Which events belong to one step, also where a log was cut in the middle of one."""

from __future__ import annotations

from agentnb.dialects.activegraph.parts.package_logs.deliveries import find_deliveries
from agentnb.dialects.activegraph.parts.package_logs.reading import read_log
from agentnb.dialects.activegraph.parts.package_logs.records import LogEvent


def event(id, type, actor="runtime", cause=None, **payload):
    return LogEvent(id, type, actor, payload, None, cause, "")


def started(id, behavior, trigger):
    return event(id, "behavior.started", cause=trigger, behavior=behavior, event_id=trigger)


def completed(id, behavior, trigger):
    return event(id, "behavior.completed", cause=trigger, behavior=behavior, event_id=trigger)


def to_rows(found):
    return [(each.behavior, each.kind, each.trigger, each.events, each.end) for each in found]


def test_a_delivery_goes_from_its_start_to_its_end(team_path):
    deliveries = find_deliveries(read_log(team_path, "run-team").events)
    assert to_rows(deliveries) == [
        ("planner", "behavior", "evt_001", [1, 2, 3, 4, 5], 5),
        ("worker", "behavior", "evt_003", [6, 7, 8, 9], 9),
        ("worker", "behavior", "evt_004", [10, 11], 11),
        ("unblock", "relation_behavior", "evt_009", [12, 13, 14], 14),
        ("breaks", "behavior", "evt_009", [15, 16, 17], 17),
        ("asks", "behavior", "evt_009", [18, 19, 20], 20),
        ("worker", "behavior", "evt_026", [31, 32], 32),
    ]


def test_waiting_deliveries_are_known_and_a_pattern_belongs_to_the_behavior_that_it_triggered(late_path):
    events = read_log(late_path).events
    deliveries = find_deliveries(events)
    assert [each.behavior for each in deliveries if each.delayed] == ["late"]
    (seen,) = (each for each in deliveries if each.behavior == "seen")
    assert [events[at].type for at in seen.events] == [
        "pattern.matched", "behavior.started", "object.created", "behavior.completed",
    ]  # fmt: skip


def test_only_a_pattern_belongs_to_the_delivery_that_begins_after_it():
    for type, first in [("pattern.matched", 1), ("behavior.scheduled", 2), ("behavior.rejected", 2)]:
        before = event("e2", type, cause="e1", behavior="a", event_id="e1")
        deliveries = find_deliveries([
            event("e1", "go", "user"), before, started("e3", "a", "e1"), completed("e4", "a", "e1")
        ])  # fmt: skip
        assert to_rows(deliveries) == [("a", "behavior", "e1", [*range(first, 4)], 3)], type


def test_an_incomplete_delivery_keeps_the_events_that_are_certainly_its_own():
    deliveries = find_deliveries([
        event("e1", "go", "user"),
        started("e2", "a", "e1"),
        event("e3", "made", "a", "e1"),
        event("e4", "tool.requested", "a", "e1"),
        event("e5", "go", "user"),
        event("e6", "made", "a", "e1"),
        started("e7", "a", "e5"),
        completed("e8", "a", "e5"),
    ])  # fmt: skip
    assert to_rows(deliveries) == [("a", "behavior", "e1", [1, 2, 3], None), ("a", "behavior", "e5", [6, 7], 7)]


def test_an_incomplete_delivery_keeps_what_the_package_records_in_it():
    own_types = ["llm.requested", "tool.responded", "embedding.requested", "approval.proposed", "context.read"]
    matched = event("e2", "pattern.matched", behavior="a", event_id="e1")
    inside = [event(f"i{at}", type) for at, type in enumerate(own_types)]
    for foreign in ("runtime.idle", "pack.loaded", "approvals"):
        events = [event("e1", "go", "user"), matched, started("e3", "a", "e1"), *inside, event("e4", foreign), *inside]
        deliveries = find_deliveries(events)
        assert to_rows(deliveries) == [("a", "behavior", "e1", [*range(1, 8)], None)], foreign


def test_a_delivery_rejected_before_it_started_is_a_step():
    refused = event("e2", "behavior.failed", behavior="a", event_id="e1", reason="budget.cost_exhausted")
    assert to_rows(find_deliveries([event("e1", "go", "user"), refused])) == [("a", "behavior", "e1", [1], 1)]


def test_a_delivery_rejected_during_another_is_a_step_and_cuts_the_other():
    refused = event("e3", "behavior.failed", behavior="b", event_id="e1", reason="budget.cost_exhausted")
    for other in (refused, event("e3", "behavior.failed", behavior="a", event_id="e0")):
        behavior, trigger = other.payload["behavior"], other.payload["event_id"]
        deliveries = find_deliveries(
            [event("e1", "go", "user"), started("e2", "a", "e1"), other, event("e4", "made", "a")]
        )
        assert to_rows(deliveries) == [("a", "behavior", "e1", [1], None), (behavior, "behavior", trigger, [2], 2)]


def test_a_log_without_deliveries_has_none():
    assert find_deliveries([event("e1", "go", "user")]) == []
    assert find_deliveries([]) == []


def test_a_pattern_that_triggered_another_behavior_belongs_to_no_delivery():
    matched = event("e2", "pattern.matched", behavior="b", event_id="e1")
    deliveries = find_deliveries(
        [event("e1", "go", "user"), matched, started("e3", "a", "e1"), completed("e4", "a", "e1")]
    )
    assert to_rows(deliveries) == [("a", "behavior", "e1", [2, 3], 3)]
