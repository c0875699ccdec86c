"""An agent's config, in a file, a text, a dict or an object, becomes a recipe; all its mistakes are told."""

from pathlib import Path
from typing import Any

import pytest

import agentnb as nb
from agentnb import cli
from agentnb.dialects.symphony import AgentConfig, AgentExecutor
from agentnb.dialects.table import DIALECTS
from tests.dialects.symphony.symphony_agents import call, executor, registry

TEXT = """
name: Support
description: helps customers
task: Answer questions about orders
tools: [ok]
directives: Be brief.
maxCalls: 2
llm: {model: small, temperature: 0.1, maxTokens: 50}
"""
FIELDS = {"name": "Support", "task": "Answer", "tools": ["ok"], "systemPrompt": "You are it."}


@pytest.mark.parametrize("source", [TEXT, FIELDS, AgentConfig(**FIELDS), executor(call("ok"))])
def test_every_form_of_an_agent_is_recognized(source: Any) -> None:
    recipe = nb.load(source)
    assert recipe.dialect == "symphony"
    assert list(recipe.nodes)[:3] == ["system_prompt", "request", "llm"]
    assert not recipe.check()


def test_an_agent_from_a_file_runs_with_the_tools_of_the_session(tmp_path: Path) -> None:
    file = tmp_path / "support.yaml"
    file.write_text(TEXT)

    def ok(n: int) -> int:
        """Double a number."""
        return 2 * n

    answers = ['{"tool_name": "ok", "parameters": {"n": 4}}', '{"tool_name": "none", "response": "8"}']
    session = nb.Session(nb.load(file), {"task": "double"}, tools={"ok": ok}, llm=answers)
    session.run()
    result = session.board["result"]
    assert (result["success"], result["response"], result["tools_executed"][0]["result"]) == (True, "8", 8)
    prompt = session.board["system_prompt"]
    assert "Double a number." in prompt
    assert '"type": "integer"' in prompt
    sent = session.trace.frames.calls.arguments.iloc[0]
    assert (sent["model"], sent["temperature"], sent["max_tokens"]) == ("small", 0.1, 50)


def test_without_a_model_the_answer_is_simulated_in_the_form_that_was_asked_for() -> None:
    session = nb.Session(nb.load(TEXT), {"task": "go"})
    session.run()
    assert session.board["result"]["success"]
    assert session.trace.frames.calls.kind.tolist() == ["agent"]


@pytest.mark.parametrize(
    "source", ["name: A\nsystemPrompt: prompt.md\ntask: t\n", {**FIELDS, "systemPrompt": "prompt.md"}]
)
def test_an_agent_without_a_file_reads_no_file(source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prompt.md").write_text("You are from a file.")
    monkeypatch.chdir(tmp_path)
    session = nb.Session(nb.load(source), {"task": "go"}, tools={"ok": lambda parameters: 1})
    session.step()
    assert session.board["system_prompt"].startswith("prompt.md")


def test_a_system_prompt_may_be_a_file_beside_that_of_the_agent(tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_text("You are from a file.")
    (tmp_path / "agent.yaml").write_text("name: A\nsystemPrompt: prompt.md\ntask: t\n")
    session = nb.Session(nb.load(tmp_path / "agent.yaml"), {"task": "go"})
    session.step()
    assert session.board["system_prompt"].startswith("You are from a file.")


@pytest.mark.parametrize("prompt", ["", "systemPrompt: You are terse.\n"])
def test_an_agent_in_a_file_has_the_same_prompt_as_one_in_a_text(tmp_path: Path, prompt: str) -> None:
    text = f"name: A\ndescription: d\ntask: t\ntools: [ok]\n{prompt}"
    (tmp_path / "agent.yaml").write_text(text)
    boards = []
    for source in (text, tmp_path / "agent.yaml"):
        session = nb.Session(nb.load(source), {"task": "go"}, tools={"ok": lambda parameters: 1})
        session.step()
        boards.append(session.board["system_prompt"])
    assert boards[0] == boards[1]


@pytest.mark.parametrize("name", ["../prompt.md", "/etc/hostname.txt"])
def test_a_file_elsewhere_is_not_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "prompt.md").write_text("secret")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "agent.yaml").write_text(f"name: A\nsystemPrompt: {name}\ntask: t\n")
    session = nb.Session(nb.load(tmp_path / "in" / "agent.yaml"), {"task": "go"})
    session.step()
    assert session.board["system_prompt"].startswith(name)


