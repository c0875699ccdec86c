"""Dotted text and paths of keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.expressions.paths import format_path, parse_path, resolve_path


@pytest.mark.parametrize(
    ("text", "board", "path"),
    [
        ("a", {}, ("a",)),
        ("a.b", {"a": {"b": 1}}, ("a", "b")),
        ("a.b", {"a": {"b": 1}, "a.b": 2}, ("a.b",)),
        ("a.b.c", {"a.b": {"c": 1}, "a": {"b": {"c": 2}}}, ("a.b", "c")),
        ("a.b.c", {"a": {"b.c": 1, "b": {"c": 2}}}, ("a", "b.c")),
        ("a.0.b", {"a": [{"b": 1}]}, ("a", "0", "b")),
        ("a.b.c", {"a": 1}, ("a", "b", "c")),
        ("no.such", {}, ("no", "such")),
    ],
)
def test_a_literal_key_with_a_dot_wins(text, board, path):
    assert resolve_path(text, board) == path


@given(st.text(alphabet="ab.", min_size=1), st.dictionaries(st.text(alphabet="ab.", max_size=3), st.integers()))
def test_a_path_says_the_text_that_it_came_from(text, board):
    assert format_path(resolve_path(text, board)) == text
    assert format_path(parse_path(text)) == text
