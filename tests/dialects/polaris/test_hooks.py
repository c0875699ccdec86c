from __future__ import annotations

from agentnb.dialects import polaris
from agentnb.dialects.polaris.parts import hooks
from agentnb.session.schedules import Schedule


def test_every_schedule_has_its_name_here_and_at_the_door():
    for schedule in Schedule:
        assert getattr(hooks, schedule) is schedule
        assert getattr(polaris, schedule) is schedule


def test_all_that_the_door_names_is_there():
    for name in polaris.__all__:
        assert getattr(polaris, name) is not None
