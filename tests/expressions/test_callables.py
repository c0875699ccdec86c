"""Functions of the board as conditions."""

from __future__ import annotations

import functools
import inspect
import linecache
import tokenize

import pytest

from agentnb.errors import Place, RecipeError
from agentnb.expressions.callables import check_callable, get_callable_text


def is_done(board):
    return board["done"]


async def later(board):
    return board["done"]


class Asking:
    def __call__(self, board):
        return board["done"]


class AskingLater:
    async def __call__(self, board):
        return board["done"]


@pytest.mark.parametrize("value", [is_done, Asking(), functools.partial(max, key=len), bool, len, lambda board, n=3: n])
def test_what_can_be_called_with_the_board(value):
    check_callable(value, None)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (3, "it is an int"),
        (None, "it is a NoneType"),
        (lambda: True, "cannot be called with the board alone"),
        (lambda board, other: True, "cannot be called with the board alone"),
        (later, "an async function"),
        (AskingLater(), "an async function"),
    ],
)
def test_what_cannot(value, why):
    with pytest.raises(RecipeError) as caught:
        check_callable(value, Place("f.py", 3, 1))
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("R310", "f.py:3:1")
    assert why in problem.why


def test_a_callable_is_read_by_its_name_and_a_lambda_by_its_words():
    short = lambda board: board["score"] > 3  # noqa: E731 - it is the lambda that is looked at
    assert get_callable_text(short) == "board['score'] > 3"
    assert get_callable_text(is_done) == "is_done"
    assert get_callable_text(Asking()) == "Asking"
    assert get_callable_text(eval("lambda board: 1")) == "a lambda"


@pytest.mark.parametrize("error", [OSError("no file"), tokenize.TokenError("a number", (1, 2)), IndexError(3)])
def test_a_lambda_whose_source_has_changed_has_no_words(error, monkeypatch):
    def raise_error(function):
        raise error

    monkeypatch.setattr(inspect, "getsourcelines", raise_error)
    assert get_callable_text(lambda board: 1) == "a lambda"


def test_a_lambda_made_from_a_text_is_not_read_in_the_program_of_the_command_line(monkeypatch):
    monkeypatch.setitem(linecache.cache, "<string>", (17, None, ["check = lambda board: 2\n"], "<string>"))
    assert get_callable_text(eval("lambda board: 1")) == "a lambda"


def test_of_two_lambdas_in_one_line_none_is_guessed():
    pair = (lambda board: 1, lambda board: 2)
    assert get_callable_text(pair[1]) == "a lambda"
