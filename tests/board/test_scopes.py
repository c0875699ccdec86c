from __future__ import annotations

import pytest

from agentnb.board.scopes import DELETED, Board, Scope, make_closed_scope_error, put
from agentnb.board.values import ABSENT, freeze


@pytest.fixture
def root():
    scope = Scope(0, "root")
    scope.data.update({"a": 1, "b": freeze({"c": [1]}), "x.y": 2, "none": None})
    return scope


def test_a_child_reads_through_and_holds_only_its_own(root):
    child = Scope(1, "child", root)
    child.data["a"] = 9
    assert (child.get("a"), root.get("a")) == (9, 1)
    assert child.get("b") is root.get("b")
    assert child.get("nothing") is ABSENT


def test_a_deleted_key_hides_the_key_of_the_parent(root):
    child, grandchild = (one := Scope(1, "child", root)), Scope(2, "inner", one)
    child.data["a"] = DELETED
    assert grandchild.get("a") is ABSENT
    assert "a" not in grandchild.visible_items()
    assert "a" in root.visible_items()
    grandchild.data["a"] = 3
    assert grandchild.visible_items()["a"] == 3


def test_reading_a_path(root):
    assert root.get_at(("b", "c", 0)) == 1
    assert root.get_at(("b", "nothing")) is ABSENT
    assert root.get_at(("nothing", "c")) is ABSENT


def test_the_board_reads_paths_and_returns_copies(root):
    board = Board(root)
    assert board["b.c.0"] == 1
    assert board["x.y"] == 2
    assert board["none"] is None
    board["b"]["c"].append(2)
    assert board["b"] == {"c": [1]}


def test_the_board_is_a_mapping(root):
    board = Board(lambda: root)
    assert list(board) == ["a", "b", "x.y", "none"]
    assert len(board) == 4
    assert "b.c" in board
    assert "b.d" not in board
    assert "nothing" not in board
    assert 1 not in board
    with pytest.raises(KeyError):
        board["nothing"]
    assert board.get("b.d", 5) == 5


def test_the_board_shows_itself_masked(root):
    root.data["api_key"] = "s3cret"
    assert "s3cret" not in repr(Board(root))
    assert "a: 1" in repr(Board(root))


def test_a_value_comes_under_its_key():
    scope = Scope(0, "root")
    put(scope, "a", 1)
    put(scope, "a", 2)
    assert scope.data == {"a": 2}


def test_absent_deletes_the_key_and_none_is_a_value():
    scope = Scope(0, "root")
    put(scope, "a", None)
    assert scope.data == {"a": None}
    put(scope, "a", ABSENT)
    put(scope, "gone", ABSENT)
    assert scope.data == {}


def test_in_a_scope_that_reads_through_a_deleted_key_hides_the_outer_one():
    root = Scope(0, "root")
    inner = Scope(1, "inner", root)
    put(root, "a", 1)
    put(inner, "a", ABSENT)
    assert (inner.data, inner.visible_items(), root.visible_items()) == ({"a": DELETED}, {}, {"a": 1})
    put(inner, "a", 2)
    assert inner.visible_items() == {"a": 2}


def test_a_write_that_is_not_possible_now_says_why():
    scope = Scope(0, "root")
    scope.open = 2
    (problem,) = make_closed_scope_error(scope, ("a", "b", 0)).problems
    assert (problem.code, "'a.b.0'" in problem.what, "2 child" in problem.why) == ("B106", True, True)


@pytest.mark.parametrize("first", [0, 1, 2])
def test_scopes_that_share_data_change_their_own(first):
    origin = Scope(0, "root")
    put(origin, "a", 1)
    data = origin.data
    put(origin, "b", 2)
    assert origin.data is data, "data that no other scope shares is changed in place"
    scopes = [origin, Scope(1, "fork"), Scope(2, "fork")]
    for scope in scopes[1:]:
        scope.share_data(origin)
        assert scope.data is data
    for scope in scopes[first:] + scopes[:first]:
        put(scope, "a", scope.name + str(scope.id))
        put(scope, "b", ABSENT)
    assert [scope.data for scope in scopes] == [{"a": "root0"}, {"a": "fork1"}, {"a": "fork2"}]
    owned = [scope.data for scope in scopes]
    for scope in scopes:
        put(scope, "c", 3)
    assert all(scope.data is data for scope, data in zip(scopes, owned, strict=True))
