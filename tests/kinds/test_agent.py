from __future__ import annotations

import asyncio

import networkx as nx
import pytest

from agentnb.clock import FrozenClock
from agentnb.errors import RecipeError
from agentnb.kinds.agent import is_simulated
from agentnb.load import load
from agentnb.recipe.model import Node, Recipe
from agentnb.samples import samples
from agentnb.session import Session
from agentnb.world.llm.base import LLMResponse
from agentnb.world.world import World
from tests.session.small_sessions import session


def agent(**attributes):
    graph = nx.DiGraph()
    graph.add_node("write", kind="agent", **{"ref": "writer", "inputs": {"topic": "about"}, **attributes})
    return graph


def test_a_bound_agent_is_called_with_the_inputs_of_the_node():
    run = session(agent(), {"about": "rain"}, tools={"writer": lambda topic: {"text": f"on {topic}"}})
    step = run.step()
    assert (run.board["text"], step.inputs, step.observation) == ("on rain", {"topic": "rain"}, {"text": "on rain"})
    (call,) = run.trace.frames.calls.to_dict("records")
    assert (call["kind"], call["name"], call["arguments"]) == ("agent", "writer", {"topic": "rain"})


@pytest.mark.parametrize(
    ("answer", "wrote"),
    [
        ("text", {"write": "text"}),
        (None, {}),
        ([1], {"write": [1]}),
        ({"a": 1, "b": 2}, {"a": 1, "b": 2}),
        (LLMResponse("said"), {"write": "said"}),
        (LLMResponse({"a": 1}), {"a": 1}),
    ],
)
def test_a_mapping_is_merged_and_any_other_value_is_written_under_output(answer, wrote):
    run = session(agent(), {"about": "rain"}, tools={"writer": lambda topic: answer})
    assert run.step().outputs == wrote


@pytest.mark.parametrize(
    ("text", "wrote"), [('{"a": 1}', {"a": 1}), ("[1]", {"write": "[1]"}), ("a: 1", {"write": "a: 1"})]
)
def test_json_from_a_model_is_parsed_and_json_from_a_function_is_text(text, wrote):
    assert session(agent(), {"about": "rain"}, llm=lambda request: text).step().outputs == wrote
    bound = session(agent(), {"about": "rain"}, tools={"writer": lambda topic: text})
    assert bound.step().outputs == {"write": text}


def test_the_output_key_can_be_chosen():
    run = session(agent(output="draft"), {"about": "rain"}, tools={"writer": lambda topic: "text"})
    assert run.step().outputs == {"draft": "text"}


def test_without_inputs_a_bound_agent_may_receive_the_board():
    graph = nx.DiGraph()
    graph.add_node("write", kind="agent", ref="writer")
    run = session(graph, {"about": "rain"}, tools={"writer": lambda board: board["about"].upper()})
    assert run.step().outputs == {"write": "RAIN"}
    alone = session(graph, {"about": "rain"}, tools={"writer": lambda: "alone"})
    assert alone.step().outputs == {"write": "alone"}


def test_an_agent_that_cannot_be_called_is_reported_when_the_session_is_created():
    with pytest.raises(RecipeError, match="R201"):
        session(agent(), {"about": "rain"}, tools={"writer": lambda subject: subject})


def test_an_async_agent_is_awaited():
    async def write(topic):
        await asyncio.sleep(0)
        return topic

    run = session(agent(), {"about": "rain"}, tools={"writer": write})
    assert run.step().outputs == {"write": "rain"}


def test_without_a_binding_the_model_answers_or_a_mock():
    run = session(agent(), {"about": "rain"}, llm=lambda request: request.prompt)
    assert run.step().outputs == {"write": "topic: rain"}
    mocked = session(agent(), {"about": "rain"})
    assert mocked.step().outputs == {"write": "Mocked output from writer"}


def test_a_binding_takes_precedence_over_the_model():
    run = session(agent(), {"about": "rain"}, tools={"writer": lambda topic: "bound"}, llm=["model"])
    assert run.step().outputs == {"write": "bound"}


def test_an_agent_without_a_prompt_is_prompted_with_its_name():
    run = session(agent(inputs=None), llm=lambda request: request.prompt)
    assert run.step().outputs == {"write": "writer"}


