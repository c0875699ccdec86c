from __future__ import annotations

import copy
import pickle
import warnings
from collections import UserDict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from itertools import product
from operator import is_
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.board.values import (
    ABSENT,
    Absent,
    FrozenList,
    Opaque,
    freeze,
    is_truthy,
    is_unchanged,
    make_frozen_pairs,
    thaw,
)
from agentnb.bounds import DEPTH_LIMIT
from agentnb.errors import BoardError
from tests.board.naive_values import SHAPES, check_frozen_after, check_measured, fresh
from tests.board.test_codec import VALUES

Pair = namedtuple("Pair", "left right")  # noqa: PYI024  (the untyped one is what is tested)


@dataclass
class Order:
    lines: list[str] = field(default_factory=list)


class Person(pydantic.BaseModel):
    tags: list[str] = []


class Name(str):
    __slots__ = ()


class Status(Enum):
    OPEN = "open"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(JSON)
def test_each_reader_gets_a_separate_copy_of_what_was_written(value):
    frozen = freeze(value)
    assert thaw(frozen) == value
    assert is_unchanged(thaw(frozen), frozen)
    assert freeze(frozen, frozen) is frozen or isinstance(value, tuple)


@given(JSON, JSON)
def test_exactly_the_changes_are_detected(one, other):
    frozen = freeze(one)
    assert is_unchanged(thaw(frozen), frozen)
    assert one == other or not is_unchanged(other, frozen)


@given(JSON, JSON)
def test_freezing_with_the_previous_value_gives_an_equal_value(before, value):
    assert thaw(freeze(value, freeze(before))) == value


AROUND: list[Callable[[Any], Any]] = [
    lambda value: value,
    lambda value: {"k": value, "n": [[0], value]},
    lambda value: [{"n": [1]}, value, (value, [2])],
]


@pytest.mark.parametrize("first", SHAPES)
def test_a_value_written_over_any_other_shares_what_is_equal_and_nothing_else(first):
    for around in AROUND:
        before = around(fresh(first))
        old = freeze(before)
        check_measured(old, before)
        for second in SHAPES:
            value = around(fresh(second))
            assert is_unchanged(value, old) == (first == second)
            check_frozen_after(freeze(value, old), value, old, before)


LISTS: list[list[Any]] = [
    [], [1000, 2000, 3000], [[1000], [2000, 3000], [4000]], [{"a": 1000}, {"a": [2000]}, {"a": {"b": 3000}}],
    [{"a": "x"}, {"b": "y"}, {"c": "z"}], [1000, [[[2000]]], {"a": "x"}],
]  # fmt: skip


@pytest.mark.parametrize("begun", LISTS)
def test_a_list_keeps_its_first_items_when_its_end_changes(begun):
    for kept, added in product(range(len(begun) + 1), LISTS):
        old = freeze(begun)
        new = freeze([*old.items[:kept], *copy.deepcopy(added)], old)
        check_frozen_after(new, [*begun[:kept], *added], old, begun)
        assert all(map(is_, new.items[:kept], old.items[:kept]))
        assert (new.items is old.items) == (kept == len(begun) or [*begun[:kept], *added][: len(begun)] == begun)


def test_a_growing_list_shares_its_items_and_the_past_keeps_its_length():
    before = freeze([1, 2])
    after = freeze([1, 2, 3], before)
    other = freeze([1, 2, 4], before)
    assert after.items is before.items
    assert (list(before), list(after), list(other)) == ([1, 2], [1, 2, 3], [1, 2, 4])


def test_true_and_one_are_not_the_same():
    assert not is_unchanged([True], freeze([1]))
    assert not is_unchanged({"a": 1.0}, freeze({"a": 1}))
    assert not is_unchanged({"b": 1, "a": 1}, freeze({"a": 1}))


def test_values_on_the_board_cannot_be_changed():
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
def test_objects_are_restored_as_separate_equal_objects(value):
    frozen = freeze(value)
    one, other = thaw(frozen), thaw(frozen)
    assert type(one) is type(value)
    assert is_unchanged(one, frozen)
    assert one is not value
    if isinstance(value, Order | Person):
        name = "lines" if isinstance(value, Order) else "tags"
        getattr(one, name).append("b")
        assert getattr(other, name) == ["a"]
        assert not is_unchanged(one, frozen)
    elif isinstance(value, np.ndarray):
        one[0] = 9
        assert other[0] == 0
        assert not is_unchanged(one, frozen)


