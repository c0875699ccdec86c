from __future__ import annotations

import pytest

from agentnb.board.scopes import Scope
from agentnb.board.values import ABSENT
from agentnb.world.resources import MOST_SCOPES, Resources


class Store:
    pass


class FileStore(Store):
    pass


def test_the_last_object_of_a_type_is_used():
    resources = Resources({int: 1})
    resources.insert(2)
    assert resources.find(int) == 2
    assert resources.find(str) is ABSENT
    assert (dict(resources), len(resources), resources.names()) == ({int: 2}, 1, ["int"])


def test_an_object_may_be_stored_under_another_type_and_a_subclass_under_its_base():
    resources = Resources()
    resources.insert("text", kind=Store)
    assert resources[Store] == "text"
    other, files = Resources(), FileStore()
    other.insert(files)
    assert other.find(Store) is files
    assert other.find("no type") is ABSENT


def test_a_resource_inserted_in_a_branch_is_visible_there_and_below():
    root = Scope(0, "root")
    first, second = Scope(1, "first", root), Scope(2, "second", root)
    inside = Scope(3, "inside", first)
    resources = Resources({int: 1})
    resources.insert(5, scope=first)
    resources.insert(7, scope=root)
    assert [resources.find(int, scope) for scope in (root, first, inside, second)] == [7, 5, 5, 7]


def test_a_thousand_branches_keep_their_resources():
    resources, root = Resources({int: 1}), Scope(0, "root")
    scopes = [Scope(number, "branch", root) for number in range(1, MOST_SCOPES + 2)]
    for number, scope in enumerate(scopes, 1):
        resources.insert(number * 2, scope=scope)
    assert [resources.find(int, scopes[at]) for at in (0, 1, -1)] == [1, 4, (MOST_SCOPES + 1) * 2]


def test_the_mapping_is_read_only():
    with pytest.raises(TypeError):
        Resources()[int] = 1
