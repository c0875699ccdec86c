from __future__ import annotations

import pytest

from agentnb.board.values import ABSENT, freeze
from agentnb.dialects.activegraph.errors import InvalidPatchOperation
from agentnb.dialects.activegraph.parts.projection import apply_patch, check_op, diff_data, project
from tests.dialects.activegraph.runtimes import graph

STAMP = {"created_by": "ann"}


@pytest.fixture
def ledger():
    built_graph = graph()
    built_graph.add_object("book", {"title": "a", "n": 1})
    built_graph.add_relation("book#1", "book#2", "near")
    built_graph.propose_patch("book#1", "update", {"n": 2}, proposed_by="ann")
    return built_graph.ledger


def keys(writes):
    return [key for key, _ in writes]


def test_an_unknown_event_writes_nothing(ledger):
    assert project(ledger, "done", {"object": 1}) == []


def test_a_removed_object_is_removed_with_its_relations(ledger):
    assert project(ledger, "object.removed", {"id": "book#1"}) == [("rel_001", ABSENT), ("book#1", ABSENT)]
    assert project(ledger, "relation.removed", {"id": "rel_001"}) == [("rel_001", ABSENT)]
    assert project(ledger, "relation.removed", {"id": "rel_009"}) == []


def test_an_applied_patch_writes_itself_and_its_object(ledger):
    patch = ledger.get("patch_001")
    writes = dict(project(ledger, "patch.applied", {"patch": {**patch, "status": "applied"}}))
    assert writes["patch_001"]["status"] == "applied"
    assert (writes["book#1"]["data"]["n"], writes["book#1"]["version"]) == (2, 2)
    changes = {"patch": {**patch, "target": "book#9"}}
    assert keys(project(ledger, "patch.applied", changes)) == ["patch_001"]


def test_a_rejected_or_changed_patch_writes_itself_alone(ledger):
    ((key, value),) = project(ledger, "patch.rejected", {"patch_id": "patch_001", "reason": "no"})
    assert (key, value["status"], value["rejection_reason"]) == ("patch_001", "rejected", "no")
    assert project(ledger, "patch.rejected", {"patch_id": "patch_009"}) == []
    changed = {"patch": {**ledger.get("patch_001"), "value": {"n": 5}}}
    ((_, value),) = project(ledger, "patch.changed", changed)
    assert value["value"] == {"n": 5}


def test_a_requested_approval_is_pending_until_it_is_decided(ledger):
    request = {"approval_id": "approval_001", "object_type": "memo", "data": {"n": 1}, "reason": "", "pack": ""}
    assert project(ledger, "approval.proposed", request) == [("approval_001", request)]
    assert project(ledger, "approval.changed", {"approval_id": "approval_001", "data": {}}) == []
    assert project(ledger, "approval.granted", {"approval_id": "approval_001"}) == []


def test_a_patch_either_merges_or_replaces():
    book = freeze({"id": "book#1", "data": {"a": 1, "b": 2}, "version": 3})
    assert apply_patch(book, {"op": "update", "value": {"b": 5}})["data"] == {"a": 1, "b": 5}
    assert apply_patch(book, {"op": "replace", "value": {"b": 5}})["data"] == {"b": 5}
    assert apply_patch(book, {"op": "replace", "value": {}})["version"] == 4
    assert diff_data({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": None}) == {
        "b": {"old": 2, "new": 3},
        "c": {"old": None, "new": None},
    }
    with pytest.raises(InvalidPatchOperation, match="X503"):
        check_op("delete")
