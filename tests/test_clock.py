"""test_clock: what a run takes for the time is an argument."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from agentnb.clock import Clock, FrozenClock, TickingClock

NEW_YEAR = datetime(2000, 1, 1, tzinfo=UTC)


def test_the_wall_clock_tells_utc_and_its_nanoseconds_never_go_back():
    clock = Clock()
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(minutes=1)
    readings = [clock.ns() for _ in range(1000)]
    assert readings == sorted(readings)
    assert abs(readings[0] / 1e9 - datetime.now(UTC).timestamp()) < 60


def test_a_frozen_clock_stands_and_sleeps_no_time():
    clock = FrozenClock("2000-01-01T00:00:00Z")
    asyncio.run(clock.sleep(10_000))
    assert (clock.now(), clock.now(), clock.ns()) == (NEW_YEAR, NEW_YEAR, 946_684_800_000_000_000)


def test_a_time_without_a_zone_is_utc():
    assert FrozenClock(datetime(2000, 1, 1)).now() == NEW_YEAR  # noqa: DTZ001  (that is what is tried)


def test_a_ticking_clock_counts_the_times_it_is_asked_and_its_nanoseconds_do_not():
    clock = TickingClock(NEW_YEAR, step_seconds=2)
    assert [clock.now(), clock.now()] == [NEW_YEAR, NEW_YEAR + timedelta(seconds=2)]
    assert clock.ns() == clock.ns() == 946_684_804_000_000_000
