from __future__ import annotations

import pytest

from agentnb.errors import RecipeError
from agentnb.load import load
from agentnb.session import Session
from tests.dialects.coreason.recipe_texts import HEAD, agent, content, problems
from tests.dialects.coreason.release_recipes import EVALUATOR

ONE = "topology: [{id: a, type: agent, agent_ref: x}]\n"


@pytest.mark.parametrize(
    ("line", "code", "severity", "where"),
    [
        ("guardrails: {spot_check_rate: 0.5}", "R127", "warning", "<text>:4:1, guardrails"),
        ("identity: {min_scope: admin}", "R127", "warning", "<text>:4:1, identity"),
        ("compliance: {audit_level: full}", "R127", "warning", "<text>:4:1, compliance"),
        ("state: {properties: {}, persistence: redis}", "R130", "warning", "<text>:4:38, state.persistence"),
        (
            "tests: [{id: t, description: d, inputs: {}, validation_logic: code_eval}]",
            "R129",
            "warning",
            "<text>:4:63, tests[0].validation_logic",
        ),
    ],
)
def test_unsupported_fields_are_reported_at_their_place(line, code, severity, where):
    assert problems(HEAD + ONE + line) == [(code, severity, where)]


def test_unsupported_requests_of_nodes_are_reported_once():
    nodes = [agent(name, collaboration={"mode": "co_edit"}) for name in "ab"]
    (problem,) = load(content(nodes, [("a", "b")])).check()
    assert (problem.code, problem.what) == ("R127", "'collaboration' at a, b is not enforced")
    assert problem.where == "<dict>, topology.nodes[0].collaboration"


JUDGE = {**EVALUATOR, "evaluation_profile": "strict", "pass_route": "", "fail_route": "judge"}
GOAL = {"id": "g", "type": "generative", "goal": "x", "output_schema": {}}
WATCHED = {"transparency": "interactive", "triggers": ["on_start"]}


@pytest.mark.parametrize(
    ("node", "path"),
    [
        (agent("a", reasoning={"strategy": "adversarial"}), "reasoning"),
        (agent("a", interaction=WATCHED), "interaction"),
        (agent("a", cognitive_profile={"role": "r", "memory_read": [{"collection_name": "c"}]}), "cognitive_profile"),
        ({**JUDGE, "evaluation_profile": {"golden_dataset_uri": "u"}}, "evaluation_profile.golden_dataset_uri"),
        ({**GOAL, "allowed_tools": ["t"]}, "allowed_tools"),
        ({**GOAL, "solver": {"strategy": "tree_search"}}, "solver.strategy"),
    ],
)
def test_fields_of_a_node_without_effect_are_reported(node, path):
    assert problems(content([node])) == [("R127", "warning", f"<dict>, topology.nodes[0].{path}")]


@pytest.mark.parametrize(
    "node",
    [
        agent("a", recovery={"max_retries": 2, "behavior": "ignore"}),
        agent("a", recovery={"behavior": "continue_with_default", "default_output": {"x": 1}}),
        agent("a", recovery={}, reasoning={}, visualization={"style": "tree"}),
        agent("a", interaction={"transparency": "interactive"}),
        agent("a", interaction={**WATCHED, "transparency": "observable"}),
        agent("a", cognitive_profile={"role": "r", "task_primitive": "t"}, model_policy="fast"),
        {**JUDGE, "evaluation_profile": {"evaluator_model": "m"}},
        {**GOAL, "solver": {"strategy": "ensemble", "n_samples": 3}},
        {"id": "h", "type": "human", "prompt": "?", "timeout_seconds": 3, "required_role": "lead"},
    ],
)
def test_supported_fields_are_not_reported(node):
    assert problems(content([node])) == []


def test_the_policy_is_enforced_except_for_what_is_reported():
    done = {
        "max_retries": 2,
        "timeout_seconds": 5,
        "execution_mode": "parallel",
        "budget_cap_usd": 0,
        "token_budget": 9,
    }
    done |= {"priority": "high", "caching_enabled": False, "safety_preamble": "Be kind.", "sensitive_tools": []}
    assert problems(content(["a"], policy={**done, "legal_disclaimer": ""})) == []
    words = {"rate_limit_rpm": 1, "rate_limit_tpm": 1, "sensitive_tools": ["t"], "allowed_mcp_servers": ["m"]}
    words["legal_disclaimer"] = "l"
    assert problems(content(["a"], policy=words)) == [("R127", "warning", f"<dict>, policy.{word}") for word in words]


def test_an_environment_is_not_created():
    assert problems(content(["a"], environment={})) == []
    around = {"mcp_servers": [{"name": "m"}], "python_version": "3.12"}
    assert problems(content(["a"], environment=around)) == [
        ("R127", "warning", f"<dict>, environment.{word}") for word in around
    ]


