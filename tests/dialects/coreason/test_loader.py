from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import Field, create_model

from agentnb.dialects.coreason.loader import recognize
from agentnb.dialects.coreason.parts.run_settings import MAX_STEPS
from agentnb.dialects.coreason.schema import RecipeDefinition
from agentnb.errors import RecipeError
from agentnb.load import load
from agentnb.session import Session
from tests.dialects.coreason.recipe_texts import agent, codes, content, problems, router
from tests.dialects.coreason.release_recipes import EVALUATOR, INVENT, release_20, release_21, release_22


@pytest.mark.parametrize(
    ("given", "mine"),
    [
        ({"topology": {}}, True),
        ({"apiVersion": "coreason.ai/v2"}, True),
        ({"metadata": {}, "interface": {}}, True),
        ({"apiVersion": "apps/v1", "metadata": {}}, False),
        ({}, False),
        (object(), False),
    ],
)
def test_it_is_recognized_by_its_keys(given, mine):
    assert recognize(given) is mine


def test_an_agent_sees_its_mapped_inputs():
    recipe = load(
        content([agent("a", inputs_map={"text": "order.id", "again": "ticket"}, system_prompt_override="Be kind.")])
    )
    node = recipe.nodes["a"]
    assert (node.kind, node.inputs) == ("agent", {"text": ("order.id",), "again": ("ticket",)})
    assert (node.reads, node.writes) == (("order.id", "ticket"), ("output",))
    assert dict(node.params) == {"ref": "a-agent", "output": "output", "prompt": "Be kind."}


def test_an_agent_without_mapped_inputs_sees_nothing():
    assert load(content(["a"])).nodes["a"].inputs == {}


def test_a_person_is_asked_and_the_answer_is_written_to_response():
    ask = {"id": "ask", "type": "human", "prompt": "Refund?", "timeout_seconds": 60, "required_role": "lead"}
    node = load(content([ask])).nodes["ask"]
    assert (node.kind, node.writes, node.inputs) == ("human", ("response",), None)
    assert dict(node.params) == {"prompt": "Refund?", "output": "response", "timeout": 60, "role": "lead"}


def test_a_router_chooses_by_its_routes():
    recipe = load(content([router("r", {"x": "a", "y": ""}, "b", input_key="a.b"), "a", "b"]))
    params = recipe.nodes["r"].params
    assert (params["input_key"], dict(params["routes"]), params["default"]) == (("a.b",), {"x": "a", "y": ""}, "b")
    assert [(edge.target, edge.kind, edge.condition) for edge in recipe.edges] == [
        ("a", "route", "x"),
        ("b", "route", "otherwise"),
    ]


def test_evaluators_and_generative_nodes_are_read_checked_and_drawn():
    judge = {**EVALUATOR, "pass_route": "invent"}
    recipe = load(content(["write", judge, INVENT], [("write", "judge")]))
    assert [(edge.source, edge.target, edge.condition) for edge in recipe.edges if edge.kind == "route"] == [
        ("judge", "invent", "pass"),
        ("judge", "write", "fail"),
    ]
    assert {problem.code for problem in recipe.check()} == {"R127"}
    assert recipe.nodes["invent"].params["goal"] == "a poem"
    assert recipe.graph.number_of_nodes() == 3


@pytest.mark.parametrize(
    "recipe",
    [release_20(), release_21(), release_21(short=True), release_22(), release_22("published"), release_22("archived")],
)
def test_files_of_all_releases_load(recipe):
    loaded = load(recipe)
    assert [problem for problem in loaded.check() if problem.severity == "error"] == []
    assert Session(loaded, {"topic": "rain"}, validate_inputs=True).status == "ready"


@pytest.mark.parametrize("more", [{}, {"status": "draft"}])
def test_a_fallback_exists_in_a_draft_too(more):
    lost = content([agent("a", recovery={"fallback_node_id": "gone"})], topology=more)
    assert ("R104", "error", "<dict>, topology.nodes[0].recovery.fallback_node_id") in problems(lost)


@pytest.mark.parametrize("topology", [[], {"steps": []}, {"nodes": [], "edges": [], "entry_point": "a"}])
def test_a_recipe_has_nodes(topology):
    assert codes({**content(["a"]), "topology": topology}) == ["R105"]


def test_an_empty_draft_is_valid():
    empty = {"nodes": [], "edges": [], "entry_point": "a", "status": "draft"}
    assert problems({**content(["a"]), "topology": empty}) == [("R105", "warning", "<dict>, topology.entry_point")]


def test_ids_in_a_draft_are_unique():
    twice = content(["a", "a"], topology={"status": "draft"})
    assert ("R106", "error", "<dict>, topology.nodes[1].id") in problems(twice)


def test_all_dangling_edges_are_reported():
    lost = content(["a"], [("a", "x"), ("y", "a"), ("y", "z")])
    assert [place for code, _, place in problems(lost) if code == "R104"] == [
        f"<dict>, topology.edges[{number}]" for number in (0, 1, 2, 2)
    ]


@pytest.mark.parametrize("status", ["draft", "archived"])
def test_unpublished_recipes_may_be_incomplete(status):
    assert problems(content([{"id": "a", "type": "agent"}], status=status)) == []
    assert "R104" in codes(content(["a"], [("a", "x")], status=status))


def test_a_published_recipe_may_call_its_whole_graph_a_draft():
    assert problems(content(["a"], topology={"status": "draft"}, status="published")) == []


def test_ids_may_be_any_text():
    source = content([agent(""), agent(" b"), agent("ü\nx")], [("", " b"), (" b", "ü\nx")])
    assert list(load(source).nodes) == ["", " b", "ü\nx"]


