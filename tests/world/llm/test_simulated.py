from __future__ import annotations

import json

import networkx as nx
import pytest

from agentnb.load import load
from agentnb.samples import samples
from agentnb.session import Session
from agentnb.ui.view_model import make_screen
from agentnb.world.llm.base import LLMRequest, LLMResponse
from agentnb.world.llm.simulated import SimulatedClient
from tests.session.small_sessions import session


def test_it_reports_that_it_is_simulated():
    response = SimulatedClient().complete(LLMRequest((), node="writer"))
    assert (response.content, response.model) == ("Mocked output from writer", "simulated")


def test_it_can_be_the_model_of_a_session():
    run = Session(samples("pipeline"), {"question": "q"}, llm=SimulatedClient())
    run.run()
    assert run.status == "finished"
    assert set(run.trace.frames.calls["result"]) == {
        "Mocked output from research",
        "Mocked output from outline",
        "Mocked output from answer",
    }


def test_a_schema_is_enforced():
    schema = {"type": "object", "properties": {"title": {"type": "string"}, "n": {"type": "integer", "minimum": 3}},
              "required": ["title", "n"]}  # fmt: skip
    request = LLMRequest((), node="writer", settings={"schema": schema})
    answer, second = (json.loads(SimulatedClient().complete(request).content) for _ in range(2))
    assert answer == second
    assert answer["title"].startswith("title")
    assert answer["n"] >= 3


def symphony():
    return Session(load({"name": "Ada", "task": "Help.", "description": "A clerk."}), {"task": "a"})


def prompted(**options):
    graph = nx.DiGraph(name="talk")
    graph.add_node("one", kind="agent", prompt="Be short.", output="a")
    return session(graph, **options)


def agentruntime():
    recipe = {
        "meta": {"name": "t"}, "state": {"shape": {"x": "str"}},
        "prompts": {"templates": {"ask": {"system": "Hello"}}},
        "graph": {"inputs": ["x"], "outputs": ["x"], "nodes": [
            {"id": "one", "type": "llm", "prompt": "ask", "map": {"set": {"x": "{{ result }}"}}}]},
    }  # fmt: skip
    return Session(load(recipe), {"x": "a"})


def coreason():
    recipe = """
metadata: {name: hello}
interface: {}
topology: [{id: one, type: agent, agent_ref: greeter}]
"""
    return Session(load(recipe))


@pytest.mark.parametrize(
    "made",
    [prompted, lambda: prompted(llm="simulated"), agentruntime, coreason, symphony],
    ids=["networkx", "by name", "agentruntime", "coreason", "symphony"],
)  # fmt: skip
def test_a_simulated_answer_is_marked_everywhere(made, monkeypatch):
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    run = made()
    assert len(run.simulated) == 1
    assert "simulated model" in make_screen(run, run.recipe.draw(board=False), ())["chips"]
    run.run()
    row = run.trace.frames.calls.iloc[0]
    assert (run.status, row["provider"], row["model"]) == ("finished", "simulated", "simulated")


def test_an_answer_by_a_person_is_not_simulated():
    scripted = prompted(llm=["Hello"])
    assert scripted.simulated == ()
    assert make_screen(scripted, scripted.recipe.draw(board=False), ())["chips"] == []
    scripted.run()
    assert scripted.trace.frames.calls["provider"].tolist() == ["scripted"]
    own_agent = prompted(llm=lambda request: LLMResponse("Hi", model="m-1", provider="mine", finish_reason="stop"))
    own_agent.run()
    row = own_agent.trace.frames.calls.iloc[0]
    assert (row["provider"], row["model"], row["finish_reason"]) == ("mine", "m-1", "stop")