def test_the_advice_about_servers_can_be_followed():
    recipe = load(content([agent("a", agent_ref="helper")], environment={"mcp_servers": [{"name": "m"}]}))
    (note,) = [problem for problem in recipe.check() if "mcp_servers" in problem.what]
    assert "Session(tools={AGENT_REF: function})" in note.do
    session = Session(recipe, tools={"helper": lambda **words: {"done": True}})
    assert session.run().outcome["status"] == "finished"


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"policy": {"max_retries": -1}}, "policy.max_retries"),
        ({"policy": {"timeout_seconds": 10**400}}, "policy.timeout_seconds"),
        ({"policy": {"timeout_seconds": 10**9 + 1}}, "policy.timeout_seconds"),
        ({"policy": {"budget_cap_usd": float("nan")}}, "policy.budget_cap_usd"),
        (
            {"nodes": [agent("a", recovery={"retry_delay_seconds": float("inf")})]},
            "topology.nodes[0].recovery.retry_delay_seconds",
        ),
        (
            {"nodes": [agent("a", recovery={"retry_delay_seconds": float("nan")})]},
            "topology.nodes[0].recovery.retry_delay_seconds",
        ),
        ({"policy": {"timeout_seconds": -1}}, "policy.timeout_seconds"),
        ({"policy": {"timeout_seconds": 0}}, "policy.timeout_seconds"),
        ({"policy": {"budget_cap_usd": -0.5}}, "policy.budget_cap_usd"),
        ({"policy": {"token_budget": -1}}, "policy.token_budget"),
        ({"nodes": [agent("a", recovery={"max_retries": -1})]}, "topology.nodes[0].recovery.max_retries"),
        (
            {"nodes": [agent("a", recovery={"retry_delay_seconds": -1})]},
            "topology.nodes[0].recovery.retry_delay_seconds",
        ),
        (
            {"nodes": [{"id": "h", "type": "human", "prompt": "?", "timeout_seconds": -1}]},
            "topology.nodes[0].timeout_seconds",
        ),
    ],
)
def test_a_number_below_the_minimum_counts_as_none(more, path):
    assert problems(content(**{"nodes": ["a"], **more})) == [("R139", "warning", f"<dict>, {path}")]


def test_the_minimum_and_the_maximum_are_not_reported():
    policy = {"max_retries": 0, "timeout_seconds": 10**9, "budget_cap_usd": 0, "token_budget": 0}
    nodes = [
        agent("a", recovery={"max_retries": 0, "retry_delay_seconds": 0}),
        agent("b", recovery={"max_retries": 1, "retry_delay_seconds": 10**9}),
        {"id": "h", "type": "human", "prompt": "?", "timeout_seconds": 10**9},
    ]
    assert problems(content(nodes, [("a", "b"), ("b", "h")], policy=policy)) == []


@pytest.mark.parametrize(
    ("inputs", "path"),
    [
        ({"q": {"type": 42}}, "q"),
        ({"q": "text"}, "q"),
        ({"q": {"type": "text"}}, "q"),
        ({"q": {"minLength": "x"}}, "q"),
        ({"q": {"pattern": "("}}, "q"),
        ({"type": "object", "properties": {"q": {"type": 42}}}, "properties.q"),
    ],
)
def test_an_input_without_a_valid_schema_is_reported_and_not_validated(inputs, path):
    recipe = load(content(["a"], interface={"inputs": inputs}))
    assert [(problem.code, problem.severity, problem.where) for problem in recipe.check()] == [
        ("R134", "warning", f"<dict>, interface.inputs.{path}")
    ]
    assert Session(recipe, {"q": [1]}).status == "ready"


@pytest.mark.parametrize(
    "schema", [{}, True, {"type": "string"}, {"enum": [1]}, {"type": ["string", "null"], "default": 1}]
)
def test_a_valid_schema_is_not_reported(schema):
    assert problems(content(["a"], interface={"inputs": {"q": schema}})) == []


@pytest.mark.parametrize("ref", [{"agent_ref": {"intent": "write"}}, {}])
def test_a_published_recipe_names_its_agents(ref):
    nodes = [{"id": "a", "type": "agent", **ref}]
    assert problems(content(nodes)) == []
    assert [(code, severity) for code, severity, _ in problems(content(nodes, status="published"))] == [
        ("R128", "error")
    ]


def test_an_inline_agent_may_be_published():
    nodes = [{"id": "a", "type": "agent", "cognitive_profile": {"role": "writer"}}]
    assert problems(content(nodes, status="published")) == []


