"""test_recipes: `agentnb check` and `agentnb draw`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.making import called


def test_check_says_that_a_good_recipe_is_good(there, capsys):
    code, out, _ = called(capsys, "check", "refunds.yaml")
    assert (code, out) == (0, "refunds.yaml: no problems\n")


def test_check_prints_the_problems_of_every_file(there, capsys):
    code, out, _ = called(capsys, "check", "broken.yaml", "refunds.yaml", "absent.yaml")
    assert code == 1
    assert "'srot'" in out
    assert "broken.yaml:13:" in out
    assert "did you mean 'sort'?" in out
    assert "refunds.yaml: no problems" in out
    assert "absent.yaml: 1 error" in out


def test_check_as_json(there, capsys):
    code, out, _ = called(capsys, "check", "--json", "broken.yaml", "refunds.yaml")
    told = json.loads(out)
    assert (code, told["ok"], told["files"]["refunds.yaml"]) == (1, False, [])
    assert {"code", "what", "where", "why", "do", "severity"} == set(told["files"]["broken.yaml"][0])


@pytest.mark.parametrize(("file", "begins"), [("out.svg", "<"), ("out.dot", "digraph"), ("out.mmd", "flowchart")])
def test_draw_writes_what_the_suffix_says(there, capsys, file, begins):
    code, out, _ = called(capsys, "draw", "refunds.yaml", "-o", file)
    assert code == 0
    assert file in out
    assert Path(file).read_text().lstrip().startswith(begins)
    assert "close" in Path(file).read_text()


def test_draw_as_json(there, capsys):
    _, out, _ = called(capsys, "draw", "refunds.yaml", "-o", "out.dot", "--json")
    assert json.loads(out) == {"recipe": "refunds", "nodes": 4, "output": "out.dot"}


def test_draw_refuses_other_suffixes(there, capsys):
    code, _, err = called(capsys, "draw", "refunds.yaml", "-o", "out.xyz")
    assert code == 1
    assert ".xyz" in err
