from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import pytest

from tests.dialects.activegraph.judge import assert_same_signatures
from tests.dialects.activegraph.runtimes import graph


def test_data_that_is_read_is_a_separate_dict():
    built_graph = graph()
    item = built_graph.add_object("book", {"tags": ["a"]}, evidence=["a list"])
    relation = built_graph.add_relation(item.id, "book#9", "near")
    patch = built_graph.propose_patch(item.id, "update", {"tags": []}, proposed_by="ann", rationale="why not")
    for each in (item, relation, patch):
        fields = each.to_dict()
        assert json.loads(json.dumps(fields)) == fields
        assert fields["provenance"]["run_id"] == "RUN"
    fields = item.to_dict()
    fields["data"]["tags"].append("b")
    assert built_graph.get_object(item.id).data == {"tags": ["a"]}
    assert item.provenance["evidence"] == ["a list"]
    assert (patch.expected_version, patch.status, patch.rationale) == (1, "proposed", "why not")


def test_objects_and_relations_cannot_be_changed_in_place():
    item = graph().add_object("book", {})
    with pytest.raises(FrozenInstanceError):
        item.version = 7


def test_signatures_are_those_of_the_package():
    assert_same_signatures("Object", "Relation", "Patch")