@pytest.mark.parametrize(
    ("inputs", "path"),
    [
        ({"q": "string", "more": {}}, "q"),
        ({"q": {"type": "string", "required": True}}, "q"),
        ({"type": "object", "properties": {"q": {"type": "string", "required": True}}}, "properties.q"),
    ],
)
def test_an_abbreviated_input_is_reported_and_interpreted(inputs, path):
    recipe = load(content(["a"], interface={"inputs": inputs}))
    (problem,) = recipe.check()
    assert (problem.code, problem.severity, problem.where) == ("R134", "warning", f"<dict>, interface.inputs.{path}")
    assert "of type string" in problem.why
    with pytest.raises(RecipeError, match="R206"):
        Session(recipe, {"q": 1})
    if path != "q" or "more" not in inputs:
        with pytest.raises(RecipeError, match="R205"):
            Session(recipe, {})


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "text"}, "'text' is not valid"),
        ({"properties": {"a": {"pattern": "("}}}, "is not a 'regex'"),
        ({"properties": {"a": {"$ref": "https://example.org/a.json"}}}, "not in it"),
        ({"properties": {"a": {"$ref": "#/$defs/b"}}}, "not in it"),
    ],
)
def test_an_output_without_a_valid_schema_is_reported_at_load(schema, why):
    (problem,) = load(content([{**GOAL, "output_schema": schema}])).check()
    assert (problem.code, problem.severity) == ("R140", "warning")
    assert problem.where == "<dict>, topology.nodes[0].output_schema"
    assert why in problem.why


def test_an_output_that_refers_to_itself_is_not_reported():
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}, "c": {"$ref": "#"}, "d": {"$ref": "#e"}},
              "$defs": {"b": {"type": "string"}, "f": {"$anchor": "e"}}}  # fmt: skip
    assert problems(content([{**GOAL, "output_schema": schema}])) == []


def falls(name, to=None, **more):
    return agent(name, recovery={"behavior": "route_to_fallback", "fallback_node_id": to}, **more)


def test_a_fallback_to_a_missing_node_is_reported():
    nodes = ["a", falls("b"), "c", falls("d")]
    assert problems(content(nodes, [("a", "b"), ("b", "c"), ("c", "d")])) == [
        ("R141", "warning", f"<dict>, topology.nodes[{number}].recovery.behavior") for number in (1, 3)
    ]


def test_a_cycle_of_fallbacks_is_reported_once():
    nodes = [falls("a", "b"), falls("b", "c"), falls("c", "b"), falls("d", "d"), falls("e", "f"), "f"]
    reported = [problem for problem in load(content(nodes, [("a", "d"), ("d", "e")])).check() if problem.code == "R142"]
    assert [problem.what for problem in reported] == [
        "fallbacks form a cycle: b -> c -> b",
        "fallbacks form a cycle: d -> d",
    ]
    assert reported[0].where == "<dict>, topology.nodes[1].recovery.fallback_node_id"


def test_two_scenarios_with_one_id_are_reported():
    test = {"id": "t", "description": "d", "inputs": {}, "validation_logic": "exact_match"}
    assert problems(content(["a"], tests=[test, {**test, "id": "u"}, test])) == [
        ("R143", "warning", "<dict>, tests[2].id")
    ]


def test_warnings_come_in_their_order():
    nodes = [
        agent("a", collaboration={"mode": "co_edit"}, recovery={"max_retries": -1, "behavior": "route_to_fallback"}),
        {**GOAL, "output_schema": {"type": "text"}},
    ]
    test = {"id": "t", "description": "d", "inputs": {}, "validation_logic": "code_eval"}
    recipe = content(
        nodes,
        [("a", "g")],
        compliance={},
        identity={},
        guardrails={},
        environment={"mcp_servers": [{"name": "m"}], "python_version": "3.12"},
        policy={"legal_disclaimer": "l", "sensitive_tools": ["t"], "token_budget": -1, "max_retries": -1},
        interface={"inputs": {"q": {"type": 5}}},
        tests=[test, test],
        state={"properties": {}, "persistence": "redis"},
    )
    assert [(code, where.removeprefix("<dict>, ")) for code, _, where in problems(recipe)] == [
        *(("R127", word) for word in ("guardrails", "identity", "compliance")),
        *(("R127", f"environment.{word}") for word in ("mcp_servers", "python_version")),
        *(("R127", f"policy.{word}") for word in ("sensitive_tools", "legal_disclaimer")),
        ("R127", "topology.nodes[0].collaboration"),
        *(("R139", f"policy.{word}") for word in ("max_retries", "token_budget")),
        ("R139", "topology.nodes[0].recovery.max_retries"),
        ("R134", "interface.inputs.q"),
        ("R140", "topology.nodes[1].output_schema"),
        ("R141", "topology.nodes[0].recovery.behavior"),
        ("R129", "tests[0].validation_logic"),
        ("R143", "tests[1].id"),
        ("R129", "tests[1].validation_logic"),
        ("R130", "state.persistence"),
    ]
