from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from agentnb.board.values import ABSENT, freeze, thaw
from agentnb.engine.persistence.value_deltas import decode_difference, decode_value, encode_difference
from agentnb.secrets import is_secret

atoms = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text())
names = st.text().filter(lambda name: not is_secret(name))  # the values of secrets are masked
values = st.recursive(atoms, lambda inner: st.lists(inner) | st.dictionaries(names, inner), max_leaves=12)


def through(document):
    return json.loads(json.dumps(document))


@given(values, values)
def test_a_value_is_restored_from_the_previous_one(before, after):
    old = freeze(before)
    new = freeze(after, old)
    assert thaw(decode_difference(through(encode_difference(new, old)), old)) == after
    assert thaw(decode_value(through(encode_difference(new, ABSENT)))) == after


@given(st.lists(values), st.lists(values, min_size=1))
def test_a_grown_list_is_stored_as_its_new_items(before, more):
    old = freeze(before)
    new = old
    for item in more:
        new = new.with_item(freeze(item))
    document = encode_difference(new, old)
    assert len(document["v"]) == len(more)
    assert thaw(decode_difference(through(document), old)) == before + more


def test_only_the_changes_of_a_mapping_are_stored():
    old = freeze({f"k{number}": "x" * 100 for number in range(50)})
    document = encode_difference(freeze({**thaw(old), "k1": "y"}, old), old)
    assert document == {"$": "merged", "v": {"k1": "y"}}
    assert decode_difference(document, old)["k2"] is old["k2"]


def test_an_equal_value_is_stored_as_unchanged():
    old = freeze({"a": [1, 2]})
    assert encode_difference(old, old) == {"$": "same"}
    assert decode_difference({"$": "same"}, old) is old


def test_a_secret_inside_is_masked():
    old = freeze({"a": 1, "token": "t-12345", "b": 2})
    new = freeze({"a": 1, "token": "t-67890", "b": 2}, old)
    assert "t-67890" not in json.dumps(encode_difference(new, old))
