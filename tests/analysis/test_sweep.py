"""Many runs of one recipe; what fails, hangs or dies is a row."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import pandas as pd
import pytest

import agentnb as nb
from agentnb.analysis.sweep_jobs import Jobs, SelectedJobs, to_inputs
from agentnb.analysis.sweep_workers import SweepSettings
from agentnb.errors import ExecutionError
from tests.analysis.sweep_recipes import squares


def swept(inputs, recipe=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks where there are threads
        return nb.sweep(recipe or squares(), inputs, progress=False, **options)


def rows(found):
    return found.runs.drop(columns="seconds").to_dict("records")


def test_each_run_is_a_row_in_the_order_of_the_inputs():
    sweep = swept([{"n": n} for n in (4, 1, 2)])
    assert list(sweep.runs.columns) == [
        "run_id", "inputs", "seed", "status", "steps", "seconds", "tokens", "cost", "outputs", "error",
    ]  # fmt: skip
    assert [row["outputs"]["out"] for row in rows(sweep)] == [16, 1, 4]
    assert set(sweep.runs["status"]) == {"finished"}
    assert repr(sweep) == "<Sweep of 3 runs: 3 finished>"
    assert sweep.session(sweep.runs["run_id"][2]).board["out"] == 4
    assert list(sweep.frames.steps["run_id"]) == list(sweep.runs["run_id"])


def test_a_run_that_fails_hangs_or_dies_is_a_row():
    sweep = swept([{"n": n} for n in range(9)], timeout=1.0)
    assert list(sweep.runs["status"]) == [
        "finished", "finished", "finished", "failed", "finished", "timeout", "finished", "killed", "finished",
    ]  # fmt: skip
    assert "ValueError: three" in sweep.failed["error"][0]
    assert "longer than 1 seconds" in sweep.failed["error"][1]
    assert "killed" in sweep.failed["error"][2]


def test_every_executor_gives_the_same_results():
    inputs = [{"n": n} for n in (1, 2, 3, 4)]
    expected = rows(swept(inputs))
    with ThreadPoolExecutor(2) as threads:
        assert rows(swept(inputs, executor=threads)) == expected
    with ProcessPoolExecutor(1) as processes:
        assert rows(swept(inputs, executor=processes)) == expected


def test_a_killed_process_of_the_callers_pool_is_a_row_and_the_other_runs_are_executed():
    inputs = [{"n": n} for n in (1, 7, 2, 4, 6, 8)]
    with ProcessPoolExecutor(1) as processes:
        sweep = swept(inputs, executor=processes)
    assert list(sweep.runs["status"]) == ["finished", "killed", "finished", "finished", "finished", "finished"]
    assert rows(sweep) == rows(swept(inputs))


def test_runs_that_an_executor_lost_are_repeated_individually():
    class Careless(ThreadPoolExecutor):
        """Loses every chunk that has a 7 in it, as a cluster does whose worker dies of it."""

        def submit(self, function, chunk):
            def run():
                if any(job.inputs["n"] == 7 for job in chunk):
                    raise OSError("a worker was lost")
                return function(chunk)

            return super().submit(run)

    with Careless(1) as threads:
        sweep = swept([{"n": n} for n in (1, 2, 7, 4, 6, 8, 9, 10, 11, 12, 13, 14)], executor=threads, concurrency=4)
    assert [row["inputs"]["n"] for row in rows(sweep) if row["status"] == "killed"] == [7]
    assert set(sweep.runs["status"]) == {"finished", "killed"}
    assert "a worker was lost" in sweep.failed["error"][0]


@pytest.mark.filterwarnings("ignore:a _thread.lock is on the board by reference")
def test_a_value_that_cannot_be_pickled_is_shown_by_its_text():
    graph = nx.DiGraph(name="locks", entry="lock")
    graph.add_node("lock", function=lambda n: {"lock": threading.Lock(), "out": n}, inputs={"n": "n"})
    recipe = nb.load(graph)
    sweep = swept([{"n": 1}], recipe)
    with ThreadPoolExecutor(1) as threads:
        same = swept([{"n": 1}], recipe, executor=threads)
    for each in (sweep, same):
        assert list(each.runs["status"]) == ["finished"]
        assert each.runs["outputs"][0]["out"] == 1
        assert "lock" in repr(each.runs["outputs"][0]["lock"])
        with pytest.raises(nb.StoreError, match="L413"):
            each.session(each.runs["run_id"][0])


def test_the_runs_of_a_sweep_without_a_store_come_in_the_order_of_the_table_and_are_independent():
    sweep = swept([{"n": n} for n in range(8, 200)])
    assert [run.run_id for run in sweep.iter_runs()] == list(sweep.runs["run_id"])
    first = sweep.session(sweep.runs["run_id"][0])
    first.back().edit({"n": 3})
    first.run()
    assert (first.status, sweep.session(first.run_id).board["out"]) == ("failed", 64)


def test_inputs_may_be_a_table_and_are_run_with_every_seed():
    sweep = swept(pd.DataFrame({"n": [1, 2]}), seeds=[0, 1])
    assert [(row["inputs"]["n"], row["seed"]) for row in rows(sweep)] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert sweep.runs["run_id"].is_unique


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
    resumed = swept([{"n": 1}, {"n": 2}, {"n": 3}], recipe, store=tmp_path / "runs.db")
    assert calls.read_text() == "xxx"
    assert rows(resumed)[:2] == rows(first)
    assert list(nb.runs(tmp_path / "runs.db")["status"]) == ["finished"] * 3
    assert nb.coverage(resumed).runs == 3


def test_a_sweep_that_is_interrupted_keeps_what_has_finished(tmp_path):
    class Stop(BaseException):
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


def test_a_recipe_that_cannot_run_is_a_row_and_a_lambda_runs_in_worker_processes():
    graph = nx.DiGraph(name="lambdas", entry="add")
    graph.add_node("add", function=lambda n: {"out": n + 1}, inputs={"n": "n"})
    recipe = nb.load(graph)
    assert rows(swept([{"n": 1}], recipe))[0]["outputs"]["out"] == 2
    with ProcessPoolExecutor(1) as processes:  # by cloudpickle, which Dask brings
        assert rows(swept([{"n": 1}], recipe, executor=processes))[0]["outputs"]["out"] == 2
    with ProcessPoolExecutor(1) as processes, pytest.raises(ExecutionError, match="A111"):
        swept([{"n": 1}], executor=processes, tools={"lock": threading.Lock().acquire})
    assert rows(swept([{"n": 1}], budget={"max_stepz": 3}))[0]["status"] == "failed"


def test_secrets_are_masked_in_the_table():
    graph = nx.DiGraph(name="secret", entry="sign")
    graph.add_node("sign", function=lambda password: {"password": password + "!"}, inputs={"password": "password"})
    sweep = swept([{"password": "hunter2-hunter2"}], nb.load(graph))
    assert "hunter2" not in sweep.runs.to_string()


@dataclass
class Login:
    password: str


class Key:
    def __repr__(self):
        return "Key(token='hunter2-hunter2')"


@pytest.mark.filterwarnings("ignore:a tests.analysis.test_sweep.Key is on the board by reference")
def test_secrets_in_objects_are_masked_in_the_table():
    graph = nx.DiGraph(name="secret", entry="sign")
    graph.add_node("sign", function=lambda login: {"more": [login], "key": Key()}, inputs={"login": "login"})
    with ThreadPoolExecutor(1) as threads:
        sweep = swept([{"login": Login("hunter2-hunter2")}], nb.load(graph), executor=threads)
    assert list(sweep.runs["status"]) == ["finished"]
    assert "hunter2" not in sweep.runs.to_csv() + sweep.runs.to_string()


def test_mistakes_are_reported():
    with pytest.raises(ExecutionError, match="A110"):
        swept(3)


def test_progress_is_one_line_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with ThreadPoolExecutor(1) as threads:
        nb.sweep(squares(), [{"n": 1}, {"n": 2}], executor=threads)
    assert "2/2" in capsys.readouterr().err


# -- several recipes and models, shared loops, Parquet, Dask, a killed parent ------------------------------------------


def adding(more, name):
    graph = nx.DiGraph(name=name, entry="add")
    graph.add_node("add", function=lambda n: {"out": n + more}, inputs={"n": "n"})
    return nb.load(graph)


def test_several_recipes_are_run_with_all_inputs():
    sweep = swept([{"n": 1}, {"n": 2}], {"one": adding(1, "a"), "ten": adding(10, "a")})
    assert [(row["recipe"], row["outputs"]["out"]) for row in rows(sweep)] == [
        ("one", 2), ("one", 3), ("ten", 11), ("ten", 12),
    ]  # fmt: skip
    assert sweep.session(sweep.runs["run_id"][3]).recipe.nodes["add"].params["function"](1) == {"out": 11}
    assert list(swept([{"n": 1}], [adding(1, "a"), adding(2, "b")]).runs["recipe"]) == ["a", "b"]


@pytest.mark.parametrize("recipes", [[], [adding(1, "a"), adding(2, "a")]])
def test_recipes_that_cannot_be_distinguished_are_a_problem(recipes):
    with pytest.raises(ExecutionError, match="A113"):
        nb.sweep(recipes, [{"n": 1}], progress=False)


def test_several_models_run_with_each_of_the_inputs():
    graph = nx.DiGraph(name="asks", entry="ask")
    graph.add_node("ask", kind="llm", prompt="{{ n }}?")
    models = {"short": ["yes"], "long": ["yes, it is"]}
    sweep = swept([{"n": 1}, {"n": 2}], nb.load(graph), models=models)
    assert [(row["model"], row["outputs"]["ask"]) for row in rows(sweep)] == [
        ("short", "yes"), ("long", "yes, it is"),
    ] * 2  # fmt: skip
    assert sweep.runs["run_id"].is_unique


def waiting(seconds):
    async def wait(n):
        await asyncio.sleep(seconds if n else 30)
        return {"out": n}

    graph = nx.DiGraph(name="waiting", entry="wait")
    graph.add_node("wait", function=wait, inputs={"n": "n"})
    return nb.load(graph)


def test_async_runs_share_a_loop_with_a_limit():
    counts_at_once, max_at_once = [], []

    async def work(n):
        counts_at_once.append(n)
        max_at_once.append(len(counts_at_once))
        await asyncio.sleep(0.01)
        counts_at_once.remove(n)
        return {"out": n}

    graph = nx.DiGraph(name="shared", entry="work")
    graph.add_node("work", function=work, inputs={"n": "n"})
    with ThreadPoolExecutor(1) as threads:
        sweep = swept([{"n": n} for n in range(1, 13)], nb.load(graph), executor=threads, concurrency=3)
    assert set(sweep.runs["status"]) == {"finished"}
    assert max(max_at_once) == 3
    with ThreadPoolExecutor(1) as threads:
        status = swept([{"n": 0}, {"n": 1}], waiting(0.01), executor=threads, timeout=0.2).runs["status"]
    assert list(status) == ["timeout", "finished"]


def test_runs_are_written_to_parquet_and_a_sweep_of_them_continues(tmp_path, monkeypatch):
    monkeypatch.setattr("agentnb.analysis.sweep_results._PART", 2)
    first = swept([{"n": n} for n in (1, 2, 3, 4)], parquet=tmp_path)
    assert sorted(path.name for path in (tmp_path / "steps").glob("*")) == [
        "part-000001.parquet",
        "part-000002.parquet",
    ]
    resumed = swept([{"n": n} for n in (1, 2, 3, 4, 6)], parquet=tmp_path)
    assert repr(resumed) == "<Sweep of 5 runs: 4 known, 1 finished>"
    assert [(row["status"], row["inputs"], row["outputs"]) for row in rows(resumed)] == [
        (status, {"n": n}, outputs)
        for n, status, outputs in [
            (1, "finished", {"n": 1, "out": 1}),
            (2, "finished", {"n": 2, "out": 4}),
            (3, "failed", {"n": 3}),
            (4, "finished", {"n": 4, "out": 16}),
            (6, "finished", {"n": 6, "out": 36}),
        ]
    ]
    assert set(resumed.frames.steps["run_id"]) == set(resumed.runs["run_id"])
    assert sorted(resumed.frames["writes"].query("key == 'out'")["new"].astype(int)) == [1, 4, 16, 36]
    with pytest.raises(nb.StoreError, match="L413"):
        first.session(first.runs["run_id"][0])
    with pytest.raises(ExecutionError, match="A113"):
        swept([{"n": 1}], parquet=tmp_path, store="memory:")
    (tmp_path / "runs" / "part-000001.parquet").write_bytes(b"no")
    with pytest.raises(nb.StoreError, match="A114"):
        swept([{"n": 1}], parquet=tmp_path)


def test_charts_show_the_runs():
    sweep = swept([{"n": n} for n in (1, 2, 3)], seeds=[0, 1])
    assert repr(sweep.charts) == "<charts: outcomes, durations, outputs>"
    for name in ("outcomes", "durations", "outputs"):
        assert values_of(getattr(sweep.charts, name))
    assert sum(row["runs"] for row in values_of(sweep.charts.outcomes)) == 6


def values_of(chart):
    spec = chart.to_dict()
    return spec["data"].get("values") or spec["datasets"][spec["data"]["name"]]


PARENT = """if True:
    import agentnb as nb
    from tests.analysis.sweep_recipes import slowly
    if __name__ == "__main__":
        nb.sweep(slowly(), [{"n": n} for n in range(200)], store="runs.db", progress=False)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a killed process needs signals")
