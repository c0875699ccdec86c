"""`agentnb check` and `agentnb draw`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_files import called


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
    document = json.loads(out)
    assert (code, document["ok"], document["files"]["refunds.yaml"]) == (1, False, [])
    assert {"code", "what", "where", "why", "do", "severity"} == set(document["files"]["broken.yaml"][0])


@pytest.mark.parametrize(("file", "begins"), [("out.svg", "<"), ("out.dot", "digraph"), ("out.mmd", "flowchart")])
def test_draw_writes_the_format_of_the_suffix(there, capsys, file, begins):
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


AGENT = """
meta: {name: t}
state: {shape: {x: any}}
tools: [{id: t, kind: python, impl: "%s"}]
graph: {inputs: [x], outputs: [x], nodes: [{id: a, type: tool, uses: t, map: {set: {x: "{{ result.y }}"}}}]}
"""


@pytest.mark.parametrize(
    ("impl", "code"),
    [
        ("tools.py", "R155"),
        ("../else/tools.py#run", "R156"),
        ("tolls.py#run", "R157"),
        ("os#system", "R158"),
        ("broken.py#run", "R159"),
        ("tools.py#runn", "R160"),
    ],
)
def test_check_reports_tools_that_cannot_be_loaded_and_imports_none(there, capsys, impl, code):
    mark = there / "mark"
    Path("tools.py").write_text(f"open({str(mark)!r}, 'w').close()\ndef run(**given): return {{'y': 2}}\n")
    Path("broken.py").write_text("def run(:\n")
    Path("agent.yaml").write_text(AGENT % impl)
    exit_code, out, _ = called(capsys, "check", "agent.yaml")
    assert (exit_code, f"{code}: " in out, "agent.yaml: 1 error\n" in out) == (1, True, True)
    assert "warning" not in out
    assert not mark.exists()
    assert called(capsys, "run", "agent.yaml", "-i", "x=1")[0] == 1


def test_the_option_allow_permits_tools(there, capsys):
    (there / "else").mkdir()
    (there / "own").mkdir()
    Path("else/tools.py").write_text("def run(**given): return {'y': 'from elsewhere'}\n")
    Path("own/agent.yaml").write_text(AGENT % "../else/tools.py#run")
    for words in (["check", "own/agent.yaml"], ["run", "own/agent.yaml", "-i", "x=1"]):
        assert called(capsys, *words)[0] == 1
        assert called(capsys, *words, "--allow", "own")[0] == 1
        assert called(capsys, *words, "--allow", "own", "--allow", "else")[0] == 0
    assert "from elsewhere" in called(capsys, "run", "own/agent.yaml", "-i", "x=1", "--allow", "./else")[1]
