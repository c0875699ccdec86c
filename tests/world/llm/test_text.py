from __future__ import annotations

import pytest

from agentnb.board.values import freeze
from agentnb.world.llm.text import to_json_text, to_text


def test_a_text_is_reported_as_it_is_and_anything_else_as_json():
    assert to_text("é") == "é"
    assert to_text(["é", None]) == '["é", null]'


def test_frozen_values_are_reported_as_what_they_are():
    assert to_text(freeze({"a": [{"b": 1}]})) == '{"a": [{"b": 1}]}'


def test_what_json_does_not_have_is_reported_as_text():
    assert to_json_text({"a": {2, 1}, "b": 1j, (1,): "left out"}) == '{"a": ["1", "2"], "b": "1j"}'


def test_keys_come_in_order_where_that_is_asked_for():
    assert to_json_text({"b": 1, "a": 2}) == '{"b": 1, "a": 2}'
    assert to_json_text({"b": 1, "a": 2}, ordered=True) == '{"a": 2, "b": 1}'
    with pytest.raises(TypeError):
        to_json_text({"b": 1, 1: 2}, ordered=True)


def test_a_value_that_contains_itself_has_no_text():
    circle = []
    circle.append(circle)
    with pytest.raises(ValueError, match="Circular"):
        to_json_text(circle)


def test_what_cannot_be_shown_is_reported_as_its_type():
    class Silent:
        def __str__(self):
            raise ValueError("no words")

    assert to_json_text([Silent(), {Silent()}]) == '["a Silent without a text form", ["a Silent without a text form"]]'
