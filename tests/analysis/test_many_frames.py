"""The seven tables over many runs are those of each run, one below the other."""

from __future__ import annotations

import networkx as nx
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentnb as nb
from agentnb.errors import ExecutionError
from agentnb.trace.frames import NAMES
from tests.analysis.random_recipes import INPUTS, KEYS, programs


def below_each_other(runs, name):
    """Return what a table over many runs must be: the tables of each run, concatenated."""
    parts = []
    for run in runs:
        part = run.trace.frames[name].astype(object)
        part.insert(0, "run_id", run.run_id)
        parts.append(part)
    # Not by concat: pandas 2 makes NaN of NA where a whole column of one part is NA.
    return pd.DataFrame({name: pd.Series([cell for part in parts for cell in part[name]], dtype=object)
                         for name in parts[0].columns})  # fmt: skip


def same(runs, frames=None):
    frames = nb.frames(runs) if frames is None else frames
    for name in NAMES:
        expected, actual = below_each_other(runs, name), frames[name]
        assert list(actual.columns) == list(expected.columns)
        for column in expected.columns:
            one, other = (list(map(repr, table[column].astype(object))) for table in (expected, actual))
            assert one == other, (name, column)


def count(limit, name="count", run_id=None, **options):
    graph = nx.DiGraph(name=name, entry="add")
    graph.add_node("add", function=lambda n: {"n": n + 1, "log": nb.Append(n)}, inputs={"n": "n"})
    graph.add_node("look", kind="tool", function="look_up", inputs={"n": "n"})
    graph.add_edge("add", "add", when=f"n < {limit}")
    graph.add_edge("add", "look")
    session = nb.Session(nb.load(graph), {"n": 0}, tools={"look_up": lambda n: {"found": n}}, run_id=run_id, **options)
    session.run()
    return session


def test_each_table_begins_with_the_run_and_has_the_columns_of_a_trace():
    frames = nb.frames([count(3, run_id="a"), count(4, run_id="b")])
    for name in NAMES:
        assert list(frames[name].columns) == ["run_id", *count(2).trace.frames[name].columns]
    assert str(frames.steps["run_id"].dtype) == "category"
    assert list(frames.calls["run_id"]) == ["a", "b"]
    assert "frames of 2 runs, 9 steps" in repr(frames)


def test_runs_of_one_recipe_of_several_and_forks():
    a, b = count(3), count(5)
    fork = a.fork(at=2, edit={"n": 7})
    fork.run()
    a.edit({"note": "by hand"})
    same([a, b, fork])


@pytest.mark.parametrize("name", ["refine", "fanout", "search", "research", "document", "rag", "moderation"])
def test_nested_runs(name):
    runs = [nb.Session(nb.samples(name), {}, validate_inputs=False, seed=seed) for seed in range(3)]
    for number, run in enumerate(runs):
        run.run(max_steps=30 + number)
    same(runs)


def test_runs_with_events():
    runs = [nb.Session(nb.samples(name)) for name in ("team", "team", "incident")]
    for run in runs[:2]:
        run.emit("goal.created", {"goal": "batteries"})
        run.run()
    same(runs)


def test_a_failed_run_and_a_run_without_steps():
    def fails(n):
        raise ValueError("no")

    graph = nx.DiGraph(name="fails", entry="add")
    graph.add_node("add", function=fails, inputs={"n": "n"})
    failed, fresh = (nb.Session(nb.load(graph), {"n": 1}) for _ in range(2))
    failed.run()
    same([failed, fresh, count(2)])


def test_a_store_is_a_set_of_runs(tmp_path):
    runs = [count(limit, run_id=f"run {limit}") for limit in (2, 3)]
    for run in runs:
        run.save(tmp_path / "runs.db")
    same([nb.open(tmp_path / "runs.db", run.run_id) for run in runs], nb.frames(tmp_path / "runs.db"))


def test_no_runs_are_empty_tables():
    frames = nb.frames([])
    assert [len(frames[name]) for name in NAMES] == [0] * 7
    assert list(frames.steps.columns)[:3] == ["run_id", "step", "node"]


def test_a_table_is_independent_of_the_next_access():
    frames = nb.frames([count(2)])
    table = frames.steps
    table["more"] = 1
    assert "more" not in frames.steps.columns


def test_mistakes_are_reported():
    run = count(2)
    with pytest.raises(ExecutionError, match="A102"):
        nb.frames([run, run])
    with pytest.raises(ExecutionError, match="A101"):
        nb.frames([run, 3])


@given(st.lists(programs(), min_size=1, max_size=3), st.sampled_from(KEYS), st.integers(0, 60))
def test_random_runs(found, key, value):
    runs = [run for program in found for run in (program.session(), program.session({**INPUTS, key: value}))]
    same(runs)
