from __future__ import annotations

import pytest
import yaml

from agentnb.dialects.agentruntime import AgentRuntimeError, LLMClient, build_agent_from_yaml
from agentnb.dialects.agentruntime.parts.model_adapters import NoModel
from agentnb.world.llm.base import LLMRequest
from agentnb.world.llm.scripted import ScriptedClient
from tests.dialects.agentruntime.agent_files import TOOLS, text

PROMPTS = """
prompts:
  templates:
    ask:
      system: Be brief.
      user: "{{ x }}?"
      messages: [{role: user, content: And you}, {role: critic, content: Well}]
"""
GRAPH = """
nodes:
  - {id: say, name: Speaker, type: llm, prompt: ask, timeout: {seconds: 7}, map: {set: {a: "{{ result.text }}"}}}
"""


@pytest.fixture
def agent(tmp_path):
    (tmp_path / "tools.py").write_text(TOOLS)
    return build_agent_from_yaml(yaml.safe_load(text(GRAPH, PROMPTS)), tmp_path)


WHOLE = {"system": "Be brief.", "user": "sky?", "messages[0]#user": "And you", "messages[1]#critic": "Well"}


def test_a_callable_receives_the_node_and_the_prompt_by_keyword(agent):
    requests = []
    state = agent.run(
        {"x": "sky"}, llm_callable=lambda node, prompt: requests.append((node, prompt)) or {"text": "blue"}
    )
    ((node, prompt),) = requests
    assert (state["a"], prompt, list(prompt)) == ("blue", WHOLE, list(WHOLE))
    assert (node.id, node.type, node.name, node.prompt) == ("say", "llm", "Speaker", "ask")


def test_a_client_receives_the_timeout_too(agent):
    requests = []

    def call(*, node, prompt, timeout=None):
        requests.append((node.id, prompt, timeout))
        return {"text": "blue", "error": None}

    assert agent.run({"x": "sky"}, llm_client=LLMClient(call))["a"] == "blue"
    assert requests == [("say", WHOLE, 7.0)]


def test_a_client_of_sessions_is_accepted(agent):
    assert agent.run({"x": "sky"}, llm_client=ScriptedClient(["blue"]))["a"] == "blue"


def test_a_callable_may_be_async(agent):
    async def later(node, prompt):
        return {"text": prompt["user"]}

    assert agent.run({"x": "sky"}, llm_callable=later)["a"] == "sky?"


@pytest.mark.parametrize(("answer", "a"), [("text alone", "text alone"), ({"text": "t"}, "t"), ({"result": 1}, None)])
def test_a_callable_may_answer_with_text_or_a_mapping(agent, answer, a):
    assert agent.run({"x": "sky"}, llm_callable=lambda node, prompt: answer)["a"] == a


def test_a_missing_model_is_reported_when_it_is_called():
    with pytest.raises(AgentRuntimeError, match="X417"):
        NoModel("nobody is there").complete(LLMRequest((), node="say"))
