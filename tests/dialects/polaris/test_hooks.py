from __future__ import annotations

from agentnb.dialects import polaris
from agentnb.session.schedules import Schedule


def test_every_schedule_has_its_name_at_the_door():
    for schedule in Schedule:
        assert getattr(polaris, schedule) is schedule


def test_all_that_the_door_names_is_there():
    for name in polaris.__all__:
        assert getattr(polaris, name) is not None
