from __future__ import annotations

import asyncio

import pytest

from agentnb.dialects.coreason import GraphExecutor
from agentnb.errors import ExecutionError
from agentnb.load import load
from agentnb.session import Session
from agentnb.world.llm.base import LLMResponse, Usage
from tests.dialects.coreason.recipe_texts import agent, content

RULE = {"variable": "user.age", "operator": "gte", "value": 18, "error_message": "You have to be 18."}


def recipe(**more):
    return load(content(["a", "b", "c"], [("a", "b"), ("b", "c")], **more))


def run(recipe, inputs=None, **options):
    session = Session(recipe, inputs, **options)
    session.run()
    return session


def test_a_requirement_is_evaluated_before_the_first_step_and_reports_its_message():
    session = run(recipe(requirements=[RULE]), {"user": {"age": 17}})
    assert (session.status, session.position, session.error.what) == ("failed", 0, "You have to be 18.")
    assert run(recipe(requirements=[RULE]), {"user": {"age": 18}}).status == "finished"


def test_an_executor_raises_for_an_unmet_requirement():
    executor = GraphExecutor(content(["a"], requirements=[RULE]), {"user": {"age": 3}})
    with pytest.raises(ExecutionError, match=r"You have to be 18\."):
        asyncio.run(executor.run())
    assert len(executor.trace) == 0
    assert executor.trace.outcome["status"] == "failed"


def test_a_requirement_without_a_message_describes_itself():
    rule = {"variable": "a.b", "operator": "neq", "value": 1}
    assert run(recipe(requirements=[rule])).error.what == "Constraint failed: a.b neq 1"


def test_an_optional_requirement_is_a_warning():
    with pytest.warns(UserWarning, match="You have to be 18"):
        session = run(recipe(requirements=[{**RULE, "required": False}]))
    assert session.status == "finished"


def test_a_policy_gives_a_run_its_budget():
    answer = LLMResponse("x", usage=Usage(6, 4, 0.5))
    for policy, limit in (({"token_budget": 15}, "max_tokens"), ({"budget_cap_usd": 0.75}, "max_cost_usd")):
        session = run(recipe(policy=policy), llm=lambda request: answer)
        assert (session.status, session.position, session.trace.outcome["limit"]) == ("exhausted", 2, limit)


def test_a_negative_budget_counts_as_none():
    assert recipe(policy={"token_budget": -1, "budget_cap_usd": -0.5}).limits == {"max_steps": 50}


def test_the_tests_of_a_recipe_are_its_scenarios():
    test = {"id": "t1", "description": "says x", "inputs": {"q": 1}, "validation_logic": "fuzzy"}
    (first,) = recipe(tests=[{**test, "expected_output": {"output": "x"}}]).scenarios
    assert (first.id, first.about, first.inputs, first.expected) == ("t1", "says x", {"q": 1}, {"output": "x"})
    assert first.compare == "fuzzy"


def test_traces_contain_the_provenance_of_the_recipe():
    old = {"name": "t", "generated_by": "me", "confidence_score": 0.5, "version": "1"}
    assert run(recipe(metadata=old)).trace.metadata["provenance"] == {"generated_by": "me", "confidence_score": 0.5}
    new = {"name": "t", "provenance": {"type": "ai", "generated_by": "a model"}}
    assert run(recipe(metadata=new)).trace.metadata["provenance"] == {"type": "ai", "generated_by": "a model"}
    assert "provenance" not in run(recipe()).trace.metadata


def test_retries_and_timeouts_of_the_policy_reach_the_calls():
    attempted = []

    def fails(**_inputs):
        attempted.append(1)
        raise OSError("away")

    one = content([agent("a")], policy={"max_retries": 2})
    session = run(load(one), tools={"a-agent": fails})
    assert (len(attempted), session.status) == (3, "failed")
    assert session.trace.frames.calls["attempt"].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("policy", "limits"),
    [
        (None, {}),
        ({}, {}),
        ({"budget_cap_usd": 0, "token_budget": 0}, {"max_cost_usd": 0, "max_tokens": 0}),
        ({"budget_cap_usd": 0.5}, {"max_cost_usd": 0.5}),
        ({"token_budget": 7, "budget_cap_usd": -0.1}, {"max_tokens": 7}),
        ({"token_budget": -1}, {}),
    ],
)
def test_the_policys_limits_are_those_of_the_run(policy, limits):
    assert dict(recipe(policy=policy).limits) == {"max_steps": 50, **limits}


Q = {"type": "string"}


@pytest.mark.parametrize(
    ("described", "inputs", "required", "schema"),
    [
        ({}, {}, (), False),
        ({"q": Q}, {"q": Q}, (), False),
        ({"q": "string", "r": {"type": "string", "required": True}}, {"q": Q, "r": Q}, ("r",), False),
        ({"q": {"required": ["a"]}}, {"q": {"required": ["a"]}}, (), False),
        ({"properties": {"q": Q}}, {"q": Q}, (), True),
        (
            {"type": "object", "properties": {"q": Q, "r": Q}, "required": ["r", "gone", 5]},
            {"q": Q, "r": Q},
            ("r",),
            True,
        ),
        (
            {"properties": {"q": {**Q, "required": True}, "r": "string"}, "required": ["r", "q"]},
            {"q": Q, "r": Q},
            ("r", "q"),
            True,
        ),
        ({"properties": {"q": {**Q, "required": True}}, "required": "q"}, {"q": Q}, ("q",), True),
        ({"type": "array", "properties": {}}, {"type": {"type": "array"}, "properties": {}}, (), False),
        ({"properties": "string"}, {"properties": Q}, (), False),
    ],
)
def test_inputs_are_a_map_of_properties_or_a_schema(described, inputs, required, schema):
    found = recipe(interface={"inputs": described, "outputs": described})
    assert (dict(found.inputs), found.meta["required"]) == (inputs, required)
    assert found.meta["input_schema"] == ({**described, "properties": inputs} if schema else None)
    assert found.outputs == tuple(inputs)


def test_the_state_and_the_inputs_have_initial_values():
    state = {"properties": {"a": {"default": 1}, "b": {"default": None}, "c": {}, "d": "string", "q": {"default": 2}}}
    inputs = {"q": {"default": 3}, "r": {"type": "string"}, "s": {"default": False}}
    found = recipe(state=state, interface={"inputs": inputs})
    assert dict(found.init) == {"a": 1, "b": None, "q": 3, "s": False}


EARLIER_ORIGIN = {
    "generated_by": "me",
    "generation_rationale": "why",
    "original_user_intent": "what",
    "tested_models": ["m"],
}


@pytest.mark.parametrize(
    ("metadata", "provenance"),
    [
        ({}, None),
        ({"version": "2", "team": "desk", "description": "d"}, None),
        ({"tested_models": [], "confidence_score": None}, None),
        (
            {
                "generated_by": "me",
                "generation_rationale": "why",
                "original_user_intent": "what",
                "tested_models": ["m"],
            },
            {
                "generated_by": "me",
                "generation_rationale": "why",
                "original_user_intent": "what",
                "tested_models": ["m"],
            },
        ),
        ({"provenance": "by hand"}, {"provenance": "by hand"}),
        ({"provenance": "by hand", "confidence_score": 1}, {"confidence_score": 1, "provenance": "by hand"}),
        ({"generated_by": "me", "provenance": {"generated_by": "it"}}, {"generated_by": "it"}),
    ],
)
def test_the_origin_of_a_recipe_is_told_by_its_metadata(metadata, provenance):
    expected = {} if provenance is None else {"provenance": provenance}
    assert recipe(metadata={"name": "t", **metadata}).meta["about"] == expected
