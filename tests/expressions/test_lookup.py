"""What lies at a path, and values as JSON."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import PurePosixPath
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agentnb.board.scopes import Board, Scope
from agentnb.board.values import freeze
from agentnb.expressions.lookup import (
    NOTHING,
    find_missing_prefix,
    get_value,
    has_json,
    is_number,
    is_simple,
    put,
    to_finite,
    to_json,
)
from agentnb.expressions.paths import resolve_path


def board(**keys):
    scope = Scope(0, "root")
    scope.data = {key: freeze(value) for key, value in keys.items()}
    return Board(scope)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ((), {"a": {"b": [10, {"c": None}]}, "d.e": 5, "d": {"e": 6}, "n": {1: "one"}, "s": "text"}),
        (("a", "b", "0"), 10),
        (("a", "b", "1", "c"), None),
        (("a", "b", "2"), NOTHING),
        (("a", "b", "-1"), NOTHING),
        (("d", "e"), 5),
        (("n", "1"), "one"),
        (("s", "0"), NOTHING),
        (("s", "upper"), NOTHING),
        (("a", "x", "y"), NOTHING),
        (("a", "b", "9" * 30), NOTHING),
    ],
)
def test_a_value_is_found_at_a_path(path, found):
    context = {"a": {"b": [10, {"c": None}]}, "d.e": 5, "d": {"e": 6}, "n": {1: "one"}, "s": "text"}
    assert get_value(context, path) == found


def test_whole_numbers_up_to_64_bits_are_found_as_keys():
    context = dict.fromkeys((0, 7, 2**63 - 1, 10**19), "found")
    assert [get_value(context, (str(number),)) for number in context] == ["found", "found", "found", NOTHING]


def test_the_board_is_read_by_paths_as_a_dict_is():
    values = {"a": {"b": [10, 20]}, "d.e": 5, "d": {"e": 6}}
    for path in [("a", "b", "1"), ("d", "e"), ("a", "x"), ("x",), ("a",)]:
        assert get_value(board(**values), path) == get_value(values, path)


def test_a_lookup_does_not_add_keys_to_a_defaultdict():
    held = defaultdict(dict, a=1)
    assert get_value(held, ("b", "c")) is NOTHING
    assert held == {"a": 1}


keys = st.text(alphabet="ab.", min_size=1, max_size=3)
trees = st.recursive(st.integers(), lambda inner: st.dictionaries(keys, inner, max_size=3), max_leaves=8)


@given(st.dictionaries(keys, trees, max_size=3), st.lists(st.sampled_from("ab"), min_size=1, max_size=4))
def test_a_dict_is_read_like_resolve_path(context, path):
    value = context
    for key in resolve_path(".".join(path), context):
        value = value.get(key, NOTHING) if isinstance(value, dict) else NOTHING
    assert get_value(context, path) == value


def test_the_first_missing_part_is_named():
    context = {"a": {"b": {"c": 1}}}
    assert find_missing_prefix(context, ("a", "x", "y")) == (("a", "x"), ["b"])
    assert find_missing_prefix(context, ("z",)) == (("z",), ["a"])
    assert find_missing_prefix(context, ("a", "b", "c", "d")) == (("a", "b", "c", "d"), [])
    assert find_missing_prefix(context, ("a", "b")) is None


def test_put_creates_the_missing_dicts():
    context = {}
    put(context, ("a", "b"), 1)
    put(context, ("a", "c"), 2)
    put(context, ("d",), 3)
    assert context == {"a": {"b": 1, "c": 2}, "d": 3}


class Color(Enum):
    RED = "red"


class Size(IntEnum):
    BIG = 3


@dataclass
class Point:
    x: int


class Model(BaseModel):
    y: int


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime(2020, 1, 2, 3, 4), '"2020-01-02T03:04:00"'),  # noqa: DTZ001 - as a recipe may hold it
        (date(2020, 1, 2), '"2020-01-02"'),
        (timedelta(minutes=1), "60.0"),
        (Decimal("1.5"), "1.5"),
        (Fraction(1, 2), "0.5"),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (PurePosixPath("a/b"), '"a/b"'),
        (Color.RED, '"red"'),
        (Size.BIG, "3"),
        (Point(1), '{"x": 1}'),
        (Model(y=2), '{"y": 2}'),
        (np.int64(4), "4"),
        (np.array([1, 2]), "[1, 2]"),
        ((1, 2), "[1, 2]"),
        ({1}, "[1]"),
        (range(2), "[0, 1]"),
        ({1: "a"}, '{"1": "a"}'),
    ],
)
def test_values_are_converted_to_json(value, text):
    assert to_json(value) == text


@pytest.mark.parametrize("value", [math.nan, object(), b"bytes", {(1, 2): 3}, Point, Decimal("nan")])
def test_values_without_a_json_form_are_described(value):
    with pytest.raises((TypeError, ValueError)):
        to_json(value)
    assert not has_json(value)


def test_a_value_that_is_too_large_is_shortened():
    largest = 1.7976931348623157e308
    held = {"a": [math.inf, -math.inf, 10**400, -(10**400), 5, True], "b": (1.5, "x")}
    assert to_finite(held) == {"a": [largest, -largest, largest, -largest, 5, True], "b": [1.5, "x"]}
    assert has_json(held)


@pytest.mark.parametrize("value", ["x", 5, -(2**63), 1.5, True, None])
def test_simple_values_are_recognized(value):
    assert is_simple(value)


@pytest.mark.parametrize("value", [2**63, math.inf, math.nan, [], {}, Size.BIG, Decimal(1)])
def test_other_values_are_not_simple(value):
    assert not is_simple(value)


def test_numbers_are_recognized():
    assert [is_number(value) for value in (1, 1.5, True, "1", None)] == [True, True, False, False, False]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_json_values_are_not_changed(value):
    assert json.loads(to_json(value)) == value
