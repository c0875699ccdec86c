"""Clocks that tell whole seconds, and ids that count on after those of a log."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

import pytest

from agentnb.dialects.activegraph import Clock, FrozenClock, Graph, IDGen, TickingClock
from agentnb.dialects.activegraph.parts.clocks import format_time, parse_time, to_engine_clock
from tests.dialects.activegraph.judge import assert_same_signatures
from tests.dialects.activegraph.runtimes import runtime


def test_every_clock_returns_utc_in_whole_seconds():
    times = [Clock().now(), FrozenClock().now(), TickingClock().now(), FrozenClock("2026-01-01T01:00:00.5+01:00").now()]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", each) for each in times)
    assert times[-1] == "2026-01-01T00:00:00Z"


def test_a_ticking_clock_advances_with_each_reading_and_a_frozen_one_does_not():
    ticking, frozen = TickingClock("2026-01-01T00:00:58Z", step_seconds=2), FrozenClock("2026-01-01T00:00:58Z")
    assert [ticking.now(), ticking.now()] == ["2026-01-01T00:00:58Z", "2026-01-01T00:01:00Z"]
    assert frozen.now() == frozen.now()


def test_an_object_reads_the_clock_for_its_provenance_and_then_for_its_event():
    graph = Graph(clock=TickingClock("2026-01-01T00:00:00Z"))
    item = graph.add_object("task", {})
    assert (item.provenance["timestamp"], graph.events[0].timestamp) == ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z")


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01"])
def test_an_invalid_time_counts_as_missing(text):
    assert format_time(parse_time(text)) == ""


def test_ids_are_counted_by_kind_and_those_of_objects_together():
    ids = IDGen()
    assert [ids.event(), ids.event(), ids.relation(), ids.patch(), ids.frame(), ids.approval()] == [
        "evt_001",
        "evt_002",
        "rel_001",
        "patch_001",
        "frame_001",
        "approval_001",
    ]
    assert [ids.object("task"), ids.object("claim"), ids.object("task")] == ["task#1", "claim#2", "task#3"]
    assert re.fullmatch(r"[0-9A-HJKMNP-TV-Z]{26}", ids.run())


def test_ids_chosen_by_a_program_are_not_counted():
    ids = IDGen()
    for id_ in ("task#2", "7", "task#none", "#", "none"):
        ids.saw_in("object.created", {"id": id_})
    assert ids.object("task") == "task#3"


def test_ids_of_runs_hold_the_time_in_milliseconds():
    before, result, after = time.time(), IDGen().run(), time.time()
    number = 0
    for letter in result:
        number = number << 5 | "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(letter)
    assert int(before * 1000) <= number >> 80 <= int(after * 1000)


def test_ids_continue_after_the_highest_of_a_log_and_never_go_back():
    team = runtime()
    one = team.graph.add_object("task", {})
    team.graph.add_relation(one.id, one.id, "next")
    team.graph.patch_object(one.id, {"n": 1})
    ids = IDGen()
    ids.reseed_from_events(team.graph.events)
    assert (ids.event(), ids.object("claim"), ids.relation(), ids.patch()) == (
        "evt_004",
        "claim#2",
        "rel_002",
        "patch_002",
    )
    ids.reseed_from_events(team.graph.events)
    assert ids.event() == "evt_005"


def test_a_user_clock_is_read_only_for_times_that_behaviors_see():
    class Own:
        def __init__(self) -> None:
            self.read = 0

        def now(self) -> str:
            self.read += 1
            return f"2026-01-01T00:00:0{self.read}Z"

    own = Own()
    clock = to_engine_clock(own)
    before = datetime.now(UTC)
    assert before <= clock.peek() <= datetime.now(UTC)  # it has not been read yet
    assert (own.read, format_time(clock.now()), format_time(clock.peek())) == (0, *["2026-01-01T00:00:01Z"] * 2)
    assert own.read == 1


def test_signatures_are_those_of_the_package():
    assert_same_signatures(
        "IDGen",
        "Clock",
        "FrozenClock",
        "TickingClock",
        "IDGen.event",
        "IDGen.object",
        "IDGen.relation",
        "IDGen.patch",
        "IDGen.frame",
        "IDGen.run",
        "IDGen.reseed_from_events",
    )
