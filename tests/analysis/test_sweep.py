"""test_sweep: many runs of one recipe; what fails, hangs or dies is a row."""

from __future__ import annotations

import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import networkx as nx
import pandas as pd
import pytest

import agentnb as nb
from agentnb.errors import ExecutionError
from tests.analysis.sweeping import squares


def swept(inputs, recipe=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks where there are threads
        return nb.sweep(recipe or squares(), inputs, progress=False, **options)


def rows(found):
    return found.runs.drop(columns="seconds").to_dict("records")


def test_each_run_is_a_row_in_the_order_of_the_inputs():
    found = swept([{"n": n} for n in (4, 1, 2)])
    assert list(found.runs.columns) == [
        "run_id", "inputs", "seed", "status", "steps", "seconds", "tokens", "cost", "outputs", "error",
    ]  # fmt: skip
    assert [row["outputs"]["out"] for row in rows(found)] == [16, 1, 4]
    assert set(found.runs["status"]) == {"finished"}
    assert repr(found) == "<Sweep of 3 runs: 3 finished>"
    assert found.session(found.runs["run_id"][2]).board["out"] == 4
    assert list(found.frames.steps["run_id"]) == list(found.runs["run_id"])


def test_a_run_that_fails_hangs_or_dies_is_a_row():
    found = swept([{"n": n} for n in range(9)], timeout=1.0)
    assert list(found.runs["status"]) == [
        "finished", "finished", "finished", "failed", "finished", "timeout", "finished", "killed", "finished",
    ]  # fmt: skip
    assert "ValueError: three" in found.failed["error"][0]
    assert "longer than 1 seconds" in found.failed["error"][1]
    assert "killed" in found.failed["error"][2]


def test_the_results_are_the_same_whichever_executor_runs_them():
    inputs = [{"n": n} for n in (1, 2, 3, 4)]
    here = rows(swept(inputs))
    with ThreadPoolExecutor(2) as threads:
        assert rows(swept(inputs, executor=threads)) == here
    with ProcessPoolExecutor(1) as processes:
        assert rows(swept(inputs, executor=processes)) == here


def test_inputs_may_be_a_table_and_are_run_with_every_seed():
    found = swept(pd.DataFrame({"n": [1, 2]}), seeds=[0, 1])
    assert [(row["inputs"]["n"], row["seed"]) for row in rows(found)] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert found.runs["run_id"].is_unique


def test_a_sweep_with_a_store_does_not_repeat_finished_runs(tmp_path):
    calls = tmp_path / "calls"

    def counted(n):
        with calls.open("a") as file:
            file.write("x")
        return {"out": n}

    graph = nx.DiGraph(name="counted", entry="count")
    graph.add_node("count", function=counted, inputs={"n": "n"})
    recipe = nb.load(graph)
    first = swept([{"n": 1}, {"n": 2}], recipe, store=tmp_path / "runs.db")
    again = swept([{"n": 1}, {"n": 2}, {"n": 3}], recipe, store=tmp_path / "runs.db")
    assert calls.read_text() == "xxx"
    assert rows(again)[:2] == rows(first)
    assert list(nb.runs(tmp_path / "runs.db")["status"]) == ["finished"] * 3
    assert nb.coverage(again).runs == 3


def test_a_sweep_that_is_interrupted_keeps_what_has_finished(tmp_path):
    class Stop(Exception):
        pass

    class Impatient(ThreadPoolExecutor):
        count = 0

        def submit(self, *words, **more):
            self.count += 1
            if self.count > 3:
                raise Stop
            return super().submit(*words, **more)

    inputs = [{"n": n} for n in (0, 1, 2, 4, 6, 8, 9, 10)]
    with Impatient(1) as executor, pytest.raises(Stop):
        swept(inputs, executor=executor, store=tmp_path / "runs.db")
    finished = len(nb.runs(tmp_path / "runs.db"))
    assert 0 < finished < 8
    assert len(swept(inputs, store=tmp_path / "runs.db")) == len(nb.runs(tmp_path / "runs.db")) == 8


def test_a_recipe_that_cannot_be_made_a_run_of_is_a_row_and_a_lambda_runs_in_processes():
    graph = nx.DiGraph(name="lambdas", entry="add")
    graph.add_node("add", function=lambda n: {"out": n + 1}, inputs={"n": "n"})
    recipe = nb.load(graph)
    assert rows(swept([{"n": 1}], recipe))[0]["outputs"]["out"] == 2
    with ProcessPoolExecutor(1) as processes, pytest.raises(ExecutionError, match="A111"):
        swept([{"n": 1}], recipe, executor=processes)
    assert rows(swept([{"n": 1}], budget={"max_stepz": 3}))[0]["status"] == "failed"


def test_secrets_are_masked_in_the_table():
    graph = nx.DiGraph(name="secret", entry="sign")
    graph.add_node("sign", function=lambda password: {"password": password + "!"}, inputs={"password": "password"})
    found = swept([{"password": "hunter2-hunter2"}], nb.load(graph))
    assert "hunter2" not in found.runs.to_string()


def test_mistakes_are_told():
    with pytest.raises(ExecutionError, match="A110"):
        swept(3)


def test_a_progress_bar_is_a_line_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with ThreadPoolExecutor(1) as threads:
        nb.sweep(squares(), [{"n": 1}, {"n": 2}], executor=threads)
    assert "2/2" in capsys.readouterr().err
