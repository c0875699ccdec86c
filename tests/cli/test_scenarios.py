"""`agentnb run FILE --scenarios`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentnb.cli import script
from tests.cli.command_files import RECIPE, called, run_for_json

TESTS = """\
tests:
  - id: refund
    description: A refund is asked for
    inputs: {ticket: money back}
    expected_output: {topic: refund, closed: true}
    validation_logic: exact_match
  - id: answer
    description: The answer is nearly this
    inputs: {ticket: money back}
    expected_output: {response: "yes, please"}
    validation_logic: fuzzy
"""
WRONG = """\
  - id: wrong
    description: It is not so
    inputs: {ticket: a}
    expected_output: {topic: other}
    validation_logic: exact_match
"""
RUN = ("run", "tested.yaml", "--scenarios", "--script", "script.yaml")


@pytest.fixture(autouse=True)
def tested(there):
    """A recipe with two scenarios that pass, and one with a third that does not."""
    Path("tested.yaml").write_text(RECIPE + TESTS)
    Path("wrong.yaml").write_text(RECIPE + TESTS + WRONG)


def lines(out):
    """Return (mark, id) of each scenario that was printed, and the last line."""
    rows, _, last = out.rstrip().partition("\n\n")
    return [tuple(row.split()[:2]) for row in rows.splitlines()], last


def test_scenarios_that_pass(capsys):
    code, out, err = called(capsys, *RUN)
    assert (code, err) == (0, "")
    assert lines(out) == ([("passed", "refund"), ("passed", "answer")], "2 passed")


def test_a_failed_scenario_is_reported_by_the_exit_code(capsys):
    code, out, _ = called(capsys, "run", "wrong.yaml", "--scenarios", "--script", "script.yaml")
    assert code == 1
    assert lines(out) == ([("passed", "refund"), ("passed", "answer"), ("FAILED", "wrong")], "2 passed, 1 failed")
    assert "topic: expected 'other', found 'refund'" in out


def test_scenarios_as_json_are_one_object(capsys):
    code, document, codes = run_for_json(capsys, "run", "wrong.yaml", "--scenarios", "--script", "script.yaml")
    assert (code, document["ok"], document["passed"], document["failed"], codes) == (1, False, 2, 1, [])
    wrong = document["scenarios"][2]
    assert (wrong["id"], wrong["passed"], wrong["score"], wrong["status"]) == ("wrong", False, 0.0, "finished")
    assert (wrong["expected"], wrong["actual"]) == ({"topic": "other"}, {"topic": "refund"})
    assert wrong["mismatches"] == ["topic: expected 'other', found 'refund'"]


def test_scenarios_can_be_selected(capsys):
    _, out, _ = called(capsys, "run", "wrong.yaml", "--scenario", "answer", "--scenario", "refund", "--script",
                       "script.yaml")  # fmt: skip
    assert lines(out) == ([("passed", "refund"), ("passed", "answer")], "2 passed")


def test_an_unknown_scenario_is_a_problem(capsys):
    code, out, err = called(capsys, "run", "tested.yaml", "--scenario", "refnd")
    assert (code, out) == (1, "")
    assert "U909" in err
    assert "did you mean 'refund'?" in err


@pytest.mark.parametrize("word", ["--scenarios", "--scenario=refund"])
def test_a_recipe_without_scenarios_says_what_to_write(capsys, word):
    code, _, err = called(capsys, "run", "refunds.yaml", word)
    assert code == 1
    assert "X410: 'refunds' has no scenarios" in err
    assert "expected_output" in err


@pytest.mark.parametrize(("words", "named"), [(("-i", "ticket=a"), "--input"), (("--trace", "out.json"), "--trace")])
def test_options_of_a_single_run_are_rejected_with_scenarios(capsys, words, named):
    code, document, codes = run_for_json(capsys, *RUN, *words)
    assert (code, codes) == (1, ["U908"])
    assert document["problems"][0]["what"].startswith(named)
    assert not Path("out.json").exists()


def test_the_budget_of_steps_applies_to_each_scenario(capsys):
    _, document, codes = run_for_json(capsys, *RUN, "--max-steps", "2")
    assert [row["status"] for row in document["scenarios"]] == ["exhausted", "exhausted"]
    assert [row["steps"] for row in document["scenarios"]] == [2, 2]
    assert codes == ["X416", "X416"]


def test_chaos_depends_on_the_seed(capsys):
    words = ("--chaos", "error_rate=0.5", "--chaos", "latency_ms=0")
    actual = [
        tuple(row["passed"] for row in run_for_json(capsys, *RUN, *words, "--seed", str(seed))[1]["scenarios"])
        for seed in (*range(8), *range(8))
    ]
    assert actual[:8] == actual[8:]
    assert len(set(actual)) > 1


def test_chaos_at_a_rate_of_one_fails_every_call(capsys):
    code, document, codes = run_for_json(capsys, *RUN, "--chaos", "error_rate=1")
    assert (code, document["failed"], codes) == (1, 2, ["X100", "X100"])
    assert "made on purpose" in document["scenarios"][0]["told"]


@pytest.mark.parametrize(("word", "cure"), [("eror_rate=0.1", "did you mean 'error_rate'?"), ("error_rate=2", "0.1")])
def test_invalid_chaos_is_a_problem(capsys, word, cure):
    code, _, err = called(capsys, *RUN, "--chaos", word)
    assert code == 1
    assert "X415" in err
    assert cure in err


def test_chaos_for_a_single_run(capsys):
    words = ("run", "refunds.yaml", "-i", "ticket=a", "--script", "script.yaml")
    code, document, _ = run_for_json(capsys, *words, "--chaos", "error_rate=1")
    assert (code, document["status"]) == (1, "failed")
    assert "chaos struck" in document["error"]


def test_a_script_can_answer_for_the_judge(capsys):
    Path("tested.yaml").write_text(RECIPE + TESTS.replace("exact_match", "llm_judge"))
    judge = """llm: {judge: '{"score": 0.7, "passed": true, "reason": "It is closed."}'}\n"""
    Path("script.yaml").write_text(Path("script.yaml").read_text() + judge)
    code, document, _ = run_for_json(capsys, *RUN)
    assert (code, document["scenarios"][0]["score"]) == (0, 0.7)
    assert document["scenarios"][0]["reason"] == "It is closed."
    # The same script serves a single run, which has no judge.
    assert called(capsys, "run", "tested.yaml", "-i", "ticket=a", "--script", "script.yaml")[0] == 0


@pytest.mark.starts_programs
def test_no_question_is_asked_even_on_a_terminal():
    """On a terminal a run asks at once; scenarios must not, or they would hang where nobody sits."""
    pty = pytest.importorskip("pty")
    Path("script.yaml").write_text("agents: {reader: {topic: refund}}\n")
    words = [sys.executable, "-m", "agentnb", *RUN]
    ours, theirs = pty.openpty()
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True) as process:
        assert process.wait(60) == 1
    os.close(theirs)
    printed = os.read(ours, 10_000).decode()
    os.close(ours)
    assert "'ask' waits for a person" in printed
    assert "Refund it?" not in printed


def test_the_output_of_a_node_is_not_part_of_the_json(capsys, monkeypatch):
    monkeypatch.setattr(
        script, "_make_fixed", lambda agent: (agent[0], lambda **_: sys.stdout.write("noise") and agent[1])
    )
    code, out, err = called(capsys, *RUN, "--json")
    assert (code, json.loads(out)["ok"]) == (0, True)
    assert "noise" in err
