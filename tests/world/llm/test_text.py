from __future__ import annotations

import json

import pytest

from agentnb.board.values import freeze
from agentnb.world.llm.text import to_json_text, to_text


def test_a_text_is_written_unchanged_and_anything_else_as_json():
    assert to_text("é") == "é"
    assert to_text(["é", None]) == '["é", null]'


def test_frozen_values_are_written_as_plain_values():
    assert to_text(freeze({"a": [{"b": 1}]})) == '{"a": [{"b": 1}]}'


def test_values_that_json_lacks_are_written_as_text():
    assert to_json_text({"a": {2, 1}, "b": 1j, (1,): "left out"}) == '{"a": ["1", "2"], "b": "1j"}'


def test_an_integer_of_any_size_has_a_text():
    size = 2**20_000
    assert json.loads(to_json_text({"a": [size, (-size, 3, True)], 1: {size}})) == {
        "a": [hex(size), [hex(-size), 3, True]], "1": [hex(size)]
    }  # fmt: skip
    assert json.loads(to_text({size: 1})) == {hex(size): 1}
    assert json.loads(to_text(size)) == hex(size)


def test_keys_are_sorted_on_request():
    assert to_json_text({"b": 1, "a": 2}) == '{"b": 1, "a": 2}'
    assert to_json_text({"b": 1, "a": 2}, ordered=True) == '{"a": 2, "b": 1}'
    with pytest.raises(TypeError):
        to_json_text({"b": 1, 1: 2}, ordered=True)


def test_a_value_that_contains_itself_is_rejected():
    circle = []
    circle.append(circle)
    with pytest.raises(ValueError, match="Circular"):
        to_json_text(circle)


def test_a_value_that_cannot_be_formatted_is_written_as_its_type():
    class Silent:
        def __str__(self):
            raise ValueError("no words")

    assert to_json_text([Silent(), {Silent()}]) == '["a Silent without a text form", ["a Silent without a text form"]]'
