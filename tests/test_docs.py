"""test_docs: what the README and the pages beside it show can be run as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentnb.dialects.activegraph import clear_registry, clear_tool_registry

README = Path(__file__).parent.parent / "README.md"
LASTING = README.parent / "docs" / "runs_that_last.md"
TOOLS = README.parent / "docs" / "agents_with_tools.md"
FLOW = README.parent / "docs" / "control_flow.md"
REACTIVE = README.parent / "docs" / "reactive_agents.md"
RUNS = README.parent / "docs" / "two_runs_and_many.md"
LANGGRAPH = README.parent / "docs" / "langgraph.md"
TRAVEL = README.parent / "docs" / "runs_that_travel.md"
COCKPIT = README.parent / "docs" / "cockpit.md"


def run_code_of(page):
    """Run the code blocks of a page one after the other; return the names that they have made."""
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) > 1
    for block in blocks:
        exec(compile(block, str(page), "exec", dont_inherit=True), names)
    return names


def test_the_readmes_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_code_of(README)
    session = names["session"]
    assert (session.status, session.replay().ok) == ("finished", True)
    assert list(names["nb"].runs("runs.db")["status"]) == ["finished", "waiting"]
    session.close()
    newton = names["nb"].Session(names["nb"].load(names["graph"]), {"x": 1.0, "n": 2})
    newton.run()
    assert newton.status == "finished"
    assert abs(newton.board["x"] ** 2 - 2) < 1e-9


def test_the_code_about_runs_that_last_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_code_of(LASTING)
    first = names["report"].first_divergence
    assert (first.step, first.path, first.recorded, first.replayed) == (2, "grade", "good", "poor")
    assert names["fork"].board["grade"] == "poor"
    names["session"].close()


def test_the_code_about_langgraph_runs():
    names = run_code_of(LANGGRAPH)
    assert names["session"].board["best"] == "a joke about rain"
    assert list(names["show"].trace.frames.calls.kind) == ["llm"]


def test_the_code_about_agents_with_tools_runs():
    names = run_code_of(TOOLS)
    assert names["session"].status == names["whole"].status == "finished"
    assert names["held"].name == "find_order"


def test_the_code_about_control_flow_runs():
    names = run_code_of(FLOW)
    assert names["session"].status == "finished"
    assert names["fork"].board[names["key"]].text == "tea: 5 leaves, warm"


def test_the_code_about_the_cockpit_runs():
    names = run_code_of(COCKPIT)
    assert names["session"].why(2).went == ("check_order",)
    assert [row.node for row in names["session"].breakpoints] == ["write"]


def test_the_code_about_two_runs_and_many_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_code_of(RUNS)
    assert names["found"].first_divergence.path == "fee"


def test_the_code_about_runs_that_travel_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_code_of(TRAVEL)
    assert names["again"].position == 2
    assert names["report"].ok


def test_the_code_about_reactive_agents_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        names = run_code_of(REACTIVE)
    finally:  # its decorators register what they make
        clear_registry()
        clear_tool_registry()
    assert names["loaded"].graph.get_object("loan#3").data["state"] == "lent"
    assert [each.data for each in names["fork"].pending_approvals()] == [{"for": "loan#2"}]
    names["loaded"].session.close()


@pytest.mark.parametrize("page", [README, LASTING, TOOLS, FLOW, REACTIVE, COCKPIT, RUNS])
def test_a_page_names_no_file_that_is_not_there(page):
    links = re.findall(r"(?:\]\(|srcset=\"|src=\")([^)\"#]+)", page.read_text(encoding="utf-8"))
    assert links
    missing = [link for link in links if not link.startswith("http") and not (page.parent / link).exists()]
    assert not missing


def test_each_rule_names_tests_that_are_there():
    folder = README.parent
    coreason = ("api", "loader", "edges", "schema", "schema_errors")
    short = {name: f"tests/dialects/coreason/test_{name}.py" for name in coreason}
    folders = {"agent": "dialects/agentruntime", "kinds": "kinds", "tools": "world/tools", "llm": "world/llm"}
    folders |= {"session": "session", "store": "store", "symphony": "dialects/symphony", "polaris": "dialects/polaris"}
    folders |= {"activegraph": "dialects/activegraph", "foreign": "dialects/activegraph/foreign"}
    folders |= {"langgraph": "dialects/langgraph", "engine": "engine", "board": "board"}
    for word, inside in folders.items():
        files = sorted((folder / "tests" / inside).glob("test_*.py"))
        short |= {f"{word}/{file.stem.removeprefix('test_')}": f"tests/{inside}/{file.name}" for file in files}
    named = re.findall(r"([\w/.]+)::(test_\w+)", (folder / "docs" / "requirements.md").read_text(encoding="utf-8"))
    assert len(named) > 30
    texts = {file: (folder / short.get(file, file)).read_text(encoding="utf-8") for file, _ in named}
    missing = [f"{file}::{test}" for file, test in named if not re.search(rf"def {test}\(", texts[file])]
    assert not missing
