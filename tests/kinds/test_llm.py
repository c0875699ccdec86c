from __future__ import annotations

import pytest

from agentnb.clock import FrozenClock
from agentnb.errors import AgentRuntimeError
from agentnb.load import load
from agentnb.session import Session
from agentnb.world.llm.base import LLMResponse, Usage
from tests.dialects.agentruntime.agent_files import ran, stepped, text, write

PROMPTS = """
prompts:
  partials: {rules: "Be brief, {{ x }}."}
  templates:
    ask:
      system: "{{> rules }}"
      user: |
        Question: {{ x }}
      assistant: "Well,"
      messages:
        - {role: user, content: "And {{ n }}?"}
"""
MAP = "map: {set: {a: '{{ result.text }}', b: '{{ result.json }}', c: '{{ result.status }}'}}"


def graph(rest="", *, mapped=MAP):
    return text(f"nodes:\n  - {{id: say, type: llm, prompt: ask, {mapped}{rest}}}\n  - {{id: rescue, type: noop}}\n"
                "  - {id: never, type: noop, on_error: {to: rescue}}", PROMPTS)  # fmt: skip


def ask_model(tmp_path, llm, content=None, **options):
    session = Session(load(write(tmp_path, content or graph())), {"x": "sky"}, llm=llm, clock=FrozenClock(), **options)
    session.run()
    return session


def test_it_sends_the_prompt_messages_in_order_and_maps_the_answer(tmp_path):
    requests = []
    session = ask_model(tmp_path, lambda request: requests.append(request) or LLMResponse("blue", usage=Usage(7, 2)))
    assert [(message.role, message.content) for message in requests[0].messages] == [
        ("system", "Be brief, sky."), ("user", "Question: sky"), ("assistant", "Well,"), ("user", "And 0?"),
    ]  # fmt: skip
    assert (session.board["a"], session.board["b"], session.board["c"]) == ("blue", None, 200)
    assert session.trace.steps[0].observation["text"] == "blue"
    (call,) = session.trace.frames.calls.to_dict("records")
    assert (call["kind"], call["name"], call["tokens_in"], call["tokens_out"]) == ("llm", "ask", 7, 2)


@pytest.mark.parametrize("prompt", ["{{ state }}", "State: {{ state }}"])
def test_the_state_in_a_prompt_is_a_dict(tmp_path, prompt):
    requests = []
    graph = "nodes:\n  - {id: say, type: llm, prompt: ask}"
    content = text(graph, f"prompts: {{templates: {{ask: {{user: '{prompt}'}}}}}}")
    ask_model(tmp_path, lambda request: requests.append(request.prompt) or "", content)
    assert requests[0].removeprefix("State: ") == str({"n": 0, "log": [], "x": "sky", "a": None, "b": None, "c": None})


def test_without_a_model_the_answer_is_simulated_and_marked_in_the_call(tmp_path):
    session = ask_model(tmp_path, None)
    assert session.board["a"] == "Mocked output from say"
    (call,) = session.trace.frames.calls.to_dict("records")
    assert (call["kind"], call["provider"], call["model"]) == ("agent", "simulated", "simulated")


def test_a_json_answer_is_parsed(tmp_path):
    session = ask_model(tmp_path, ['{"k": [1]}'])
    assert (session.board["a"], session.board["b"]) == ('{"k": [1]}', {"k": [1]})
    assert ask_model(tmp_path, [{"text": "t", "json": {"k": 2}, "status": 201}]).board["c"] == 201


@pytest.mark.parametrize("error", ["quota", {"type": "quota", "message": "later"}])
def test_a_truthy_error_is_a_failure(tmp_path, error):
    session = ask_model(tmp_path, [{"error": error, "text": "half"}])
    assert (session.status, session.current, session.board["a"]) == ("failed", "say", None)
    session = ask_model(tmp_path, [{"error": error}], graph(", on_error: {to: rescue}"))
    assert [step.node_id for step in session.trace.steps] == ["say", "rescue", "never"]


def test_failed_answers_and_exceptions_are_retried(tmp_path):
    content = graph(", retry: {max_attempts: 3, backoff: 2}")
    answers = [{"error": "busy"}, ConnectionError("no line"), "blue"]

    def llm(request):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    session = ask_model(tmp_path, llm, content)
    assert (session.status, session.board["a"]) == ("finished", "blue")
    rows = session.trace.frames.calls
    assert (rows["attempt"].tolist(), rows["backoff_seconds"].tolist()) == ([1, 2, 3], [0, 2, 2])
    assert rows["error"].tolist()[:2] == ["ResultError: busy", "ConnectionError: no line"]


def test_without_a_model_a_sessions_answer_is_simulated(tmp_path):
    session = ask_model(tmp_path, None)
    assert session.board["a"] == "Mocked output from say"
    assert session.trace.frames.calls["kind"].tolist() == ["agent"]


def test_the_entry_point_without_a_model_raises_and_nothing_catches_it(tmp_path):
    content = graph(", on_error: {to: rescue}")
    agent_error = r"X417.*'say'"
    with pytest.raises(AgentRuntimeError, match=agent_error):
        ran(tmp_path, content, {"x": 1})


def test_a_script_repeats_its_answers(tmp_path):
    content = graph(mapped="map: {merge: {log: ['{{ result.text }}']}}").replace(
        "  - {id: rescue",
        "  - {id: twice, type: llm, prompt: ask, map: {merge: {log: ['{{ result.text }}']}}}\n    - {id: rescue",
    )
    session = stepped(write(tmp_path, content), {"x": 1}, llm_client=["one", "two"])
    assert session.board["log"] == ["one", "two"]
    session.goto(1).run()
    assert session.board["log"] == ["one", "two"]


def test_a_prompt_of_the_environment_is_masked(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENT_TEST_NAME", "Ada-4711")
    content = graph().replace("Question: {{ x }}", "I am {{env.AGENT_TEST_NAME}}")
    requests = []
    session = ask_model(tmp_path, lambda request: requests.append(request) or "fine", content)
    assert "Ada-4711" in requests[0].prompt
    assert "Ada-4711" not in repr(session.trace.frames.calls.to_dict("records"))


def test_a_prompt_does_not_contain_foreign_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "ghp-own3d-4711")
    content = graph().replace("Question: {{ x }}", "I am {{env.GITHUB_TOKEN}}")
    with pytest.raises(AgentRuntimeError, match=r"X361.*GITHUB_TOKEN"):
        ask_model(tmp_path, ["fine"], content)


def test_an_unset_variable_is_reported(tmp_path, monkeypatch):
    monkeypatch.delenv("AGENT_TEST_NAME", raising=False)
    content = graph().replace("Question: {{ x }}", "I am {{env.AGENT_TEST_NAME}}")
    with pytest.raises(AgentRuntimeError, match=r"X333.*AGENT_TEST_NAME"):
        ask_model(tmp_path, ["fine"], content)