def test_all_mistakes_are_reported_at_once_with_their_places() -> None:
    with pytest.raises(nb.RecipeError) as caught:
        nb.load("name: A\ntask: t\nmaxCalls: none\ntools: {a: 1}\nllm: {temperature: -1}\ntols: [a]\n")
    problems = {(problem.code, problem.where.partition(":")[2].partition(":")[0]) for problem in caught.value.problems}
    assert {("R114", "3"), ("R114", "4"), ("R114", "5"), ("R112", "6")} <= problems


def test_a_step_has_the_place_of_its_field() -> None:
    lines = {"name": "A", "description": "d", "task": "t", "tools": "[x]", "llm": "{model: m}", "maxCalls": "3"}
    for left_out in (None, "llm", "maxCalls", "task"):
        fields = {field: value for field, value in lines.items() if field != left_out}
        at = {field: place for place, field in enumerate(fields, 1)}
        recipe = nb.load("".join(f"{field}: {value}\n" for field, value in fields.items()), dialect="symphony")
        places = {name: node.place.line for name, node in recipe.nodes.items() if node.place is not None}
        expected = {"system_prompt": "task", "llm": "llm", "tool": "tools", "next_round": "maxCalls"}
        for node, field in ((each, expected[each]) for each in expected if each in places):
            line = at.get(field, at["description" if node == "system_prompt" else "name"])
            assert places[node] == line, (node, left_out)


def test_a_key_that_does_nothing_is_a_warning() -> None:
    recipe = nb.load({**FIELDS, "personality": "kind"})
    (problem,) = recipe.check()
    assert (problem.code, problem.severity) == ("R112", "warning")


def test_a_missing_tool_is_a_failed_result_that_lists_the_available_ones() -> None:
    agent = AgentExecutor(AgentConfig(name="A", tools=["nobody"]), tools=registry(),
                          llm=['{"tool_name": "nobody", "parameters": {}}'])  # fmt: skip
    done = agent.execute_task("go")
    assert not done.success
    assert "ok, bad, throws, other" in done.error
    assert "nobody" in str(agent.trace.steps[0].thought)


def test_the_fingerprint_is_that_of_the_config() -> None:
    assert nb.load(TEXT).fingerprint == nb.load(TEXT).fingerprint
    assert nb.load(TEXT).fingerprint != nb.load(TEXT.replace("brief", "long")).fingerprint
    assert nb.load(TEXT).fingerprint != nb.load(TEXT.replace("0.1", "0.2")).fingerprint


def test_the_sample_runs_with_scripted_answers() -> None:
    answers = [
        {"tool_name": "find_rule", "parameters": {"topic": "insult"}},
        {"tool_name": "hide_comment", "parameters": {"comment_id": 7, "reason": "an insult"}},
        {"tool_name": "none", "response": "Hidden."},
    ]
    session = nb.Session(nb.samples("moderation"), {"task": "Comment 7: you fool"}, llm=answers)
    session.run()
    result = session.board["result"]
    assert (result["success"], result["response"]) == (True, "Hidden.")
    assert [tool["name"] for tool in result["tools_executed"]] == ["find_rule", "hide_comment"]


def test_the_command_line_checks_draws_and_runs_an_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, script, drawing = tmp_path / "agent.yaml", tmp_path / "script.yaml", tmp_path / "agent.svg"
    file.write_text(TEXT)
    script.write_text("""llm: ['{"tool_name": "nobody", "parameters": {}}', {tool_name: none, response: good bye}]""")
    assert cli.main(["check", str(file)]) == 0
    assert cli.main(["draw", str(file), "-o", str(drawing)]) == 0
    assert "next_round" in drawing.read_text()
    assert cli.main(["run", str(file), "--input", "task=hello", "--script", str(script)]) == 1  # a tool has failed
    output = capsys.readouterr().out
    assert "finished after 10 steps" in output
    assert "good bye" in output


ALWAYS = {("system_prompt", "request", ""), ("request", "llm", ""), ("llm", "result", "error")}
TOOLS = {
    ("llm", "parse", ""),
    ("parse", "check", "decision.kind == 'tool'"),
    ("parse", "result", "decision.kind != 'tool'"),
    ("parse", "result", "error"),
    ("check", "tool", ""),
}


def after_tool(successor: str) -> set[tuple[str, str, str]]:
    return {("check", successor, "error"), ("tool", successor, ""), ("tool", successor, "error")}


def after_call(successor: str) -> set[tuple[str, str, str]]:
    return {("next_call", "check", "calls_on"), ("next_call", successor, "not calls_on")}


