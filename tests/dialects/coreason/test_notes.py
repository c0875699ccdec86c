from __future__ import annotations

import pytest

from tests.dialects.coreason.making import HEAD, agent, content, problems

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
            "error",
            "<text>:4:63, tests[0].validation_logic",
        ),
    ],
)
def test_what_is_not_done_is_told_where_it_stands(line, code, severity, where):
    assert problems(HEAD + ONE + line) == [(code, severity, where)]


def test_what_nodes_ask_for_is_told_once_for_all():
    nodes = [agent(name, collaboration={"mode": "co_edit"}) for name in "ab"]
    assert [code for code, _, _ in problems(content(nodes, [("a", "b")]))] == ["R127"]


@pytest.mark.parametrize(
    "asked",
    [
        {"recovery": {"max_retries": 2}},
        {"recovery": {"behavior": "ignore"}},
        {"recovery": {"behavior": "continue_with_default", "default_output": {}}},
        {"reasoning": {"strategy": "adversarial"}},
    ],
)
def test_what_a_run_does_not_do_is_told(asked):
    assert [code for code, _, _ in problems(content([agent("a", **asked)]))] == ["R127"]


@pytest.mark.parametrize("asked", [{"recovery": {}}, {"reasoning": {}}, {"visualization": {}}, {"interaction": {}}])
def test_what_asks_for_nothing_is_not_told(asked):
    assert problems(content([agent("a", **asked)])) == []


@pytest.mark.parametrize("ref", [{"agent_ref": {"intent": "write"}}, {}])
def test_a_published_recipe_names_its_agents(ref):
    nodes = [{"id": "a", "type": "agent", **ref}]
    assert problems(content(nodes)) == []
    assert [(code, severity) for code, severity, _ in problems(content(nodes, status="published"))] == [
        ("R128", "error")
    ]


def test_an_agent_described_in_place_may_be_published():
    nodes = [{"id": "a", "type": "agent", "cognitive_profile": {"role": "writer"}}]
    assert problems(content(nodes, status="published")) == []
