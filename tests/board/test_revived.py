from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest

from agentnb.board.revived import Record, class_of, name_of, zone_of


class Outer:
    class Inner:
        pass


def test_a_class_is_found_by_the_name_it_is_written_with():
    assert class_of(name_of(Outer.Inner)) is Outer.Inner


@pytest.mark.parametrize("name", ["no_such_module:X", f"{__name__}:Nobody", "os:system"])
def test_what_is_no_class_here_is_not_found(name):
    with pytest.raises(KeyError):
        class_of(name)


def test_only_a_zone_with_a_name_is_named():
    assert zone_of(ZoneInfo("Europe/Berlin")) == "Europe/Berlin"
    assert zone_of(UTC) is None
    assert zone_of(None) is None


def test_a_record_shows_its_tag_its_class_and_its_value_masked():
    record = Record("thing", {"$": "thing", "type": "a:B", "v": {"api_key": "s3cret", "n": 1}})
    assert repr(record) == "<thing a:B: {'api_key': '********', 'n': 1}>"