def test_an_array_is_the_same_only_with_its_type():
    frozen = freeze(np.array([1, 2], dtype=np.int64))
    assert not is_unchanged(np.array([1, 2], dtype=np.int32), frozen)
    assert freeze(np.array([1, 2], dtype=np.int64), frozen) is frozen


def test_anything_else_is_held_by_reference_with_one_warning():
    class Odd:
        pass

    opaque = Odd()
    with pytest.warns(UserWarning, match="opaque"):
        frozen = freeze(opaque)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        freeze(Odd())
    assert isinstance(frozen, Opaque)
    assert thaw(frozen) is opaque
    assert freeze(opaque, frozen) is frozen
    assert repr(frozen).startswith("<opaque")


def test_absent_is_a_falsy_singleton():
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


def test_a_list_grows_by_the_same_item_without_a_copy():
    frozen, item = freeze([1, 2]), "three"
    one, other = frozen.with_item(item), frozen.with_item(item)
    assert one.items is other.items is frozen.items
    assert (list(frozen), list(one), list(other)) == ([1, 2], [1, 2, "three"], [1, 2, "three"])
    assert list(frozen.with_item("four")) == [1, 2, "four"]
    assert list(one.with_item(4)) == [1, 2, "three", 4]


@pytest.mark.parametrize(("begun", "item"), [([1], {"a": 1}), ([{"a": 1}], 1), ([[1]], "x")])
def test_a_list_that_has_grown_is_read_as_a_copy(begun, item):
    grown = freeze(begun).with_item(freeze(item))
    copied = thaw(grown)
    assert copied == [*begun, item]
    for part in copied:
        if isinstance(part, dict):
            part["a"] = 2
        elif isinstance(part, list):
            part.append(2)
    assert thaw(grown) == [*begun, item]
    assert not is_unchanged(copied, grown)


@pytest.mark.parametrize("begun", [[1, 2, 3], [{"a": [1]}, 2, 3]])
@pytest.mark.parametrize("after", [[1, 2], [1], [], [1, 2, 4], [1, 9, 3], [1, 2, 3, 4]])
def test_a_list_frozen_with_an_equal_previous_one_is_the_same_object(begun, after):
    before = freeze(begun)
    assert list(freeze(after, before)) == after
    assert thaw(before) == begun


@pytest.mark.parametrize(
    ("index", "found"), [(0, 1), (2, 3), (-1, 3), (-3, 1), (slice(1, None), [2, 3]), (slice(None, None, -1), [3, 2, 1])]
)
def test_a_frozen_list_ends_where_it_was_frozen(index, found):
    frozen = freeze([1, 2, 3])
    frozen.with_item(4)
    assert frozen[index] == found


@pytest.mark.parametrize("index", [3, -4])
def test_an_index_beyond_the_ends_of_a_frozen_list_raises(index):
    frozen = freeze([1, 2, 3])
    frozen.with_item(4)
    with pytest.raises(IndexError):
        frozen[index]


@pytest.mark.parametrize(
    ("value", "truthy"), [("", False), ([], False), (0, False), ("no", True), (np.arange(3), True), (np.zeros(2), True)]
)
def test_an_object_whose_truth_cannot_be_tested_is_true(value, truthy):
    assert is_truthy(value) is truthy


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


def test_a_value_may_have_two_hundred_levels():
    assert thaw(freeze(nested(200))) == nested(200)
    with pytest.raises(BoardError, match="B102"):
        freeze(nested(201))


@pytest.mark.parametrize("value", [Order([1]), Person(tags=["a"]), [Order()], {"a": Order()}, (1, [2]), {(1, 2)}])
def test_freezing_with_itself_as_the_previous_value_shares_everything(value):
    before = freeze(value)
    again = freeze(copy.deepcopy(value), before)
    assert again is before or (isinstance(value, tuple) and again == before)


@pytest.mark.parametrize(
    ("copied", "value"),
    [
        ([1, 2], [1, 2, 3]), ([1, 2, 3], [1, 2]), ((1, 2), [1, 2]), ([1, 2], (1, 2)), ({"a": "x"}, {"b": "x"}),
        ({"a": "x", "b": "y"}, {"a": "x"}), ({"a": [1]}, {"a": [2]}), ({"a": None}, {"a": "x"}), ({1}, {2}), ({1}, [1]),
        ((1, [2]), (1, [3])), ((1,), (1, 2)), (Order([1]), Order([2])), (Pair(1, 2), (1, 2)), ("a", "b"), (1, 2),
    ],
)  # fmt: skip
def test_a_changed_copy_is_not_the_same(copied, value):
    assert not is_unchanged(copied, freeze(value))
    assert is_unchanged(thaw(freeze(value)), freeze(value))


