"""The smallest inputs that still fail."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentnb as nb
from agentnb.analysis.minimize import ddmin
from agentnb.errors import ExecutionError


def looking():
    graph = nx.DiGraph(name="look", entry="look")
    graph.add_node("look", function=lambda board: {"found": repr(dict(board))})
    return nb.load(graph)


def test_keys_items_and_words_are_removed_at_every_depth():
    inputs = {
        "ticket": {"text": "please return my broken lamp today", "tags": ["new", "lamp", "vip"], "size": 3},
        "customer": "ann",
    }
    smallest = nb.minimize(looking(), inputs, lambda run: "lamp" in str(dict(run.board).get("ticket", {}).get("text")))
    assert smallest == {"ticket": {"text": "lamp"}}
    assert inputs["customer"] == "ann"
    both = nb.minimize(looking(), {"a": [1, 2, 3, 4], "b": [5]}, lambda run: sum(dict(run.board).get("a", [])) >= 7)
    assert both == {"a": [3, 4]}


def test_inputs_without_which_the_run_cannot_be_judged_are_not_removed():
    smallest = nb.minimize(looking(), {"a": "one two", "b": 1}, lambda run: len(run.board["a"]) >= 0)
    assert smallest == {"a": ""}
    with pytest.raises(ExecutionError, match="A118: fails raised KeyError"):
        nb.minimize(looking(), {"b": 1}, lambda run: len(run.board["a"]) >= 0)


def test_a_run_that_does_not_fail_is_refused():
    with pytest.raises(ExecutionError, match="A112"):
        nb.minimize(looking(), {"a": 1}, lambda run: False)


@given(st.integers(1, 40), st.sets(st.integers(0, 39), max_size=4))
def test_the_result_fails_and_is_minimal(size, needed):
    needed = {item for item in needed if item < size}

    def fails(kept):
        return needed <= set(kept)

    smallest = ddmin(range(size), fails)
    assert fails(smallest)
    assert all(not fails([item for item in smallest if item != removed]) for removed in smallest)
    assert set(smallest) == needed
