"""Where in its file a problem is reported, and where the parts of its recipe are."""

from __future__ import annotations

import pytest

from agentnb.load import load
from tests.dialects.marked_texts import find_problems, get_spot, read_marks

HEAD = "metadata: {name: t}\ninterface: {}\n"
ONE = "topology: [{id: a, type: agent, agent_ref: x}]\n"
JUDGE = (
    "type: evaluator, target_variable: v, evaluator_agent_ref: j, evaluation_profile: p, pass_threshold: 1, "
    "max_refinements: 1, feedback_variable: f"
)
GOAL = "type: generative, goal: g"
FAULTS = {
    "what has no effect": HEAD + f"""
«R127»guardrails: {{spot_check_rate: 1}}
«R127»compliance: {{}}
«R127»identity: {{}}
environment: {{«R127»python_version: "3.12", «R127»mcp_servers: [{{name: m}}]}}
policy: {{«R127»sensitive_tools: [a], «R127»legal_disclaimer: x, «R127»rate_limit_rpm: 0, «R127»rate_limit_tpm: 1,
  «R127»allowed_mcp_servers: [m]}}
topology:
  - {{id: a, type: agent, agent_ref: x}}
  - {{id: b, type: agent, agent_ref: x, «R127»collaboration: {{mode: co_edit}}, «R127»reasoning: {{strategy: basic}}}}
  - {{id: c, type: agent, collaboration: {{mode: co_edit}}, reasoning: {{strategy: causal}},
      «R127»interaction: {{transparency: interactive, triggers: [on_start]}}, «R127»cognitive_profile: {{role: r,
      reflex: {{enabled: true}}}}}}
  - {{id: d, {JUDGE.replace("evaluation_profile: p", "evaluation_profile: {«R127»golden_dataset_uri: u}")},
      pass_route: e, fail_route: ""}}
  - {{id: e, {GOAL}, output_schema: {{}}, «R127»allowed_tools: [t], solver: {{«R127»strategy: tree_search}}}}
""",
    "numbers": HEAD + """
policy:
  max_retries: «R139»-1
  budget_cap_usd: «R139»-0.5
  token_budget: «R139»-1
  timeout_seconds: «R139»0
topology:
  - {id: a, type: agent, agent_ref: x, recovery: {max_retries: «R139»-1, retry_delay_seconds: «R139»-0.1}}
  - {id: b, type: human, prompt: "?", timeout_seconds: «R139»0, recovery: {max_retries: «R139»-2}}
  - {id: c, type: human, prompt: "?", timeout_seconds: «R139»1000000001}
""",
    "schemas": f"""
metadata: {{name: t}}
interface:
  inputs: {{q: {{type: string}}, r: «R134»text, s: «R134»{{type: string, required: true}}}}
topology:
  - {{id: a, {GOAL}, output_schema: {{}}}}
  - {{id: b, {GOAL}, output_schema: «R140»{{type: text}}}}
  - {{id: c, {GOAL}, output_schema: «R140»{{properties: {{x: {{$ref: "#/gone"}}}}}}}}
""",
    "a schema of all inputs": """
metadata: {name: t}
interface: {inputs: {type: object, properties: {q: {}, r: «R134»{type: 5}}}}
""" + ONE,
    "fallbacks": HEAD + """
topology:
  - {id: a, type: agent, agent_ref: x, recovery: {behavior: «R141»route_to_fallback}}
  - {id: b, type: agent, agent_ref: x, recovery: {behavior: route_to_fallback, fallback_node_id: «R142»c}}
  - {id: c, type: agent, agent_ref: x, recovery: {behavior: route_to_fallback, fallback_node_id: b}}
  - {id: d, type: agent, agent_ref: x, recovery: {behavior: route_to_fallback, fallback_node_id: «R142»d}}
  - {id: e, type: agent, agent_ref: x, recovery: {behavior: ignore, fallback_node_id: f}}
  - {id: f, type: agent, agent_ref: x, recovery: {fallback_node_id: e}}
""",
    "missing targets": HEAD + f"""
topology:
  nodes:
    - {{id: a, type: agent, agent_ref: x, recovery: {{fallback_node_id: «R104»gone}}}}
    - {{id: b, type: agent, agent_ref: x, recovery: {{behavior: route_to_fallback, fallback_node_id: «R104»gone}}}}
    - {{id: c, type: router, input_key: k, routes: {{x: «R104»gone, y: "", z: b}}, default_route: «R104»gone}}
    - {{id: d, {JUDGE}, pass_route: «R104»gone, fail_route: «R104»gone}}
    - {{id: «R106»a, type: agent, agent_ref: x}}
  edges:
    - {{source: a, target: b}}
    - «R104»{{source: b, target: gone}}
    - «R104»{{source: gone, target: c}}
  entry_point: «R105»lost
""",
    "a graph that cannot be read": HEAD + """
topology:
  nodes:
    - {id: a, type: agent, «R112»agent_reff: x, recovery: {behavior: ignore, fallback_node_id: «R104»gone}}
    - {id: b, type: agent, agent_ref: x}
    - {id: «R106»b, type: agent, agent_ref: x}
    - {id: «R114»5, type: agent, agent_ref: x}
  edges: [{source: a, target: "5"}, «R104»{source: b, target: gone}, «R113»{source: b}]
  entry_point: «R105»lost
""",
    "edges that are not followed": HEAD + """
topology:
  nodes:
    - {id: a, type: agent, agent_ref: x}
    - {id: r, type: router, input_key: k, routes: {x: b}, default_route: c}
    - {id: b, type: agent, agent_ref: x}
    - {id: c, type: agent, agent_ref: x}
  edges:
    - {source: a, target: r}
    - «R118»{source: a, target: b}
    - «R119»{source: r, target: b}
  entry_point: a
""",
    "a draft": HEAD + """
topology:
  status: draft
  nodes:
    - {id: «R115»a, type: agent, agent_ref: x}
    - {id: «R115»b, type: agent, agent_ref: x}
    - {id: «R115»r, type: router, input_key: k, routes: {x: «R104»gone}, default_route: a}
  edges:
    - «R104»{source: a, target: gone}
    - «R118»{source: a, target: b}
    - {source: b, target: r}
    - «R104»{source: r2, target: b}
  entry_point: «R105»lost
""",
    "a published recipe": HEAD + """status: published
topology:
  nodes:
    - {id: a, type: agent, agent_ref: x}
    - «R128»{id: b, type: agent, agent_ref: {intent: i}}
    - «R128»{id: c, type: agent}
    - {id: d, type: agent, cognitive_profile: {role: r}}
  edges: [{source: a, target: b}, {source: b, target: c}, {source: c, target: d}]
  entry_point: a
""",
    "scenarios and the state": HEAD + ONE + """
state: {properties: {}, persistence: «R130»postgres}
tests:
  - {id: t, description: d, inputs: {}, validation_logic: fuzzy}
  - {id: u, description: d, inputs: {}, validation_logic: «R129»code_eval}
  - {id: «R143»t, description: d, inputs: {}, validation_logic: «R129»code_eval}
  - {id: «R143»t, description: d, inputs: {}, validation_logic: fuzzy}
""",
    "words": HEAD + """
topology:
  - {id: a, type: router, input_key: «R109»yes, routes: {«R109»no: a}, default_route: «R109»off}
""",
}  # fmt: skip


