"""test_failures: what a database refuses is told in words that say what to do, and tell no secret."""

from __future__ import annotations

import pytest

from agentnb.board.secrets import hide
from agentnb.errors import StoreError
from agentnb.store.failures import _WORDS, failed


@pytest.mark.parametrize("code", sorted(_WORDS))
def test_each_failure_has_four_answers(code):
    error = failed(code, "runs.db", ValueError("so it is\n  said"), "NAME")
    (problem,) = error.problems
    assert isinstance(error, StoreError)
    assert (problem.code, problem.where) == (code, "runs.db")
    assert problem.why == "the database says: so it is said (NAME)"
    assert problem.what
    assert problem.do


def test_each_failure_is_told_apart():
    assert len({words.what for words in _WORDS.values()}) == len(_WORDS)


def test_a_secret_is_not_told():
    hide("s3cr3t-77")
    assert "s3cr3t-77" not in str(failed("L421", "runs.db", ValueError("no login with s3cr3t-77")))


def test_an_error_without_words_is_told_by_its_name():
    assert failed("L427", "runs.db", KeyError()).problems[0].why == "the database says: KeyError"
