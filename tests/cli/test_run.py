"""`agentnb run` of one run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agentnb import cli
from agentnb.trace.trace import SimulationTrace
from agentnb.world.llm import LLMResponse
from agentnb.world.llm.anthropic import AnthropicClient
from tests.cli.command_files import RECIPE, called


def test_run_prints_one_line_per_step_and_the_board(there, capsys):
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
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert (document["status"], document["steps"], document["error"], document["current"]) == (
        "finished",
        4,
        None,
        None,
    )
    assert document["problems"] == []
    assert document["board"]["topic"] == "refund"
    assert document["board"]["response"] == "yes please"


@pytest.mark.parametrize(
    ("word", "value"), [("n=3", 3), ("n=text", "text"), ('n="3"', "3"), ("n=[1, 2]", [1, 2]), ("n=", "")]
)
def test_an_input_that_is_valid_json_is_parsed(there, capsys, word, value):
    words = ("run", "refunds.yaml", "-i", "ticket=a", "-i", word, "--script", "script.yaml", "--json")
    _, out, err = called(capsys, *words)
    assert json.loads(out)["board"]["n"] == value
    assert err.startswith("warning R220: input 'n' is not known\n")


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


def test_run_without_an_answer_waits_and_reports_it(there, capsys):
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


def test_run_reports_what_failed(there, capsys):
    Path("script.yaml").write_text("agents: {reader: 7}\n")
    Path("refunds.yaml").write_text(RECIPE)
    code, out, _ = called(capsys, "run", "refunds.yaml", "-i", "ticket=a", "--script", "absent.yaml")
    assert code == 1
    assert out == ""


def test_run_rejects_a_broken_recipe_before_it_runs(there, capsys):
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


def test_a_path_that_cannot_be_written_is_a_problem(there, capsys):
    words = ("run", "refunds.yaml", "-i", "ticket=a", "--script", "script.yaml", "--trace", "no/such/out.json")
    code, _, err = called(capsys, *words)
    assert code == 1
    assert "no/such/out.json" in err
    assert "Traceback" not in err


def test_an_unmet_requirement_is_reported_with_the_message_of_the_recipe(tmp_path, capsys):
    file = tmp_path / "needs.yaml"
    rule = "requirements: [{variable: ticket, operator: eq, value: 1, error_message: A ticket is needed.}]\n"
    file.write_text(RECIPE + rule)
    code, out, err = called(capsys, "run", str(file), "-i", "ticket=a")
    assert (code, "failed after 0 steps" in out) == (1, True)
    assert "X121: A ticket is needed." in err
    assert err.count("A ticket is needed.") == 1


def test_an_exhausted_run_names_its_limit(there, capsys):
    words = ("run", "refunds.yaml", "-i", "ticket=a", "--script", "script.yaml", "--max-steps", "2")
    code, out, _ = called(capsys, *words)
    assert code == 3
    assert "exhausted after 2 steps: its max_steps is used up" in out
    assert json.loads(called(capsys, *words, "--json")[1])["limit"] == "max_steps"


FAILS = """
meta: {name: t}
state: {shape: {x: any, y: any}}
graph:
  inputs: [x]
  outputs: [x]
  nodes: [{id: a, map: {set: {y: "{{ x.gone.deeper }}"}}}]
