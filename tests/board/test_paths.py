from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.board.paths import APPEND, DELETE, SET, apply_change, get_at
from agentnb.board.values import ABSENT, freeze, thaw
from agentnb.engine.core.work import Append
from agentnb.errors import BoardError
from tests.property import naive_paths


def put(value, path, new, op=SET):
    return thaw(apply_change(freeze(value), tuple(path), op, new, ("key", *path)))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (("a", "b"), 1), (("l", 0), "x"), (("l", "1"), "y"), (("l", "-1"), "y"), (("l", -2), "x"), (("l", 2), ABSENT),
        (("l", "x"), ABSENT), (("n", "7"), "seven"), (("none", "a"), ABSENT), (("a", "b", "c"), ABSENT), ((), ...),
    ],
)  # fmt: skip
def test_looking_below_a_key(path, found):
    value = freeze({"a": {"b": 1}, "l": ["x", "y"], "n": {7: "seven"}, "none": None})
    assert get_at(value, path) == (value if found is ... else found)


def test_a_literal_key_takes_precedence_over_an_index():
    assert get_at(freeze({"0": "text", 0: "number"}), ("0",)) == "text"


@pytest.mark.parametrize(
    ("value", "path", "new", "after"),
    [
        ({"a": 1}, ["b"], 2, {"a": 1, "b": 2}), ({"a": None}, ["a", "b"], 2, {"a": {"b": 2}}),
        ({}, ["a", "b"], 1, {"a": {"b": 1}}),
        ([1, 2], ["0"], 9, [9, 2]), ([1, 2], [-1], 9, [1, 9]), ([1, 2], [2], 3, [1, 2, 3]), ({7: 1}, ["7"], 2, {7: 2}),
    ],
)  # fmt: skip
def test_setting_below_a_key(value, path, new, after):
    before = freeze(value)
    assert put(value, path, new) == after
    assert thaw(before) == value


def test_deleting_and_appending():
    assert put({"a": {"b": 1, "c": 2}}, ["a", "b"], ABSENT, DELETE) == {"a": {"c": 2}}
    assert put([1, 2, 3], [1], ABSENT, DELETE) == [1, 3]
    assert put({"a": 1}, ["x", "y"], ABSENT, DELETE) == {"a": 1}
    assert put({"l": [1]}, ["l"], 2, APPEND) == {"l": [1, 2]}
    assert put({"l": None}, ["l"], 2, APPEND) == {"l": [2]}
    assert apply_change(freeze([1]), (), DELETE, ABSENT, ("key",)) is ABSENT


@pytest.mark.parametrize(
    ("value", "path", "op", "code"),
    [
        ({"a": 1}, ["a", "b"], SET, "B103"),
        ({"a": 1}, ["a"], APPEND, "B103"),
        ([1], ["5"], SET, "B104"),
        ([1], ["x"], SET, "B104"),
    ],
)
def test_paths_that_lead_nowhere_are_absent(value, path, op, code):
    with pytest.raises(BoardError, match=code):
        put(value, path, 1, op)


TREES = st.recursive(
    st.integers(),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, min_size=1) | st.lists(inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abc"), TREES), st.lists(st.sampled_from("abc"), min_size=1, max_size=3), TREES)
def test_a_set_value_is_found_at_its_path_and_the_past_is_unchanged(value, path, new):
    before = freeze(value)
    try:
        after = apply_change(before, tuple(path), SET, new, tuple(path))
    except BoardError:
        return
    assert thaw(get_at(after, tuple(path))) == new
    assert thaw(before) == value
    assert all(after[key] is before[key] for key in before if key != path[0])


@pytest.mark.parametrize(
    ("value", "path", "after"),
    [
        ({"a": {"b": 1}}, ["a", "x", "y"], {"a": {"b": 1}}),
        ({"a": {"b": 1}}, ["a", "b"], {"a": {}}),
        ([1, [2, 3]], [1, "-1"], [1, [2]]),
        ([1, 2], ["9"], [1, 2]),
        ({7: 1, "8": 2}, ["7"], {"8": 2}),
        ({"a": None}, ["a", "b"], {"a": None}),
    ],
)
def test_deleting_removes_the_value_at_the_path_alone(value, path, after):
    assert put(value, path, ABSENT, DELETE) == after


WHOLE = {"a": {"b": [1, {"c": 2}], "7": "seven"}, "l": [[1, 2], {"a": None}, 3], "n": None, 5: {"x": 1}}
PATHS = [
    *product(["a", "l", "n", "5", 5, "new"], repeat=1),
    *product(["a", "l", "n", "5", "new"], ["b", "7", 7, 0, "0", -1, "-1", 2, 3, "4", -4, "x"]),
    *product(["a", "l"], ["b", 0, "1"], [0, "1", -1, "a", 2, "9"]),
]


@pytest.mark.parametrize("op", [SET, DELETE, APPEND])
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_a_change_at_any_path_is_that_of_plain_lists_and_dicts(op, path):
    before, new = freeze(WHOLE), ["new"]
    try:
        expected = naive_paths.changed(WHOLE, path, {SET: new, DELETE: ABSENT, APPEND: Append(new)}[op])
    except naive_paths.RefusedError:
        with pytest.raises(BoardError, match=r"B10[34]"):
            apply_change(before, path, op, new, ("key", *path))
        return
    after = apply_change(before, path, op, new, ("key", *path))
    assert thaw(after) == expected
    assert thaw(before) == WHOLE
    assert (after is before) == (expected == WHOLE)
    assert all(str(key) == str(path[0]) or after[key] is before[key] for key in WHOLE)


def test_deleting_a_missing_path_returns_the_same_value():
    value = freeze({"a": {"b": 1}})
    assert apply_change(value, ("a", "x"), DELETE, ABSENT, ("key", "a", "x")) is value
    assert apply_change(value, ("x",), DELETE, ABSENT, ("key", "x")) is value


def test_a_frozen_list_keeps_the_items_that_it_had_when_it_was_frozen():
    frozen = freeze({"l": [1, 2]})
    apply_change(frozen, ("l",), APPEND, 3, ("key", "l"))
    assert put(frozen, ["l", 0], 9) == {"l": [9, 2]}
    assert put(frozen, ["l", 0], ABSENT, DELETE) == {"l": [2]}
    assert put(frozen, ["l", 2], 9) == {"l": [1, 2, 9]}


@pytest.mark.parametrize("index", [3, "3", -3, "-3", "x", "1.0"])
def test_an_index_outside_of_a_list_is_reported_with_its_length(index):
    with pytest.raises(BoardError) as caught:
        put([1, 2], [index], 9)
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("B104", "board key 'key'")
    assert problem.what == f"the path 'key.{index}' leads to item {index!r} of a list, which does not exist"
    assert problem.do == "use a number from 0 to 2"
