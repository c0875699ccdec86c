"""Branches whose nodes declare reducers merge as a naive model says, in branch order, whatever the timing."""

from __future__ import annotations

import asyncio
from itertools import count, pairwise
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentnb import ABSENT
from agentnb.recipe.model import Edge, Node, Recipe, Region
from agentnb.session import Session
from agentnb.session.reopen import open_stored
from agentnb.store import MemoryLog

KEYS = ("a", "b")


def combine(old: int, new: int) -> int:
    """Return a number that depends on the order and on the grouping of what is combined."""
    return (old * 3 + new) % 1009


# One node: the key that it writes, the value (None deletes), whether it has a reducer, and the turns that it takes.
writes = st.tuples(st.sampled_from(KEYS), st.one_of(st.integers(0, 9), st.integers(0, 9), st.none()), st.booleans(),
                   st.integers(0, 4))  # fmt: skip
# A section: the keys for which it has reducers of its own, and its branches: lists of nodes and of inner sections.
sections = st.recursive(
    st.tuples(st.sets(st.sampled_from(KEYS), max_size=1), st.lists(st.lists(writes, min_size=1, max_size=3), min_size=1,
                                                                   max_size=3)),
    lambda inner: st.tuples(st.sets(st.sampled_from(KEYS), max_size=1),
                            st.lists(st.lists(st.one_of(writes, inner), min_size=1, max_size=3), min_size=1,
                                     max_size=3)),
    max_leaves=3,
)  # fmt: skip


# -- the model -------------------------------------------------------------------------------------------------------


def done(value: Any, change: tuple[str, Any]) -> Any:
    operation, new = change
    return combine(value, new) if operation == "combine" and value is not ABSENT else new


def after(value: Any, changes: list[tuple[str, Any]]) -> Any:
    for change in changes:
        value = done(value, change)
    return value


def branch(items: list[Any], board: dict[str, Any]) -> dict[str, list[tuple[str, Any]]]:
    """Return the changes of each key that a branch makes, which begins with a board."""
    results: dict[str, list[tuple[str, Any]]] = {}
    for item in items:
        if len(item) == 2:
            key_changes = section(item, board)
        else:
            key, value, reduced, _ = item
            key_changes = {key: [("combine" if reduced else "set", value) if value is not None else ("set", ABSENT)]}
        for key, changes in key_changes.items():
            before = board.get(key, ABSENT)
            board = {**board, key: after(before, changes)}
            if before is not ABSENT or board[key] is not ABSENT:  # to delete what is not there is no change
                results.setdefault(key, []).extend(changes)
    return results


def section(item: Any, board: dict[str, Any]) -> dict[str, list[tuple[str, Any]]]:
    """Return the changes of each key that a section makes: all of its branches', or what the last one has left."""
    own_keys, branches = item
    branch_changes = [branch(items, board) for items in branches]
    results: dict[str, list[tuple[str, Any]]] = {}
    for key in KEYS:
        parts = [each[key] for each in branch_changes if key in each]
        if key in own_keys:
            parts = [[("combine" if new is not ABSENT else "set", new) for _, new in part] for part in parts]
        changes = [change for part in parts for change in part]
        if any(operation == "combine" for operation, _ in changes) or (parts and key in own_keys):
            results[key] = changes
        elif parts:
            results[key] = [("set", after(board.get(key, ABSENT), parts[-1]))]
    return results


# -- the recipe ------------------------------------------------------------------------------------------------------


def node(name: str, scope: str, write: Any) -> Node:
    key, value, reduced, turns = write

    async def function() -> dict[str, Any]:
        for _ in range(turns):
            await asyncio.sleep(0)
        return {key: ABSENT if value is None else value}

    reducers = {"reducers": {key: combine}} if reduced else {}
    return Node(name, "function", scope=scope, params={"function": function, **reducers})


def recipe_of(item: Any, init: dict[str, int]) -> Recipe:
    nodes: dict[str, Node] = {}
    edges: list[Edge] = []
    regions: dict[str, Region] = {}
    numbers = count()

    def line(items: list[Any], scope: str) -> list[str]:
        names = []
        for each in items:
            name = f"n{next(numbers)}"
            names.append(name)
            if len(each) != 2:
                nodes[name] = node(name, scope, each)
                continue
            own_keys, branches = each
            bodies = tuple(f"{name}_{number}" for number in range(len(branches)))
            reducers = {"reducers": dict.fromkeys(own_keys, combine)} if own_keys else {}
            nodes[name] = Node(name, "parallel", scope=scope, bodies=bodies, params=reducers)
            for body, inner in zip(bodies, branches, strict=True):
                regions[body] = Region(body, (line(inner, body)[0],), owner=name)
        edges.extend(Edge(one, other) for one, other in pairwise(names))
        return names

    (first,) = line([item], "root")
    regions["root"] = Region("root", (first,))
    return Recipe("drawn", "test", nodes, tuple(edges), (first,), regions=regions, init=init)


@settings(max_examples=settings.default.max_examples // 2)  # each is three runs
@given(sections, st.dictionaries(st.sampled_from(KEYS), st.integers(0, 9)), st.integers(0, 20))
@example((set(), [[("a", 1, True, 4)], [("a", 2, True, 0), ("a", 3, True, 0)]]), {"a": 5}, 4)
@example(({"a"}, [[("a", 1, False, 4)], [("a", 2, False, 0)]]), {"a": 5}, 2)
def test_branches_merge_as_in_the_model(item, init, cut):
    changes = section(item, init)
    expected = {
        key: value for key in KEYS if (value := after(init.get(key, ABSENT), changes.get(key, []))) is not ABSENT
    }
    recipe, log = recipe_of(item, init), MemoryLog()
    run = Session(recipe)
    run.run()
    assert (run.status, dict(run.board)) == ("finished", expected)

    run = Session(recipe)
    while run.step() is not None:
        pass
    assert dict(run.board) == expected
    for position in range(run.position, -1, -1):
        run.goto(position)
    assert dict(run.board) == init
    run.goto(min(cut, run.trace.reading().tip))
    run.run()
    assert dict(run.board) == expected

    run = Session(recipe, store=log, run_id="run")
    run.step(cut)
    fork = run.fork()
    run.close()
    run = open_stored(log, "run", recipe=recipe)
    for each in (fork, run):
        each.run()
        assert (each.status, dict(each.board)) == ("finished", expected)
    assert run.replay(strict="reads").ok
    run.close()
