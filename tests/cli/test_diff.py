"""`agentnb diff`, where two recorded runs parted."""

from __future__ import annotations

import json

import pytest

from tests.cli.command_files import called
from tests.cli.test_stores import counting, store_run


def test_two_stored_runs_are_compared(there, capsys):
    store_run("one", recipe=counting(end=lambda board: {"out": board["n"]}))
    store_run("two", recipe=counting(end=lambda board: {"out": 7}))
    code, out, err = called(capsys, "diff", "runs.db", "runs.db", "--run-a", "one", "--run-b", "two", "-o", "both.svg")
    assert (code, err) == (1, "")
    assert "first divergence, step 4, 'end': 'out' was written as 3 in a and 7 in b" in out
    assert "what led to it in b:" in out
    assert (there / "both.svg").read_text(encoding="utf-8").startswith("<svg")


def test_its_json_has_the_divergence_the_slices_and_all_steps(there, capsys):
    store_run("one", recipe=counting(end=lambda board: {"password": "hunter2-hunter2", "n": 5}))
    store_run("two", recipe=counting(end=lambda board: {"password": "swordfish-9", "n": 6}))
    code, out, _ = called(capsys, "diff", "runs.db", "runs.db", "--run-a", "one", "--run-b", "two", "--json")
    document = json.loads(out)
    assert code == 1
    assert [row["change"] for row in document["steps"]] == ["same", "same", "same", "differs"]
    assert document["first_divergence"]["path"] == "n"
    assert document["slices"]["a"][0]["via"] == "write"
    assert "hunter2" not in out
    assert "swordfish" not in out


def test_runs_that_do_not_differ_are_reported_by_the_exit_code(there, capsys):
    store_run("one")
    store_run("two").trace.to_json("two.json")
    code, out, _ = called(capsys, "diff", "runs.db", "two.json", "--run-a", "one")
    assert (code, "do not differ" in out) == (0, True)


def test_a_run_that_is_not_there_is_a_problem(there, capsys):
    store_run("one")
    with pytest.raises(SystemExit):
        called(capsys, "diff", "runs.db")
    code, _, err = called(capsys, "diff", "runs.db", "runs.db", "--run-a", "three")
    assert (code, "three" in err) == (1, True)
