from __future__ import annotations

import json
from pathlib import Path

import pytest

import agentnb as nb
from tests.cli.command_files import called
from tests.store.stores import claimed_elsewhere

MODULE = """
import networkx as nx

def make(grade="good"):
    graph = nx.DiGraph(name="asking")
    graph.add_node("ask", kind="tool", function="search", inputs={"question": "question"})
    graph.add_node("grade", function=lambda found: {"grade": "GRADE"}, inputs={"found": "found"})
    graph.add_edge("ask", "grade")
    return graph

def search(question):
    return {"found": question.upper()}

def model(request):
    return "said"
"""


@pytest.fixture
def module(there, monkeypatch, request):
    name = f"agents_{abs(hash(request.node.name))}"
    Path(f"{name}.py").write_text(MODULE)
    Path(f"{name}_other.py").write_text(MODULE.replace("GRADE", "poor"))
    monkeypatch.syspath_prepend(str(there))
    return name


def test_a_recipe_its_tools_and_its_model_may_be_python_objects(module, capsys):
    words = ("run", f"{module}:make", "--tools", f"search={module}:search", "--llm", f"{module}:model",
             "--input", "question=where", "--trace", "run.json")  # fmt: skip
    code, out, err = called(capsys, *words)
    assert (code, err) == (0, "")
    assert "WHERE" in out
    code, _, err = called(capsys, "run", f"{module}:other")
    assert (code, "L583" in err) == (1, True)


def test_a_run_is_exported_and_replayed_and_its_differences_are_reported(module, capsys):
    called(capsys, "run", f"{module}:make", "--tools", f"search={module}:search", "--input", "question=where",
           "--store", "runs.db")  # fmt: skip
    for name in ("run.json", "run.jsonl", "run.parquet", "run.csv", "run.mmd"):
        code, out, err = called(capsys, "export", "runs.db", "-o", name)
        assert (code, err, "2 steps" in out, Path(name).exists()) == (0, "", True, True)
    code, _, err = called(capsys, "export", "run.json", "-o", "run.jsn")
    assert (code, "U592" in err, "'.json'" in err) == (1, True, True)
    code, out, _ = called(capsys, "replay", f"{module}:make", "run.jsonl")
    assert (code, "matches" in out) == (0, True)
    assert "WHERE" in Path("run.jsonl").read_text()
    redact = ("--redact", "found", "--redact", "calls.search.result.found")
    code, _, err = called(capsys, "export", "runs.db", "-o", "redacted.jsonl", *redact)
    assert (code, err, "WHERE" in Path("redacted.jsonl").read_text()) == (0, "", False)
    code, _, err = called(capsys, "export", "runs.db", "-o", "run.html", *redact)
    assert (code, "U594" in err) == (1, True)
    code, _, err = called(capsys, "export", "runs.db", "-o", "other.jsonl", "--redact", "fond")
    assert (code, "L584" in err, Path("other.jsonl").exists()) == (1, True, False)
    code, out, _ = called(capsys, "replay", f"{module}_other:make", "run.jsonl")
    assert code == 1
    for word in ("step 2", "grade", "'GRADE'", "'poor'"):
        assert word in out
    code, out, _ = called(capsys, "replay", f"{module}_other:make", "run.jsonl", "--holds", "route", "--json")
    assert (code, json.loads(out)["ok"]) == (0, True)


def test_a_waiting_run_is_answered_resumed_and_forked(there, capsys):
    Path("agents.yaml").write_text("agents:\n  reader: {topic: refund}\n  closer: {closed: true}\n")
    code, _, _ = called(capsys, "run", "refunds.yaml", "--script", "agents.yaml", "-i", "ticket=x", "--store", "r.db")
    assert code == 4
    code, out, _ = called(capsys, "resume", "r.db", "refunds.yaml", "--script", "agents.yaml")
    assert (code, "waiting" in out) == (4, True)
    code, out, err = called(capsys, "answer", "r.db", "refunds.yaml", "yes", "--script", "agents.yaml")
    assert (code, err) == (0, "")
    assert "finished" in out
    code, out, err = called(capsys, "fork", "r.db", "refunds.yaml", "--at", "1", "--edit", "topic=other",
                            "--script", "agents.yaml", "--json")  # fmt: skip
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert (document["status"], document["board"]["topic"]) == ("finished", "other")
    assert len(nb.runs("r.db")) == 2


def test_a_run_that_another_host_has_claimed_is_continued_on_request(there, capsys):
    Path("agents.yaml").write_text("agents:\n  reader: {topic: refund}\n  closer: {closed: true}\n")
    called(capsys, "run", "refunds.yaml", "--script", "agents.yaml", "-i", "ticket=x", "--store", "r.db")
    resume, answer = ("resume", "r.db", "refunds.yaml"), ("answer", "r.db", "refunds.yaml", "yes")
    with claimed_elsewhere("r.db", nb.runs("r.db")["run_id"][0]):
        for command in (resume, answer):
            code, _, err = called(capsys, *command, "--script", "agents.yaml")
            assert (code, "L411" in err, "another-host" in err, "--take-over" in err) == (1, True, True, True)
        code, out, err = called(capsys, *answer, "--script", "agents.yaml", "--take-over")
        assert (code, err, "finished" in out) == (0, "", True)


def test_help_names_the_exit_codes_of_each_command(capsys):
    for command in ("resume", "answer", "fork", "replay", "export", "run"):
        with pytest.raises(SystemExit):
            called(capsys, command, "--help")
        assert "exit codes" in capsys.readouterr().out
