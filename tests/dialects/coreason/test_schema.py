from __future__ import annotations

from itertools import product
from operator import eq, ge, gt, le, lt, ne

import pytest
from pydantic import ValidationError

from agentnb.dialects.coreason.parts import profiles, sections_schema
from agentnb.dialects.coreason.parts.profiles import SolverConfig
from agentnb.dialects.coreason.schema import GraphTopology, RecipeDefinition, expand
from agentnb.errors import RecipeError
from agentnb.load import load
from tests.dialects.coreason.recipe_texts import agent, content
from tests.dialects.coreason.release_recipes import EVALUATOR, release_20, release_21, release_22


def make_definition(**changes):
    return RecipeDefinition.model_validate(content(["a", "b"], [("a", "b")], **changes))


def test_nothing_can_be_changed():
    recipe = make_definition()
    with pytest.raises(ValidationError):
        recipe.status = "published"


def test_unknown_keys_are_rejected_except_in_metadata_and_presentation():
    with pytest.raises(ValidationError, match="extra"):
        make_definition(color="red")
    definition = make_definition(metadata={"name": "t", "version": "2", "team": "desk"})
    assert definition.metadata.model_extra == {"team": "desk"}
    look = RecipeDefinition.model_validate(content([agent("a", presentation={"x": 1, "y": 2, "shadow": True})]))
    assert look.topology.nodes[0].presentation.x == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"topology": {"entry_point": "gone"}}, "Entry point 'gone' not found in nodes: {'"),
        ({"topology": {"edges": [{"source": "a", "target": "gone"}]}}, "Dangling edge target: a -> gone"),
        ({"topology": {"edges": [{"source": "gone", "target": "a"}]}}, "Dangling edge source: gone -> a"),
        ({"topology": {"nodes": [agent("a"), agent("a")]}}, "Duplicate node IDs found: {'a'}"),
        ({"topology": {"nodes": [agent("a", recovery={"fallback_node_id": "gone"})]}}, "Fallback of 'a'"),
    ],
)
def test_a_graph_must_be_connected_correctly(changes, said):
    with pytest.raises(ValidationError) as caught:
        make_definition(**changes)
    assert said in str(caught.value)


def test_a_draft_may_have_dangling_edges_but_no_duplicate_ids():
    draft = make_definition(topology={"edges": [{"source": "a", "target": "gone"}], "status": "draft"})
    assert not draft.topology.verify_completeness()
    with pytest.raises(ValidationError):
        make_definition(topology={"nodes": [agent("a"), agent("a")], "status": "draft"})


def test_a_published_recipe_is_complete():
    assert make_definition(status="published").topology.verify_completeness()
    with pytest.raises(ValidationError, match="incomplete"):
        RecipeDefinition.model_validate(content([{"id": "a", "type": "agent"}], status="published"))
    with pytest.raises(ValidationError, match="incomplete"):
        RecipeDefinition.model_validate(content([agent("a", agent_ref="")], status="published"))
    with pytest.raises(ValidationError, match="Dangling"):
        make_definition(topology={"edges": [{"source": "a", "target": "x"}], "status": "draft"}, status="published")


def test_files_of_several_releases_are_accepted():
    old = {"name": "t", "x-design": {"x": 1, "y": 2}}
    new = {"name": "t", "version": "1", "description": "d", "provenance": {"type": "ai"}, "created": "2024-01-01"}
    assert make_definition(metadata=old).metadata.design_metadata.x == 1
    assert make_definition(metadata=new).metadata.provenance == {"type": "ai"}
    make_definition(
        environment={"mcp_servers": [{"name": "m"}]},
        default_model_policy={"strategy": "priority"},
        policy={"priority": "high"},
    )


@pytest.mark.parametrize("word", [{"status": "archived"}, {"environment": {}}, {"identity": {}}])
def test_metadata_are_typed_in_files_of_later_releases(word):
    metadata_ = {"name": "t", "created": 2024, "provenance": "by hand", "team": "desk"}
    assert make_definition(metadata=metadata_).metadata.provenance == "by hand"
    with pytest.raises(ValidationError) as caught:
        make_definition(metadata=metadata_, **word)
    assert {error["loc"][-1] for error in caught.value.errors()} == {"created", "provenance", "team"}
    metadata = make_definition(
        metadata={"name": "t", "provenance": {"type": "ai"}, "generated_by": "me"}, **word
    ).metadata
    assert (metadata.provenance.type, metadata.generated_by) == ("ai", "me")


