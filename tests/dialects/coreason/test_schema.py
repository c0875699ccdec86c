from __future__ import annotations

import pytest
from pydantic import ValidationError

from agentnb.dialects.coreason.schema import GraphTopology, RecipeDefinition, expand
from agentnb.errors import RecipeError
from agentnb.load import load
from tests.dialects.coreason.recipe_texts import agent, content
from tests.dialects.coreason.release_recipes import release_20, release_21, release_22


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
