"""What a log's words become here."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agentnb.dialects.activegraph.parts.package_logs.records import make_event_error, parse_time


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T05:04:05+02:00", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("half past three", None),
        ("", None),
    ],
)
def test_a_valid_time_is_parsed(text, when):
    assert parse_time(text) == when


def test_a_broken_event_names_store_run_event_and_path():
    (problem,) = make_event_error("sqlite:///a.db", "r1", "evt_004", "payload.object", "it is missing").problems
    assert problem.where == "sqlite:///a.db, run 'r1', event evt_004, payload.object"
    assert (problem.code, problem.why) == ("L463", "it is missing")
