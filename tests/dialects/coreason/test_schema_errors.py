from __future__ import annotations

from pathlib import Path

import pytest

from agentnb.errors import RecipeError
from agentnb.load import load
from agentnb.sources import format_path
from tests.dialects.coreason.recipe_texts import HEAD, content, problems
from tests.dialects.coreason.release_recipes import changed, release_21, release_22, without

GOLDEN = Path(__file__).parents[2] / "golden"


def text(node, head=HEAD):
    return f"{head}topology:\n  - {node}\n"


@pytest.mark.parametrize(
    ("source", "code", "where"),
    [
        (text("{id: a, type: agent, agent_reff: x}"), "R112", "<text>:4:26, topology[0].agent_reff"),
        (text("{id: a, type: human}"), "R113", "<text>:4:5, topology[0]"),
        (text("{id: a}"), "R113", "<text>:4:5, topology[0]"),
        (text("{id: a, type: agnet}"), "R114", "<text>:4:19, topology[0].type"),
        (text("{id: 1, type: agent}"), "R114", "<text>:4:10, topology[0].id"),
        (text("{id: a, type: human, prompt: }"), "R114", "<text>:4:34, topology[0].prompt"),
        (text("{id: a, type: human, prompt: [x]}"), "R114", "<text>:4:34, topology[0].prompt"),
        (text("{id: a, type: human, prompt: no}"), "R109", "<text>:4:34, topology[0].prompt"),
        (
            text("{id: a, type: human, prompt: x, timeout_seconds: soon}"),
            "R114",
            "<text>:4:54, topology[0].timeout_seconds",
        ),
        (text("just words"), "R114", "<text>:4:5, topology[0]"),
        (
            text("{id: a, type: router, input_key: k, routes: {yes: a}, default_route: a}"),
            "R109",
            "<text>:4:50, topology[0].routes.yes",
        ),
        ("interface: {}\nmetadata: {}\n" + "topology: [{id: a, type: agent}]", "R113", "<text>:2:1, metadata"),
        (
            HEAD + "topology: {steps: [{id: a, type: agent}], entry_point: a}",
            "R112",
            "<text>:3:43, topology.entry_point",
        ),
        (HEAD + "kind: Agent\ntopology: [{id: a, type: agent}]", "R114", "<text>:3:7, kind"),
        (HEAD + "topology: 3", "R114", "<text>:3:11, topology"),
        (HEAD + "topology:\n", "R114", "<text>:3:10, topology"),
    ],
)
def test_a_mistake_is_reported_with_its_place(source, code, where):
    assert (code, "error", where) in problems(source)


def first(source):
    with pytest.raises(RecipeError) as caught:
        load(source)
    return caught.value.problems[0]


def test_similar_words_are_suggested():
    assert first(text("{id: a, type: agnet}")).do == "did you mean 'agent'?"
    assert first(text("{id: a, type: agent, agent_reff: x}")).do == "did you mean 'agent_ref'?"
    assert first(text("{id: a, type: human, promt: x}")).do == "write 'prompt' instead of 'promt'"


def test_a_number_is_reported_as_it_was_written():
    assert first(text("{id: 012, type: agent}")).do == 'quote it: "012"'


def test_an_unquoted_word_is_explained():
    problem = first(text("{id: a, type: router, input_key: k, routes: {no: a}, default_route: a}"))
    assert "'no' is false" in problem.why
    assert problem.do == 'quote it: "no":'


def test_a_file_of_another_type_is_named():
    assert "ManifestV2" in first(HEAD + "apiVersion: coreason.ai/v2\nworkflow: {}\n").why
    assert "ManifestV2" not in first(HEAD + "apiVersion: coreason.ai/v2\n").why
    with pytest.raises(RecipeError) as caught:
        load({"interface": {}, "topology": [], "workflow": {}})
    whys = {problem.code: problem.why for problem in caught.value.problems}
    assert whys["R113"] == "required: metadata, interface, topology; found: interface, topology, workflow"


def test_problems_in_an_abbreviated_topology_have_their_original_place():
    graph = "topology:\n  steps: [{id: a, type: router, input_key: k, routes: {x: b}, default_route: a}]"
    assert problems(HEAD + graph)[0] == ("R104", "error", "<text>:4:59, topology.steps[0].routes.x")


def test_an_id_that_is_not_a_string_is_reported_once():
    nodes = [{"id": 1, "type": "agent", "agent_ref": "x"}]
    assert problems(content(nodes, [("1", "1")], "1")) == [("R114", "error", "<dict>, topology.nodes[0].id")]