ROUND = {("next_round", "request", "goes_on"), ("next_round", "result", "not goes_on")}


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("calls", [1, 2, 5])
@pytest.mark.parametrize("tools", [[], ["ok"]])
def test_an_agent_has_the_steps_that_it_needs(tools: list[str], calls: int, native: bool) -> None:
    recipe = nb.load({"name": "A", "task": "t", "tools": tools, "maxCalls": calls, "llm": {"native_tools": native}})
    end = "next_round" if calls > 1 else "result"
    edges = {*ALWAYS, ("llm", "result", "")}
    if tools:
        edges = ALWAYS | TOOLS | (after_tool("next_call") | after_call(end) if native else after_tool(end))
        edges |= ROUND if calls > 1 else set()
    found = [(edge.source, edge.target, edge.kind if edge.kind == "error" else edge.condition) for edge in recipe.edges]
    assert sorted(found) == sorted(edges)
    back = {(edge.source, edge.target) for edge in recipe.edges if edge.kind == "loop_back"}
    assert back == {edge[:2] for edge in edges if edge[2] in ("calls_on", "goes_on")}
    assert set(recipe.nodes) == {"system_prompt"} | {target for _, target, _ in edges}
    assert recipe.check() == []


@pytest.mark.parametrize("native", [False, True])
def test_the_steps_of_an_agent_have_its_settings(native: bool) -> None:
    llm = {"model": "m", "nativeTools": native, "timeout": 5}
    fields = {**FIELDS, "maxCalls": 3, "requireApproval": True, "timeout": 7, "llm": llm}
    nodes = nb.load(fields).nodes
    reads_and_writes = {
        "system_prompt": ((), ("system_prompt", "tools")),
        "request": (("system_prompt", "task", "tools", "conversation"), ("request",)),
        "llm": (("request",), ("answer", "model", "usage")),
        "parse": (("answer", "conversation"), ("decision", "calls")),
        "check": (("decision",), ("tools_executed",)),
        "tool": (("decision",), ("tools_executed",)),
        "next_call": (("calls",), ("decision", "calls", "calls_on")),
        "next_round": (("usage", "answer", "tools_executed"), ("goes_on", "conversation")),
        "result": (("answer", "decision", "tools_executed", "failure", "model", "usage"), ("result",)),
    }
    if not native:
        reads_and_writes |= {
            "system_prompt": ((), ("system_prompt",)),
            "request": (("system_prompt", "task", "conversation"), ("request",)),
            "parse": (("answer",), ("decision",)),
        }
        del reads_and_writes["next_call"]
    assert {id: (node.reads, node.writes) for id, node in nodes.items()} == reads_and_writes
    params = {id: node.params for id, node in nodes.items()}
    assert (params["llm"]["name"], params["llm"]["json"], params["llm"]["timeout"]) == ("Support", not native, 5)
    assert params["check"]["approval"] is True
    assert (params["parse"]["native"], params["system_prompt"]["native"]) == (native, native)
    assert params["next_round"]["most"] == 3
    assert params["system_prompt"]["tools"] == params["check"]["tools"] == ("ok",)
    assert "llm" not in params["system_prompt"]["config"]
    plain = nb.load({**fields, "llm": None, "requireApproval": False}).nodes
    assert (plain["llm"].params["timeout"], plain["check"].params["approval"]) == (7, False)
    assert "simulated" not in plain["llm"].params


def test_the_model_of_an_agent_is_that_of_its_recipe() -> None:
    def provider(llm: Any) -> Any:
        return nb.load({**FIELDS, "llm": llm}).meta.get("provider")

    assert provider("openai:gpt") == ("openai:gpt", {})
    assert provider({"provider": "simulated"}) == ("simulated:", {})
    assert provider("gpt") is provider(None) is None
    recipe = nb.load(FIELDS)
    assert (recipe.meta["required"], recipe.outputs, dict(recipe.inputs)) == (
        ("task",),
        ("result",),
        {"task": {"type": "string"}},
    )


@pytest.mark.parametrize(
    ("given", "mine"),
    [
        *(({"name": "a", field: ""}, True) for field in ("task", "directives", "systemPrompt", "system_prompt", "llm")),
        *(({"name": "a", field: 1}, True) for field in ("maxCalls", "max_calls")),
        ({"name": "a"}, False),
        ({"task": "t"}, False),
        ({"name": "a", "tools": []}, False),
        *(({"name": "a", "task": "t", field: 1}, False) for field in ("graph", "topology", "apiVersion", "metadata")),
        ({"name": "a", "task": "t", "workflow": 1}, False),
    ],
)
def test_an_agent_is_recognized_by_its_keys(given: dict[str, Any], mine: bool) -> None:
    assert DIALECTS["symphony"].recognize(given) is mine
