from __future__ import annotations

from agentnb.dialects import polaris
from agentnb.session.schedules import Schedule


def test_every_schedule_is_exported():
    for schedule in Schedule:
        assert getattr(polaris, schedule) is schedule


def test_all_exported_names_exist():
    for name in polaris.__all__:
        assert getattr(polaris, name) is not None