def test_a_dict_is_reported_by_its_path():
    assert problems(content([{"id": "a", "type": "human"}])) == [("R113", "error", "<dict>, topology.nodes[0]")]


def test_a_union_is_reported_against_one_of_its_members():
    node = {"id": "a", "type": "agent", "agent_ref": {"intend": "x"}}
    assert sorted(code for code, _, _ in problems(content([node]))) == ["R112", "R113"]


def test_an_item_is_reported_with_its_list():
    assert "'editable_fields[0]' is the number 3" in first_of(
        changed(release_22(), ("topology", "nodes", 0, "interaction", "editable_fields"), [3])
    )


def first_of(recipe):
    with pytest.raises(RecipeError) as caught:
        load(recipe)
    return caught.value.problems[0].what


NODE = ("topology", "nodes", 0)
WISHED = ("topology", "nodes", 1, "agent_ref")
MINDED = ("topology", "nodes", 2, "cognitive_profile")
JUDGED = ("topology", "nodes", 3)
SOLVED = ("topology", "nodes", 5, "solver")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *((("metadata", "confidence_score"), value) for value in (-0.1, 1.1, "much")),
        *((("metadata", key), 3) for key in ("name", "generated_by", "generation_rationale", "original_user_intent")),
        (("metadata", "tested_models"), "m"),
        (("metadata", "x-design", "x"), "left"),
        (("apiVersion",), "coreason.ai/v1"),
        (("kind",), "Agent"),
        (("requirements", 0, "operator"), "is"),
        (("requirements", 0, "variable"), 3),
        (("state", "persistence"), "mysql"),
        (("policy", "max_retries"), 1.5),
        (("policy", "timeout_seconds"), "soon"),
        (("policy", "execution_mode"), "both"),
        ((*NODE, "system_prompt_override"), 3),
        ((*NODE, "inputs_map"), {"a": 3}),
        ((*NODE, "inputs_map"), ["a"]),
        ((*NODE, "metadata"), None),
        ((*NODE, "presentation", "color"), "red"),
        ((*NODE, "presentation", "z_index"), 1.5),
        (("topology", "nodes", 1, "pass_threshold"), "high"),
        (("topology", "nodes", 1, "max_refinements"), 1.5),
        (("topology", "nodes", 1, "evaluation_profile"), 3),
        (("topology", "nodes", 2, "timeout_seconds"), "soon"),
        (("topology", "nodes", 3, "routes"), {"a": 1}),
        (("topology", "nodes", 3, "default_route"), None),
        (("topology", "status"), "done"),
        (("topology", "edges", 0, "condition"), 3),
    ],
)
def test_a_value_of_another_type_is_reported(path, value):
    _is_told_at(changed({**release_21(), "apiVersion": "coreason.ai/v2"}, path, value), path, {"R114"})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("status",), "final"),
        *((("metadata", key), 3) for key in ("version", "description", "created")),
        (("metadata", "requires_auth"), "perhaps"),
        *((("metadata", "provenance"), value) for value in ("by hand", 3)),
        (("metadata", "provenance", "type"), "robot"),
        (("metadata", "provenance", "confidence_score"), 2),
        (("metadata", "provenance", "generated_date"), "yesterday"),
        *((("policy", key), -1) for key in ("rate_limit_rpm", "rate_limit_tpm")),
        (("policy", "priority"), "urgent"),
        (("policy", "sensitive_tools"), "t"),
        (("default_model_policy",), 3),
        (("default_model_policy", "strategy"), "best"),
        (("environment", "mcp_servers", 0, "name"), 3),
        (("tests", 0, "validation_logic"), "regex"),
        (("tests", 0, "inputs"), ["a"]),
        (("compliance", "retention"), "1_day"),
        (("compliance", "integrity", "integrity_level"), "high"),
        (("identity", "min_scope"), "root"),
        *((("guardrails", "spot_check_rate"), value) for value in (-0.1, 1.1)),
        (("guardrails", "circuit_breaker", "window_seconds"), 0),
        (("guardrails", "circuit_breaker", "scope"), "world"),
        (("guardrails", "drift_check", "input_drift_threshold"), 2),
        ((*NODE, "interaction", "transparency"), "clear"),
        ((*NODE, "interaction", "triggers"), ["on_end"]),
        ((*NODE, "visualization", "style"), "pie"),
        ((*NODE, "collaboration", "mode"), "alone"),
        ((*NODE, "collaboration", "fallback_behavior"), "wait"),
        ((*NODE, "recovery", "behavior"), "hope"),
        ((*NODE, "recovery", "max_retries"), 1.5),
        ((*NODE, "recovery", "default_output"), "x"),
        ((*NODE, "reasoning", "strategy"), "luck"),
        ((*NODE, "model_policy"), 3),
        ((*WISHED, "intent"), 3),
        ((*WISHED, "optimization", "max_demonstrations"), -1),
        ((*WISHED, "optimization", "strategy"), "serial"),
        ((*MINDED, "role"), None),
        ((*MINDED, "memory_read", 0, "top_k"), 0),
        ((*MINDED, "knowledge_contexts", 0, "priority"), 2),
        ((*SOLVED, "depth_limit"), 0),
        ((*SOLVED, "diversity_threshold"), 1.5),
        ((*SOLVED, "aggregation_method"), "first"),
        (("topology", "nodes", 5, "output_schema"), "text"),
    ],
)
def test_a_value_of_another_type_in_a_later_file_is_reported(path, value):
    _is_told_at(changed(release_22(), path, value), path, {"R114"})


