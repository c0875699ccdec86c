from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum

import numpy as np
import pandas as pd
import pytest

from agentnb.board.codec import Record, decode, encode
from agentnb.board.values import ABSENT, Opaque, freeze
from agentnb.engine.replay.equality import are_messages_equal, iter_innermost_differences
from agentnb.secrets import MASK, hide

Pair = namedtuple("Pair", "one other")  # noqa: PYI024  (a plain one)


class Color(Enum):
    RED = 1


class Word(str):
    __slots__ = ()


@dataclass
class Point:
    x: int
    y: int


@dataclass
class Other:
    x: int
    y: int


class Thing:
    pass


def found(one, other):
    return [(row.path, row.recorded, row.replayed, row.sure) for row in iter_innermost_differences(one, other)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (None, None),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (float("nan"), float("nan")),
        ({float("nan"): [1]}, {float("nan"): [1]}),
        ({(1, frozenset({float("nan")})): 1, "a": 2}, {(1, frozenset({float("nan")})): 1, "a": 2}),
        ({float("nan")}, {float("nan")}),
        (frozenset({Decimal("NaN")}), frozenset({Decimal("NaN")})),
        ({np.float32("nan")}, {np.float32("nan")}),
        ({complex("nan")}, {complex("nan")}),
        ((1, [2]), (1, [2])),
        ({1, 2}, {2, 1}),
        (frozenset({1}), frozenset({1})),
        (Decimal("1.0"), Decimal("1.0")),
        (Decimal("sNaN"), Decimal("sNaN")),
        (b"x", b"x"),
        (datetime(2000, 1, 1, tzinfo=UTC), datetime(2000, 1, 1, tzinfo=UTC)),
        (Color.RED, Color.RED),
        (Pair(1, [2]), Pair(1, [2])),
        (Point(1, 2), Point(1, 2)),
        (Word("x"), "x"),
        (np.float64(0.5), 0.5),
        (np.array([1.0, float("nan")]), np.array([1.0, float("nan")])),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1]})),
        (pd.Series([Word("x"), [Word("y")]], dtype=object), pd.Series(["x", ["y"]], dtype=object)),
    ],
    ids=repr,
)
def test_equal_values_have_no_difference(one, other):
    assert found(freeze(one), freeze(other)) == []
    assert found(one, other) == []  # as the values of conditions come


@pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        (1, 2, ()),
        (1, True, ()),
        (0, False, ()),
        (1, 1.0, ()),
        (1, "1", ()),
        (None, 0, ()),
        (ABSENT, None, ()),
        (Decimal(1), 1, ()),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ("a", "b")),
        ({"a": 1}, {}, ("a",)),
        ({}, {"a": None}, ("a",)),
        ([1, 2], [1, 3], (1,)),
        ([1, 2], [1], (1,)),
        ([1], (1,), ()),
        ([1], {"0": 1}, ()),
        ((1, {"a": 1}), (1, {"a": 2}), (1, "a")),
        ({1}, {2}, ()),
        ({float("nan")}, {1.0}, ()),
        ({float("nan")}, {Decimal("NaN")}, ()),
        (Point(1, 2), Point(1, 3), ("y",)),
        (Point(1, 2), Other(1, 2), ()),
        (Point(1, 2), {"x": 1, "y": 2}, ()),
        (np.array([1]), np.array([2]), ()),
        (np.array([1]), np.array([1.0]), ()),
        (b"x", "x", ()),
        (float("nan"), 1.0, ()),
        (1.0, float("nan"), ()),
        (np.array([float("nan")]), np.array([1.0]), ()),
    ],
    ids=repr,
)
def test_the_innermost_differing_path_is_named(one, other, path):
    rows = list(iter_innermost_differences(freeze(one), freeze(other)))
    assert [(row.path, row.sure) for row in rows] == [(path, True)]


def test_every_differing_path_is_reported_in_order():
    one, other = freeze({"a": 1, "b": [1, 2], "c": 3}), freeze({"a": 2, "b": [1, 4, 5], "d": 3})
    assert [row.path for row in iter_innermost_differences(one, other)] == [("a",), ("b", 1), ("b", 2), ("c",), ("d",)]


def test_a_value_read_back_from_json_is_equal():
    values = {"p": Point(1, 2), "c": Color.RED, "n": Decimal("0.1"), "t": (1, 2), "s": {1}, "a": np.arange(3)}
    frozen = freeze(values)
    assert found(freeze(decode(encode(frozen))), frozen) == []


def test_a_value_of_an_unknown_class_is_equal_to_its_record():
    known = freeze(Point(1, 2))
    document = encode(known)
    read = freeze(decode(document | {"type": "gone.module:Point"}))
    assert [row.sure for row in iter_innermost_differences(read, known)] == [True]  # it was of another class
    unknown = freeze(Record("dataclass", document))
    assert found(unknown, known) == found(known, unknown) == []
    assert [row.path for row in iter_innermost_differences(unknown, freeze(Point(1, 3)))] == [()]


def test_a_mask_equals_any_present_value():
    assert found(MASK, MASK) == []
    assert found({"a": MASK}, {"a": "secret"}) == [(("a",), MASK, "secret", False)]
    assert found(7, MASK) == [((), 7, MASK, False)]
    assert found(MASK, ABSENT) == [((), MASK, ABSENT, True)]


def test_a_text_with_a_masked_secret_equals_the_text_with_the_secret():
    hide("s3cret-of-alike")
    assert found("Bearer ********", "Bearer s3cret-of-alike") == []
    assert found("Bearer never-heard-of-it", "Bearer ********") == []
    assert len(found("Bearer ********", "Basic s3cret-of-alike")) == 1
    assert len(found("Bearer s3cret-of-alike", "Bearer s3cret-of-another")) == 1


def test_objects_by_reference_are_not_compared_across_runs():
    reference = Thing()
    assert found(Opaque(reference), Opaque(reference)) == []
    assert [row.sure for row in iter_innermost_differences(Opaque(Thing()), Opaque(Thing()))] == [False]
    assert [row.sure for row in iter_innermost_differences(Opaque(Thing()), Opaque(len))] == [True]
    # A condition's value is as it was returned
    assert [row.sure for row in iter_innermost_differences(Thing(), Thing())] == [False]
    assert [row.sure for row in iter_innermost_differences(Thing(), Point(1, 2))] == [True]


def test_a_value_that_cannot_be_compared_is_not_equal():
    class Odd:
        def __eq__(self, other):
            raise TypeError("never")

        __hash__ = None

    assert [row.sure for row in iter_innermost_differences(Opaque(Odd()), Opaque(Odd()))] == [False]


def test_addresses_of_objects_in_messages_are_ignored():
    assert are_messages_equal("<Thing at 0x7f001122> is not a number", "<Thing at 0x7faabbcc> is not a number")
    assert not are_messages_equal("<Thing at 0x7f001122>", "<Other at 0x7f001122>")
    assert not are_messages_equal("0x1", "0x2")