@pytest.mark.parametrize("marked", FAULTS.values(), ids=FAULTS)
def test_each_problem_is_reported_where_it_is(marked):
    text, marks = read_marks(marked)
    assert find_problems(text) == marks


PARTS = f"""
metadata: {{name: t}}
interface: {{}}
requirements:
  - «requirement 0»{{variable: a, operator: eq, value: 1}}
  - «requirement 1»{{variable: b, operator: eq, value: 1}}
tests:
  - «test t»{{id: t, description: d, inputs: {{}}, validation_logic: fuzzy}}
topology:
  entry_point: «entry»a
  nodes:
    - {{type: agent, id: «a»a, agent_ref: x, recovery: {{behavior: route_to_fallback, fallback_node_id: «a-c»c}}}}
    - {{type: router, id: «r»r, input_key: k, routes: {{x: «r-j»j, y: ""}}, default_route: «r-c»c}}
    - {{id: «j»j, {JUDGE}, pass_route: «j-a»a, fail_route: «j-c»c}}
    - {{type: human, id: «c»c, prompt: "?"}}
  edges:
    - «a-r»{{source: a, target: r}}
"""


NODES = "    - «a-b»{id: «a»a, type: agent, agent_ref: x}\n    - {id: «b»b, type: agent, agent_ref: x}\n"


@pytest.mark.parametrize("marked", [PARTS, f"{HEAD}topology:\n{NODES}", f"{HEAD}topology:\n  steps:\n{NODES}"])
def test_each_part_of_a_recipe_is_where_it_is_written(marked):
    text, marks = read_marks(marked)
    recipe = load(text)
    places = {node.id: node.place for node in recipe.nodes.values()}
    places |= {f"{edge.source}-{edge.target}": edge.place for edge in recipe.edges}
    places |= {f"requirement {number}": rule.place for number, rule in enumerate(recipe.requires)}
    places |= {f"test {scenario.id}": scenario.place for scenario in recipe.scenarios}
    if "entry" in dict(marks):
        places["entry"] = recipe.meta["entry_place"]
    assert {word: get_spot(place) for word, place in places.items()} == dict(marks)