@pytest.mark.parametrize(
    "path",
    [
        ("metadata", "name"),
        ("interface",),
        ("topology",),
        ("topology", "nodes"),
        ("topology", "edges"),
        ("topology", "entry_point"),
        ("topology", "edges", 0, "source"),
        ("state", "properties"),
        ("requirements", 0, "value"),
        ("environment", "mcp_servers", 0, "name"),
        ("tests", 0, "description"),
        ("guardrails", "circuit_breaker", "window_seconds"),
        ("metadata", "provenance", "type"),
        (*NODE, "id"),
        (*NODE, "presentation", "x"),
        (*WISHED, "intent"),
        (*WISHED, "candidates", 0, "rationale"),
        (*MINDED, "role"),
        (*JUDGED, "feedback_variable"),
        (*JUDGED, "evaluation_profile", "grading_rubric", 0, "threshold"),
        ("topology", "nodes", 4, "prompt"),
        ("topology", "nodes", 5, "goal"),
        ("topology", "nodes", 5, "output_schema"),
        ("topology", "nodes", 6, "default_route"),
    ],
)
def test_a_missing_key_is_reported_at_its_place(path):
    reported = [problem for problem in problems(without(release_22(), path)) if problem[0] == "R113"]
    assert reported == [("R113", "error", _where(path[:-1]))]


@pytest.mark.parametrize(
    "path",
    [
        (),
        ("interface",),
        ("state",),
        ("policy",),
        ("requirements", 0),
        ("environment",),
        ("environment", "mcp_servers", 0),
        ("default_model_policy",),
        ("compliance",),
        ("compliance", "integrity"),
        ("identity",),
        ("guardrails",),
        ("guardrails", "circuit_breaker"),
        ("guardrails", "drift_check"),
        ("metadata", "provenance"),
        ("topology",),
        ("topology", "edges", 0),
        NODE,
        *((*NODE, part) for part in ("interaction", "visualization", "collaboration", "recovery", "reasoning")),
        WISHED,
        (*WISHED, "optimization"),
        MINDED,
        (*MINDED, "reflex"),
        JUDGED,
        (*JUDGED, "evaluation_profile"),
        SOLVED,
    ],
)
def test_a_key_that_is_not_known_is_reported(path):
    _is_told_at(changed(release_22(), (*path, "zzz"), 1), (*path, "zzz"), {"R112"})


@pytest.mark.parametrize("path", [("metadata",), ("tests", 0), (*NODE, "metadata"), (*NODE, "presentation")])
def test_some_mappings_accept_any_key(path):
    written = release_21() if path == ("metadata",) else release_22()  # later releases close the metadata
    assert all(severity == "warning" for _, severity, _ in problems(changed(written, (*path, "zzz"), 1)))


def _where(path):
    return ", ".join(["<dict>", *([format_path(path)] if path else [])])


def _is_told_at(recipe, path, codes):
    """Assert that a broken recipe has one error, of these codes, and that it stands at this path or inside it."""
    reported = [(code, place) for code, severity, place in problems(recipe) if severity == "error"]
    assert {code for code, _ in reported} <= codes | {"R109"}
    assert len(reported) == 1
    assert reported[0][1].startswith(_where(path))


def test_all_problems_of_a_bad_file_are_reported_at_once(monkeypatch):
    monkeypatch.chdir(GOLDEN)
    with pytest.raises(RecipeError) as caught:
        load("bad_recipe.yaml")
    assert f"{caught.value}\n" == (GOLDEN / "bad_recipe.txt").read_text(encoding="utf-8")
