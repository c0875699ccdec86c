from __future__ import annotations

from agentnb.board.scopes import DELETED, Scope
from agentnb.board.values import ABSENT
from agentnb.engine.core.board_writes import closed, put


def test_a_value_comes_under_its_key():
    scope = Scope(0, "root")
    put(scope, "a", 1)
    put(scope, "a", 2)
    assert scope.data == {"a": 2}


def test_absent_takes_the_key_away_and_none_is_a_value():
    scope = Scope(0, "root")
    put(scope, "a", None)
    assert scope.data == {"a": None}
    put(scope, "a", ABSENT)
    put(scope, "gone", ABSENT)
    assert scope.data == {}


def test_in_a_scope_that_reads_through_what_is_taken_away_hides_what_stands_around_it():
    root = Scope(0, "root")
    inner = Scope(1, "inner", root)
    put(root, "a", 1)
    put(inner, "a", ABSENT)
    assert (inner.data, inner.seen(), root.seen()) == ({"a": DELETED}, {}, {"a": 1})
    put(inner, "a", 2)
    assert inner.seen() == {"a": 2}


def test_what_cannot_be_written_now_says_why():
    scope = Scope(0, "root")
    scope.open = 2
    (problem,) = closed(scope, ("a", "b", 0)).problems
    assert (problem.code, "'a.b.0'" in problem.what, "2 child" in problem.why) == ("B106", True, True)
