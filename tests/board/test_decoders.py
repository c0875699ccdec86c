from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel

from agentnb.board.codec import TAG, decode, encode
from agentnb.board.decoders import Record, encode_zone, find_class, get_fields, name_of
from agentnb.board.masking import to_display
from agentnb.board.paths import get_at
from agentnb.board.values import freeze, thaw
from agentnb.secrets import MASK


class Shape(BaseModel):
    n: int


@dataclass
class Row:
    n: int


class Outer:
    class Inner:
        pass


def test_a_class_is_found_by_its_written_name():
    assert find_class(name_of(Outer.Inner)) is Outer.Inner


@pytest.mark.parametrize("name", ["no_such_module:X", f"{__name__}:Nobody", "os:system"])
def test_a_name_that_is_not_a_class_is_not_found(name):
    with pytest.raises(KeyError):
        find_class(name)


def test_only_a_named_time_zone_is_stored_by_name():
    assert encode_zone(ZoneInfo("Europe/Berlin")) == "Europe/Berlin"
    assert encode_zone(UTC) is None
    assert encode_zone(None) is None


def test_a_record_shows_its_tag_its_class_and_its_value_masked():
    record = Record("thing", {"$": "thing", "type": "a:B", "v": {"api_key": "s3cret", "n": 1}})
    assert repr(record) == "<thing a:B: {'api_key': '********', 'n': 1}>"


def test_the_fields_of_an_unknown_class_can_be_read():
    inner = {"$": "dataclass", "type": "gone:In", "v": {"n": 1}}
    outer = decode({"$": "model", "type": "gone:Out", "v": {"items": [inner], "api_key": "s3cret"}, "extra": {"x": 2}})
    assert isinstance(outer, Record)
    frozen = freeze(outer)
    assert get_fields(frozen)["x"] == 2
    assert to_display(frozen) == {"items": [{"n": 1}], "api_key": MASK, "x": 2}
    assert get_at(frozen, ("items", 0, "n")) == 1


def test_any_other_unknown_type_stays_a_record():
    frozen = freeze(Record("enum", {"$": "enum", "type": "gone:E", "name": "A", "v": 1}))
    assert get_fields(frozen) is None
    assert to_display(frozen).tag == "enum"
    assert get_fields(freeze(Record("dataclass", {"$": "dataclass"}))) is None


@pytest.mark.parametrize("word", ["v", "private", "extra"])
@pytest.mark.parametrize("damage", [[], None, "x", 5])
@pytest.mark.parametrize("tag", ["model", "dataclass"])
def test_damaged_attributes_are_shown_as_a_record(word, damage, tag):
    cls = {"model": "Shape", "dataclass": "Row"}[tag]
    document = {TAG: tag, "type": f"{__name__}:{cls}", "v": {"n": 1}, "set": [], word: damage}
    frozen = freeze(decode(document))
    assert isinstance(thaw(frozen), Record)
    assert get_fields(frozen) is None
    assert to_display(frozen).document == document
    assert encode(frozen) == document


def test_extra_fields_of_a_model_are_fields_too():
    class Open(BaseModel, extra="allow"):
        n: int

    assert to_display(freeze(Open(n=1, more=[2]))) == {"n": 1, "more": [2]}


@pytest.mark.parametrize("text", ["1e99999999", "1e-99999999", "1/0", "x"])
def test_a_fraction_in_a_damaged_file_costs_nothing(text):
    document = {TAG: "fraction", "v": text}
    assert isinstance(decode(document), Record)
    assert decode({TAG: "fraction", "v": "-3/4"}) == Fraction(-3, 4)
