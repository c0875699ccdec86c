"""What counts as the same, and how alike two texts are."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.board.values import ABSENT
from agentnb.scenarios.compare import (
    MOST_TOLD,
    Mismatch,
    compare_exactly,
    compare_texts,
    measure_likeness,
    to_displayed,
)

TRUE = np.ones(1, dtype=bool)[0]


class Color(Enum):
    RED = "red"


@dataclass
class Line:
    item: str
    price: float


def list_mismatches(expected, found):
    return list(map(str, compare_exactly(expected, found).mismatches))


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (1, 1.0),
        (1, Decimal(1)),
        ("a", "a"),
        (None, None),
        (True, True),
        ([1, [2]], (1.0, (2,))),
        ((1, 2), [1, 2]),
        ({"a": [1], "b": {}}, {"b": {}, "a": (1,)}),
        (float("nan"), float("nan")),
        ("red", Color.RED),
        ({"item": "pen", "price": 2}, Line("pen", 2.0)),
        (True, TRUE),
        ([1, 2], np.array([1, 2])),
        ([1, 2], {2, 1}),
    ],
)
def test_equal_values_match(expected, actual):
    assert compare_exactly({"k": expected}, {"k": actual}) == (True, 1.0, ())


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (True, 1),
        (1, True),
        (0, False),
        ([True], [1]),
        (1, TRUE),
        ("1", 1),
        (None, 0),
        (None, ""),
        ("ab", ["a", "b"]),
        ([1], 1),
        ({"a": 1}, [["a", 1]]),
        ([], {}),
    ],
)
def test_different_values_do_not_match(expected, actual):
    compared = compare_exactly({"k": expected}, {"k": actual})
    assert (compared.passed, compared.score, len(compared.mismatches)) == (False, 0.0, 1)


def test_the_innermost_differing_paths_are_reported():
    expected = {"order": {"lines": [{"price": 3}, {"price": 4}], "paid": True}}
    actual = {"order": {"lines": [{"price": 3}, {"price": 5}], "paid": True}}
    assert list_mismatches(expected, actual) == ["order.lines.1.price: expected 4, found 5"]


def test_missing_and_additional_items_are_reported():
    assert list_mismatches({"a": 1, "b": [1, 2], "c": {"x": 1}}, {"b": [1], "c": {"x": 1, "y": 2}}) == [
        "a: expected 1, but it is not there",
        "b.1: expected 2, but it is not there",
        "c.y: 2 is unexpected",
    ]


def test_unexpected_keys_are_ignored():
    assert compare_exactly({"a": 1}, {"a": 1, "b": 2}).passed
    assert compare_exactly({}, {"b": 2}).passed


def test_tables_can_be_compared():
    table = pd.DataFrame({"a": [1, 2]})
    assert compare_exactly({"k": table}, {"k": table.copy()}).passed
    assert not compare_exactly({"k": table}, {"k": table * 2}).passed
    assert not compare_exactly({"k": 1}, {"k": table}).passed


def test_a_completely_different_list_is_reported_by_its_first_item():
    assert len(compare_exactly({"k": [1] * 10_000}, {"k": [2] * 10_000}).mismatches) == MOST_TOLD


def test_a_secret_is_not_reported():
    row = Mismatch(("login", "api_key"), "sk-expected", "sk-found")
    assert str(row) == "login.api_key: expected '********', found '********'"
    assert "sk-" not in repr(row)
    assert "sk-" not in str(Mismatch(("login",), {"api_key": "sk-expected"}, ABSENT))


# -- fuzzy -----------------------------------------------------------------------------------------------------------


def test_the_lowest_similarity_is_the_score():
    compared = compare_texts({"a": "Good morning", "b": "same"}, {"a": "Good evening", "b": "same"}, 0.8)
    assert (compared.passed, compared.score) == (False, 0.75)
    assert [str(row) for row in compared.mismatches] == ["a: expected 'Good morning', found 'Good evening', 0.75 alike"]
    assert compare_texts({"a": "Good morning"}, {"a": "Good evening"}, 0.75).passed


def test_a_missing_value_has_similarity_zero():
    compared = compare_texts({"a": "x", "b": "y"}, {"a": "x"}, 0.5)
    assert (compared.passed, compared.score) == (False, 0.0)
    assert [str(row) for row in compared.mismatches] == ["b: expected 'y', but it is not there"]


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ({"b": 2, "a": 1}, {"a": 1, "b": 2}, 1),
        (1, 1.0, 1),
        (12, "12", 1),
        (Line("pen", 2), {"price": 2, "item": "pen"}, 1),
        ("abc", "xyz", 0),
        ("", "", 1),
        ({"a": 1, (1, 2): 2}, {"a": 1, (1, 2): 2, 3: 3}, None),
        ("\ud800", "\ud801", 0),
    ],
)
def test_other_values_are_compared_as_json(one, other, wanted):
    similarity = measure_likeness(one, other)
    assert 0 < similarity < 1 if wanted is None else similarity == wanted


@given(st.text(), st.text())
def test_similarity_is_a_symmetric_ratio(one, other):
    assert 0 <= measure_likeness(one, other) <= 1
    assert measure_likeness(one, other) == measure_likeness(other, one)
    assert (measure_likeness(one, other) == 1) == (one == other)


# -- what may be shown ------------------------------------------------------------------------------------------------


def test_reported_values_are_thawed_and_masked():
    @dataclass
    class Login:
        user: str
        password: str

    assert to_displayed({"login": Login("ada", "pw-4711"), "n": np.int64(3), (1, 2): {"x"}}) == {
        "login": {"user": "ada", "password": "********"},
        "n": 3,
        "(1, 2)": ["x"],
    }