@pytest.mark.parametrize("key", ["versions", "descripton", "team", "x_design"])
def test_an_unknown_metadata_key_is_rejected_in_files_of_later_releases_only(key):
    metadata = {"name": "t", key: "1"}
    assert make_definition(metadata=metadata).metadata.model_extra == {key: "1"}
    with pytest.raises(RecipeError) as caught:
        load({**content(["a"], metadata=metadata), "status": "archived"})
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("R112", f"<dict>, metadata.{key}")
    assert problem.do == {"versions": "did you mean 'version'?", "descripton": "did you mean 'description'?"}.get(
        key, f"remove {key!r}" if key == "team" else "did you mean 'x-design'?"
    )


def test_fields_of_earlier_releases_identify_an_earlier_file():
    metadata_ = {"name": "t", "x-design": {"x": 1, "y": 2}, "provenance": "by hand"}
    assert make_definition(metadata=metadata_, status="archived").metadata.provenance == "by hand"
    short = content(["a"], metadata={"name": "t", "created": 3}, status="archived")
    assert RecipeDefinition.model_validate({**short, "topology": [agent("a")]}).metadata.created == 3


@pytest.mark.parametrize("recipe", [release_20(), release_21(), release_21(short=True), release_22()])
def test_a_complete_file_keeps_its_hash(recipe):
    read = RecipeDefinition.model_validate(recipe)
    parsed = RecipeDefinition.model_validate_json(read.to_json())
    assert parsed.compute_hash() == read.compute_hash()
    assert parsed == read


def test_the_order_of_keys_does_not_change_the_hash():
    recipes = [
        make_definition(metadata={"name": "t", "x-design": dict(design)})
        for design in ([("x", 1), ("y", 2)], [("y", 2), ("x", 1)])
    ]
    assert recipes[0].compute_hash() == recipes[1].compute_hash()


def test_dumping_and_reading_keeps_the_hash():
    recipe = make_definition(metadata={"name": "t", "x-design": {"x": 1, "y": 2}}, policy={"priority": "critical"})
    parsed = RecipeDefinition.model_validate_json(recipe.to_json())
    assert parsed.compute_hash() == recipe.compute_hash()
    assert parsed == recipe
    assert recipe.dump()["metadata"]["x-design"]["x"] == 1
    assert make_definition(metadata={"name": "u"}).compute_hash({"metadata"}) == make_definition().compute_hash(
        {"metadata"}
    )


def test_an_abbreviated_topology_is_expanded():
    nodes = [agent("a"), agent("b")]
    full = {"nodes": nodes, "edges": [{"source": "a", "target": "b"}], "entry_point": "a"}
    assert expand(nodes) == full
    assert expand({"steps": nodes}) == full
    assert expand(full) is full
    objects = GraphTopology.model_validate(full).nodes
    assert GraphTopology.model_validate(expand(objects)).entry_point == "a"


def test_requirements_are_evaluated_on_a_board():
    recipe = make_definition(requirements=[
        {"variable": "user.age", "operator": "gte", "value": 18},
        {"variable": "topic", "operator": "in", "value": ["a", "b"], "required": False},
    ])  # fmt: skip
    assert recipe.check_feasibility({"user": {"age": 20}}) == (True, [])
    assert recipe.check_feasibility({"user": {}}) == (False, ["Constraint failed: user.age gte 18"])


@pytest.mark.parametrize("value", [b"\xff", object(), {"deep": [1, b"\xfe"]}, len])
def test_values_that_json_cannot_represent_are_named(value):
    recipe = make_definition(metadata={"name": "t", "team": {"of": value}})
    for write in (recipe.dump, recipe.to_json, recipe.compute_hash):
        with pytest.raises(RecipeError) as caught:
            write()
        (problem,) = caught.value.problems
        assert problem.code == "R244"
        assert problem.where.startswith("<RecipeDefinition>, metadata.team.of")


def test_a_recipe_with_values_that_json_cannot_represent_runs():
    assert load(content(["a"], metadata={"name": "t", "team": b"\xff"})).name == "t"
    with pytest.raises(RecipeError, match=r"R244: the value of metadata.provenance.by is a bytes"):
        load(content(["a"], metadata={"name": "t", "provenance": {"by": b"\xff"}}))


def dump(model, *required):
    """Return the fields of a model that are not required, with their defaults."""
    return {name: value for name, value in model.model_dump(mode="json").items() if name not in required}


