"""The file that says what a run's world does."""

from __future__ import annotations

from pathlib import Path

from agentnb.cli.script import read_script
from agentnb.load import load
from tests.cli.command_files import RECIPE, called


def test_a_script_reports_all_wrong_keys_at_once(there, capsys):
    Path("script.yaml").write_text("answer: {ask: [a]}\nagnts: {}\n")
    code, _, err = called(capsys, "run", "refunds.yaml", "-i", "ticket=a", "--script", "script.yaml")
    assert code == 1
    assert "script.yaml:1:1" in err
    assert "did you mean 'answers'?" in err
    assert "did you mean 'agents'?" in err


def test_a_script_is_a_mapping(there, capsys):
    Path("script.yaml").write_text("- a\n- b\n")
    code, _, err = called(capsys, "run", "refunds.yaml", "-i", "ticket=a", "--script", "script.yaml")
    assert code == 1
    assert "U903" in err


def test_a_run_ignores_the_part_of_a_script_for_the_judge(tmp_path):
    (tmp_path / "script.yaml").write_text("llm: {read: [a], judge: [yes]}\n")
    recipe = load(RECIPE)
    assert read_script(str(tmp_path / "script.yaml"), recipe) == {"llm": {"read": ["a"]}}
    assert read_script(str(tmp_path / "script.yaml"))["llm"].keys() == {"read", "judge"}
