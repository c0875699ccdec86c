"""What is said of a run that is not there, or is there already."""

from __future__ import annotations

from agentnb.store.run_errors import make_duplicate_error, make_empty_store_error, make_missing_run_error


def test_a_missing_run_is_reported_with_the_newest_ones():
    few = make_missing_run_error("on", ["one", "two"], 2, "runs.db").problems[0]
    assert (few.code, few.where) == ("L413", "runs.db")
    assert few.why == "its runs are: 'one', 'two'"
    assert few.do == "did you mean 'one'?"
    many = make_missing_run_error("xyz", [f"run-{number}" for number in range(9, 0, -1)], 900, "runs.db").problems[0]
    assert many.why == "it has 900 runs; the newest are: 'run-9', 'run-8', 'run-7', 'run-6', 'run-5'"
    assert "nb.runs" in many.do
    assert make_missing_run_error("xyz", [], 0, "runs.db").problems[0].why.endswith("none")


def test_a_store_without_runs_and_a_duplicate_id_are_reported():
    assert make_empty_store_error("runs.db").problems[0].code == "L413"
    assert "'one'" in make_duplicate_error("one", "runs.db").problems[0].what