NODE_DEFAULTS = {
    "metadata": {},
    **dict.fromkeys(["presentation", "interaction", "visualization", "collaboration", "recovery", "reasoning"]),
}
NODES = {
    "agent": (
        {},
        {
            **dict.fromkeys(["agent_ref", "system_prompt_override", "cognitive_profile", "model_policy"]),
            "inputs_map": {},
        },
    ),
    "human": ({"prompt": "?"}, {"timeout_seconds": None, "required_role": None}),
    "router": ({"input_key": "k", "routes": {}, "default_route": ""}, {}),
    "evaluator": ({key: value for key, value in EVALUATOR.items() if key not in ("id", "type")}, {}),
    "generative": (
        {"goal": "g", "output_schema": {}},
        {"allowed_tools": [], "solver": SolverConfig().model_dump()},
    ),
}


@pytest.mark.parametrize("kind", NODES)
def test_a_node_has_the_defaults_of_its_type(kind):
    required, defaults = NODES[kind]
    node = RecipeDefinition.model_validate(content([{"id": "n", "type": kind, **required}])).topology.nodes[0]
    assert dump(node, "id", "type", *required) == {**NODE_DEFAULTS, **defaults}


def test_a_recipe_has_the_defaults_of_its_release():
    recipe = make_definition(state={"properties": {}}, policy={})
    assert dump(recipe, "metadata", "topology", "state", "policy") == {
        "apiVersion": "coreason.ai/v2",
        "kind": "Recipe",
        "interface": {"inputs": {}, "outputs": {}},
        "requirements": [],
        "status": "draft",
        "tests": [],
        **dict.fromkeys(["environment", "default_model_policy", "compliance", "identity", "guardrails"]),
    }
    assert (recipe.topology.status, recipe.topology.edges[0].condition) == ("valid", None)
    assert dump(recipe.state, "properties") == {"persistence": "ephemeral"}
    assert dump(recipe.policy) == {
        "max_retries": 0,
        "timeout_seconds": None,
        "execution_mode": "sequential",
        "priority": 5,
        "rate_limit_rpm": None,
        "rate_limit_tpm": None,
        "caching_enabled": True,
        "budget_cap_usd": None,
        "token_budget": None,
        "sensitive_tools": [],
        "allowed_mcp_servers": [],
        "safety_preamble": None,
        "legal_disclaimer": None,
    }
    metadata = {
        "version": "0.1.0",
        "requires_auth": False,
        "tested_models": [],
        **dict.fromkeys(["description", "created", "provenance", "generation_rationale", "original_user_intent"]),
        **dict.fromkeys(["generated_by", "confidence_score", "design_metadata"]),
    }
    assert dump(recipe.metadata, "name") == dump(make_definition(status="archived").metadata, "name") == metadata


@pytest.mark.parametrize(
    ("model", "given", "defaults"),
    [
        (
            sections_schema.Recovery,
            {},
            {
                **dict.fromkeys(["max_retries", "fallback_node_id", "default_output"]),
                "retry_delay_seconds": 1.0,
                "behavior": "fail_workflow",
            },
        ),
        (
            sections_schema.Constraint,
            {"variable": "a", "operator": "eq", "value": 1},
            {"required": True, "error_message": None},
        ),
        (sections_schema.ChaosConfig, {}, {"latency_ms": 0, "error_rate": 0.0, "token_throttle": False}),
        (
            profiles.EvaluationProfile,
            {},
            {
                **dict.fromkeys(["expected_latency_ms", "golden_dataset_uri", "evaluator_model"]),
                "grading_rubric": [],
            },
        ),
        (profiles.SemanticRef, {"intent": "i"}, {"constraints": [], "candidates": [], "optimization": None}),
        (
            profiles.ModelChoice,
            {},
            {
                "strategy": "priority",
                **dict.fromkeys(["min_context_window", "max_input_cost_per_m"]),
                "compliance": [],
                "provider_whitelist": [],
                "allow_fallback": True,
            },
        ),
        (
            profiles.CognitiveProfile,
            {"role": "r"},
            {
                "reasoning_mode": "standard",
                **dict.fromkeys(["reasoning", "reflex", "memory_write", "task_primitive"]),
                "knowledge_contexts": [],
                "memory_read": [],
            },
        ),
    ],
)
def test_a_part_has_the_defaults_of_its_release(model, given, defaults):
    assert dump(model(**given), *given) == defaults


@pytest.mark.parametrize(
    ("path", "accepted", "rejected"),
    [
        ("metadata.confidence_score", [0, 0.5, 1], [-0.01, 1.01]),
        ("policy.rate_limit_rpm", [0, 1], [-1]),
        ("policy.rate_limit_tpm", [0, 1], [-1]),
        ("policy.priority", [10, 8, 5, 2, 1, "CRITICAL", "high", "Normal", "low", "batch"], [0, 3, 9, 11, "urgent"]),
    ],
)
def test_numbers_have_bounds(path, accepted, rejected):
    section, key = path.split(".")

    def validate(value):
        return make_definition(**{section: {**({"name": "t"} if section == "metadata" else {}), key: value}})

    for value in accepted:
        assert getattr(getattr(validate(value), section), key) is not None
    for value in rejected:
        with pytest.raises(ValidationError, match=key):
            validate(value)


