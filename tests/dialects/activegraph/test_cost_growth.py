"""What is done once a delivery costs no more in a long run than in a short one. Counted, not timed.

Counted are the events of the log that are looked at, and the functions that are called, Python's own among them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from agentnb.dialects.activegraph import Runtime
from tests.dialects.activegraph.runtimes import on, on_relation, runtime, tell

SHORT = 150  # deliveries: more than a default view shows events
LIMITS = {"max_events": 9999, "max_behavior_calls": 9999, "max_patches": 9999, "max_depth": 9999, "max_seconds": 9999}


class Looked(list[Any]):
    """A log that counts how many of its events are looked at."""

    count = 0

    def __iter__(self):
        for event in super().__iter__():
            self.count += 1
            yield event

    def __reversed__(self):
        for event in super().__reversed__():
            self.count += 1
            yield event

    def __getitem__(self, place):
        part = super().__getitem__(place)
        self.count += len(part) if isinstance(place, slice) else 1
        return part


def work_of(team: Runtime, act: Callable[[], Any]) -> int:
    """Return how many events an act looks at, and how many functions it calls."""
    history, calls = team.session._parts.run.history, 0

    def count(_frame: Any, what: str, _arg: Any) -> None:
        nonlocal calls
        calls += what in ("call", "c_call")

    log = history.events = Looked(history.events)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(before)
    count_before = log.count
    history.events = list(log)
    return count_before + calls


def hopping(hops: int, view: dict[str, Any] | None = None, budget: dict[str, Any] | None = None) -> Runtime:
    """Return a runtime that has hopped so often; one delivery in it has failed. The next hop waits."""

    @on("hop", view_spec=view)
    def hop(event, graph, ctx):
        shown = ctx.view.events()
        graph.emit("hop", {"shown": len(shown), "last": shown[-1].id if shown else None})

    @on("once")
    def fails(event, graph, ctx):
        raise ValueError("once")

    team = runtime(hop, fails, budget=budget)
    tell(team, "once")
    tell(team, "hop")
    team.session.run(max_steps=hops)
    return team


def step(team: Runtime) -> Any:
    return team.session.run(max_steps=3)


def quantum(team: Runtime) -> Any:
    return team.run_quantum(max_queue_events=2)


def status(team: Runtime) -> Any:
    return team.status()


def errors(team: Runtime) -> Any:
    (failure,) = team.errors
    return failure


def outside(team: Runtime) -> Any:
    return tell(team, "nobody.listens")


def made(team: Runtime) -> Any:
    return team.graph.add_object("task", {})


LEAN = {"include_types": ["task"], "recent_events": 0}


@pytest.mark.parametrize(("view", "budget"), [(None, None), (LEAN, None), (None, LIMITS)],
                         ids=["default views", "lean views", "limits"])  # fmt: skip
def test_a_long_run_costs_a_delivery_no_more_than_a_short_one(view, budget):
    costs: dict[str, list[int]] = {}
    for hops in (SHORT, 2 * SHORT, 4 * SHORT):
        team = hopping(hops, view, budget)
        for action in (step, quantum, status, errors, outside, made):
            action(team)  # what is worked out once for all is worked out
            step(team)
            costs.setdefault(action.__name__, []).append(work_of(team, lambda act=action, team=team: act(team)))
    assert [name for name, (short, *longer) in costs.items() if max(longer) > short * 1.1 + 20] == [], costs


def test_a_relation_is_found_by_its_ends_without_a_scan():
    costs = []
    for many in (50, 100, 200):

        @on_relation("next", "look")
        def follows(relation, event, graph, ctx):
            graph.emit("followed", {"relation": relation.id})

        team = runtime(follows)
        for number in range(many):
            team.graph.add_relation(f"task#{number}", f"task#{number + 1}", "next")
        team.run_until_idle()
        tell(team, "look", of="task#7")
        costs.append(work_of(team, lambda team=team: step(team)))
        assert [event.payload for event in team.graph.events if event.type == "followed"] == [
            {"relation": "rel_007"},
            {"relation": "rel_008"},
        ]
    assert max(costs) <= costs[0] * 1.1 + 20, costs


def test_the_counter_notices_a_scan_of_the_whole_log():
    costs = []
    for hops in (SHORT, 2 * SHORT):
        team = hopping(hops)
        costs.append(work_of(team, lambda team=team: team.graph.events))
    assert costs[1] > 1.8 * costs[0]