@pytest.mark.starts_programs
def test_a_sweep_whose_process_was_killed_repeats_no_finished_run(tmp_path):
    store = tmp_path / "runs.db"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE
    )
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end and made(tmp_path) < 110:
            time.sleep(0.02)
    finally:
        parent.send_signal(signal.SIGKILL)
    parent.communicate(timeout=60)  # until its workers, which have inherited the pipe, have ended too
    stored, before = len(nb.runs(store)), made(tmp_path)
    assert 0 < stored < 200
    subprocess.run([sys.executable, "-c", PARENT], cwd=tmp_path, env=environment(tmp_path), check=True)
    assert list(nb.runs(store)["status"]) == ["finished"] * 200
    assert made(tmp_path) - before == 200 - stored


def environment(folder):
    root = Path(__file__).parents[2]
    return {**os.environ, "PYTHONPATH": str(root), "SWEEPING": str(folder / "made"), "PYTHONWARNINGS": "ignore"}


def made(folder):
    """Return how many runs have been made; each adds a byte."""
    path = folder / "made"
    return path.stat().st_size if path.exists() else 0


@pytest.mark.starts_programs
def test_a_dask_cluster_of_two_processes_gives_the_same_results():
    inputs = [{"n": n} for n in (1, 2, 3, 4, 6, 8)]
    expected = rows(swept(inputs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        distributed = pytest.importorskip("distributed")
        with (
            distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None, processes=True) as cluster,
            distributed.Client(cluster) as client,
        ):
            pids = set(client.run(os.getpid).values())
            assert len(pids) == 2
            sweep = swept(inputs, executor=client.get_executor())
            assert rows(sweep) == expected
            swept([{"n": 1}], adding(1, "of a cell"), executor=client.get_executor())  # a lambda travels, too
    assert sweep.session(sweep.runs["run_id"][0]).board["out"] == 1


@pytest.mark.parametrize(
    ("option", "code"),
    [
        ({"seed": 3}, "A117"), ({"run_id": "x"}, "A117"), ({"timout": 3}, "A117.*[Dd]id you mean.*timeout"),
        ({"seeds": ["a"]}, "A119"), ({"seeds": "ab"}, "A119"), ({"timeout": 0}, "A115"), ({"timeout": -1}, "A115"),
        ({"timeout": "soon"}, "R275"), ({"concurrency": 0}, "A115"),
    ],
)  # fmt: skip
def test_an_option_that_no_run_could_use_is_a_problem_at_once(option, code):
    with pytest.raises(ExecutionError, match=f"(?s){code}"):
        swept([{"n": 1}], **option)


# -- the list of runs --------------------------------------------------------------------------------------------------


def make_jobs(inputs, **words):
    work = SweepSettings({"": squares(), "other": squares()}, **words)
    return Jobs(work, to_inputs(inputs), [3, 4])


def test_jobs_are_created_on_demand_and_found_by_their_ids():
    inputs = [{"n": 1}, {"n": 2}, {"n": 1}]
    jobs = make_jobs(inputs, models={"a": ["x"], "b": ["y"]})
    rows = [(job.recipe, job.inputs["n"], job.seed, job.model) for job in jobs]
    assert rows == [(recipe, inputs_row["n"], seed, model) for recipe in ("", "other") for inputs_row in inputs
                    for seed in (3, 4) for model in ("a", "b")]  # fmt: skip
    assert [job.number for job in jobs] == list(range(24))
    assert [job.run_id for job in jobs] == list(jobs.iter_ids())
    assert len(set(jobs.iter_ids())) == 24
    repeated = [job.run_id for job in jobs[:12] if job.run_id.endswith("-1")]
    assert repeated == [f"{job.run_id}-1" for job in jobs[:4]]
    assert all(jobs.find(job.run_id) == job for job in jobs)
    unknown = ["", "squares", "squares-1", f"{jobs[0].run_id}-2", f"squares-{'0' * 16}"]
    assert [jobs.find(run_id) for run_id in unknown] == [None] * len(unknown)
    assert SelectedJobs(jobs, [5, 2])[:] == [jobs[5], jobs[2]]


def test_a_table_and_its_rows_are_the_same_jobs():
    table = pd.DataFrame({"n": range(150)})
    jobs = make_jobs(table)
    assert jobs[:] == make_jobs([{"n": number} for number in range(150)])[:]
    table["n"] = 0
    assert jobs[299].inputs == {"n": 149}


def test_a_long_list_of_runs_takes_little_memory():
    inputs = [{"n": number} for number in range(5_000)]
    make_jobs(inputs[:1])
    tracemalloc.start()
    jobs = make_jobs(inputs)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held / len(jobs) < 64  # bytes
