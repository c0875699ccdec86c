from __future__ import annotations

from array import array

import pytest

import agentnb as nb
from agentnb.session import history_fold, last_writers, node_coverage
from agentnb.session.history_fold import compute_rows, group_indices, iter_unknown_pairs, to_array
from tests.session.small_sessions import broken, calling, counting, fan, graph, looping, session


def numbers(*found):
    return to_array(array("I", found), 0, len(found))


def test_a_part_of_a_column_is_a_copy():
    column = array("I", [5, 6, 7])
    part = to_array(column, 1, 3)
    column.append(8)
    assert part.tolist() == [6, 7]


def test_each_entry_has_its_row():
    rows, begin, end = compute_rows(array("I", [2, 2, 5, 6]), 1, 4)
    assert (rows.tolist(), begin, end) == ([2, 2, 2, 3], 2, 6)


@pytest.mark.parametrize("table", [1, 1 << 20])
def test_only_pairs_that_are_not_known_are_named(monkeypatch, table):
    monkeypatch.setattr(history_fold, "_TABLE", table)
    left, right = numbers(0, 1, 0, 3, 1, 0), numbers(0, 1, 0, 2, 1, 9)
    assert list(iter_unknown_pairs(left, right, {(0, 0), (1, 1), (50, 1), (1, 50)})) == [(3, 3, 2), (5, 0, 9)]
    assert list(iter_unknown_pairs(numbers(), numbers(), {(0, 0)})) == []


@pytest.mark.parametrize("size", [0, 1 << 20])
def test_places_are_grouped_by_their_number(size):
    actual = {number: list(places) for number, places in group_indices(numbers(size + 4, 1, size + 4, 4), 10)}
    assert actual == ({4: [10, 12, 13], 1: [11]} if not size else {size + 4: [10, 12], 1: [11], 4: [13]})
    assert list(group_indices(numbers(), 0)) == []


def made():
    yield session(counting(limit=9), {"n": 0})
    yield session(fan("a", "b"))
    yield session(looping(calling(), times=3), {"word": "x"})
    yield session(broken())
    yield session(graph("a", "b", "c"))
    yield from (nb.Session(nb.samples(name)) for name in ("research", "triage"))


def describe_steps(run):
    """Return what a picture and a board say of a run at each of its steps, from its end back and on again."""
    results = []
    for step in [*range(run.position, -1, -1), *range(len(run.trace) + 1)]:
        run.goto(step)
        view = run._parts.pictures.view()
        seen = view.visited, view.taken, view.seen_reads, view.seen_writes
        results.append((*seen, run._parts.explanations.writers()))
    return results


@pytest.mark.parametrize("number", range(7))
def test_many_rows_give_the_same_as_each_row_alone(monkeypatch, number):
    def gone(many):
        for module in (node_coverage, last_writers):
            monkeypatch.setattr(module, "MANY", many)
        run = list(made())[number]
        run.run()
        run._parts.pictures.view()
        run.goto(len(run.trace) // 2)
        run.edit({"n": 5})
        run.run()
        return describe_steps(run)

    one_by_one = gone(1 << 40)
    assert gone(0) == one_by_one
    assert gone(2) == one_by_one