def test_the_interface_may_be_a_map_or_a_schema():
    bare = load(content(["a"], interface={"inputs": {"q": {"type": "string", "default": "hi"}}, "outputs": {"r": {}}}))
    full = load(
        content(["a"], interface={"inputs": {"type": "object", "required": ["q"], "properties": {"q": {}, "s": {}}}})
    )
    assert (list(bare.inputs), bare.outputs, dict(bare.init), bare.meta["required"]) == (["q"], ("r",), {"q": "hi"}, ())
    assert (list(full.inputs), full.meta["required"]) == (["q", "s"], ("q",))


def test_initial_state_is_on_the_board():
    state = {"properties": {"tries": {"type": "integer", "default": 0}}}
    assert dict(load(content(["a"], state=state)).init) == {"tries": 0}


def test_a_list_of_nodes_is_a_chain():
    short = {"metadata": {"name": "t"}, "interface": {}, "topology": [agent("a"), router("b", {}, "c"), agent("c")]}
    for topology in (short["topology"], {"steps": short["topology"]}):
        recipe = load({**short, "topology": topology})
        assert recipe.entry == ("a",)
        # The edge of a sequence that a router does not take is nobody's mistake.
        assert [(edge.source, edge.target) for edge in recipe.edges] == [("a", "b"), ("b", "c")]
        assert recipe.check() == []


def test_a_definition_loads_like_its_file():
    document = content([router("r", {"x": "a"}, "a"), "a"], topology={"status": "valid"})
    loaded = load(RecipeDefinition.model_validate(document))
    assert loaded.fingerprint == load(document).fingerprint
    assert loaded.nodes["r"].place.file == "<RecipeDefinition 't'>"


def test_a_definition_of_another_package_is_read_by_its_dump():
    definition = RecipeDefinition.model_validate(content(["a"]))
    other = type(
        "RecipeDefinition", (), {"metadata": definition.metadata, "model_dump": lambda self, **how: definition.dump()}
    )()
    assert load(other).fingerprint == load(definition).fingerprint


def test_values_that_json_cannot_represent_are_named_as_in_a_file():
    part = {"x_design": (Any, Field(serialization_alias="x-design"))}
    other = create_model("RecipeDefinition", metadata=(create_model("Metadata", **part), ...), topology=(Any, None))
    with pytest.raises(RecipeError, match=r"R244: the value of metadata\.x-design\.by is a bytes"):
        load(other(metadata={"x_design": {"by": b"\xff"}}), dialect="coreason")


def test_the_default_limit_is_fifty_steps():
    assert dict(load(content(["a"])).limits) == {"max_steps": MAX_STEPS}


def test_simulated_answers_may_be_in_the_metadata():
    def simulated(value):
        return load(content([agent("a", metadata={"simulated": value})])).nodes["a"].params.get("simulated")

    assert simulated({"x": 1}) == ({"x": 1},)
    assert simulated([{"x": 1}, {"x": 2}]) == ({"x": 1}, {"x": 2})
    assert simulated("yes") is None
    assert simulated([]) is None


def test_a_requested_but_unnamed_agent_has_the_name_of_its_node():
    wished = {"id": "a", "type": "agent", "agent_ref": {"intent": "write well"}}
    params = load(content([wished])).nodes["a"].params
    assert (params["ref"], params["wanted"]["intent"]) == ("a", "write well")


def test_the_label_of_a_node_is_that_of_the_editor():
    node = agent("a", presentation={"x": 1, "y": 2, "label": "Reader", "unknown": True})
    assert load(content([node])).nodes["a"].label == "Reader"


def test_in_a_draft_what_is_missing_is_a_warning():
    draft = content(
        ["a", router("r", {"x": "gone"}, "a")], [("a", "none"), ("a", "r")], "off", topology={"status": "draft"}
    )
    reported = problems(draft)
    assert {severity for _, severity, _ in reported} == {"warning"}
    assert sorted(code for code, _, _ in reported) == ["R104", "R104", "R105", "R115", "R115", "R118"]
    recipe = load(draft)
    assert [name for name, node in recipe.nodes.items() if node.kind == "missing"] == ["none", "gone", "off"]
    assert recipe.entry == ("off",)


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_a_complete_draft_runs_like_the_published_recipe(mode):
    rescued = [
        agent(name, recovery={"behavior": "route_to_fallback", "fallback_node_id": f"{name}_rescue"}) for name in "ab"
    ]
    nodes = [*rescued, "a_rescue", "b_rescue", router("r", {"x": "c"}, "d"), "c", "d", "e"]
    edges = [("a", "b"), ("a", "c"), ("b", "r"), ("b_rescue", "d"), ("c", "e"), ("d", "e"), ("r", "e")]
    actual, done = (
        load(content(nodes, edges, topology={"status": status}, policy={"execution_mode": mode}))
        for status in ("draft", "valid")
    )
    assert sum(edge.kind == "error" for edge in done.edges) == 2
    assert [replace(edge, place=None) for edge in actual.edges] == [replace(edge, place=None) for edge in done.edges]
    assert (list(actual.nodes), actual.regions.keys()) == (list(done.nodes), done.regions.keys())


def test_a_published_recipe_is_not_a_draft():
    assert "error" in [
        severity
        for _, severity, _ in problems(content(["a"], [("a", "b")], topology={"status": "draft"}, status="published"))
    ]


def test_yaml_and_json_give_the_same_recipe():
    document = content([router("r", {"x": "a"}, "a"), "a"])
    assert load(json.dumps(document)).fingerprint == load(document).fingerprint


def test_a_broken_recipe_reports_problems_of_its_graph_too():
    broken = content([{"id": "a", "type": "agent", "agent_reff": "x"}], [("a", "b")], "c")
    assert sorted(codes(broken)) == ["R104", "R105", "R112"]
