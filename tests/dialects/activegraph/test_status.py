from __future__ import annotations

from decimal import Decimal
from types import MappingProxyType

import pytest

from agentnb.dialects.activegraph.parts.status import KNOWN_LIMITS, Timer, describe_behavior, make_snapshot, to_payload
from tests.dialects.activegraph.judge import assert_same_signatures
from tests.dialects.activegraph.runtimes import on, on_relation, runtime, tell


def test_a_snapshot_has_every_limit_and_cents_do_not_drift():
    used = {"max_events": 3, "max_cost_usd": Decimal("0.1") * 3}
    snapshot = make_snapshot(used, {"max_cost_usd": Decimal("0.30")}, "max_cost_usd")
    assert tuple(snapshot.used) == tuple(snapshot.limits) == KNOWN_LIMITS
    assert (snapshot.used["max_events"], snapshot.limits["max_events"]) == (3.0, None)
    assert (snapshot.cost_used_usd, snapshot.cost_limit_usd, snapshot.exhausted_by) == ("0.3", "0.30", "max_cost_usd")
    assert isinstance(snapshot.used, MappingProxyType)
    assert to_payload(snapshot)["limits"]["max_cost_usd"] == 0.3


def test_a_behavior_has_a_short_repr():
    listener = on("go", pattern="(a:book)", activate_after=2)(lambda event, graph, ctx: None)
    behavior = describe_behavior(listener)
    assert (behavior.kind, behavior.subscribed_to) == ("function", ("go",))
    assert (behavior.pattern, behavior.activate_after) == ("(a:book)", 2)


def test_a_timer_reports_how_many_events_it_waits_for():
    assert Timer("later", "evt_001", 5, 3).missing == 2

    @on("go", activate_after=3)
    def later(event, graph, ctx):
        graph.emit("late", {})

    team = runtime(later)
    tell(team, "go")
    tell(team, "other")
    team.run_until_idle()
    (timer,) = team.status().timers
    assert (timer.behavior, timer.missing) == ("later", 2)


def test_a_delivery_scheduled_for_no_known_event_waits_from_the_beginning():
    team = runtime(on("go")(lambda event, graph, ctx: None))
    tell(team, "go")
    tell(team, "behavior.scheduled", behavior="later", event_id="evt_900", activate_after=5)
    team.run_until_idle()
    assert team.status().timers == (Timer("later", "evt_900", 5, 1),)


@pytest.mark.parametrize("budget", [None, {"max_behavior_calls": 5}, {"max_behavior_calls": 8}, {"max_events": 5}])
def test_waiting_events_are_counted_alike_whatever_kind_of_behavior_is_delayed(budget):
    def note(*given):
        given[-2].emit("noted", {})

    def count(delayed):
        """Return the status of a team after each step."""
        team = runtime(on("go", "tick", "noted")(lambda event, graph, ctx: None), delayed, budget=budget)
        team.graph.add_relation("a#1", "a#2", "next")
        for type_ in ("go", "tick", "go", "tick", "tick", "tick"):
            tell(team, type_, of="a#1")
        statuses = [team.status(0)]
        while team.session.step():
            statuses.append(team.status(0))
        return [(each.state, each.queue_depth, each.budget.used["max_events"], each.timers) for each in statuses]

    expected = count(on("go", activate_after=2)(note))
    assert [timers for *_, timers in expected if timers]
    assert count(on_relation("next", "go", activate_after=2)(note)) == expected


def test_a_failure_is_read_from_the_log_alone():
    @on("go")
    def fails(event, graph, ctx):
        raise KeyError("book")

    team = runtime(fails)
    event = tell(team, "go")
    team.run_until_idle()
    (failure,) = team.errors
    failure_event = next(each for each in team.graph.events if each.type == "behavior.failed")
    assert failure == ("fails", event.id, None, "KeyError", "'book'", failure_event.id)


@pytest.mark.parametrize(("recent", "shown"), [(0, 0), (1, 1), (99, 4)])
def test_a_status_shows_the_last_events_and_does_not_change(recent, shown):
    team = runtime(on("go")(lambda event, graph, ctx: None))
    tell(team, "go")
    team.run_until_idle()
    status = team.status(recent)
    assert (len(status.recent_events), status.events_processed, status.state) == (shown, 4, "idle")
    with pytest.raises(AttributeError):
        status.state = "running"
    with pytest.raises(TypeError):
        status.budget.used["max_events"] = 7
    tell(team, "go")
    assert (status.queue_depth, team.status().queue_depth) == (0, 1)


def test_signatures_are_those_of_the_package():
    assert_same_signatures("BehaviorFailure", "RunQuantumResult", "RuntimeStatus", "Runtime.errors", "Runtime.status")