"""


def test_a_tool_that_fails_is_reported_with_its_line(there, capsys):
    tool = 'tools: [{id: t, kind: python, impl: "tools.py#fail"}]\ngraph:'
    node = "nodes: [{id: a, type: tool, uses: t}]"
    Path("fails.yaml").write_text(FAILS.replace("graph:", tool).partition("nodes:")[0] + node)
    Path("tools.py").write_text("def fail():\n    return int('x')\n")
    code, out, err = called(capsys, "run", "fails.yaml", "-i", "x=1")
    assert code == 1
    assert "ValueError: invalid literal for int() with base 10: 'x' (tools.py:2)" in out
    assert re.search("where: step 1, .*, tools.py:2$", err, re.MULTILINE)


def test_a_node_that_fails_is_reported_with_its_place_and_what_to_do(there, capsys):
    Path("fails.yaml").write_text(FAILS)
    code, out, err = called(capsys, "run", "fails.yaml", "-i", 'x={"there": 1}')
    assert (code, "failed after 1 step" in out) == (1, True)
    assert "fails.yaml:7:" in err
    assert "why:" in err
    assert "do:" in err
    assert err.count("x.gone.deeper") == 1


AGENT = """
name: helper
directives: do it
llm: {provider: openai, model: m}
"""


@pytest.mark.parametrize(("rate", "code"), [(0, 0), (1, 1)])
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_an_agent_that_ends_without_success_is_exit_code_1(there, capsys, rate, code, more):
    Path("agent.yaml").write_text(AGENT)
    Path("script.yaml").write_text("llm: [done]\n")
    words = ("run", "agent.yaml", "-i", "task=t", "--script", "script.yaml", "--chaos", f"error_rate={rate}")
    exit_code, out, err = called(capsys, *words, *more)
    assert exit_code == code
    assert "finished" in out
    assert ("X424" in (out if more else err)) is (code == 1)


def test_only_a_whole_agent_has_an_agent_result(there, capsys):
    Path("script.yaml").write_text("agents: {reader: {topic: x, result: {success: false}}}\n")
    code, _, err = called(capsys, "run", "refunds.yaml", "-i", "ticket=a", "--script", "script.yaml")
    assert (code, err) == (0, "")


# -- who reads what is printed may leave -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("run", "refunds.yaml", "-i", "ticket=a", "--script", "script.yaml", "--trace", "out.json"),
        ("check", "refunds.yaml"),
        ("--help",),
    ],
)
@pytest.mark.starts_programs
def test_a_closed_pipe_is_not_an_error(there, words):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "agentnb", *words],
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")
    if "--trace" in words:  # the run went on to its end
        assert len(SimulationTrace.read("out.json").steps) == 4


def test_exit_codes_are_in_the_help(capsys):
    for words in (["--help"], ["run", "--help"], ["check", "--help"]):
        with pytest.raises(SystemExit):
            cli.main(words)
        out = capsys.readouterr().out
        lines = out.partition("exit codes:\n")[2].splitlines()
        assert [line.split()[0] for line in lines if not line.startswith("   ")] == [*("0", "1", "2", "3", "4", "130")]


def test_simulated_answers_are_reported(there, capsys):
    Path("hello.yaml").write_text(
        "metadata: {name: hello}\ninterface: {}\ntopology: [{id: greet, type: agent, agent_ref: greeter}]\n"
    )
    assert "the answers of greet are simulated" in called(capsys, "run", "hello.yaml")[1]
    assert json.loads(called(capsys, "run", "hello.yaml", "--json")[1])["simulated"] == ["greet"]


def test_a_sample_runs_by_its_name(capsys):
    code, out, _ = called(capsys, "run", "pipeline")
    assert (code, "finished after 3 steps" in out) == (0, True)


def test_a_file_takes_precedence_over_a_sample_of_its_name(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipeline").write_text("{}")
    assert called(capsys, "run", "pipeline")[0] == 1


def test_live_uses_the_model_whose_key_is_set(capsys, monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    code, _, complaint = called(capsys, "run", "pipeline", "--live")
    assert (code, "X465" in complaint, "OPENAI_API_KEY" in complaint) == (1, True, True)
    code, _, complaint = called(capsys, "run", "document", "--scenarios", "--live")
    assert (code, "X465" in complaint) == (1, True)
    requests = []
    monkeypatch.setenv("ANTHROPIC_API_KEY", "an-example-key-1")

    async def answered(client, request):
        requests.append(client.model)
        return LLMResponse("yes", client.model)

    monkeypatch.setattr(AnthropicClient, "send", answered)
    code, out, _ = called(capsys, "run", "pipeline", "--live")
    assert (code, "simulated" in out, len(requests)) == (0, False, 3)


def test_live_and_llm_exclude_each_other(capsys):
    with pytest.raises(SystemExit) as ended:
        called(capsys, "run", "pipeline", "--live", "--llm", "openai:gpt-4o")
    assert ended.value.code == 2
