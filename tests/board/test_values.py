from __future__ import annotations

import copy
import pickle
import warnings
from collections import namedtuple
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.board.values import ABSENT, Absent, FrozenList, Opaque, freeze, same, thaw
from agentnb.errors import BoardError

Pair = namedtuple("Pair", "left right")  # noqa: PYI024  (the untyped one is what is tested)


@dataclass
class Order:
    lines: list[str] = field(default_factory=list)


class Person(pydantic.BaseModel):
    tags: list[str] = []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(JSON)
def test_a_reader_gets_what_was_written_as_a_copy_of_its_own(value):
    frozen = freeze(value)
    assert thaw(frozen) == value
    assert same(thaw(frozen), frozen)
    assert freeze(frozen, frozen) is frozen or isinstance(value, tuple)


@given(JSON, JSON)
def test_a_change_is_seen_and_only_a_change(one, other):
    frozen = freeze(one)
    assert same(thaw(frozen), frozen)
    assert one == other or not same(other, frozen)


@given(JSON, JSON)
def test_freezing_beside_what_was_before_changes_nothing_in_the_value(before, value):
    assert thaw(freeze(value, freeze(before))) == value


def test_parts_that_did_not_change_are_shared():
    before = freeze({"a": {"x": [1]}, "b": {"y": [2]}})
    after = freeze({"a": {"x": [1]}, "b": {"y": [3]}}, before)
    assert after["a"] is before["a"]
    assert after["b"] is not before["b"]
    assert freeze({"a": {"x": [1]}, "b": {"y": [2]}}, before) is before


def test_a_list_that_grows_is_shared_and_the_past_keeps_its_length():
    before = freeze([1, 2])
    after = freeze([1, 2, 3], before)
    other = freeze([1, 2, 4], before)
    assert after.items is before.items
    assert (list(before), list(after), list(other)) == ([1, 2], [1, 2, 3], [1, 2, 4])


def test_true_and_one_are_not_the_same():
    assert not same([True], freeze([1]))
    assert not same({"a": 1.0}, freeze({"a": 1}))
    assert not same({"b": 1, "a": 1}, freeze({"a": 1}))


def test_what_lies_on_the_board_cannot_be_changed():
    frozen = freeze({"a": 1})
    for change in (
        lambda: frozen.update(b=1), lambda: frozen.pop("a"), frozen.clear, lambda: frozen.setdefault("b", 1),
        lambda: frozen.__setitem__("a", 2), lambda: frozen.__delitem__("a"), lambda: frozen.__ior__({}),
    ):  # fmt: skip
        with pytest.raises(BoardError, match="B101"):
            change()
    assert frozen == {"a": 1}


def test_a_value_that_contains_itself_is_refused():
    loop = []
    loop.append(loop)
    with pytest.raises(BoardError, match="B102"):
        freeze(loop)


@pytest.mark.parametrize(
    "value",
    [Order(["a"]), Person(tags=["a"]), {1, 2}, Pair(1, [2]), np.arange(3), pd.Series([1, 2]), pd.DataFrame({"a": [1]})],
    ids=lambda value: type(value).__name__,
)
def test_objects_come_back_as_what_they_were_and_apart(value):
    frozen = freeze(value)
    one, other = thaw(frozen), thaw(frozen)
    assert type(one) is type(value)
    assert same(one, frozen)
    assert one is not value
    if isinstance(value, Order | Person):
        name = "lines" if isinstance(value, Order) else "tags"
        getattr(one, name).append("b")
        assert getattr(other, name) == ["a"]
        assert not same(one, frozen)
    elif isinstance(value, np.ndarray):
        one[0] = 9
        assert other[0] == 0
        assert not same(one, frozen)


def test_an_array_is_the_same_only_with_its_type():
    frozen = freeze(np.array([1, 2], dtype=np.int64))
    assert not same(np.array([1, 2], dtype=np.int32), frozen)
    assert freeze(np.array([1, 2], dtype=np.int64), frozen) is frozen


def test_anything_else_is_kept_by_reference_and_warned_of_once():
    class Odd:
        pass

    thing = Odd()
    with pytest.warns(UserWarning, match="opaque"):
        frozen = freeze(thing)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        freeze(Odd())
    assert isinstance(frozen, Opaque)
    assert thaw(frozen) is thing
    assert freeze(thing, frozen) is frozen
    assert repr(frozen).startswith("<opaque")


def test_absent_is_one_and_false_and_stays_itself():
    assert Absent() is ABSENT
    assert not ABSENT
    assert pickle.loads(pickle.dumps(ABSENT)) is ABSENT
    assert copy.deepcopy(ABSENT) is ABSENT


def test_a_frozen_list_reads_like_a_list():
    frozen = freeze([1, 2, 3])
    assert isinstance(frozen, FrozenList)
    assert frozen[-1] == 3
    assert frozen[1:] == [2, 3]
    assert frozen == [1, 2, 3]
    assert 2 in frozen
    with pytest.raises(IndexError):
        frozen[3]
