from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.sources import read_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=5), st.sampled_from([None, 2]))
def test_dumped_json_is_parsed(content, indent):
    source = read_text(json.dumps(content, indent=indent), form="json")
    assert not source.problems
    assert source.content == content


@given(st.text(alphabet='{}[]",:0e.-truefalsn\\ud8 \n', max_size=40))
def test_no_text_breaks_the_parser(text):
    source = read_text(text, form="json")
    try:
        expected = json.loads(text, parse_constant=lambda word: (_ for _ in ()).throw(ValueError(word)))
    except ValueError:
        assert source.problems
    else:
        assert source.problems or source.content == expected


def test_every_key_and_item_has_its_place():
    source = read_text('{\n  "a": [1,\n    {"b": 2}]\n}')
    assert str(source.locate(("a", 1, "b"))) == "<text>:3:11, a[1].b"
    assert str(source.locate(("a", 1, "b"), key=True)) == "<text>:3:6, a[1].b"


@pytest.mark.parametrize(
    ("text", "where", "do"),
    [
        ('{"a": 1,}', "<text>:1:9", "double quotes"),
        ('{"a": 1 "b": 2}', "<text>:1:9", "add what is missing"),
        ('{"a": 1} x', "<text>:1:10", "remove everything after"),
        ('{"a": True}', "<text>:1:7", "lower case"),
        ('{"a": NaN}', "<text>:1:7", "lower case"),
        ('{"a": "\\ud800"}', "<text>:1:7", ""),
        ("", "<text>:1:1", ""),
    ],
)
def test_broken_json_is_reported_with_place_and_remedy(text, where, do):
    (problem,) = read_text(text, form="json").problems
    assert (problem.code, problem.where) == ("R102", where)
    assert do in problem.do


def test_a_second_key_is_reported():
    (problem,) = read_text('{"a": 1, "a": 2}').problems
    assert (problem.code, problem.where) == ("R103", "<text>:1:10, a")


def test_an_infinite_number_is_reported():
    (problem,) = read_text('{"a": ' + "1" * 5000 + "}").problems
    assert (problem.code, problem.where) == ("R114", "<text>:1:7, a")
