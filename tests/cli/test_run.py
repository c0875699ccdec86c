"""test_run: `agentnb run` of one run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentnb import cli
from agentnb.trace.trace import SimulationTrace
from tests.cli.making import RECIPE, called


def test_run_prints_a_line_a_step_and_the_board(there, capsys):
    code, out, _ = called(capsys, "run", "refunds.yaml", "--input", "ticket=I want my money", "--script", "script.yaml")
    assert code == 0
    steps, _, end = out.partition("\n\n")
    assert [line.split()[1] for line in steps.splitlines()] == ["read", "sort", "ask", "close"]
    assert "topic = 'refund'" in steps
    assert "finished after 4 steps" in end
    assert "'I want my money'" in end
    assert "closed" in end


def test_run_as_json_is_one_object(there, capsys):
    code, out, err = called(capsys, "run", "refunds.yaml", "-i", "ticket=a", "--script", "script.yaml", "--json")
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert (told["status"], told["steps"], told["error"], told["current"]) == ("finished", 4, None, None)
    assert told["problems"] == []
    assert told["board"]["topic"] == "refund"
    assert told["board"]["response"] == "yes please"


@pytest.mark.parametrize(
    ("word", "value"), [("n=3", 3), ("n=text", "text"), ('n="3"', "3"), ("n=[1, 2]", [1, 2]), ("n=", "")]
)
def test_an_input_is_json_where_it_is_json(there, capsys, word, value):
    _, out, _ = called(capsys, "run", "refunds.yaml", "-i", "ticket=a", "-i", word, "--script", "script.yaml", "--json")
    assert json.loads(out)["board"]["n"] == value


def test_an_input_that_is_declared_as_text_is_text(there, capsys):
    _, out, _ = called(capsys, "run", "refunds.yaml", "-i", "ticket=4711", "--script", "script.yaml", "--json")
    assert json.loads(out)["board"]["ticket"] == "4711"


def test_an_input_needs_a_value(there, capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["run", "refunds.yaml", "--input", "ticket"])
    assert left.value.code == 2
    assert "KEY=VALUE" in capsys.readouterr().err


def test_run_masks_secrets(there, capsys):
    words = ("run", "refunds.yaml", "-i", "ticket=a", "-i", "api_key=sk-123", "--script", "script.yaml")
    for more in ([], ["--json"]):
        _, out, _ = called(capsys, *words, *more)
        assert "api_key" in out
        assert "sk-123" not in out


def test_run_without_an_answer_waits_and_says_so(there, capsys):
    Path("script.yaml").write_text("agents: {reader: {topic: refund}}\n")
    code, out, err = called(capsys, "run", "refunds.yaml", "-i", "ticket=a", "--script", "script.yaml")
    assert code == 4
    assert "waiting after 2 steps" in out
    assert "'ask' waits for a person" in err
    assert "--script" in err


def test_run_stops_at_its_budget(there, capsys):
    code, out, _ = called(
        capsys, "run", "endless.yaml", "-i", "ticket=a", "--script", "script.yaml", "--max-steps", "2", "--json"
    )
    assert (code, json.loads(out)["status"], json.loads(out)["steps"]) == (3, "exhausted", 2)


def test_run_tells_what_failed(there, capsys):
    Path("script.yaml").write_text("agents: {reader: 7}\n")
    Path("refunds.yaml").write_text(RECIPE)
    code, out, _ = called(capsys, "run", "refunds.yaml", "-i", "ticket=a", "--script", "absent.yaml")
    assert code == 1
    assert out == ""


def test_run_refuses_a_broken_recipe_before_it_runs(there, capsys):
    code, out, err = called(capsys, "run", "broken.yaml", "-i", "ticket=a")
    assert (code, out) == (1, "")
    assert "'srot'" in err


def test_problems_as_json(there, capsys):
    code, out, err = called(capsys, "run", "broken.yaml", "--json")
    assert (code, err) == (1, "")
    assert json.loads(out)["problems"][0]["severity"] == "error"


def test_run_writes_the_trace(there, capsys):
    called(capsys, "run", "refunds.yaml", "-i", "ticket=a", "--script", "script.yaml", "--trace", "out.json")
    assert [step.node_id for step in SimulationTrace.read("out.json").steps] == ["read", "sort", "ask", "close"]


def test_a_place_that_cannot_be_written_is_a_problem(there, capsys):
    words = ("run", "refunds.yaml", "-i", "ticket=a", "--script", "script.yaml", "--trace", "no/such/out.json")
    code, _, err = called(capsys, *words)
    assert code == 1
    assert "no/such/out.json" in err
    assert "Traceback" not in err


def test_a_requirement_that_does_not_hold_is_told_with_the_recipes_own_words(tmp_path, capsys):
    file = tmp_path / "needs.yaml"
    rule = "requirements: [{variable: ticket, operator: eq, value: 1, error_message: A ticket is needed.}]\n"
    file.write_text(RECIPE + rule)
    code, out, err = called(capsys, "run", str(file), "-i", "ticket=a")
    assert (code, "failed after 0 steps" in out) == (1, True)
    assert "X121: A ticket is needed." in err
    assert err.count("A ticket is needed.") == 1


def test_a_run_that_is_used_up_names_its_limit(there, capsys):
    words = ("run", "refunds.yaml", "-i", "ticket=a", "--script", "script.yaml", "--max-steps", "2")
    code, out, _ = called(capsys, *words)
    assert code == 3
    assert "exhausted after 2 steps: its max_steps is used up" in out
    assert json.loads(called(capsys, *words, "--json")[1])["limit"] == "max_steps"
