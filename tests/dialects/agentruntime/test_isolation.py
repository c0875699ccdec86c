"""What a tool or a model must not do to a run, and what must not be shown of it."""

from __future__ import annotations

import json
import traceback

import pytest

from agentnb.dialects.agentruntime import build_agent_from_yaml
from agentnb.errors import AgentRuntimeError, NodeExecutionError, to_printable
from agentnb.session import Session

KEY = "sk-guarded-5561"


TOOL = {"id": "t", "type": "tool", "uses": "tool", "inputs": {"x": "{{ x }}"}}


def used(node):
    return node.get("uses")


def agent(*nodes, **more):
    tools = [{"id": "tool", "kind": "python", "impl": "tools.py#tool"}] if TOOL["uses"] in map(used, nodes) else []
    return build_agent_from_yaml({
        "meta": {"name": "t"}, "state": {"shape": {"x": "any", "n": "int"}, "init": {"n": 0}},
        "tools": tools,
        "graph": {"inputs": ["x"], "outputs": ["x"], "nodes": list(nodes)}, **more,
    })  # fmt: skip


def test_a_secret_in_a_tools_error_is_not_printed_with_the_cause(monkeypatch):
    monkeypatch.setenv("GUARDED", KEY)

    def tells(x, key):
        raise ValueError(f"bad key {key}")

    failing = agent({**TOOL, "inputs": {"x": "{{ x }}", "key": "{{ env.GUARDED }}"}})
    with pytest.raises(NodeExecutionError) as caught:
        failing.run({"x": 1}, tool_overrides={"tool": tells})
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert KEY not in str(failing.trace.steps[0].error)
    assert "bad key" in str(failing.trace.steps[0].error)


def test_an_error_without_a_secret_keeps_its_cause():
    error = ValueError("it broke")
    assert to_printable(error) is error
    assert to_printable(None) is None


def test_an_unset_variable_is_named(monkeypatch):
    monkeypatch.delenv("UNSET_GUARDED", raising=False)
    runtime = agent({**TOOL, "inputs": {"x": "{{ env.UNSET_GUARDED }}"}})
    with pytest.raises(AgentRuntimeError, match="UNSET_GUARDED"):
        runtime.run({"x": 1}, tool_overrides={"tool": lambda x: x})


def test_a_tool_that_raises_system_exit_is_a_failed_node():
    def leaves(x):
        raise SystemExit("usage")

    runtime = agent({**TOOL, "on_error": {"resume": True}})
    runtime.run({"x": 1}, tool_overrides={"tool": leaves})
    assert runtime.trace.steps[0].error.startswith("RuntimeError: it called sys.exit('usage') (")


def test_an_answer_without_a_codec_is_a_row_of_its_attempt():
    def endless(x):
        results = {}
        results["found"] = results
        return {"result": results}

    runtime = agent({**TOOL, "on_error": {"resume": True}})
    runtime.run({"x": 1}, tool_overrides={"tool": endless})
    calls = runtime.trace.frames.calls
    assert len(calls) == 1
    assert calls["error"][0].startswith("BoardError")


def test_a_model_that_answers_nothing_has_failed():
    prompts = {"templates": {"p": {"user": "{{ x }}"}}}
    runtime = agent({"id": "say", "type": "llm", "prompt": "p"}, prompts=prompts)
    with pytest.raises(NodeExecutionError, match="answered with a NoneType"):
        runtime.run({"x": 1}, llm_callable=lambda node, prompt: None)


@pytest.mark.parametrize("when", [{"==": [{"var": "state.n"}, 2]}, "state.n == 2", "n == 2", "state.n == inputs.x"])
def test_conditions_of_users_see_the_same_names_as_rules_of_the_recipe(when):
    up = {"id": "up", "type": "noop", "map": {"set": {"n": "{{ n + 1 }}"}}}
    runtime = agent({"id": "l", "type": "loop", "body": "up", "max_iterations": 5}, up)
    session = Session(runtime.recipe, {"x": 2})
    session.breakpoints.add(when=when)
    session.run()
    assert (session.status, session.board["n"]) == ("paused", 2)
    session.watch(when)
    assert next(iter(session.watches.values())) is True


@pytest.mark.parametrize("kept", ["[" * 100_000, json.dumps({}), "null"])
def test_a_file_that_is_not_a_conversation_is_reported_and_not_changed(tmp_path, monkeypatch, kept):
    monkeypatch.chdir(tmp_path)  # the own folder of an agent that was built from a dict
    file = tmp_path / "talk.json"
    file.write_text(kept)
    runtime = agent(TOOL, memory={"enabled": True, "kind": "file", "path": str(file)})
    with pytest.raises(AgentRuntimeError, match="cannot be read"):
        runtime.run({"x": 1}, tool_overrides={"tool": lambda x: x})
    assert file.read_text() == kept