def test_simulated_answers_come_in_turn_and_the_last_repeats():
    run = Session(samples("triage"), answers=["again", "again", "approve"])
    run.run(until="close")
    assert [step.outputs["draft"] for step in run.trace.steps if step.node_id == "write"] == [1, 2, 2]
    run.goto(0).run(until="close")
    assert [step.outputs["draft"] for step in run.trace.steps if step.node_id == "write"] == [1, 2, 2]


def test_an_agent_that_fails_is_at_its_node():
    def write(topic):
        raise OSError("no line")

    run = session(agent(), {"about": "rain"}, tools={"writer": write})
    assert run.step().error.startswith("OSError: no line (")
    assert (run.status, run.current, dict(run.board)) == ("failed", "write", {"about": "rain"})
    assert run.trace.frames.calls["error"].tolist() == ["OSError: no line"]


def test_a_loaded_recipe_can_be_bound_differently_in_each_session():
    recipe = load(agent())
    for word in ("one", "two"):
        run = Session(recipe, {"about": "rain"}, tools={"writer": lambda topic, word=word: word})
        assert run.step().outputs == {"write": word}


def test_call_settings_of_a_node_apply_to_every_kind_of_answer():
    def late(topic):
        raise OSError("no line")

    def never(request):
        raise OSError("no line")

    for options in ({"tools": {"writer": late}}, {"llm": never}):
        run = Session(made_of(attempts=3, backoff=0.5), {"about": "rain"}, clock=FrozenClock(), **options)
        assert run.step().error.startswith("OSError: no line (")
        calls = run.trace.frames.calls
        assert (calls["attempt"].tolist(), calls["backoff_seconds"].tolist()) == ([1, 2, 3], [0.0, 0.5, 0.5])


def test_a_simulated_agent_is_retried_after_an_injected_fault():
    agent = made_of(attempts=2, simulated=({"text": 1}, {"text": 2}))
    run = Session(agent, {"about": "rain"}, chaos={"error_rate": 1.0}, clock=FrozenClock())
    run.step()
    assert run.trace.frames.calls["attempt"].tolist() == [1, 2]


def test_an_agent_that_takes_too_long_fails():
    async def write(topic):
        await asyncio.Event().wait()

    run = Session(made_of(timeout=0.001), {"about": "rain"}, tools={"writer": write})
    assert run.step().error == "TimeoutError: agent 'writer' took longer than 0.001 s"


@pytest.mark.parametrize(
    ("model", "name", "settings"),
    [
        (None, None, {}),
        ("big", "big", {}),
        ({"model": "big", "temperature": 0, "seed": None, "messages": "mine"}, "big", {"temperature": 0}),
        ({"strategy": "lowest_cost"}, None, {"strategy": "lowest_cost"}),
    ],
)
def test_the_request_names_the_model_and_carries_its_settings(model, name, settings):
    requests = []
    run = Session(made_of(model=model, prompt="Write."), {"about": "rain"}, llm=requests.append)
    run.step()
    (request,) = requests
    assert (request.model, dict(request.settings)) == (name, settings)
    assert [message.content for message in request.messages] == ["Write.", "topic: rain"]


def test_simulated_agents_are_listed():
    bound, free, model = World(tools={"writer": len}), World(), World(llm=["x"])
    for kind in ("agent", "evaluator"):
        node = Node("n", kind, params={"ref": "writer"})
        assert [is_simulated(node, world) for world in (bound, free, model)] == [False, True, False]
        assert is_simulated(Node("writer", kind), bound) is False
    maker = Node("writer", "generative", params={"goal": "a poem"})
    assert [is_simulated(maker, world) for world in (bound, free, model)] == [False, True, False]
    assert not any(is_simulated(Node("n", kind), free) for kind in ("function", "tool", "human", "router"))


def made_of(**params):
    """Return a recipe with one agent, `writer`, which is told what stands under `about`."""
    params = {"ref": "writer", **{key: value for key, value in params.items() if value is not None}}
    node = Node("write", "agent", inputs={"topic": ("about",)}, params=params)
    return Recipe("made", "test", {"write": node}, (), ("write",))