def test_priorities_have_the_numbers_of_their_release():
    assert {member.name: member.value for member in sections_schema.Priority} == {
        "CRITICAL": 10, "HIGH": 8, "NORMAL": 5, "LOW": 2, "BATCH": 1,
    }  # fmt: skip


LATER = [
    *({word: {}} for word in ("environment", "compliance", "identity", "guardrails")),
    {"default_model_policy": "m"},
    {"status": "archived"},
    {"tests": [{"id": "t", "description": "d", "inputs": {}, "validation_logic": "fuzzy"}]},
    *({"nodes": [agent("a", **{word: {}})]} for word in ("interaction", "visualization", "recovery", "reasoning")),
    {"nodes": [agent("a", collaboration={"mode": "co_edit"})]},
    {"nodes": [agent("a", model_policy="m")]},
    {"nodes": [agent("a", cognitive_profile={"role": "r"})]},
    {"nodes": [agent("a"), {"id": "g", "type": "generative", "goal": "g", "output_schema": {}}]},
]
EARLIER = [
    {},
    {"status": "draft", "tests": [], "environment": None, "identity": None},
    {"nodes": [agent("a", recovery=None, interaction=None, model_policy=None)]},
    {"status": "archived", "topology": [agent("a")]},
    {"status": "archived", "topology": {"steps": [agent("a")]}},
]


@pytest.mark.parametrize(("words", "later"), [*((each, True) for each in LATER), *((each, False) for each in EARLIER)])
def test_words_of_later_releases_close_the_metadata(words, later):
    words = dict(words)
    recipe = content(words.pop("nodes", ["a"]), metadata={"name": "t", "team": "desk"}) | words
    for metadata, rejected in (
        ({"name": "t", "team": "desk"}, later),
        ({"name": "t", "x-design": {"x": 1, "y": 1}}, False),
    ):
        if rejected:
            with pytest.raises(ValidationError, match="team"):
                RecipeDefinition.model_validate({**recipe, "metadata": metadata})
        else:
            assert RecipeDefinition.model_validate({**recipe, "metadata": metadata}).metadata.name == "t"


OPERATORS = {
    "eq": eq,
    "neq": ne,
    "gt": gt,
    "gte": ge,
    "lt": lt,
    "lte": le,
    "in": lambda found, value: found in value,
    "contains": lambda found, value: value in found,
}
VALUES = [None, True, 0, 1, 2, 1.0, "", "a", "ab", [], [1], ["a"], {}, {"a": 1}]


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_requirement_compares_as_python_does_and_fails_for_other_types(operator):
    for found, value in product(VALUES, VALUES):
        rule = sections_schema.Constraint(variable="a.b", operator=operator, value=value)
        try:
            expected = OPERATORS[operator](found, value)
        except TypeError:
            expected = False
        assert rule.evaluate({"a": {"b": found}, "a.b": value}) is expected, (found, value)


@pytest.mark.parametrize(
    ("topology", "full"),
    [
        ([], ([], [], "")),
        ([{"id": "a"}], (["a"], [], "a")),
        ([{"id": "a"}, {"id": "b"}, {"id": "c"}], (["a", "b", "c"], [("a", "b"), ("b", "c")], "a")),
        ({"steps": [{"id": "a"}, {"id": "b"}]}, (["a", "b"], [("a", "b")], "a")),
        ([{"id": "a"}, {"id": 5}, {"type": "x"}, "text", {"id": "b"}], (["a", 5, None, None, "b"], [("a", "b")], "a")),
    ],
)
def test_a_list_of_nodes_is_expanded_to_a_chain(topology, full):
    expanded = expand(topology)
    ids = [node.get("id") if isinstance(node, dict) else None for node in expanded["nodes"]]
    edges = [(edge["source"], edge["target"]) for edge in expanded["edges"]]
    assert (ids, edges, expanded["entry_point"]) == full
    assert expanded.keys() == {"nodes", "edges", "entry_point"}


@pytest.mark.parametrize(
    "topology", [None, 5, "text", {}, {"nodes": []}, {"steps": "text"}, {"steps": [], "nodes": [], "entry_point": "a"}]
)
def test_another_topology_is_not_expanded(topology):
    assert expand(topology) is topology
