from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest

from agentnb.clock import Clock, FrozenClock, TickingClock


def test_the_wall_clock_never_goes_back_and_returns_utc():
    clock = Clock()
    times = [clock.ns() for _ in range(100)]
    assert times == sorted(times)
    assert clock.now().tzinfo is UTC
    assert abs(clock.ns() / 1e9 - clock.now().timestamp()) < 60
    asyncio.run(clock.sleep(0))


@pytest.mark.parametrize(
    "at",
    [
        "2024-05-01T12:00:00Z",
        "2024-05-01T12:00:00",
        "2024-05-01T14:00:00+02:00",
        datetime(2024, 5, 1, 12, tzinfo=UTC),
        datetime(2024, 5, 1, 14, tzinfo=timezone(timedelta(hours=2))),
    ],
)
def test_a_frozen_clock_stands_still(at):
    clock = FrozenClock(at)
    asyncio.run(clock.sleep(10**9))
    assert clock.now() == clock.now() == datetime(2024, 5, 1, 12, tzinfo=UTC)
    assert clock.ns() == clock.ns() == int(clock.now().timestamp()) * 10**9


def test_a_ticking_clock_counts_its_readings():
    clock = TickingClock("2024-05-01T12:00:00Z", step_seconds=0.5)
    assert [clock.now().isoformat(timespec="milliseconds") for _ in range(3)] == [
        "2024-05-01T12:00:00.000+00:00",
        "2024-05-01T12:00:00.500+00:00",
        "2024-05-01T12:00:01.000+00:00",
    ]
    before = clock.ns()
    assert (clock.ns(), clock.ns() - before) == (before, 0)
    clock.now()
    assert clock.ns() - before == 500_000_000
