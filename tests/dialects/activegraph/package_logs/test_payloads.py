"""Events that do not tell what their types ask for are refused, each with its place."""

from __future__ import annotations

import json

import pytest

from agentnb.dialects.activegraph.parts.package_logs.payloads import InvalidPayload, check, iter_creation_events

OBJECT = {"id": "task#1", "type": "task", "data": {}, "version": 1, "provenance": {}}
PATCH = {"id": "patch_001", "target": "task#1", "op": "update", "value": {}}


@pytest.mark.parametrize(
    ("type", "payload"),
    [
        ("object.created", {"object": OBJECT}),
        ("patch.applied", {"patch": PATCH}),
        ("patch.rejected", {"patch_id": "patch_001"}),
        ("object.removed", {"id": "task#1"}),
        ("of.my.own", {"object": 3}),
    ],
)
def test_a_valid_payload_is_accepted(type, payload):
    check(type, payload)


@pytest.mark.parametrize(
    ("type", "payload", "path"),
    [
        ("object.created", {}, "payload.object"),
        ("object.created", {"object": [1]}, "payload.object"),
        ("object.created", {"object": {**OBJECT, "id": 7}}, "payload.object.id"),
        ("object.created", {"object": {**OBJECT, "data": None}}, "payload.object.data"),
        ("object.created", {"object": {**OBJECT, "version": "1"}}, "payload.object.version"),
        ("object.created", {"object": {**OBJECT, "version": True}}, "payload.object.version"),
        ("relation.created", {"relation": {"id": "rel_001", "source": "task#1"}}, "payload.relation.target"),
        ("patch.applied", {"patch": {**PATCH, "value": "new"}}, "payload.patch.value"),
        ("patch.proposed", {"patch": {**PATCH, "op": "erase"}}, "payload.patch.op"),
        ("object.removed", {"object": "task#1"}, "payload.id"),
        ("approval.granted", {}, "payload.approval_id"),
    ],
)
def test_an_invalid_payload_is_rejected_with_its_path(type, payload, path):
    with pytest.raises(InvalidPayload) as caught:
        check(type, payload)
    assert caught.value.path == path


def test_a_stored_state_replaces_the_events_that_produce_it():
    relation = {"id": "rel_001", "source": "task#1", "target": "task#1", "type": "next"}
    events = list(iter_creation_events(json.dumps({"objects": [OBJECT], "relations": [relation]})))
    assert [type for type, _ in events] == ["object.created", "relation.created"]
    assert events[0][1]["object"] == OBJECT
    for type, payload in events:
        check(type, payload)


@pytest.mark.parametrize(
    "state", [None, "{", "[]", '{"objects": [1]}', '{"objects": 1}', pytest.param("[" * 100_000, id="deep")]
)
def test_a_state_that_cannot_be_read_is_refused(state):
    with pytest.raises(InvalidPayload) as caught:
        list(iter_creation_events(state))
    assert caught.value.path == "payload.state_hash"
