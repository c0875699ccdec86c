from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import pytest

from tests.dialects.activegraph.runtimes import graph


def test_what_is_read_is_reported_as_a_dict_of_its_own():
    kept = graph()
    made = kept.add_object("book", {"tags": ["a"]}, evidence=["a list"])
    relation = kept.add_relation(made.id, "book#9", "near")
    patch = kept.propose_patch(made.id, "update", {"tags": []}, proposed_by="ann", rationale="why not")
    for each in (made, relation, patch):
        told = each.to_dict()
        assert json.loads(json.dumps(told)) == told
        assert told["provenance"]["run_id"] == "RUN"
    told = made.to_dict()
    told["data"]["tags"].append("b")
    assert kept.get_object(made.id).data == {"tags": ["a"]}
    assert made.provenance["evidence"] == ["a list"]
    assert (patch.expected_version, patch.status, patch.rationale) == (1, "proposed", "why not")


def test_a_thing_cannot_be_changed_in_place():
    made = graph().add_object("book", {})
    with pytest.raises(FrozenInstanceError):
        made.version = 7
