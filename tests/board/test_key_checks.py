from __future__ import annotations

import pickle

import pytest

from agentnb.board.key_checks import UnknownKey, check_keys

KNOWN = ["budget", "order.total", "score"]


def checked(*paths, known=KNOWN, complete=False):
    return list(check_keys(paths, known, "breakpoints.add(when=...)", complete=complete))


@pytest.mark.parametrize(
    "path", [("budget",), ("budget", "left"), ("order.total",), ("order", "total"), ("order", "total", "net"), ()]
)
def test_a_known_key_is_no_problem(path):
    assert checked(path, complete=True) == []


def test_a_key_similar_to_a_known_one_is_a_problem():
    (problem,) = checked(("bugdet",), ("bugdet", "left"), ("elsewhere",))
    assert (problem.code, problem.where) == ("X145", "breakpoints.add(when=...)")
    assert problem.what == "there is no key 'bugdet' on the board, and nothing writes one"
    assert problem.why == "the known keys are: budget, order.total, score"
    assert problem.do.startswith("did you mean 'budget'? If a node does write 'bugdet'")


def test_if_all_keys_are_known_any_other_is_a_problem():
    assert [problem.do for problem in checked(("elsewhere",), complete=True)] == ["use one of them"]
    assert [problem.why for problem in checked(("a",), known=[], complete=True)] == ["the known keys are: none"]


def test_a_text_that_is_not_a_name_is_ignored():
    assert checked(("task#1",), ("my-key",), complete=True) == []


@pytest.mark.parametrize(("count", "end"), [(12, "k11"), (13, "k11, ...")])
def test_at_most_twelve_keys_are_listed(count, end):
    (problem,) = checked(("elsewhere",), known=[f"k{at}" for at in range(count)], complete=True)
    assert problem.why.endswith(f", {end}")


@pytest.mark.parametrize("known", [KNOWN, lambda: KNOWN])
def test_the_error_of_a_missing_key_suggests_a_known_one(known):
    assert str(KeyError(UnknownKey("scroe", known))) == "'scroe'; did you mean 'score'?"
    assert str(KeyError(UnknownKey("x", known))) == "'x'; there are: budget, order.total, score"
    assert str(KeyError(UnknownKey("x", []))) == "'x'; there are: none"
    assert UnknownKey("score", known) == "score"
    assert type(pickle.loads(pickle.dumps(UnknownKey("score", KNOWN)))) is str