@pytest.mark.parametrize(("before", "after"), [(0.0, -0.0), (Decimal("1.0"), Decimal("1.00")), (1, True), (1, 1.0)])
def test_an_equal_value_that_differs_is_a_change(before, after):
    frozen = freeze((before, [before]))
    value = thaw(frozen)
    value[1][0] = after
    assert not is_unchanged(value, frozen)


@pytest.mark.parametrize("value", [Name("x"), Status.OPEN, np.int64(3), np.datetime64("2020-01-01")])
def test_a_text_number_or_enum_member_of_another_class_is_on_the_board_itself(value):
    assert freeze(value) is value
    assert freeze({"a": value})["a"] is value


@pytest.mark.parametrize("mapping", [UserDict, MappingProxyType])
def test_a_mapping_of_any_class_is_frozen_as_a_dict(mapping):
    frozen = freeze(mapping({"a": [1], "b": "x"}))
    assert frozen == {"a": [1], "b": "x"}
    assert type(thaw(frozen)) is dict


@pytest.mark.filterwarnings("ignore:.*opaque")
@pytest.mark.parametrize(("before", "after"), [("x", Name("x")), (b"x", bytearray(b"x"))])
def test_an_equal_text_of_another_class_is_a_change(before, after):
    frozen = freeze([{"a": before}])
    assert not is_unchanged([{"a": after}], frozen)
    assert type(thaw(freeze([{"a": after}], frozen))[0]["a"]) is type(after)


@pytest.mark.filterwarnings("ignore:.*opaque")
@pytest.mark.parametrize("part", [{1, 2}, frozenset({1}), np.arange(3), object()])
def test_a_part_without_parts_of_its_own_counts_as_one(part):
    assert freeze([part]).extent[:2] == (2, 2)


@pytest.mark.parametrize("count", [0, 1, 31, 32, 40])
@pytest.mark.parametrize("part", [1, "text", None, 1.5, [], [1, 2]], ids=repr)
def test_a_mapping_built_from_pairs_equals_the_frozen_mapping(count, part):
    names, parts = [f"n{number}" for number in range(count)], [part] * count
    frozen_pairs, expected = make_frozen_pairs(names, parts, freeze), freeze(dict(zip(names, parts, strict=True)))
    assert (list(frozen_pairs), frozen_pairs.flat, frozen_pairs.extent) == (
        list(expected),
        expected.flat,
        expected.extent,
    )
    assert repr(frozen_pairs) == repr(expected)


class Route(tuple):
    __slots__ = ()


@pytest.mark.parametrize("make", [lambda inner: Pair(1, inner), lambda inner: Route((1, inner))])
def test_a_named_tuple_does_not_change_with_its_items(make):
    inner = [2]
    frozen = freeze(make(inner))
    inner.append(3)
    assert thaw(frozen)[1] == [2]
    atoms = make("atom")
    assert freeze(atoms) is atoms


@dataclass
class Box:
    inner: Any


@pytest.mark.parametrize(
    "wrap",
    [lambda value: [value], lambda value: {"k": value, "n": [1]}, lambda value: (value,), lambda value: [(value, 1)],
     lambda value: {"k": [(1, value)]}, Box, lambda value: [Box((value,))]],
)  # fmt: skip
def test_a_value_that_is_built_level_by_level_may_be_as_deep_as_any_other(wrap):
    def is_refused(value: Any) -> bool:
        try:
            freeze(value)
        except BoardError:
            return True
        return False

    frozen, plain = freeze([1]), [1]
    for _ in range(DEPTH_LIMIT):
        if is_refused(plain := wrap(plain)):
            break
        frozen = freeze(wrap(frozen))
    assert is_refused(plain)
    assert is_refused(wrap(frozen))


class Thing:
    """An object that the board holds by reference."""


@pytest.mark.filterwarnings("ignore:a .* is on the board by reference")
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [value], lambda value: {"in": [{"a": value}]}])
def test_a_value_of_any_class_replaces_one_of_any_other(wrap):
    values = [*VALUES, Thing(), Thing()]
    frozen = [freeze(wrap(value)) for value in values]
    for old in frozen:
        for new, value in zip(frozen, values, strict=True):
            assert repr(freeze(wrap(value), old)) == repr(new)
