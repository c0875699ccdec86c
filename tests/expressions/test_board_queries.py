from __future__ import annotations

from copy import deepcopy

import pytest

from agentnb.errors import ExecutionError, RecipeError
from agentnb.expressions.board_queries import compile_question

BOARD = {
    "task#1": {"data": {"title": "read", "n": [7]}},
    "my-key": 3,
    "my": 5,
    "key": 1,
    "two words": 2,
    "n": 4,
    "a.b": 6,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("task#1", BOARD["task#1"]),
        ("task#1.data.title", "read"),
        ("task#1.data.n.0", 7),
        ("my-key", 3),  # a key wins over the expression
        ("my - key", 4),
        ("two words", 2),
        ("a.b", 6),
        (" n ", 4),
        ("n*2", 8),
        ("n > 3 and key == 1", True),
        ({"==": [{"var": "n"}, 4]}, True),
    ],
)
def test_a_text_is_a_path_if_the_path_exists_and_otherwise_an_expression(text, value):
    assert compile_question(text, BOARD)(BOARD) == value


def test_a_key_that_is_added_later_is_read_from_then_on():
    question = compile_question("my-key", {})
    assert question({"my": 5, "key": 1}) == 4
    assert question(BOARD) == 3
    numbered = compile_question("task#2.data")
    with pytest.raises(ExecutionError, match="X314") as raised:
        numbered(BOARD)
    assert "the board has no value at this path" in raised.value.problems[0].why
    assert numbered({"task#2": {"data": 1}}) == 1


def test_a_text_that_is_neither_path_nor_expression_is_a_problem_at_once():
    for text in ("n ==", "no such words", "#(", ""):
        with pytest.raises(RecipeError):
            compile_question(text, BOARD)


def test_a_query_is_reported_copied_and_explained_as_written():
    copied = deepcopy(compile_question("task#1.data.title"))
    assert (copied.text, copied.source, copied.kind) == ("task#1.data.title",) * 2 + ("text",)
    assert copied.reads == (("task#1", "data", "title"),)
    assert copied.explain(BOARD) == [("task#1.data.title", "read")]
    assert copied.with_strictness(strict=False)(BOARD) == "read"
